"""Answers, measured: does a known answer stand in the reply, and is every sentence of it the book's? Questions go the
way that readers' questions go, so that a refusal is a miss; with `gate` off the offline writer alone answers, from the
same passages. A gold string counts when the reply has it in a row, whatever its case, articles and punctuation.

Question sets with known answers: `queries.jsonl` whose questions have `answers`, and the book they are asked of. A
question that needs the talk before it is asked as `meta.standalone` has it.
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
from lectern.answering.outgoing import without_links
from lectern.domain.errors import BadInput, SourceError
from lectern.domain.evidence import Hit
from lectern.domain.replies import Answer
from lectern.domain.scope import QUERY_LENGTH
from lectern.evals.benches import Bench, open_bench
from lectern.evals.datasets import EvalBook, QuestionSet, book_of_documents, book_of_folder
from lectern.evals.goldfiles import CORPUS, QUERIES, read_corpus, wrong
from lectern.evals.metrics import intervals, means
from lectern.evals.pacing import in_turn
from lectern.evals.runner import Surroundings
from lectern.models.local.answer_locator import LocalAnswerLocator
from lectern.models.local.embedder import LocalEmbedder
from lectern.ports.answering import Passage
from lectern.reading.names import slugged
from lectern.text.plain import unmarked
from lectern.text.words import parts_of

DOCS = "docs"  # a set's own book

Half = Literal["fitted", "other"]
TOP_K = 5  # passages that a question is answered from by default
METRICS = ("answered", "in_first", "words", "refused")
OF_SENTENCES = ("verbatim", "resolved")

_ARTICLES = frozenset(("a", "an", "the"))
_FENCES = re.compile(r"(?m)^\s*(?:`{3,}|~{3,}).*$")
_MARK = re.compile(r"\s*\[(\d+)\]")

Quoted = tuple[str, tuple[str, ...]]  # a sentence, and the texts it cites


class AnswerLine(BaseModel):
    """One question."""

    id: str = Field(alias="_id", min_length=1)
    text: str
    answerable: bool = True
    answers: list[str] = []
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question with its answers."""

    id: str
    text: str
    answers: tuple[str, ...]
    kind: str = ""
    article: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSet:
    """Questions and the book they are asked of."""

    name: str
    asked: tuple[Asked, ...]
    book: EvalBook

    def sampled(self, count: int, seed: int) -> AnswerSet:
        """Some of the questions, by chance; all where there are no more."""
        if count >= len(self.asked):
            return self
        return replace(self, asked=tuple(random.Random(seed).sample(self.asked, count)))  # noqa: S311  # no secret

    def half(self, which: Half) -> AnswerSet:
        """One half of the set: every second article by name, or every second question where none names its article."""
        articles = sorted({one.article for one in self.asked})
        if len(articles) > 1:
            mine = set(articles[0::2] if which == "fitted" else articles[1::2])
            return replace(self, asked=tuple(one for one in self.asked if one.article in mine))
        return replace(self, asked=self.asked[0::2] if which == "fitted" else self.asked[1::2])


def load_answers(folder: Path, book: Path | None = None) -> AnswerSet:
    """The answerable questions of the set in a folder."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the folder that holds {QUERIES}")
    asked = tuple(_questions(folder / QUERIES))
    if not asked:
        raise SourceError(f"{folder / QUERIES} holds no question with `answers`")
    return AnswerSet(name=folder.resolve().name, asked=asked, book=_book(folder, book))


def _book(folder: Path, book: Path | None) -> EvalBook:
    name = slugged(folder.resolve().name)
    if book is not None or (folder / DOCS).is_dir():
        return book_of_folder(name, book or folder / DOCS)
    if (folder / CORPUS).exists():
        return book_of_documents(name, read_corpus(folder).values())
    raise SourceError(f"{folder} has neither {DOCS} nor {CORPUS}; name the book's folder: --book PATH")


def _questions(file: Path) -> Iterator[Asked]:
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
            raise wrong(file, number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        meta = line.meta or {}
        question = str(meta.get("standalone") or line.text).strip()
        low, high = QUERY_LENGTH
        if line.answerable and line.answers and low <= len(question) <= high:
            yield Asked(
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
class Answers:
    """One set, asked."""

    name: str
    model: str
    gate: bool
    chunks: int
    outcomes: tuple[Outcome, ...]
    seconds: float


async def measure_answers(questions: AnswerSet, around: Surroundings, *, gate: bool = True) -> Answers:
    """Ask every question."""
    begun = time.perf_counter()
    shell = QuestionSet(name=questions.name, questions=(), books=(questions.book,), documents=(), left_out={})
    opened = open_bench(shell, around.settings, around.cache, fresh=around.fresh, advance=around.advance)
    async with opened as bench:
        reader = _Reader(bench, questions.book.book_id, gate=gate)
        known = {held.chunk.text for held in await bench.lectern.app.library.chunks(questions.book.book_id)}

        async def one(asked: Asked) -> Outcome:
            return outcome(asked, await reader.ask(asked.text), known)

        title = f"Asking {questions.name}"
        outcomes = await in_turn(questions.asked, one, lambda done, total: around.advance(title, done, total))
    return Answers(
        name=questions.name,
        model=reader.model,
        gate=gate,
        chunks=bench.chunks,
        outcomes=tuple(outcomes),
        seconds=round(time.perf_counter() - begun, 3),
    )


class _Reader:
    """Asks one book, and takes replies apart."""

    def __init__(self, bench: Bench, book_id: str, *, gate: bool) -> None:
        self._lectern, self._book, self._gate = bench.lectern, book_id, gate
        self._writer = OfflineWriter(LocalEmbedder(), LocalAnswerLocator())
        self.model = ""

    async def ask(self, text: str) -> list[Quoted]:
        """The reply's sentences; none where it is a refusal."""
        if not self._gate:
            self.model = "the offline writer alone"
            hits = (await self._lectern.search(text, book=self._book, limit=TOP_K)).hits
            return quoted(await self._writer.write(text, passages_of(hits)), hits)
        reply = await self._lectern.ask(text, book=self._book, top_k=TOP_K)
        self.model = reply.account.model
        if not isinstance(reply, Answer):
            return []
        texts = [citation.hit.chunk.text for citation in reply.citations]
        return [
            (one.text, tuple(texts[number - 1] for number in one.citations if number <= len(texts)))
            for one in reply.statements
        ]


def passages_of(hits: Sequence[Hit]) -> list[Passage]:
    """Hits as the offline writer gets them."""
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


def quoted(draft: str, hits: Sequence[Hit]) -> list[Quoted]:
    """A draft's pieces, each with the passage its marker names."""
    parts = _MARK.split(draft)
    return [
        (text, tuple(hit.chunk.text for hit in hits[int(number) - 1 : int(number)]))
        for text, number in zip(parts[::2], parts[1::2], strict=False)
    ]


def outcome(asked: Asked, reply: Sequence[Quoted], known: set[str]) -> Outcome:
    """How one reply did; `known` are the texts of the book's chunks."""
    texts = [_MARK.sub("", text) for text, _ in reply]
    return Outcome(
        id=asked.id,
        kind=asked.kind,
        answered=says("\n".join(texts), asked.answers),
        in_first=bool(texts) and says(texts[0], asked.answers),
        words=sum(len(_bare(text).split()) for text in texts),
        refused=not reply,
        sentences=len(reply),
        verbatim=sum(
            any(stands_in(text, passage) for passage in cited) for text, (_, cited) in zip(texts, reply, strict=True)
        ),
        resolved=sum(bool(cited) and all(passage in known for passage in cited) for _, cited in reply),
    )


def says(text: str, answers: Sequence[str]) -> bool:
    """Whether one of the answers stands in the text."""
    told = f" {_normal(text)} "
    return any(f" {wanted} " in told for wanted in map(_normal, answers) if wanted)


def stands_in(sentence: str, passage: str) -> bool:
    """Whether the passage has the sentence word for word; white space and links' targets do not count."""
    return _even(_bare(sentence)) in _even(passage)


def _normal(text: str) -> str:
    return " ".join(word for word in parts_of(text.casefold()) if word not in _ARTICLES)


def _bare(text: str) -> str:
    """A sentence without the markup that shows it: bullets, fences."""
    return _FENCES.sub("", text).strip() if _FENCES.search(text) else unmarked(text).strip()


def _even(text: str) -> str:
    return " ".join(without_links(text).split())


def summary(found: Answers) -> dict[str, Any]:
    """What programs read."""
    outcomes = found.outcomes
    rows = [one.row() for one in outcomes]
    sentences = sum(one.sentences for one in outcomes)
    figures = dict(zip(METRICS, means(rows), strict=True))
    bounds = dict(zip(METRICS, intervals(rows), strict=True))
    kinds = sorted({one.kind for one in outcomes if one.kind})
    return {
        "set": found.name,
        "model": found.model,
        "gate": found.gate,
        "chunks": found.chunks,
        "n": len(outcomes),
        "sentences": sentences,
        **figures,
        **{name: sum(getattr(one, name) for one in outcomes) / (sentences or 1) for name in OF_SENTENCES},
        "intervals": bounds,
        "kinds": {kind: _of_kind([one for one in outcomes if one.kind == kind]) for kind in kinds},
        "seconds": found.seconds,
    }


def _of_kind(outcomes: Sequence[Outcome]) -> dict[str, float]:
    return {"n": len(outcomes), **dict(zip(METRICS, means([one.row() for one in outcomes]), strict=True))}


def answers_text(told: dict[str, Any]) -> str:
    """The same for people."""
    bounds = told["intervals"]
    gate = "" if told["gate"] else ", no gate"
    lines = [f"{told['set']}: {told['n']} questions, {told['chunks']} chunks · {told['model']}{gate}"]
    names = {"answered": "gold in the reply", "in_first": "in its first sentence", "refused": "refused"}
    for name, label in names.items():
        low, high = bounds[name]
        lines.append(f"  {label:<22} {told[name]:6.1%} ({low:.1%}-{high:.1%})")
    low, high = bounds["words"]
    lines.append(f"  {'words a reply':<22} {told['words']:6.1f} ({low:.1f}-{high:.1f}), refusals counted as 0")
    lines.append(f"  {'word for word':<22} {told['verbatim']:6.1%} of {told['sentences']} sentences")
    lines.append(f"  {'citation resolves':<22} {told['resolved']:6.1%}")
    lines += [
        f"  {kind:<22} {one['answered']:6.1%} of {one['n']:.0f}, {one['refused']:.1%} refused"
        for kind, one in told["kinds"].items()
    ]
    return "\n".join(lines)
