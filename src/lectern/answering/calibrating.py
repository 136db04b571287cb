"""Calibrating for one book, read downward: gather questions, ask them all, fit on one half, look at the other, keep
what is better. The fit starts from the parameters that are shipped, so that calibrating twice is calibrating once, and
moves only as far as the questions insist; where it does no better on questions it has not seen, nothing is stored."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from lectern.answering.calibration import Calibration, Labelled, fit, remove_outdated, shipped, stored, to_json
from lectern.answering.self_questions import (
    MOST,
    covered_questions,
    far_questions,
    foreign_questions,
    mixed_questions,
)
from lectern.answering.signals import FIELD, signals_of
from lectern.domain.chunks import Chunk, StampedChunk
from lectern.domain.errors import BadInput
from lectern.domain.evidence import LOW, Findings
from lectern.ports import BookEntry

LEAST = 10  # questions of either kind
RIDGE = 10.0  # how strongly parameters are held: about as much as ten questions
FIRM = 100.0  # the same where they were fitted on readers' questions, and these are only the book's own
OTHERS = 4  # other books that are asked for sentences, at most
RELATED = 0.1  # of another book's sentences may look covered; with more it is about the same subject

Source = Literal["questions", "book"]
Progress = Callable[[int, int], None]


class Library(Protocol):
    """What calibrating needs of an open Lectern."""

    async def search(self, text: str, *, book: str | None = None, limit: int = 5) -> Findings:
        """Hybrid, without a threshold."""

    async def chunks(self, book: str | None = None) -> list[StampedChunk]:
        """Every chunk of a book."""

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book."""

    async def book(self, book: str | None = None) -> BookEntry:
        """The book that is meant by this name, or by none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuestion:
    """A question that somebody has judged."""

    text: str
    answerable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How parameters do on questions they were not fitted on."""

    false_refusal_rate: float
    refusal_rate: float
    auroc: float
    ece: float
    log_loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """What calibrating a book came to."""

    book_id: str
    fingerprint: str
    source: Source
    covered: int
    uncovered: int
    before: Figures  # the parameters in use, on the held-out half
    after: Figures  # those fitted on the other half
    was: Calibration
    now: Calibration  # fitted on all questions, or `was` where nothing is better
    stored: str | None  # the file


async def calibrate(
    library: Library,
    folder: Path,
    *,
    book: str | None = None,
    questions: Sequence[LabelledQuestion] = (),
    progress: Progress = lambda _done, _total: None,
) -> CalibrationReport:
    """Fit a book's parameters from labelled questions, or from the book itself, and keep them in `folder`."""
    entry = await library.book(book)
    book_id, fingerprint = entry.manifest.book_id, entry.fingerprint
    prior = shipped(fingerprint)
    kept = stored(folder, book_id, fingerprint)
    was = kept if kept is not None and (kept.zero, kept.one) == (prior.zero, prior.one) else prior
    asked = _labelled(questions) if questions else await _of_the_book(library, entry)
    rows = _unrelated(await _ask(library, book_id, asked, prior, progress), prior)
    notes = f"Fitted by `lectern calibrate` on {len(rows)} {'labelled questions' if questions else 'self-questions'}."

    def fitted(some: Sequence[Labelled]) -> Calibration:
        ridge = FIRM if prior.n and not questions else RIDGE
        return fit(some, fingerprint=fingerprint, notes=notes, prior=prior, ridge=ridge)

    first = [row for question, row in rows if _half(question.text)]
    rest = [row for question, row in rows if not _half(question.text)]
    before, after = figures(was, rest), figures(fitted(first), rest)
    better = after.log_loss < before.log_loss
    now = fitted([row for _, row in rows]) if better else was
    if not better:
        remove_outdated(folder, book_id)
    return CalibrationReport(
        book_id=book_id,
        fingerprint=fingerprint,
        source="questions" if questions else "book",
        covered=sum(row.covered for _, row in rows),
        uncovered=sum(not row.covered for _, row in rows),
        before=before,
        after=after,
        was=was,
        now=now,
        stored=str(_store(now, folder / f"{book_id}.json")) if better else None,
    )


def figures(calibration: Calibration, rows: Sequence[Labelled]) -> Figures:
    """How probabilities do on these questions."""
    import numpy as np

    from lectern.answering.scores import auroc, ece, log_loss, share_below

    chances = np.array([calibration.of(row.signals) for row in rows])
    labels = np.array([float(row.covered) for row in rows])
    return Figures(
        false_refusal_rate=share_below(chances[labels > 0], LOW),
        refusal_rate=share_below(chances[labels <= 0], LOW),
        auroc=auroc(chances, labels),
        ece=ece(chances, labels),
        log_loss=log_loss(chances, labels),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    text: str
    covered: bool
    chunk_id: str | None = None
    origin: str | None = None  # the other book that it was made of


_Row = tuple[_Asked, Labelled]


def _labelled(questions: Sequence[LabelledQuestion]) -> list[_Asked]:
    """As they are; where nobody wrote what the book does not cover, the list that is shipped takes its place."""
    asked = [_Asked(text=question.text, covered=question.answerable) for question in questions]
    if all(question.answerable for question in questions):
        asked += [_Asked(text=text, covered=False) for text in far_questions()]
    return asked


async def _of_the_book(library: Library, entry: BookEntry) -> list[_Asked]:
    own = await _chunks(library, entry)
    known = {chunk.content_hash for chunk in own}  # two editions of one book share most of their texts
    asked = [_Asked(text=one.text, covered=True, chunk_id=one.chunk_id) for one in covered_questions(own)]
    asked += [_Asked(text=text, covered=False) for text in far_questions()]
    asked += [_Asked(text=one.text, covered=False) for one in mixed_questions(own)]
    others = [one for one in await library.books() if one.manifest.book_id != entry.manifest.book_id][:OTHERS]
    for other in others:
        foreign = [chunk for chunk in await _chunks(library, other) if chunk.content_hash not in known]
        made = foreign_questions(foreign, MOST // len(others))
        asked += [_Asked(text=one.text, covered=False, origin=other.manifest.book_id) for one in made]
    return asked


def _unrelated(rows: list[_Row], prior: Calibration) -> list[_Row]:
    """Without the sentences of books that are about the same things: nobody knows which of those are covered."""
    origins = {asked.origin for asked, _ in rows} - {None}
    for origin in origins:
        chances = [prior.of(row.signals) for asked, row in rows if asked.origin == origin]
        if sum(chance >= LOW for chance in chances) > RELATED * len(chances):
            rows = [(asked, row) for asked, row in rows if asked.origin != origin]
    return rows


async def _chunks(library: Library, entry: BookEntry) -> list[Chunk]:
    return [stamped.chunk for stamped in await library.chunks(entry.manifest.book_id)]


async def _ask(
    library: Library, book_id: str, asked: Sequence[_Asked], scale: Calibration, progress: Progress
) -> list[_Row]:
    for kind, count in (("covers", sum(one.covered for one in asked)), ("does not cover", _uncovered(asked))):
        if count < LEAST:
            raise BadInput(
                f"calibrating needs {LEAST} questions or more that the book {kind}, not {count}; "
                "give a file of labelled ones: --questions FILE"
            )
    rows = []
    for number, one in enumerate(asked, start=1):
        found = await library.search(one.text, book=book_id, limit=FIELD)
        gold = next((hit.similarity for hit in found.hits if one.chunk_id in (hit.chunk.id, None)), None)
        if one.chunk_id is not None and scale.n:
            gold = None  # readers' questions set the floor; sentences with foreign words in them lie lower
        signals = signals_of(one.text, found.hits, zero=scale.zero, one=scale.one)
        rows.append((one, Labelled(signals=signals, covered=one.covered, gold=gold if one.covered else None)))
        progress(number, len(asked))
    return rows


def _uncovered(asked: Sequence[_Asked]) -> int:
    return sum(not one.covered for one in asked)


def _half(text: str) -> bool:
    """By the text alone, so that a list in another order is split alike."""
    return zlib.crc32(text.encode()) % 2 == 0


def _store(calibration: Calibration, file: Path) -> Path:
    """Whole or not at all: a reader never sees half a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".tmp")
    beside.write_text(to_json(calibration), encoding="utf-8")
    beside.replace(file)
    return file
