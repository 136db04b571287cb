"""Measures refusals: whether questions that the book covers are answered, and the others refused. A set labels each
question as `answerable` or not; `tier` says how far an unanswerable one is from the book. `near` (heuristic labels) and
`unanswerable` (the right passage without the answer) are doubtful tiers: if there are other tiers, `auroc` and `ece`
leave them out, and they only get their refusal rates.

A refusal set has the files of a retrieval set, with the keys `answerable` and `tier`. Gold is only needed to find the
book, and to know which documents `half` leaves out.
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
from lectern.domain.scope import QUERY_LENGTH, Scope, SearchQuery
from lectern.evals.concurrency import run_concurrently
from lectern.evals.datasets import BOOK_PREFIX, SET_PREFIX, EvalBook, QuestionSet, book_of_documents, book_of_folder
from lectern.evals.goldfiles import CORPUS, QUERIES, GoldLine, line_error, read_corpus
from lectern.evals.indexed_sets import Advance, IndexedSet, open_indexed_set
from lectern.evals.runner import EvalContext
from lectern.models.local.answer_locator import LocalAnswerLocator
from lectern.ports.answering import ConfidencePolicy
from lectern.reading.names import slugged

REFUSAL_PREFIX = "refusal-"  # the questions of `qa-refusal-x` are about `book-x` too
COVERED, UNCOVERED, UNANSWERABLE, FOREIGN = "answerable", "uncovered", "unanswerable", "foreign"
TOP_K = 5  # passages that a question is answered from by default
DOUBTFUL_TIERS = ("near", "unanswerable")


class LabelledLine(BaseModel):
    """One line of the `queries.jsonl` of a refusal set."""

    id: str = Field(alias="_id", min_length=1)
    text: str
    answerable: bool = True
    tier: str | None = None
    gold: list[GoldLine] = []
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalQuestion:
    """A question, and whether its book answers it."""

    id: str
    text: str
    book_id: str
    answerable: bool
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalSet:
    """Questions and the books they are asked of."""

    name: str
    questions: tuple[RefusalQuestion, ...]
    books: tuple[EvalBook, ...]


def load_refusal(folder: Path, book: Path | None = None, *, half: bool = False) -> RefusalSet:
    """Read the set in a folder. With `half` every second article is left out of the book, so its questions are
    uncovered."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the folder that holds {QUERIES}")
    lines = read_labelled(folder / QUERIES)
    name = folder.resolve().name
    if half:
        return _half(name, folder, lines)
    books = _books(folder, book, lines)
    questions = tuple(
        RefusalQuestion(
            id=line.id,
            text=line.text,
            book_id=books.get(str((line.meta or {}).get("book") or ""), next(iter(books.values()))).book_id,
            answerable=line.answerable,
            tier=_tier(line),
        )
        for line in lines
    )
    return RefusalSet(name=name, questions=questions, books=tuple(books.values()))


def with_foreign(refusal_set: RefusalSet, lines: Iterable[LabelledLine]) -> RefusalSet:
    """A refusal set with more questions: those of another set, which no book here covers."""
    book_id = refusal_set.books[0].book_id
    more = tuple(
        RefusalQuestion(id=f"{FOREIGN}-{line.id}", text=line.text, book_id=book_id, answerable=False, tier=FOREIGN)
        for line in lines
    )
    return replace(refusal_set, questions=(*refusal_set.questions, *more))


def read_labelled(file: Path) -> list[LabelledLine]:
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
            question = LabelledLine.model_validate_json(line)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            raise line_error(file, number, f"{where}: {first['msg']}" if where else first["msg"]) from None
        if not low <= len(question.text.strip()) <= high:
            raise line_error(
                file, number, f"text must have {low} to {high} characters, not {len(question.text.strip())}"
            )
        lines.append(question)
    if not lines:
        raise SourceError(f"{file} holds no question")
    return lines


def _tier(line: LabelledLine) -> str:
    meta = line.meta or {}
    if line.answerable:
        return line.tier or COVERED
    return line.tier or str(meta.get("tier") or meta.get("type") or UNANSWERABLE)


def _books(folder: Path, book: Path | None, lines: Sequence[LabelledLine]) -> dict[str, EvalBook]:
    """The books by the name that questions use; a single book has an empty name."""
    if book is not None:
        return {"": book_of_folder(slugged(book.resolve().name), book)}
    name = folder.resolve().name
    if (folder / CORPUS).exists():
        return {"": book_of_documents(slugged(name), read_corpus(folder).values())}
    book_names = {str((line.meta or {}).get("book") or "") for line in lines if line.answerable}
    if all(book_name and (folder / book_name).is_dir() for book_name in book_names):
        return {book_name: book_of_folder(slugged(book_name), folder / book_name) for book_name in sorted(book_names)}
    gold = next((line.gold[0].doc for line in lines if line.answerable and line.gold), "")
    for beside, place in _beside(folder):
        if any((place / suffix).is_file() for suffix in _suffixes(gold)):
            return {"": book_of_folder(slugged(beside.name), place)}
    raise SourceError(f"{folder} has no {CORPUS}, and its book is not beside it; name the book's folder: --book PATH")


def _beside(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Where the book of a set may be: first the folders in `book-x`, because `book-x` itself may hold several books."""
    stem = folder.resolve().name.removeprefix(SET_PREFIX)
    for name in dict.fromkeys((stem, stem.removeprefix(REFUSAL_PREFIX))):
        beside = folder.resolve().parent / f"{BOOK_PREFIX}{name}"
        if beside.is_dir():
            for place in (*sorted(path for path in beside.iterdir() if path.is_dir()), beside):
                yield beside, place


def _suffixes(path: str) -> Iterator[str]:
    """A path, then the path without its first folder, and so on; a set may name more folders than the book has."""
    steps = PurePosixPath(path).parts
    for begin in range(len(steps)):
        yield "/".join(steps[begin:])


def _half(name: str, folder: Path, lines: Sequence[LabelledLine]) -> RefusalSet:
    """A set whose book has every second article. Documents with one title are one article and stay together."""
    documents = list(read_corpus(folder).values())
    article = {document.id: document.title or document.id for document in documents}
    inside = frozenset(sorted(set(article.values()))[::2])
    book = book_of_documents(
        slugged(f"{name}-half"), [document for document in documents if article[document.id] in inside]
    )
    questions = []
    for line in lines:
        within = {article.get(gold.doc) in inside for gold in line.gold}
        if len(within) == 1 and (line.answerable or within == {True}):
            covered = line.answerable and within == {True}
            tier = UNANSWERABLE if not line.answerable else COVERED if covered else UNCOVERED
            questions.append(
                RefusalQuestion(id=line.id, text=line.text, book_id=book.book_id, answerable=covered, tier=tier)
            )
    if not questions:
        raise SourceError(f"{folder} names no gold documents of its {CORPUS}, so none can be left out")
    return RefusalSet(name=f"{name}-half", questions=tuple(questions), books=(book,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question, its confidence, and whether it was refused."""

    id: str
    tier: str
    answerable: bool
    confidence: float
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalResult:
    """The outcomes of one refusal set with one policy."""

    name: str
    policy: str
    embedder: str
    chunks: int
    outcomes: tuple[Outcome, ...]
    seconds: float

    def scored_outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes that AUROC and calibration error are computed from: all but those of doubtful tiers."""
        tiers = {outcome.tier for outcome in self.outcomes if not outcome.answerable}
        certain = tiers - set(DOUBTFUL_TIERS) or tiers
        return tuple(outcome for outcome in self.outcomes if outcome.answerable or outcome.tier in certain)


async def measure_refusal(
    refusal_set: RefusalSet, context: EvalContext, *, policy: str = "calibrated", answerability: bool = False
) -> RefusalResult:
    """Search for every question and decide whether it would be answered; no answer is written. With `answerability` the
    answer locator reads the passages too, as for the offline model."""
    start = time.perf_counter()
    books_only = QuestionSet(name=refusal_set.name, questions=(), books=refusal_set.books, documents=(), left_out={})
    opened = open_indexed_set(books_only, context.settings, context.cache, fresh=context.fresh, advance=context.advance)
    async with opened as indexed_set:
        fingerprint = indexed_set.lectern.app.ingest_deps.collections.current.embedder.fingerprint
        check = Answerability(LocalAnswerLocator()) if answerability else None
        outcomes = await _ask(indexed_set, refusal_set, policy_for(policy, fingerprint), check, context.advance)
    return RefusalResult(
        name=refusal_set.name,
        policy=f"{policy} and answerability" if answerability else policy,
        embedder=fingerprint,
        chunks=indexed_set.chunks,
        outcomes=tuple(outcomes),
        seconds=round(time.perf_counter() - start, 3),
    )


async def _ask(
    indexed_set: IndexedSet,
    refusal_set: RefusalSet,
    policy: ConfidencePolicy,
    answerability: Answerability | None,
    advance: Advance,
) -> list[Outcome]:
    async def ask(question: RefusalQuestion) -> Outcome:
        findings = await indexed_set.lectern.app.search(
            SearchQuery(
                text=question.text,
                scope=Scope(book_id=question.book_id),
                limit=CONFIDENCE_HITS,
                find_absent=answerability is not None,
            )
        )
        passages = [hit for hit in findings.hits if hit.relevance >= policy.floor][:TOP_K]
        metrics = policy.measure(question.text, findings.hits, passages)
        if metrics.should_answer and answerability is not None:
            best = [hit for hit in findings.hits if hit.relevance >= policy.floor]
            metrics = await answerability.adjust(question.text, best, metrics, findings.language, len(findings.absent))
        return Outcome(
            id=question.id,
            tier=question.tier,
            answerable=question.answerable,
            confidence=metrics.confidence,
            refused=not metrics.should_answer,
        )

    title = f"Asking {refusal_set.name}"
    return await run_concurrently(refusal_set.questions, ask, lambda count, total: advance(title, count, total))


def summary(result: RefusalResult) -> dict[str, Any]:
    """The figures as JSON."""
    scored = result.scored_outcomes()
    chances, labels = arrays(scored)
    tiers = _tiers(outcome for outcome in result.outcomes if not outcome.answerable)
    answerable = [outcome for outcome in result.outcomes if outcome.answerable]
    if not answerable or not tiers:
        raise BadInput("refusal needs questions that the book answers and questions that it does not; see --half")
    return {
        "set": result.name,
        "policy": result.policy,
        "embedder": result.embedder,
        "chunks": result.chunks,
        "n": len(result.outcomes),
        "answerable": len(answerable),
        "refusal_rate": {tier: _refused(group) for tier, group in tiers.items()},
        "false_refusal_rate": _refused(answerable),
        "auroc": auroc(chances, labels),
        "auroc_by_tier": {tier: auroc(*arrays([*answerable, *group])) for tier, group in tiers.items()},
        "ece": ece(chances, labels),
        "counted_tiers": sorted({outcome.tier for outcome in scored if not outcome.answerable}),
        "tiers": {tier: len(group) for tier, group in tiers.items()},
        "intervals": _intervals(scored, answerable, tiers),
        "cut": LOW,
        "seconds": result.seconds,
    }


def _tiers(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    by_tier: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_tier.setdefault(outcome.tier, []).append(outcome)
    return dict(sorted(by_tier.items()))


def _refused(outcomes: Sequence[Outcome]) -> float:
    return sum(outcome.refused for outcome in outcomes) / len(outcomes)


def _intervals(
    outcomes: Sequence[Outcome], answerable: Sequence[Outcome], tiers: Mapping[str, Sequence[Outcome]]
) -> dict[str, Any]:
    chances, labels = arrays(outcomes)

    def rate(group: Sequence[Outcome]) -> tuple[float, float]:
        answered = [float(not outcome.refused) for outcome in group]
        return interval(lambda sample, _: share_below(sample, LOW), answered, [1.0] * len(group))

    return {
        "false_refusal_rate": rate(answerable),
        "refusal_rate": {tier: rate(group) for tier, group in tiers.items()},
        "auroc": interval(auroc, chances.tolist(), labels.tolist()),
        "ece": interval(ece, chances.tolist(), labels.tolist()),
    }


def arrays(outcomes: Sequence[Outcome]) -> tuple[Any, Any]:
    """Confidences, and 1 for every answerable question."""
    confidences = np.array([outcome.confidence for outcome in outcomes], dtype=float)
    return confidences, np.array([float(outcome.answerable) for outcome in outcomes])


def refusal_text(figures: Mapping[str, Any]) -> str:
    """The figures as text for a terminal."""
    bounds = figures["intervals"]
    size = f"{figures['n']} questions, {figures['chunks']} chunks"
    head = f"{figures['set']}: {size} · {figures['policy']} · {figures['embedder']}"
    rows = [("answerable", figures["answerable"], figures["false_refusal_rate"], bounds["false_refusal_rate"])]
    rows += [
        (tier, figures["tiers"][tier], rate, bounds["refusal_rate"][tier])
        for tier, rate in figures["refusal_rate"].items()
    ]
    lines = [
        f"  {name:<14} {count:>5}  {rate:6.1%} refused ({low:.1%}-{high:.1%})"
        for name, count, rate, (low, high) in rows
    ]
    tier_names = ", ".join(figures["counted_tiers"])
    for name in ("auroc", "ece"):
        low, high = bounds[name]
        lines.append(f"  {name:<14} {figures[name]:.4f} ({low:.4f}-{high:.4f}), answerable against {tier_names}")
    return "\n".join([head, *lines])
