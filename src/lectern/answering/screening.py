"""Refuses messages before anything is searched: attempts to override the instructions, requests for what is not in the
book, and small talk. The patterns are narrow, so that they seldom match a question about a book. The later checks do
not rely on them."""

from __future__ import annotations

import re

from lectern.answering.small_talk import small_talk
from lectern.domain.replies import RefusalReason

_OVERRIDE = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.?!\n]{0,40}\b(?:previous"
    r"|prior|above|earlier|all|your|these|the)\b"
    r"[^.?!\n]{0,30}\b(?:instructions?|prompts?|rules|guidelines|constraints|guardrails)\b",
    re.IGNORECASE,
)
_EXTRACT = re.compile(
    r"\b(?:reveal|show|print|repeat|output|display|tell me|give me|what (?:is|are)|leak|dump|write out)\b[^.?!\n]{0,40}"
    r"\b(?:(?:your|the|its) (?:system|hidden|initial|secret|developer) (?:prompts?|messages?|instructions?)"
    r"|your (?:instructions|prompt|api[ -]?keys?|rules|guidelines|configuration|secrets?)"
    r"|api[ -]?keys? (?:you|of this|from the env)|environment variables of (?:this|the) server)\b",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"\byou are (?:now|no longer)\b|\bact as (?:an? )?(?:unrestricted|unfiltered|jailbroken)"
    r"|\b(?:enter|enable|switch to|in) developer mode\b(?! on)|\bDAN mode\b|<\|(?:im_start|system)\|>|\[/?INST\]"
    r"|^\s*(?:system|assistant)\s*:|\bpretend (?:that )?you (?:are|have) no",
    re.IGNORECASE | re.MULTILINE,
)
_OTHER_READERS = re.compile(
    r"\b(?:other|another|different) (?:users?|tenants?|readers?|customers?)(?:'s|s')? "
    r"(?:books?|data|conversations?|threads?|questions?)\b",
    re.IGNORECASE,
)


def screen(message: str) -> RefusalReason | None:
    """The reason to refuse a message without a search, or None."""
    if any(pattern.search(message) for pattern in (_OVERRIDE, _EXTRACT, _ROLE, _OTHER_READERS)):
        return "blocked"
    return "off_topic" if small_talk(message) else None
