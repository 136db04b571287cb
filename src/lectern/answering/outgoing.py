"""What a sentence may carry out of the house: no link or image but our citations, no words of our own instructions and
no secret, whatever a model was talked into. Text in code stays as the book wrote it, but is never a link."""

from __future__ import annotations

import re
from collections.abc import Sequence

RUN = 8  # words in a row: fewer could be chance
_IMAGE = re.compile(r"!\[([^\]\n]*)\](?:\([^)\n]*\)?|\[[^\]\n]*\])")
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\](?:\([^)\n]*\)?|\[[^\]\n]+\])")
_AUTOLINK = re.compile(r"<(?:https?|ftp|mailto|javascript|data|file|vbscript):[^>\s]*>?", re.IGNORECASE)
_BARE = re.compile(r"(?i)\b(?:(?:https?|ftp|wss?)://|(?:javascript|data|file|vbscript|mailto):(?=\S))(?:www\.)?")
_WWW = re.compile(r"(?i)\bwww\.(?=\w)")
_DEFINITION = re.compile(r"(?m)^\s*\[[^\]\n]+\]:\s*\S.*$")
_TAG = re.compile(r"</?[A-Za-z!][^>\n]*>?")


def unlinked(text: str) -> str:
    """The text without anything that can be clicked or fetched; what a link says stays, where it leads goes."""
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
    """Texts that never leave: runs of words of our instructions, and secrets."""

    def __init__(self, texts: Sequence[str], secrets: Sequence[str], known: str = "") -> None:
        """`known` are words that give nothing away: those of the instructions that anybody can read."""
        self._runs = {run for text in texts for run in _runs(text)}
        self._words = {word for text in texts for word in _words(text)} - set(_words(known))
        self._secrets = tuple(secret for secret in secrets if secret)

    def given_away_by(self, sentence: str) -> bool:
        """Whether a sentence repeats any of it, in whatever case and spacing."""
        squeezed = re.sub(r"\s+", "", sentence)
        if any(secret in sentence or secret in squeezed for secret in self._secrets):
            return True
        return not self._runs.isdisjoint(_runs(sentence))

    def hinted_at_by(self, sentence: str, said: Sequence[str]) -> bool:
        """Whether a sentence holds a word of what an operator added that nothing it may rest on holds."""
        open_words = {word for text in said for word in _words(text)}
        return not (self._words & set(_words(sentence))) <= open_words


def _words(text: str) -> list[str]:
    return re.findall(r"\w{4,}", text.lower())


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}
