"""The statements of a passage. A sentence is a piece of its passage, word for word, so that it can be found again:
markup at its head (bullets, quote marks) is left off, nothing inside is changed. Code, tables and headings state
nothing by themselves."""

from __future__ import annotations

import re

LEAST_WORDS = 3

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_NOT_PROSE = re.compile(r"^\s*(#{1,6}\s|\||:::|!!!|<|={3,}\s*$|-{3,}\s*$|\*{3,}\s*$|\$\$|!\[)")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*)")
_TASK = re.compile(r"(?i)\b(exercises?|try (it|this|with)|reflect\w*|quiz|check your|your turn|practice|homework)\b")
_LEAD = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)?")
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]*_`]*\s+(?=[\"'“‘(\[*_`]*[A-Z0-9À-ÞА-Я])|(?<=[。！？۔])\s*")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|Fig|Eq|No|Dr|Mr|Ms|Mrs|Prof|approx|resp|al)|\b[A-Z])\.$")


def sentences_of(text: str) -> list[str]:
    """The sentences of a Markdown passage, in order, word for word; tasks set to the reader are left out."""
    return [sentence for paragraph in _paragraphs(text) for sentence in _split(paragraph) if _states(sentence)]


def _paragraphs(text: str) -> list[str]:
    """Prose as it stands: lines that belong together joined by a blank, as a renderer would."""
    found: list[str] = []
    open_fence: str | None = None
    fresh, task = True, False
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if open_fence is not None:
            if fence and line.strip().startswith(open_fence):
                open_fence = None
            continue
        if heading := _HEADING.match(line):
            task = bool(_TASK.search(heading.group(1)))
        if fence:
            open_fence, fresh = fence.group(1), True
        elif task or not line.strip() or _NOT_PROSE.match(line):
            fresh = True
        else:
            lead = _LEAD.match(line)
            marked = lead is not None and bool(lead.group().strip())
            body = line[lead.end() :].strip() if lead else line.strip()
            if fresh or marked:
                found.append(body)
            else:
                found[-1] += f" {body}"
            fresh = False
    return found


def _split(paragraph: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    for end in _END.finditer(paragraph):
        head = paragraph[start : end.start()]
        if _ABBREVIATION.search(head.rstrip()):
            continue
        pieces.append(paragraph[start : end.end()].strip())
        start = end.end()
    pieces.append(paragraph[start:].strip())
    return [piece for piece in pieces if piece]


def _states(sentence: str) -> bool:
    """Whether it says something: some words, and no question to the reader."""
    return len(re.findall(r"\w+", sentence)) >= LEAST_WORDS and not sentence.endswith(("?", ":"))
