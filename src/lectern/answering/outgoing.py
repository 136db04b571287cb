"""Filters what a model writes: no links or images except our citations, no words of our instructions, and no secrets.
Text in code stays as the book has it, but is never a link."""

from __future__ import annotations

import re
from collections.abc import Sequence

MIN_DISCLOSED_WORDS = 8  # in a row; fewer may be a coincidence
_IMAGE = re.compile(r"!\[([^\]\n]*)\](?:\([^)\n]*\)?|\[[^\]\n]*\])")
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\](?:\([^)\n]*\)?|\[[^\]\n]+\])")
_AUTOLINK = re.compile(r"<(?:https?|ftp|mailto|javascript|data|file|vbscript):[^>\s]*>?", re.IGNORECASE)
_BARE = re.compile(r"(?i)\b(?:(?:https?|ftp|wss?)://|(?:javascript|data|file|vbscript|mailto):(?=\S))(?:www\.)?")
_WWW = re.compile(r"(?i)\bwww\.(?=\w)")
_DEFINITION = re.compile(r"(?m)^\s*\[[^\]\n]+\]:\s*\S.*$")
_TAG = re.compile(r"</?[A-Za-z!][^>\n]*>?")


def without_links(text: str) -> str:
    """The text without anything that can be clicked or fetched. The text of a link stays, its target is removed."""
    parts = re.split(r"(```[\s\S]*?```|`+[^`\n]*`+)", text)
    return "".join(part if part.startswith("`") else _plain(part) for part in parts)


def _plain(text: str) -> str:
    text = _DEFINITION.sub("", text)
    text = _IMAGE.sub(lambda image: image[1], text)
    text = _LINK.sub(lambda link: link[0] if re.fullmatch(r"\[\d+\]\[\d+\]", link[0]) else link[1], text)
    text = _AUTOLINK.sub("", text)
    text = _TAG.sub("", text)
    return _WWW.sub("", _BARE.sub("", text))


class Confidential:
    """Texts that a reply must not contain: sequences of words of our instructions, and secrets."""

    def __init__(self, texts: Sequence[str], secrets: Sequence[str], public_text: str = "") -> None:
        """The words of `public_text` are not confidential: these instructions are public."""
        self._runs = {run for text in texts for run in _runs(text)}
        self._words = {word for text in texts for word in _words(text)} - set(_words(public_text))
        self._secrets = tuple(secret for secret in secrets if secret)

    def is_disclosed_by(self, sentence: str) -> bool:
        """Whether a sentence contains a secret or a sequence of confidential words, in any case and spacing."""
        squeezed = re.sub(r"\s+", "", sentence)
        if any(secret in sentence or secret in squeezed for secret in self._secrets):
            return True
        return not self._runs.isdisjoint(_runs(sentence))

    def is_hinted_by(self, sentence: str, evidence: Sequence[str]) -> bool:
        """Whether a sentence has a word of the operator's instructions that its evidence does not have."""
        open_words = {word for text in evidence for word in _words(text)}
        return not (self._words & set(_words(sentence))) <= open_words


def _words(text: str) -> list[str]:
    return re.findall(r"\w{4,}", text.lower())


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + MIN_DISCLOSED_WORDS]) for at in range(len(words) - MIN_DISCLOSED_WORDS + 1)}
