"""Refusal, measured: are questions that the book covers answered, and the others refused? A set says which are which
(`answerable`) and how far off the others are (`tier`). `auroc` and `ece` are over the tiers that are surely uncovered:
where there are such, `near` (heuristic labels) and `unanswerable` (the right passage without the answer) only get their
rates.

Question sets about refusing: the questions, which of them the book answers, and the book. The shapes are those of
retrieval sets with two keys that count here, `answerable` and `tier`; gold is only needed to find the book, and to know
which documents to leave out for `half`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from lectern.confidence.answerability import Answerability
from lectern.confidence.policies import policy_for
from lectern.confidence.scores import auroc, ece, interval, share_below
from lectern.confidence.signals import CONFIDENCE_HITS
from lectern.domain.errors import BadInput, SourceError
from lectern.domain.evidence import LOW
from lectern.domain.scope import QUERY_LENGTH
from lectern.evals.benches import Advance, Bench, open_bench
from lectern.evals.datasets import BOOK_PREFIX, SET_PREFIX, EvalBook, QuestionSet, book_of_documents, book_of_folder
from lectern.evals.goldfiles import CORPUS, QUERIES, GoldLine, read_corpus, wrong
from lectern.evals.pacing import in_turn
from lectern.evals.runner import Surroundings
from lectern.models.local.answer_locator import LocalAnswerLocator
from lectern.ports.answering import ConfidencePolicy
from lectern.reading.names import slugged

REFUSAL_PREFIX = "refusal-"  # the questions of `qa-refusal-x` are about `book-x` too
COVERED, UNCOVERED, UNANSWERABLE, FOREIGN = "answerable", "uncovered", "unanswerable", "foreign"
HANDED = 5  # passages that a question is answered from by default
DOUBTFUL = ("near", "unanswerable")


class AskedLine(BaseModel):
    """One question of a refusal set."""

    id: str = Field(alias="_id", min_length=1)
    text: str
    answerable: bool = True
    tier: str | None = None
    gold: list[GoldLine] = []
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question."""

    id: str
    text: str
    book_id: str
    answerable: bool
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalSet:
    """Questions and the books they are asked of."""

    name: str
    asked: tuple[Asked, ...]
    books: tuple[EvalBook, ...]


def load_refusal(folder: Path, book: Path | None = None, *, half: bool = False) -> RefusalSet:
    """The set in a folder. With `half` every second article is left out of the book: its questions are uncovered."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the folder that holds {QUERIES}")
    lines = read_labelled(folder / QUERIES)
    name = folder.resolve().name
    if half:
        return _half(name, folder, lines)
    books = _books(folder, book, lines)
    asked = tuple(
        Asked(
            id=line.id,
            text=line.text,
            book_id=books.get(str((line.meta or {}).get("book") or ""), next(iter(books.values()))).book_id,
            answerable=line.answerable,
            tier=_tier(line),
        )
        for line in lines
    )
    return RefusalSet(name=name, asked=asked, books=tuple(books.values()))


def with_foreign(questions: RefusalSet, lines: Iterable[AskedLine]) -> RefusalSet:
    """The same, with the questions of another set as ones that no book here covers."""
    book_id = questions.books[0].book_id
    more = tuple(
        Asked(id=f"{FOREIGN}-{line.id}", text=line.text, book_id=book_id, answerable=False, tier=FOREIGN)
        for line in lines
    )
    return replace(questions, asked=(*questions.asked, *more))


def read_labelled(file: Path) -> list[AskedLine]:
    """Every question of a `queries.jsonl` that can be searched for."""
    try:
        raw = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SourceError(f"{file} cannot be read ({exc}); a question set has {QUERIES}") from exc
    low, high = QUERY_LENGTH
    lines = []
    for number, line in enumerate(raw.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            asked = AskedLine.model_validate_json(line)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            raise wrong(file, number, f"{where}: {first['msg']}" if where else first["msg"]) from None
        if not low <= len(asked.text.strip()) <= high:
            raise wrong(file, number, f"text must have {low} to {high} characters, not {len(asked.text.strip())}")
        lines.append(asked)
    if not lines:
        raise SourceError(f"{file} holds no question")
    return lines


def _tier(line: AskedLine) -> str:
    meta = line.meta or {}
    if line.answerable:
        return line.tier or COVERED
    return line.tier or str(meta.get("tier") or meta.get("type") or UNANSWERABLE)


def _books(folder: Path, book: Path | None, lines: Sequence[AskedLine]) -> dict[str, EvalBook]:
    """By the name that questions know them under; a single book answers to any."""
    if book is not None:
        return {"": book_of_folder(slugged(book.resolve().name), book)}
    name = folder.resolve().name
    if (folder / CORPUS).exists():
        return {"": book_of_documents(slugged(name), read_corpus(folder).values())}
    named = {str((line.meta or {}).get("book") or "") for line in lines if line.answerable}
    if all(one and (folder / one).is_dir() for one in named):
        return {one: book_of_folder(slugged(one), folder / one) for one in sorted(named)}
    gold = next((line.gold[0].doc for line in lines if line.answerable and line.gold), "")
    for beside, place in _beside(folder):
        if any((place / suffix).is_file() for suffix in _suffixes(gold)):
            return {"": book_of_folder(slugged(beside.name), place)}
    raise SourceError(f"{folder} has no {CORPUS}, and its book is not beside it; name the book's folder: --book PATH")


def _beside(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Where the book of a set may be: folders of `book-x` first, because the book's own root may hold more books."""
    stem = folder.resolve().name.removeprefix(SET_PREFIX)
    for name in dict.fromkeys((stem, stem.removeprefix(REFUSAL_PREFIX))):
        beside = folder.resolve().parent / f"{BOOK_PREFIX}{name}"
        if beside.is_dir():
            for place in (*sorted(path for path in beside.iterdir() if path.is_dir()), beside):
                yield beside, place


def _suffixes(path: str) -> Iterator[str]:
    """A path with fewer and fewer of the folders before it; a set may name more than the book has."""
    steps = PurePosixPath(path).parts
    for begin in range(len(steps)):
        yield "/".join(steps[begin:])


def _half(name: str, folder: Path, lines: Sequence[AskedLine]) -> RefusalSet:
    """Documents of one title are one article, and stay together."""
    documents = list(read_corpus(folder).values())
    article = {document.id: document.title or document.id for document in documents}
    inside = frozenset(sorted(set(article.values()))[::2])
    book = book_of_documents(slugged(f"{name}-half"), [one for one in documents if article[one.id] in inside])
    asked = []
    for line in lines:
        within = {article.get(gold.doc) in inside for gold in line.gold}
        if len(within) == 1 and (line.answerable or within == {True}):
            covered = line.answerable and within == {True}
            tier = UNANSWERABLE if not line.answerable else COVERED if covered else UNCOVERED
            asked.append(Asked(id=line.id, text=line.text, book_id=book.book_id, answerable=covered, tier=tier))
    if not asked:
        raise SourceError(f"{folder} names no gold documents of its {CORPUS}, so none can be left out")
    return RefusalSet(name=f"{name}-half", asked=tuple(asked), books=(book,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question and what became of it."""

    id: str
    tier: str
    answerable: bool
    confidence: float
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """One set, asked through one policy."""

    name: str
    policy: str
    embedder: str
    chunks: int
    outcomes: tuple[Outcome, ...]
    seconds: float

    def counted(self) -> tuple[Outcome, ...]:
        """Those that AUROC and calibration error are taken over."""
        tiers = {one.tier for one in self.outcomes if not one.answerable}
        sure = tiers - set(DOUBTFUL) or tiers
        return tuple(one for one in self.outcomes if one.answerable or one.tier in sure)


async def measure_refusal(
    questions: RefusalSet, around: Surroundings, *, policy: str = "calibrated", answerability: bool = False
) -> Refusals:
    """Ask every question; nothing is drafted, for the decision is made before. `answerability`: as the offline model's
    readers are answered."""
    begun = time.perf_counter()
    shell = QuestionSet(name=questions.name, questions=(), books=questions.books, documents=(), left_out={})
    opened = open_bench(shell, around.settings, around.cache, fresh=around.fresh, advance=around.advance)
    async with opened as bench:
        fingerprint = bench.lectern.app.ingest_deps.collections.current.embedder.fingerprint
        look = Answerability(LocalAnswerLocator()) if answerability else None
        outcomes = await _ask(bench, questions, policy_for(policy, fingerprint), look, around.advance)
    return Refusals(
        name=questions.name,
        policy=f"{policy} and second look" if answerability else policy,
        embedder=fingerprint,
        chunks=bench.chunks,
        outcomes=tuple(outcomes),
        seconds=round(time.perf_counter() - begun, 3),
    )


async def _ask(
    bench: Bench, questions: RefusalSet, policy: ConfidencePolicy, look: Answerability | None, advance: Advance
) -> list[Outcome]:
    async def one(asked: Asked) -> Outcome:
        found = await bench.lectern.search(asked.text, book=asked.book_id, limit=CONFIDENCE_HITS)
        handed = [hit for hit in found.hits if hit.similarity >= (policy.floor or 0.0)][:HANDED]
        metrics = policy.measure(asked.text, found.hits, handed)
        if metrics.should_answer and look is not None:
            best = [hit for hit in found.hits if hit.similarity >= (policy.floor or 0.0)]
            metrics = await look.adjust(asked.text, best, metrics, found.language)
        return Outcome(
            id=asked.id,
            tier=asked.tier,
            answerable=asked.answerable,
            confidence=metrics.confidence,
            refused=not metrics.should_answer,
        )

    title = f"Asking {questions.name}"
    return await in_turn(questions.asked, one, lambda done, total: advance(title, done, total))


def summary(found: Refusals) -> dict[str, Any]:
    """What programs read."""
    counted = found.counted()
    chances, labels = arrays(counted)
    tiers = _tiers(one for one in found.outcomes if not one.answerable)
    answerable = [one for one in found.outcomes if one.answerable]
    if not answerable or not tiers:
        raise BadInput("refusal needs questions that the book answers and questions that it does not; see --half")
    return {
        "set": found.name,
        "policy": found.policy,
        "embedder": found.embedder,
        "chunks": found.chunks,
        "n": len(found.outcomes),
        "answerable": len(answerable),
        "refusal_rate": {tier: _refused(some) for tier, some in tiers.items()},
        "false_refusal_rate": _refused(answerable),
        "auroc": auroc(chances, labels),
        "auroc_by_tier": {tier: auroc(*arrays([*answerable, *some])) for tier, some in tiers.items()},
        "ece": ece(chances, labels),
        "counted_tiers": sorted({one.tier for one in counted if not one.answerable}),
        "tiers": {tier: len(some) for tier, some in tiers.items()},
        "intervals": _intervals(counted, answerable, tiers),
        "cut": LOW,
        "seconds": found.seconds,
    }


def _tiers(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    by_tier: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_tier.setdefault(one.tier, []).append(one)
    return dict(sorted(by_tier.items()))


def _refused(outcomes: Sequence[Outcome]) -> float:
    return sum(one.refused for one in outcomes) / len(outcomes)


def _intervals(
    counted: Sequence[Outcome], answerable: Sequence[Outcome], tiers: Mapping[str, Sequence[Outcome]]
) -> dict[str, Any]:
    chances, labels = arrays(counted)

    def rate(some: Sequence[Outcome]) -> tuple[float, float]:
        answered = [float(not one.refused) for one in some]
        return interval(lambda kept, _: share_below(kept, LOW), answered, [1.0] * len(some))

    return {
        "false_refusal_rate": rate(answerable),
        "refusal_rate": {tier: rate(some) for tier, some in tiers.items()},
        "auroc": interval(auroc, chances.tolist(), labels.tolist()),
        "ece": interval(ece, chances.tolist(), labels.tolist()),
    }


def arrays(outcomes: Sequence[Outcome]) -> tuple[Any, Any]:
    """Confidences, and 1 for every answerable question."""
    confidences = np.array([one.confidence for one in outcomes], dtype=float)
    return confidences, np.array([float(one.answerable) for one in outcomes])


def refusal_text(told: Mapping[str, Any]) -> str:
    """The same for people."""
    bounds = told["intervals"]
    head = f"{told['set']}: {told['n']} questions, {told['chunks']} chunks · {told['policy']} · {told['embedder']}"
    rows = [("answerable", told["answerable"], told["false_refusal_rate"], bounds["false_refusal_rate"])]
    rows += [
        (tier, told["tiers"][tier], rate, bounds["refusal_rate"][tier]) for tier, rate in told["refusal_rate"].items()
    ]
    lines = [
        f"  {name:<14} {count:>5}  {rate:6.1%} refused ({low:.1%}-{high:.1%})"
        for name, count, rate, (low, high) in rows
    ]
    counted = ", ".join(told["counted_tiers"])
    for name in ("auroc", "ece"):
        low, high = bounds[name]
        lines.append(f"  {name:<14} {told[name]:.4f} ({low:.4f}-{high:.4f}), answerable against {counted}")
    return "\n".join([head, *lines])
