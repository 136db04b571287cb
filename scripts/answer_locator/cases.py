"""Makes the rows that the network learns from.

    PYTHONPATH=scripts python -m answer_locator.cases WORK_FOLDER [MANUALS]

writes `rows.jsonl.gz`, and `reported.jsonl.gz` with the half of qa-squad2 that is only reported on. It takes the
written questions of `examples/golden/finder/written.jsonl`, whose passages lie in `../shared/data`, and those of
`manuals.jsonl`, whose passages are of public manuals: MANUALS is a folder with one folder for each of them. A passage
that is cut into other pieces than it was when they were written is left out, and said so. Embedding takes some minutes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from answer_locator.rows import Row
from book_questions import NO_LESSONS, ROOT, SHARED
from row_files import write

from lectern.models.local.embedder import LocalEmbedder
from lectern.ports.index import Purpose
from lectern.reading.lessons import read_lesson
from lectern.reading.survey import survey
from lectern.text.quotes import quotes_of, sections_of

FOLDER = ROOT / "examples" / "golden" / "finder"
WRITTEN_FILE, MANUALS_FILE = FOLDER / "written.jsonl", FOLDER / "manuals.jsonl"
MANUALS_COUNTS = 2.0  # what their rows count: they are few, and their answers are whole lists and steps
BOOKS = {"agentfactory": "book-agentfactory/docs", "curriculum": "book-curriculum/modules"}
SQUAD, NQ = "qa-squad2", "qa-nq"
CUT_FROM, A_PART = 260, 200  # words of a corpus' text: too many for one passage, and of what it is cut into
SHORT, LONG = 15, 180  # words of a passage: too few to be like any other, and as many as are embedded
LIKE, NEXT = 12, 8  # passages that are looked at for being next in meaning, and that one is drawn from
REMOVED_WEIGHT, OTHER_WEIGHT, NQ_COUNTS, LEFT_OUT = (
    0.6,
    0.4,
    0.7,
    0.5,
)  # what rows count beside those with their own passage
FEWEST = 2  # pieces of a passage that something was taken out of
SEED = 7

Array = np.ndarray[Any, np.dtype[np.float32]]
Key = tuple[str, str, int]


@dataclass(frozen=True)
class Passage:
    """A text that a question may be about."""

    key: Key  # its set, its document, its number there
    heading: str
    text: str

    @cached_property
    def pieces(self) -> list[str]:
        """As the network is given them."""
        return [piece for _, pieces in sections_of(quotes_of(self.text), self.heading) for piece in pieces]

    @property
    def digest(self) -> str:
        """Of what the authors saw: quotes but whole lists, on one line each."""
        quotes = [" ".join(quote.text.split()) for quote in quotes_of(self.text) if quote.kind != "list"]
        return hashlib.sha256("\n".join(quotes).encode()).hexdigest()[:12]


def of_book(name: str, folder: Path) -> Iterator[Passage]:
    """The chunks of a book."""
    book_survey = survey(folder)
    for source in book_survey.lessons:
        if not any(word in source.source_file.lower() for word in NO_LESSONS):
            for chunk in read_lesson(folder, source, book_survey.manifest).chunks:
                heading = chunk.section_title or source.lesson_title
                yield Passage((name, source.source_file, chunk.chunk_index), heading, chunk.text)


def of_corpus(name: str) -> Iterator[Passage]:
    """The texts of a question set, long ones in parts."""
    for line in (SHARED / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for number, text in enumerate(_parts(row["text"])):
            yield Passage((name, row["_id"], number), row.get("title") or "", text)


def _parts(text: str) -> Iterator[str]:
    if len(text.split()) <= CUT_FROM:
        yield text
        return
    lines_held: list[str] = []
    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n\n", text):
        if lines_held and len(" ".join(lines_held).split()) + len(sentence.split()) > A_PART:
            yield " ".join(lines_held)
            lines_held = []
        lines_held.append(sentence)
    yield " ".join(lines_held)


async def _embedded(texts: Sequence[str], purpose: Purpose) -> Array:
    embedder, vectors = LocalEmbedder(), list[Sequence[float]]()
    for start in range(0, len(texts), 256):
        vectors += await embedder.embed(texts[start : start + 256], purpose=purpose)
    return np.array(vectors, np.float32)


def written_passages(name: str) -> Iterator[Passage]:
    """The passages of a set in `../shared/data`."""
    return of_book(name, SHARED / BOOKS[name]) if name in BOOKS else of_corpus(name)


def written_rows(file: Path, passages_of: Callable[[str], Iterable[Passage]], counts: float = 1.0) -> Iterator[Row]:
    """Of each written question: its passage, the same without the answer, and two passages next in meaning."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    names = sorted({line["set"] for line in lines})
    passages = [passage for name in names for passage in passages_of(name)]
    passage_by_key = {passage.key: passage for passage in passages}
    near = [passage for passage in passages if len(passage.text.split()) >= SHORT and passage.pieces]
    cut = [LocalEmbedder().passages((passage.heading,), " ".join(passage.text.split()[:LONG]))[0] for passage in near]
    vectors = asyncio.run(_embedded(cut, "passage"))
    questions = [question for line in lines for question, _ in line["asked"]]
    vector_by_question = dict(zip(questions, asyncio.run(_embedded(questions, "question")), strict=True))
    places = {name: np.array([at for at, passage in enumerate(near) if passage.key[0] == name]) for name in names}
    draw, left_out = random.Random(SEED), 0
    for line in lines:
        passage = passage_by_key.get((line["set"], line["doc"], line["at"]))
        if passage is None or passage.digest != line["digest"]:
            left_out += 1
            continue
        set_places = places[line["set"]]
        for question, answers in line["asked"]:
            yield from _answered_rows(question, answers, passage, line["_id"], counts)
            closest = set_places[np.argsort(-(vectors[set_places] @ vector_by_question[question]))[:LIKE]]
            best = [near[at] for at in closest if near[at] != passage]
            for neighbour in [best[0], draw.choice(best[1:NEXT])]:
                kind = "other" if answers else "other-near"
                yield Row(question, neighbour.heading, neighbour.pieces, [], counts * OTHER_WEIGHT, kind, line["_id"])
    print(f"{left_out} of {len(lines)} passages are cut differently now and were left out")


def _answered_rows(question: str, answers: list[int], passage: Passage, group: str, counts: float) -> Iterator[Row]:
    yield Row(question, passage.heading, passage.pieces, answers, counts, "own" if answers else "near", group)
    rest = [piece for number, piece in enumerate(passage.pieces) if number not in answers]
    if answers and len(rest) >= FEWEST:
        yield Row(question, passage.heading, rest, [], counts * REMOVED_WEIGHT, "removed", group)


def set_rows(name: str, kind: str, counts: float) -> Iterator[tuple[str, Row]]:
    """The questions of a set with the text that is meant, each with its article."""
    corpus = {passage.key[1]: passage for passage in of_corpus(name) if passage.key[2] == 0}
    for question in map(json.loads, (SHARED / name / "queries.jsonl").read_text(encoding="utf-8").splitlines()):
        passage, article = corpus[question["gold"][0]["doc"]], str(question["meta"].get("article") or question["_id"])
        expected_answers = [answer.lower() for answer in question["answers"]] if question["answerable"] else []
        pieces = passage.pieces
        answers = [at for at, piece in enumerate(pieces) if any(answer in piece.lower() for answer in expected_answers)]
        if not pieces or (expected_answers and not answers):
            continue
        row = Row(
            question["text"],
            passage.heading,
            pieces,
            answers,
            counts,
            kind if expected_answers else f"{kind}-adv",
            article,
        )
        yield article, row
        rest = [piece for at, piece in enumerate(pieces) if at not in answers]
        if answers and len(rest) >= FEWEST:
            yield article, row._replace(pieces=rest, answers=[], counts=LEFT_OUT, kind=f"{kind}-removed")


def main() -> None:
    """All rows."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    squad = list(set_rows(SQUAD, "squad", 1.0))
    fitted = set(sorted({article for article, _ in squad})[0::2])  # as `lectern eval answers --half fitted` cuts them
    rows = [*written_rows(WRITTEN_FILE, written_passages), *(row for article, row in squad if article in fitted)]
    rows += [row for _, row in set_rows(NQ, "nq", NQ_COUNTS)]
    if sys.argv[2:]:
        manuals = Path(sys.argv[2])
        rows += written_rows(MANUALS_FILE, lambda name: of_book(name, manuals / name), MANUALS_COUNTS)
    test_rows = [row for article, row in squad if article not in fitted and not row.kind.endswith("removed")]
    print(write(folder / "rows.jsonl.gz", rows), write(folder / "reported.jsonl.gz", test_rows))


if __name__ == "__main__":
    main()
