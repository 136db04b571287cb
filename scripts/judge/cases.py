"""The statements that people wrote, with the evidence that the judge would read for each.

    PYTHONPATH=scripts python -m judge.cases WORK_FOLDER

writes `written`, `golden` and `ground-*` (`.jsonl.gz`) into the folder. `examples/golden/judge/written.jsonl` names its
passages by set, document and place, since their texts are not ours to copy; they lie in `../shared/data`. Pairs that
share eight words running with such a text are not in it, either; the shipped network was trained with these, too.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from judge.rows import GROUND, Row
from row_files import write

from lectern.evals.grounding import load_grounding
from lectern.grounding.claims import Claim, read_claim, units_of
from lectern.grounding.evidence import evidence_for
from lectern.grounding.judge import decodable
from lectern.text.plain import unattributed

ROOT = Path(__file__).resolve().parents[2]
SHARED, GOLDEN = ROOT.parent / "shared" / "data", ROOT / "examples" / "golden" / "judge"
TEACHER_WORDS = 300  # of evidence; the teacher reads more than the network that it teaches


class Stated(NamedTuple):
    """A statement with the passages it is about."""

    text: str
    passages: tuple[str, ...]
    kind: str
    group: str = ""
    part: str = ""
    true: bool = True

    origin: str = ""

    def row(self, teacher_words: int = TEACHER_WORDS) -> Row:
        """As the network reads it, and the evidence that its teacher reads."""
        claim, units = read_claim(self.text), [unit for passage in self.passages for unit in units_of(passage)]
        row = row_of(claim, units, int(self.true), self.kind, self.group, self.part, teacher_words=teacher_words)
        return row._replace(origin=read_claim(self.origin).text if self.origin else "")


def row_of(
    claim: Claim, units: Sequence[Claim], true: int, kind: str, *place: str, teacher_words: int = TEACHER_WORDS
) -> Row:
    """A claim with its evidence; `place` is group and part. Without teacher's words it reads what the network reads."""
    evidence = evidence_for(claim, units)
    long = evidence_for(claim, units, teacher_words) if teacher_words else evidence
    return Row(claim.text, evidence, true, kind, *place, long="" if long == evidence else long)


def stated(text: str) -> str:
    """A statement without "According to the lesson," and halves of characters."""
    return unattributed(decodable(text).strip())


def written_cases() -> Iterator[Stated]:
    """The written pairs: each true statement, then the false one that was made of it."""
    for line in (GOLDEN / "written.jsonl").read_text(encoding="utf-8").splitlines():
        pairs = json.loads(line)
        passages, group, part = (passage_of(pairs),), pairs["_id"], str(pairs["round"])
        for true, false, kind in pairs["pairs"]:
            yield Stated(stated(true), passages, "true", group, part)
            yield Stated(stated(false), passages, kind, group, part, true=False, origin=stated(true))


def passage_of(place: dict[str, str | int]) -> str:
    """The text that a line of `written.jsonl` is about. What was cut out of a longer text had its sentences joined."""
    name, document = str(place["set"]), str(place["doc"])
    text = corpus(name)[document] if name.startswith("qa-") else document_text(SHARED / document)
    start, end = int(place["start"]), int(place["end"])
    if not name.startswith("qa-"):
        return text[start:end].strip().replace("\r\n", "\n")  # as the reader of books leaves them
    return text if (start, end) == (0, len(text)) else re.sub(r"(?<=[.!?])\s+", " ", text[start:end])


@cache
def corpus(name: str) -> dict[str, str]:
    """The texts of a question set, by their ids."""
    lines = (SHARED / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return {document["_id"]: document["text"] for document in map(json.loads, lines)}


def document_text(file: Path) -> str:
    """A document of a book, byte by byte: line ends stay as they are, since places are counted in it."""
    return file.read_bytes().decode("utf-8", "replace")


def golden() -> Iterator[Stated]:
    """The sentences about the sample book that are not held out."""
    for name in ("pairs", "fresh"):
        for case in load_grounding(GOLDEN / f"{name}.jsonl").cases:
            group = "d" + hashlib.sha256(case.passages[0].encode()).hexdigest()[:8]
            yield Stated(stated(case.sentence), case.passages, case.kind, group, name, case.true)


def ground(name: str) -> Iterator[Stated]:
    """A set of statements about other texts."""
    for case in load_grounding(SHARED / name).cases:
        group = hashlib.sha256(case.passages[0].encode()).hexdigest()[:8]
        yield Stated(stated(case.sentence), case.passages, case.kind, group, case.part, case.true)


def main() -> None:
    """Write all cases."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, cases in {
        "written": written_cases(),
        "golden": golden(),
        **{name: ground(name) for name in GROUND},
    }.items():
        print(name, write(folder / f"{name}.jsonl.gz", (case.row() for case in cases)))


if __name__ == "__main__":
    main()
