"""Measures answers: whether a known answer is in the reply, and whether every sentence of the reply is in the book.
Questions are answered as for readers, so a refusal counts as a miss. With `gate` off, the offline writer alone answers
from the same passages. A known answer counts if the reply contains its words in order; case, articles and punctuation
do not matter.

A question set with known answers is a `queries.jsonl` whose questions have `answers`, and their book. A follow-up
question is asked in its standalone form, `meta.standalone`.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from lectern.answering.offline.writer import OfflineWriter
from lectern.domain.errors import BadInput, SourceError
from lectern.domain.evidence import Hit
from lectern.domain.replies import Answer
from lectern.domain.scope import QUERY_LENGTH
from lectern.evals.concurrency import run_concurrently
from lectern.evals.datasets import EvalBook, QuestionSet, book_of_documents, book_of_folder
from lectern.evals.goldfiles import CORPUS, QUERIES, line_error, read_corpus
from lectern.evals.indexed_sets import IndexedSet, open_indexed_set
from lectern.evals.metrics import intervals, means
from lectern.evals.runner import EvalContext
from lectern.models.local.answer_locator import LocalAnswerLocator
from lectern.ports.answering import Passage
from lectern.reading.names import slugged
from lectern.text.plain import unfenced, unmarked, without_targets
from lectern.text.words import parts_of

DOCS = "docs"  # the folder of a set that holds its book

Half = Literal["fitted", "other"]
TOP_K = 5  # passages that a question is answered from by default
METRICS = ("answered", "in_first", "words", "refused")
SENTENCE_METRICS = ("verbatim", "resolved")

_ARTICLES = frozenset(("a", "an", "the"))
_SINGLE_MARKER = re.compile(r"\s*\[(\d+)\]")

CitedSentence = tuple[str, tuple[str, ...]]  # a sentence, and the texts it cites


class AnswerLine(BaseModel):
    """One line of `queries.jsonl`."""

    id: str = Field(alias="_id", min_length=1)
    text: str
    answerable: bool = True
    answers: list[str] = []
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuestion:
    """One question with its known answers."""

    id: str
    text: str
    answers: tuple[str, ...]
    kind: str = ""
    article: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSet:
    """Questions and the book they are asked of."""

    name: str
    questions: tuple[AnswerQuestion, ...]
    book: EvalBook

    def sample(self, count: int, seed: int) -> AnswerSet:
        """A random sample of the questions; all of them if there are no more."""
        if count >= len(self.questions):
            return self
        return replace(self, questions=tuple(random.Random(seed).sample(self.questions, count)))  # noqa: S311  # no secret

    def half(self, half: Half) -> AnswerSet:
        """One half of the set: every second article by name, or every second question where none names its article."""
        articles = sorted({question.article for question in self.questions})
        if len(articles) > 1:
            half_articles = set(articles[0::2] if half == "fitted" else articles[1::2])
            return replace(
                self, questions=tuple(question for question in self.questions if question.article in half_articles)
            )
        return replace(self, questions=self.questions[0::2] if half == "fitted" else self.questions[1::2])


def load_answers(folder: Path, book: Path | None = None) -> AnswerSet:
    """The answerable questions of the set in a folder."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the folder that holds {QUERIES}")
    questions = tuple(_questions(folder / QUERIES))
    if not questions:
        raise SourceError(f"{folder / QUERIES} holds no question with `answers`")
    return AnswerSet(name=folder.resolve().name, questions=questions, book=_book(folder, book))


def _book(folder: Path, book: Path | None) -> EvalBook:
    name = slugged(folder.resolve().name)
    if book is not None or (folder / DOCS).is_dir():
        return book_of_folder(name, book or folder / DOCS)
    if (folder / CORPUS).exists():
        return book_of_documents(name, read_corpus(folder).values())
    raise SourceError(f"{folder} has neither {DOCS} nor {CORPUS}; name the book's folder: --book PATH")


def _questions(file: Path) -> Iterator[AnswerQuestion]:
    try:
        raw = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SourceError(f"{file} cannot be read ({exc}); a question set has {QUERIES}") from exc
    for number, text in enumerate(raw.splitlines(), start=1):
        if not text.strip():
            continue
        try:
            line = AnswerLine.model_validate_json(text)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            raise line_error(file, number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        meta = line.meta or {}
        question = str(meta.get("standalone") or line.text).strip()
        low, high = QUERY_LENGTH
        if line.answerable and line.answers and low <= len(question) <= high:
            yield AnswerQuestion(
                id=line.id,
                text=question,
                answers=tuple(line.answers),
                kind=str(meta.get("type") or ""),
                article=str(meta.get("article") or ""),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question and its reply."""

    id: str
    kind: str
    answered: bool
    in_first: bool
    words: int
    refused: bool
    sentences: int
    verbatim: int
    resolved: int

    def row(self) -> tuple[float, ...]:
        """One value for each of METRICS."""
        return float(self.answered), float(self.in_first), float(self.words), float(self.refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerResult:
    """The outcomes of one question set."""

    name: str
    model: str
    gate: bool
    chunks: int
    outcomes: tuple[Outcome, ...]
    seconds: float


async def measure_answers(answer_set: AnswerSet, context: EvalContext, *, gate: bool = True) -> AnswerResult:
    """Ask every question of a set."""
    start = time.perf_counter()
    books_only = QuestionSet(name=answer_set.name, questions=(), books=(answer_set.book,), documents=(), left_out={})
    opened = open_indexed_set(books_only, context.settings, context.cache, fresh=context.fresh, advance=context.advance)
    async with opened as indexed_set:
        reader = _Reader(indexed_set, answer_set.book.book_id, gate=gate)
        book_texts = {
            stored.chunk.text for stored in await indexed_set.lectern.app.library.chunks(answer_set.book.book_id)
        }

        async def ask(question: AnswerQuestion) -> Outcome:
            return score_reply(question, await reader.ask(question.text), book_texts)

        title = f"Asking {answer_set.name}"
        outcomes = await run_concurrently(
            answer_set.questions, ask, lambda count, total: context.advance(title, count, total)
        )
    return AnswerResult(
        name=answer_set.name,
        model=reader.model,
        gate=gate,
        chunks=indexed_set.chunks,
        outcomes=tuple(outcomes),
        seconds=round(time.perf_counter() - start, 3),
    )


class _Reader:
    """Asks one book, and splits replies into sentences."""

    def __init__(self, indexed_set: IndexedSet, book_id: str, *, gate: bool) -> None:
        self._lectern, self._book, self._gate = indexed_set.lectern, book_id, gate
        self._writer = OfflineWriter(LocalAnswerLocator())
        self.model = ""

    async def ask(self, text: str) -> list[CitedSentence]:
        """The sentences of the reply to a question; none if it is a refusal."""
        if not self._gate:
            self.model = "the offline writer alone"
            hits = (await self._lectern.search(text, book=self._book, limit=TOP_K)).hits
            return cited_sentences(await self._writer.write(text, passages_of(hits)), hits)
        reply = await self._lectern.ask(text, book=self._book, top_k=TOP_K)
        self.model = reply.account.model
        if not isinstance(reply, Answer):
            return []
        texts = [citation.hit.chunk.text for citation in reply.citations]
        return [
            (statement.text, tuple(texts[number - 1] for number in statement.citations if number <= len(texts)))
            for statement in reply.statements
        ]


def passages_of(hits: Sequence[Hit]) -> list[Passage]:
    """Hits as passages for the offline writer."""
    return [
        Passage(
            number=number,
            text=hit.chunk.text,
            heading=hit.chunk.section_title or hit.chunk.page_title,
            similarity=round(hit.similarity, 4),
            page=hit.chunk.page_title,
        )
        for number, hit in enumerate(hits, start=1)
    ]


def cited_sentences(draft: str, hits: Sequence[Hit]) -> list[CitedSentence]:
    """The sentences of a draft, each with the text of the passage that its marker names."""
    parts = _SINGLE_MARKER.split(draft)
    return [
        (text, tuple(hit.chunk.text for hit in hits[int(number) - 1 : int(number)]))
        for text, number in zip(parts[::2], parts[1::2], strict=False)
    ]


def score_reply(question: AnswerQuestion, reply: Sequence[CitedSentence], book_texts: set[str]) -> Outcome:
    """The outcome of one reply; `book_texts` are the texts of the book's chunks."""
    texts = [_SINGLE_MARKER.sub("", text) for text, _ in reply]
    return Outcome(
        id=question.id,
        kind=question.kind,
        answered=says("\n".join(texts), question.answers),
        in_first=bool(texts) and says(texts[0], question.answers),
        words=sum(len(_bare(text).split()) for text in texts),
        refused=not reply,
        sentences=len(reply),
        verbatim=sum(
            any(is_verbatim(text, passage) for passage in cited) for text, (_, cited) in zip(texts, reply, strict=True)
        ),
        resolved=sum(bool(cited) and all(passage in book_texts for passage in cited) for _, cited in reply),
    )


def says(text: str, answers: Sequence[str]) -> bool:
    """Whether the text contains one of the answers."""
    normal_text = f" {_normal(text)} "
    return any(f" {answer} " in normal_text for answer in map(_normal, answers) if answer)


def is_verbatim(sentence: str, passage: str) -> bool:
    """Whether the passage contains the sentence word for word; white space and link targets do not count."""
    return _even(_bare(sentence)) in _even(passage)


def _normal(text: str) -> str:
    return " ".join(word for word in parts_of(text.casefold()) if word not in _ARTICLES)


def _bare(text: str) -> str:
    """A sentence without its bullets and fences."""
    listing = unfenced(text)
    return (unmarked(text) if listing is None else listing).strip()


def _even(text: str) -> str:
    return " ".join(without_targets(text).split())


def summary(result: AnswerResult) -> dict[str, Any]:
    """The figures as JSON."""
    outcomes = result.outcomes
    rows = [outcome.row() for outcome in outcomes]
    sentences = sum(outcome.sentences for outcome in outcomes)
    figures = dict(zip(METRICS, means(rows), strict=True))
    bounds = dict(zip(METRICS, intervals(rows), strict=True))
    kinds = sorted({outcome.kind for outcome in outcomes if outcome.kind})
    return {
        "set": result.name,
        "model": result.model,
        "gate": result.gate,
        "chunks": result.chunks,
        "n": len(outcomes),
        "sentences": sentences,
        **figures,
        **{name: sum(getattr(outcome, name) for outcome in outcomes) / (sentences or 1) for name in SENTENCE_METRICS},
        "intervals": bounds,
        "kinds": {kind: _of_kind([outcome for outcome in outcomes if outcome.kind == kind]) for kind in kinds},
        "seconds": result.seconds,
    }


def _of_kind(outcomes: Sequence[Outcome]) -> dict[str, float]:
    return {"n": len(outcomes), **dict(zip(METRICS, means([outcome.row() for outcome in outcomes]), strict=True))}


def answers_text(figures: dict[str, Any]) -> str:
    """The figures as text for a terminal."""
    bounds = figures["intervals"]
    gate = "" if figures["gate"] else ", no gate"
    lines = [f"{figures['set']}: {figures['n']} questions, {figures['chunks']} chunks · {figures['model']}{gate}"]
    names = {"answered": "gold in the reply", "in_first": "in its first sentence", "refused": "refused"}
    for name, label in names.items():
        low, high = bounds[name]
        lines.append(f"  {label:<22} {figures[name]:6.1%} ({low:.1%}-{high:.1%})")
    low, high = bounds["words"]
    lines.append(f"  {'words a reply':<22} {figures['words']:6.1f} ({low:.1f}-{high:.1f}), refusals counted as 0")
    lines.append(f"  {'word for word':<22} {figures['verbatim']:6.1%} of {figures['sentences']} sentences")
    lines.append(f"  {'citation resolves':<22} {figures['resolved']:6.1%}")
    lines += [
        f"  {kind:<22} {shares['answered']:6.1%} of {shares['n']:.0f}, {shares['refused']:.1%} refused"
        for kind, shares in figures["kinds"].items()
    ]
    return "\n".join(lines)
