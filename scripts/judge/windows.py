"""The texts that statements are made from: windows of books' lessons, and the texts of question sets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from judge.cases import SHARED, corpus, document_text

from lectern.text.pieces import sentences_of

BOOKS = ("book-robolearn/docs", "book-curriculum/modules", "book-agentfactory/docs")
CORPORA = ("squad2", "nq", "clapnq", "mtragun", "multihop-mini", "claudedocs", "cranfield")
FEWEST, MOST = 70, 230  # words of a window
MOST_CODE, LEAST_SAID = 0.5, 3  # share of its characters; sentences, rows and items
SHORT, LONG, A_PART = 30, 260, 120  # words of a corpus' text: too few to use, enough to cut, and of what it is cut into


def windows_of(text: str) -> Iterator[str]:
    """Neighbouring blocks that say something, together as long as a chunk."""
    front = re.search(r"^---\s*$", text[3:], re.MULTILINE) if text.startswith("---") else None
    blocks = [block for block in _blocks(text) if block[0] >= (3 + front.end() if front else 0)]
    first = 0
    for last, (_, end) in enumerate(blocks):
        window = text[blocks[first][0] : end]
        if (words := len(window.split())) < FEWEST:
            continue
        first = last + 1
        code = sum(len(listing) for listing in re.findall(r"```.*?(?:```|$)", window, re.DOTALL)) / len(window)
        sentence_count = len(re.findall(r"[.!?]\s", window)) + window.count("\n|") + window.count("\n- ")
        if words <= MOST and code < MOST_CODE and sentence_count >= LEAST_SAID:
            yield window


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where blocks begin and end: blank lines part them, but not within a listing."""
    place, start, fenced = 0, -1, False
    for line in text.splitlines(keepends=True):
        fenced ^= line.strip().startswith(("```", "~~~"))
        if line.strip() or fenced:
            start = place if start < 0 else start
        elif start >= 0:
            yield start, place
            start = -1
        place += len(line)
    if start >= 0:
        yield start, place


def passages() -> Iterator[str]:
    """Every text that a statement may be made from."""
    for root in BOOKS:
        for file in sorted((SHARED / root).rglob("*.md*")):
            if "summary" not in file.name and "uiz" not in file.name:
                yield from windows_of(document_text(file).replace("\r\n", "\n"))
    for name in CORPORA:
        for text in corpus(f"qa-{name}").values():
            plain = text
            if name == "clapnq":  # its marks stand apart from the words
                plain = re.sub(r" ([.,;:!?)])", r"\1", text.replace("`` ", '"').replace(" ''", '"').replace("( ", "("))
            if len(text.split()) > LONG:
                yield from _parts(plain)
            elif len(text.split()) > SHORT:
                yield plain


def _parts(text: str) -> Iterator[str]:
    lines_held: list[str] = []
    for sentence in sentences_of(text):
        lines_held.append(sentence)
        if sum(len(line_text.split()) for line_text in lines_held) > A_PART:
            yield " ".join(lines_held)
            lines_held = []
