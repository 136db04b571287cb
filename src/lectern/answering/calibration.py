"""Calibration: what turns signals into a probability. Logistic regression, fitted for one embedder (its cosines have a
scale of their own) and, by `lectern calibrate`, for one book. Fitting is deterministic, gives covered and uncovered
questions the same say, never lets a signal count against the book, and where there is an earlier calibration moves away
from it only as far as the questions insist."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from lectern.answering.signals import NAMES, Signals, chosen, signals_of
from lectern.domain.errors import BadInput, ConfigError
from lectern.domain.evidence import Hit

if TYPE_CHECKING:
    from lectern.answering.scores import Numbers

log = logging.getLogger("lectern.answering")

SHIPPED = Path(__file__).parent / "calibrations"
GENERIC = "generic"  # for embedders that nobody has fitted: words alone
RIDGE = 1.0  # keeps weights finite where the classes can be told apart perfectly
STEPS = 60
TINY = 1e-9  # a step that is none
SURE = 30.0  # exp() of more is no other probability
FLOOR_SHARE = 0.002  # of the passages that answer may lie below the floor: losing one is worse than some noise


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
        values = chosen(signals, self.signals)
        total = self.intercept + math.fsum(weight * value for weight, value in zip(self.weights, values, strict=True))
        return 1 / (1 + math.exp(-min(max(total, -SURE), SURE)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One question that somebody knows the answer to."""

    signals: Signals
    covered: bool
    gold: float | None = None  # similarity of the passage that answers, where it is known
    weight: float = 1.0


class OtherSignals(ConfigError):
    """A calibration by signals that are not taken any more, or not yet."""


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
    values = np.array([chosen(row.signals, names) for row in rows])
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
