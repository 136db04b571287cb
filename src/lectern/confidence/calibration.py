"""Calibration turns signals into a probability. It is a logistic regression, fitted for one embedder (embedders have
different scales of cosines) and, by `lectern calibrate`, for one book. Fitting is deterministic. Covered and uncovered
questions have the same weight, and no signal gets a negative weight.

`calibrate` fits a book: it collects questions, searches for all of them, fits on one half and compares on the other.
The fit starts from the shipped parameters and is drawn to them, so calibrating twice gives the same result as
calibrating once. If the new parameters are no better on the second half, nothing is stored.
"""

from __future__ import annotations

import json
import logging
import math
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import TypeAdapter, ValidationError

from lectern.confidence.relevance import UNMEASURED, RelevanceScale, misfit, scale_from
from lectern.confidence.self_questions import (
    MAX_SELF_QUESTIONS,
    covered_questions,
    far_questions,
    foreign_questions,
    mixed_questions,
)
from lectern.confidence.signals import CONFIDENCE_HITS, ENGLISH, NAMES, Signals, signal_values, signals_of
from lectern.domain.books import BookEntry
from lectern.domain.chunks import Chunk, StampedChunk
from lectern.domain.errors import BadInput, ConfigError, OtherSignals
from lectern.domain.evidence import LOW, Findings, Hit

if TYPE_CHECKING:
    from lectern.confidence.scores import Numbers

log = logging.getLogger("lectern.answering")

SHIPPED = Path(__file__).parent / "calibrations"
GENERIC = "generic"  # for embedders without a fit: it uses words alone
RIDGE = 1.0  # keeps weights finite if the classes can be separated perfectly
NEWTON_STEPS = 60
MIN_STEP = 1e-9  # smaller steps change nothing
MAX_EXPONENT = 30.0  # larger exponents do not change the probability
FLOOR_SHARE = 0.002  # of the answering passages that may be below the floor: losing one is worse than noise
MIN_QUESTIONS = 10  # of either kind
CALIBRATION_RIDGE = 10.0  # how strongly the fit is drawn to the prior: about as much as ten questions do
SELF_QUESTION_RIDGE = 100.0  # for questions made from the book, if the prior was fitted on readers' questions
MAX_OTHER_BOOKS = 4  # that sentences are taken from
MAX_RELATED_SHARE = 0.1  # of another book's sentences that look covered; with more, it has the same subject

Source = Literal["questions", "book"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Parameters of the probability that a book answers a question."""

    fingerprint: str  # of the embedder whose cosines they are for
    signals: tuple[str, ...]
    weights: tuple[float, ...]
    intercept: float
    zero: float = 0.0  # the cosine that counts as 0
    one: float = 1.0  # the cosine that counts as 1
    floor: float  # a cosine below which a hit is noise
    n: int  # questions it was fitted on
    notes: str
    scale: RelevanceScale = UNMEASURED

    def __post_init__(self) -> None:
        unknown = [name for name in self.signals if name not in NAMES]
        if unknown:
            raise ValueError(f"there is no signal {unknown[0]!r}; there are {', '.join(NAMES)}")
        if not self.signals or len(self.signals) != len(set(self.signals)):
            raise ValueError("signals must be named, each once")
        if len(self.signals) != len(self.weights):
            raise ValueError(f"{len(self.signals)} signals need as many weights, not {len(self.weights)}")
        if not all(math.isfinite(value) for value in (*self.weights, self.intercept, self.zero, self.one)):
            raise ValueError("weights, intercept, zero and one must be finite numbers")
        if not self.zero < self.one:
            raise ValueError(f"zero must be below one, not {self.zero} and {self.one}")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor must be 0 to 1, not {self.floor}")

    def probability(self, question: str, field: Sequence[Hit], language: str = ENGLISH) -> float:
        """The probability that the book answers the question; 0 without hits."""
        if not field:
            return 0.0
        return self.of(signals_of(question, field, zero=self.zero, one=self.one, language=language))

    def of(self, signals: Signals) -> float:
        """The probability for signals, which must have this calibration's scale."""
        values = signal_values(signals, self.signals)
        total = self.intercept + math.fsum(weight * value for weight, value in zip(self.weights, values, strict=True))
        return 1 / (1 + math.exp(-min(max(total, -MAX_EXPONENT), MAX_EXPONENT)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The signals of a question, and whether the book covers it."""

    signals: Signals
    covered: bool
    gold: float | None = None  # similarity of the passage that answers, if it is known
    nearest: float | None = None  # similarity of the nearest hit, if the question tells how near answers are
    weight: float = 1.0


_CALIBRATION = TypeAdapter(Calibration)


def to_json(calibration: Calibration) -> str:
    """A calibration as JSON; floats keep every digit."""
    return _CALIBRATION.dump_json(calibration, indent=2).decode() + "\n"


def read_calibration(file: Path) -> Calibration:
    """A calibration from a file; raises an error that says what is wrong with the file."""
    try:
        return _CALIBRATION.validate_json(file.read_bytes(), extra="forbid")
    except OSError as exc:
        raise ConfigError(f"{file} cannot be read ({exc.strerror}); run: lectern calibrate") from exc
    except ValidationError as exc:
        kind = OtherSignals if _of_another_version(file) else ConfigError
        first = exc.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        problem = f"{where}: {first['msg']}" if where else first["msg"]
        raise kind(f"{file} is no calibration ({problem}); delete it, or run: lectern calibrate") from None


def _of_another_version(file: Path) -> bool:
    """Whether a file names a signal that this version does not have."""
    try:
        names = json.loads(file.read_bytes())["signals"]
    except (ValueError, TypeError, KeyError):
        return False
    return isinstance(names, list) and any(isinstance(name, str) and name not in NAMES for name in names)


@cache
def shipped_calibration(fingerprint: str) -> Calibration:
    """The shipped calibration for this embedder, or the generic one."""
    by_fingerprint = {
        calibration.fingerprint: calibration for calibration in map(read_calibration, sorted(SHIPPED.glob("*.json")))
    }
    return by_fingerprint.get(fingerprint, by_fingerprint[GENERIC])


def stored_calibration(folder: Path, book_id: str, fingerprint: str) -> Calibration | None:
    """What `lectern calibrate` stored for this book; None if the book now has another embedder, or the file has other
    signals than this version. A file without a measured relevance scale gets the embedder's."""
    file = folder / f"{book_id}.json"
    if not file.exists():
        return None
    try:
        calibration = read_calibration(file)
    except OtherSignals as exc:
        _warn_once(str(exc))
        return None
    if calibration.fingerprint != fingerprint:
        return None
    return calibration if calibration.scale.n else replace(calibration, scale=shipped_calibration(fingerprint).scale)


def remove_outdated(folder: Path, book_id: str) -> None:
    """Delete a calibration whose signals this version does not have. One for another embedder stays."""
    file = folder / f"{book_id}.json"
    if file.exists() and _of_another_version(file):
        file.unlink()


@cache
def _warn_once(message: str) -> None:
    """Log a warning once a process: the calibration is read for every question."""
    log.warning("%s; the shipped parameters are used until then", message)


def fit(
    rows: Sequence[Labelled],
    *,
    fingerprint: str,
    notes: str,
    signals: Sequence[str] = NAMES,
    prior: Calibration | None = None,
    ridge: float = RIDGE,
) -> Calibration:
    """The parameters that fit these questions best. They start from `prior` and are drawn to it with the strength of
    `ridge`. The signals must have the prior's scale of cosines."""
    import numpy as np

    if not any(row.covered for row in rows) or all(row.covered for row in rows):
        raise BadInput("a calibration needs covered and uncovered questions; this list has only one of the two")
    names = tuple(signals)
    values = np.array([signal_values(row.signals, names) for row in rows])
    labels = np.array([float(row.covered) for row in rows])
    row_weights = np.array([row.weight for row in rows])
    for label in (0.0, 1.0):  # both classes get the same weight
        row_weights[labels == label] *= len(rows) / 2 / row_weights[labels == label].sum()
    prior_weights = dict(zip(prior.signals, prior.weights, strict=True)) if prior is not None else {}
    start = np.array([prior.intercept if prior is not None else 0.0, *(prior_weights.get(name, 0.0) for name in names)])
    intercept, *weights = _newton(values, labels, row_weights, start, ridge)
    gold = [row.gold for row in rows if row.covered and row.gold is not None]
    nearest = _nearest(rows)
    floor = float(np.quantile(gold, FLOOR_SHARE)) if gold else None
    scale = prior.scale if prior is not None else UNMEASURED
    return Calibration(
        fingerprint=fingerprint,
        signals=names,
        weights=tuple(weights),
        intercept=intercept,
        zero=prior.zero if prior is not None else 0.0,
        one=prior.one if prior is not None else 1.0,
        floor=floor if floor is not None else prior.floor if prior is not None else 0.0,
        n=len(rows),
        notes=notes,
        scale=scale_from(nearest, floor=floor, prior=scale) if nearest else scale,
    )


def _newton(values: Numbers, labels: Numbers, row_weights: Numbers, start: Numbers, ridge: float) -> list[float]:
    """Ridge logistic regression without negative weights. The most negative weight is set to zero and the rest is
    fitted again, until there is none: by chance in a small list, a signal must not count against a book."""
    import numpy as np

    spread = np.sqrt(
        np.average((values - np.average(values, axis=0, weights=row_weights)) ** 2, axis=0, weights=row_weights)
    )
    scale = np.concatenate([[1.0], np.where(spread > 0, spread, 1.0)])
    design = np.column_stack([np.ones(len(values)), values]) / scale
    aim, free = start * scale, np.full(len(start), fill_value=True)
    pull = np.full(len(start), ridge)
    if not start.any():
        pull[0] = 0.0  # without a prior the intercept is free
    while True:
        solution = _descend(design[:, free], labels, row_weights, aim[free], pull[free])
        whole = np.zeros(len(start))
        whole[free] = solution
        if not (whole[1:] < 0).any():
            return [float(value) for value in whole / scale]
        free[1 + int(np.argmin(whole[1:]))] = False


def _descend(design: Numbers, labels: Numbers, row_weights: Numbers, aim: Numbers, pull: Numbers) -> Numbers:
    """Newton's method; a step that would raise the cost is halved until it does not."""
    import numpy as np

    def cost(candidate: Numbers) -> float:
        total = np.clip(design @ candidate, -MAX_EXPONENT, MAX_EXPONENT)
        return float(
            (row_weights * (np.logaddexp(0, total) - labels * total)).sum() + (pull * (candidate - aim) ** 2).sum() / 2
        )

    solution = aim.copy()
    for _ in range(NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ solution, -MAX_EXPONENT, MAX_EXPONENT)))
        gradient = design.T @ (row_weights * (labels - chance)) - pull * (solution - aim)
        curvature = design.T @ (design * (row_weights * chance * (1 - chance))[:, None]) + np.diag(pull + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        while cost(solution + step) > cost(solution) and float(np.abs(step).max()) > MIN_STEP:
            step = step / 2
        solution = solution + step
    return solution


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSource:
    """What calibrating reads: searches, chunks and books."""

    search: Callable[..., Awaitable[Findings]]  # as `Lectern.search`: hybrid, without a threshold
    chunks: Callable[[str | None], Awaitable[list[StampedChunk]]]  # every chunk of a book
    books: Callable[[], Awaitable[tuple[BookEntry, ...]]]
    book: Callable[[str | None], Awaitable[BookEntry]]  # by its name; None for the default book


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuestion:
    """A question, and whether the book answers it."""

    text: str
    answerable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The quality of parameters on questions that they were not fitted on."""

    false_refusal_rate: float
    refusal_rate: float
    auroc: float
    ece: float
    log_loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """The result of calibrating a book."""

    book_id: str
    fingerprint: str
    source: Source
    covered: int
    uncovered: int
    before: Figures  # the parameters in use, on the held-out half
    after: Figures  # the parameters fitted on the other half
    was: Calibration
    now: Calibration  # fitted on all questions, or `was` if the fit is no better
    stored: str | None  # the file


async def calibrate(
    library: CalibrationSource,
    folder: Path,
    *,
    book: str | None = None,
    questions: Sequence[LabelledQuestion] = (),
    progress: Progress = lambda _number, _total: None,
) -> CalibrationReport:
    """Fit a book's parameters from labelled questions, or from the book itself. Better ones are stored in `folder`."""
    entry = await library.book(book)
    book_id, fingerprint = entry.manifest.book_id, entry.fingerprint
    prior = shipped_calibration(fingerprint)
    previous = stored_calibration(folder, book_id, fingerprint)
    was = previous if previous is not None and (previous.zero, previous.one) == (prior.zero, prior.one) else prior
    samples = _labelled_samples(questions) if questions else await _self_samples(library, entry)
    rows = _without_related_books(await _ask(library, book_id, samples, prior, progress), prior)
    notes = f"Fitted by `lectern calibrate` on {len(rows)} {'labelled questions' if questions else 'self-questions'}."

    def fit_rows(subset: Sequence[Labelled]) -> Calibration:
        ridge = SELF_QUESTION_RIDGE if prior.n and not questions else CALIBRATION_RIDGE
        return fit(subset, fingerprint=fingerprint, notes=notes, prior=prior, ridge=ridge)

    first = [row for question, row in rows if _in_first_half(question.text)]
    rest = [row for question, row in rows if not _in_first_half(question.text)]
    trial, fitted = fit_rows(first), fit_rows([row for _, row in rows])
    before, after = figures(was, rest), figures(trial, rest)
    scale = fitted.scale if _fits_better(trial.scale, was.scale, rest) else was.scale
    now = replace(fitted if after.log_loss < before.log_loss else was, scale=scale)
    if now == was:
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
        stored=str(_store(now, folder / f"{book_id}.json")) if now != was else None,
    )


def _fits_better(scale: RelevanceScale, previous: RelevanceScale, rows: Sequence[Labelled]) -> bool:
    """Whether a scale fits questions better that it was not fitted on."""
    nearest = _nearest(rows)
    return bool(nearest) and misfit(scale, nearest) < misfit(previous, nearest)


def _nearest(rows: Sequence[Labelled]) -> list[float]:
    """The similarities that a relevance scale is fitted on."""
    return [row.nearest for row in rows if row.covered and row.nearest is not None]


def figures(calibration: Calibration, rows: Sequence[Labelled]) -> Figures:
    """The quality of a calibration on these questions."""
    import numpy as np

    from lectern.confidence.scores import auroc, ece, log_loss, share_below

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
class _Sample:
    """A question for the fit."""

    text: str
    covered: bool
    chunk_id: str | None = None
    origin: str | None = None  # the other book that it was made from


_Row = tuple[_Sample, Labelled]


def _labelled_samples(questions: Sequence[LabelledQuestion]) -> list[_Sample]:
    """The labelled questions; if all of them are answerable, with the shipped list of uncovered questions."""
    samples = [_Sample(text=question.text, covered=question.answerable) for question in questions]
    if all(question.answerable for question in questions):
        samples += [_Sample(text=text, covered=False) for text in far_questions()]
    return samples


async def _self_samples(library: CalibrationSource, entry: BookEntry) -> list[_Sample]:
    chunks = await _chunks(library, entry)
    hashes = {chunk.content_hash for chunk in chunks}  # two editions of one book share most of their texts
    samples = [
        _Sample(text=question.text, covered=True, chunk_id=question.chunk_id) for question in covered_questions(chunks)
    ]
    samples += [_Sample(text=text, covered=False) for text in far_questions()]
    samples += [_Sample(text=question.text, covered=False) for question in mixed_questions(chunks)]
    book_id = entry.manifest.book_id
    other_books = [book for book in await library.books() if book.manifest.book_id != book_id][:MAX_OTHER_BOOKS]
    for other_book in other_books:
        foreign = [chunk for chunk in await _chunks(library, other_book) if chunk.content_hash not in hashes]
        questions = foreign_questions(foreign, MAX_SELF_QUESTIONS // len(other_books))
        samples += [
            _Sample(text=question.text, covered=False, origin=other_book.manifest.book_id) for question in questions
        ]
    return samples


def _without_related_books(rows: list[_Row], prior: Calibration) -> list[_Row]:
    """The rows without those of books on the same subject: it is unknown which of these are covered."""
    origins = {sample.origin for sample, _ in rows} - {None}
    for origin in origins:
        chances = [prior.of(row.signals) for sample, row in rows if sample.origin == origin]
        if sum(chance >= LOW for chance in chances) > MAX_RELATED_SHARE * len(chances):
            rows = [(sample, row) for sample, row in rows if sample.origin != origin]
    return rows


async def _chunks(library: CalibrationSource, entry: BookEntry) -> list[Chunk]:
    return [stamped.chunk for stamped in await library.chunks(entry.manifest.book_id)]


async def _ask(
    library: CalibrationSource, book_id: str, samples: Sequence[_Sample], prior: Calibration, progress: Progress
) -> list[_Row]:
    for kind, count in (("covers", sum(sample.covered for sample in samples)), ("does not cover", _uncovered(samples))):
        if count < MIN_QUESTIONS:
            raise BadInput(
                f"calibrating needs {MIN_QUESTIONS} questions or more that the book {kind}, not {count}; "
                "give a file of labelled ones: --questions FILE"
            )
    rows = []
    for number, sample in enumerate(samples, start=1):
        findings = await library.search(sample.text, book=book_id, limit=CONFIDENCE_HITS)
        gold = next((hit.similarity for hit in findings.hits if sample.chunk_id in (hit.chunk.id, None)), None)
        if sample.chunk_id is not None and prior.n:
            gold = None  # readers' questions set the floor; sentences with swapped words are lower
        nearest = max((hit.similarity for hit in findings.hits), default=None)
        if sample.chunk_id is not None and prior.scale.n:
            nearest = None  # for the same reason
        signals = signals_of(
            sample.text, findings.hits, zero=prior.zero, one=prior.one, language=findings.language or ENGLISH
        )
        gold = gold if sample.covered else None
        rows.append((sample, Labelled(signals=signals, covered=sample.covered, gold=gold, nearest=nearest)))
        progress(number, len(samples))
    return rows


def _uncovered(samples: Sequence[_Sample]) -> int:
    return sum(not sample.covered for sample in samples)


def _in_first_half(text: str) -> bool:
    """Whether a question is in the half that is fitted on. It depends on the text alone, not on the order of the
    list."""
    return zlib.crc32(text.encode()) % 2 == 0


def _store(calibration: Calibration, file: Path) -> Path:
    """Write a calibration to a file, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(to_json(calibration), encoding="utf-8")
    temporary.replace(file)
    return file
