"""Calibration: what turns signals into a probability. Logistic regression, fitted for one embedder (its cosines have a
scale of their own) and, by `lectern calibrate`, for one book. Fitting is deterministic, gives covered and uncovered
questions the same say, never lets a signal count against the book, and where there is an earlier calibration moves away
from it only as far as the questions insist.

Calibrating for one book, read downward: gather questions, ask them all, fit on one half, look at the other, keep
what is better. The fit starts from the parameters that are shipped, so that calibrating twice is calibrating once, and
moves only as far as the questions insist; where it does no better on questions it has not seen, nothing is stored.
"""

from __future__ import annotations

import json
import logging
import math
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import TypeAdapter, ValidationError

from lectern.confidence.self_questions import MOST, covered_questions, far_questions, foreign_questions, mixed_questions
from lectern.confidence.signals import CONFIDENCE_HITS, NAMES, Signals, signal_values, signals_of
from lectern.domain.books import BookEntry
from lectern.domain.chunks import Chunk, StampedChunk
from lectern.domain.errors import BadInput, ConfigError, OtherSignals
from lectern.domain.evidence import LOW, Findings, Hit

if TYPE_CHECKING:
    from lectern.confidence.scores import Numbers

log = logging.getLogger("lectern.answering")

SHIPPED = Path(__file__).parent / "calibrations"
GENERIC = "generic"  # for embedders that nobody has fitted: words alone
RIDGE = 1.0  # keeps weights finite where the classes can be told apart perfectly
STEPS = 60
TINY = 1e-9  # a step that is none
SURE = 30.0  # exp() of more is no other probability
FLOOR_SHARE = 0.002  # of the passages that answer may lie below the floor: losing one is worse than some noise
LEAST = 10  # questions of either kind
CALIBRATION_RIDGE = 10.0  # how strongly parameters are held: about as much as ten questions
FIRM = 100.0  # the same where they were fitted on readers' questions, and these are only the book's own
OTHERS = 4  # other books that are asked for sentences, at most
RELATED = 0.1  # of another book's sentences may look covered; with more it is about the same subject

Source = Literal["questions", "book"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Parameters of the probability that a book answers a question."""

    fingerprint: str  # of the embedder whose cosines they are for
    signals: tuple[str, ...]
    weights: tuple[float, ...]
    intercept: float
    zero: float = 0.0  # the cosine that counts 0,
    one: float = 1.0  # and the one that counts 1
    floor: float  # a cosine below which a hit is noise
    n: int  # questions it was fitted on
    notes: str

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

    def probability(self, question: str, field: Sequence[Hit]) -> float:
        """How probable it is that the book answers the question; 0 where nothing was found."""
        if not field:
            return 0.0
        return self.of(signals_of(question, field, zero=self.zero, one=self.one))

    def of(self, signals: Signals) -> float:
        """The probability that signals stand for; they must be of this calibration's scale."""
        values = signal_values(signals, self.signals)
        total = self.intercept + math.fsum(weight * value for weight, value in zip(self.weights, values, strict=True))
        return 1 / (1 + math.exp(-min(max(total, -SURE), SURE)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One question that somebody knows the answer to."""

    signals: Signals
    covered: bool
    gold: float | None = None  # similarity of the passage that answers, where it is known
    weight: float = 1.0


_CALIBRATION = TypeAdapter(Calibration)


def to_json(calibration: Calibration) -> str:
    """For a file; floats keep every digit."""
    return _CALIBRATION.dump_json(calibration, indent=2).decode() + "\n"


def read(file: Path) -> Calibration:
    """A calibration from a file, or a sentence about what is wrong with it."""
    try:
        return _CALIBRATION.validate_json(file.read_bytes(), extra="forbid")
    except OSError as exc:
        raise ConfigError(f"{file} cannot be read ({exc.strerror}); run: lectern calibrate") from exc
    except ValidationError as exc:
        kind = OtherSignals if _of_another_version(file) else ConfigError
        first = exc.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        said = f"{where}: {first['msg']}" if where else first["msg"]
        raise kind(f"{file} is no calibration ({said}); delete it, or run: lectern calibrate") from None


def _of_another_version(file: Path) -> bool:
    """Whether a file names signals that are not taken, whatever else is wrong with it."""
    try:
        names = json.loads(file.read_bytes())["signals"]
    except (ValueError, TypeError, KeyError):
        return False
    return isinstance(names, list) and any(isinstance(name, str) and name not in NAMES for name in names)


@cache
def shipped(fingerprint: str) -> Calibration:
    """What comes with the package for this embedder, else for any."""
    known = {one.fingerprint: one for one in map(read, sorted(SHIPPED.glob("*.json")))}
    return known.get(fingerprint, known[GENERIC])


def stored(folder: Path, book_id: str, fingerprint: str) -> Calibration | None:
    """What `lectern calibrate` made for this book, as long as the book is embedded by the same model and Lectern takes
    the same signals."""
    file = folder / f"{book_id}.json"
    if not file.exists():
        return None
    try:
        found = read(file)
    except OtherSignals as exc:
        _warn_once(str(exc))
        return None
    return found if found.fingerprint == fingerprint else None


def remove_outdated(folder: Path, book_id: str) -> None:
    """Clear away what this version cannot use; another embedder's parameters stay for when it comes back."""
    file = folder / f"{book_id}.json"
    if file.exists() and _of_another_version(file):
        file.unlink()


@cache
def _warn_once(said: str) -> None:
    """A server asks for a book's parameters with every question."""
    log.warning("%s; the shipped parameters are used until then", said)


def fit(
    rows: Sequence[Labelled],
    *,
    fingerprint: str,
    notes: str,
    signals: Sequence[str] = NAMES,
    prior: Calibration | None = None,
    ridge: float = RIDGE,
) -> Calibration:
    """The parameters under which these questions are least surprising; `prior` is where they start from and are drawn
    to, with the strength of `ridge`. Signals must have been taken on the prior's scale of cosines."""
    import numpy as np

    if not any(row.covered for row in rows) or all(row.covered for row in rows):
        raise BadInput("a calibration needs covered and uncovered questions; this list has only one of the two")
    names = tuple(signals)
    values = np.array([signal_values(row.signals, names) for row in rows])
    labels = np.array([float(row.covered) for row in rows])
    say = np.array([row.weight for row in rows])
    for label in (0.0, 1.0):  # neither class outvotes the other
        say[labels == label] *= len(rows) / 2 / say[labels == label].sum()
    known = dict(zip(prior.signals, prior.weights, strict=True)) if prior is not None else {}
    start = np.array([prior.intercept if prior is not None else 0.0, *(known.get(name, 0.0) for name in names)])
    intercept, *weights = _newton(values, labels, say, start, ridge)
    gold = [row.gold for row in rows if row.covered and row.gold is not None]
    floor = prior.floor if prior is not None else 0.0
    return Calibration(
        fingerprint=fingerprint,
        signals=names,
        weights=tuple(weights),
        intercept=intercept,
        zero=prior.zero if prior is not None else 0.0,
        one=prior.one if prior is not None else 1.0,
        floor=float(np.quantile(gold, FLOOR_SHARE)) if gold else floor,
        n=len(rows),
        notes=notes,
    )


def _newton(values: Numbers, labels: Numbers, say: Numbers, start: Numbers, ridge: float) -> list[float]:
    """Ridge logistic regression. A weight that would turn negative is left at zero, the worst first, and the rest
    fitted again: chance in a small list must not make a good passage speak against a book."""
    import numpy as np

    spread = np.sqrt(np.average((values - np.average(values, axis=0, weights=say)) ** 2, axis=0, weights=say))
    scale = np.concatenate([[1.0], np.where(spread > 0, spread, 1.0)])
    design = np.column_stack([np.ones(len(values)), values]) / scale
    aim, free = start * scale, np.full(len(start), fill_value=True)
    pull = np.full(len(start), ridge)
    if not start.any():
        pull[0] = 0.0  # without a prior nothing is known about how often books answer
    while True:
        found = _descend(design[:, free], labels, say, aim[free], pull[free])
        whole = np.zeros(len(start))
        whole[free] = found
        if not (whole[1:] < 0).any():
            return [float(value) for value in whole / scale]
        free[1 + int(np.argmin(whole[1:]))] = False


def _descend(design: Numbers, labels: Numbers, say: Numbers, aim: Numbers, pull: Numbers) -> Numbers:
    """Newton's method; a step that would make things worse is halved until it does not."""
    import numpy as np

    def cost(some: Numbers) -> float:
        total = np.clip(design @ some, -SURE, SURE)
        return float((say * (np.logaddexp(0, total) - labels * total)).sum() + (pull * (some - aim) ** 2).sum() / 2)

    found = aim.copy()
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ found, -SURE, SURE)))
        gradient = design.T @ (say * (labels - chance)) - pull * (found - aim)
        curvature = design.T @ (design * (say * chance * (1 - chance))[:, None]) + np.diag(pull + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        while cost(found + step) > cost(found) and float(np.abs(step).max()) > TINY:
            step = step / 2
        found = found + step
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSource:
    """What calibrating reads."""

    search: Callable[..., Awaitable[Findings]]  # as `Lectern.search`: hybrid, without a threshold
    chunks: Callable[[str | None], Awaitable[list[StampedChunk]]]  # every chunk of a book
    books: Callable[[], Awaitable[tuple[BookEntry, ...]]]
    book: Callable[[str | None], Awaitable[BookEntry]]  # the one of this name, or the one that is meant by none


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
    library: CalibrationSource,
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
        ridge = FIRM if prior.n and not questions else CALIBRATION_RIDGE
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


async def _of_the_book(library: CalibrationSource, entry: BookEntry) -> list[_Asked]:
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


async def _chunks(library: CalibrationSource, entry: BookEntry) -> list[Chunk]:
    return [stamped.chunk for stamped in await library.chunks(entry.manifest.book_id)]


async def _ask(
    library: CalibrationSource, book_id: str, asked: Sequence[_Asked], scale: Calibration, progress: Progress
) -> list[_Row]:
    for kind, count in (("covers", sum(one.covered for one in asked)), ("does not cover", _uncovered(asked))):
        if count < LEAST:
            raise BadInput(
                f"calibrating needs {LEAST} questions or more that the book {kind}, not {count}; "
                "give a file of labelled ones: --questions FILE"
            )
    rows = []
    for number, one in enumerate(asked, start=1):
        found = await library.search(one.text, book=book_id, limit=CONFIDENCE_HITS)
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
