"""Questions that readers would ask about public manuals, from `examples/golden/readers/questions.jsonl`. The manuals
are not ours to copy: a folder has one folder for each of them, as `examples/golden/README.md` says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lectern.text.words import content_stems

FILE = Path(__file__).resolve().parents[1] / "examples" / "golden" / "readers" / "questions.jsonl"
RIGHT_SHARE = 0.75  # of the answer's words, from which a text has the answer


@dataclass(frozen=True, slots=True)
class ReaderQuestion:
    """One question."""

    text: str
    answerable: bool
    answer: str  # as it stands in the book


def by_manual(part: str, manuals: Path) -> dict[str, list[ReaderQuestion]]:
    """The questions of a part, `fitted` or `reported`, by the manual's name. Follow-ups and questions about the book
    itself are left out: these are answered without a search."""
    questions: dict[str, list[ReaderQuestion]] = {}
    for line in map(json.loads, FILE.read_text(encoding="utf-8").splitlines()):
        if line["part"] != part or "history" in line or line["kind"] == "book":
            continue
        answer = ""
        if line["answerable"]:
            text = (manuals / line["book"] / line["file"]).read_bytes().decode("utf-8")
            answer = text[line["start"] : line["end"]]
        question = ReaderQuestion(line["text"], line["answerable"], answer)
        questions.setdefault(line["book"], []).append(question)
    return questions


def share_of(answer: str, text: str) -> float:
    """The share of the answer's words that a text has."""
    words = content_stems(answer)
    return len(words & content_stems(text)) / len(words) if words else 0.0
