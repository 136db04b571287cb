"""What a model may look up in one turn, and the numbers of the passages it gets. Passages are of one book and within
one reader's scope, whatever the model asks for; the table of contents is the whole book's. A passage keeps its number
for the whole turn."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TypeVar

from lectern.domain.books import BookEntry
from lectern.domain.chunks import IndexedChunk
from lectern.domain.clock import utc_now
from lectern.domain.errors import BadInput, LecternError
from lectern.domain.evidence import Findings, Hit
from lectern.domain.outline import Outline
from lectern.domain.replies import LookUp, ToolUse
from lectern.domain.scope import ChunkFilter, ResolvedScope, Scope, SearchQuery
from lectern.schemas.tool_response import TOOL_LIMIT, TOOL_NAME, error_response, tool_response
from lectern.text.strings import Strings

T = TypeVar("T")

LESSON_LIMIT = 40  # passages of a lesson that a model is given; the rest it can search for


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The functions that look-ups use to read the book."""

    search: Callable[[ResolvedScope, SearchQuery], Awaitable[Findings]]
    texts_with: Callable[[ResolvedScope, Sequence[float], Sequence[str]], Awaitable[list[str]]]  # these words
    resolve: Callable[[Scope], Awaitable[ResolvedScope]]  # raises if the scope does not fit the book
    lesson: Callable[[ChunkFilter], Awaitable[list[IndexedChunk]]]
    outline: Callable[[str], Awaitable[Outline]]
    books: Callable[[], Awaitable[tuple[str, ...]]]  # those that this reader may read
    strings: Callable[[BookEntry], Awaitable[Strings]]  # the sentences of the book's language
    first_questions: Callable[[BookEntry], Awaitable[tuple[str, ...]]]  # that the book answers


@dataclass(slots=True, kw_only=True)
class TurnDesk:
    """The look-ups of one turn, and the passages they found, by number."""

    library: Library
    scope: ResolvedScope
    top_k: int
    floor: float | None  # the lowest relevance; a model may raise it
    question: str  # of the reader, made standalone
    look_ups: list[LookUp] = field(default_factory=list)
    tool_uses: list[ToolUse] = field(default_factory=list)
    seconds: float = 0.0  # spent on look-ups
    passages: dict[int, Hit] = field(default_factory=dict)
    retrieved: set[str] = field(default_factory=set)  # ids of chunks from searches, not from reading a lesson
    scale: Callable[[float], float] = lambda cosine: cosine  # from a cosine to its relevance
    _vector: tuple[float, ...] = ()  # of the reader's question
    _numbers: dict[str, int] = field(default_factory=dict)

    def passage(self, number: int) -> Hit | None:
        """The passage with this number, if the turn has one."""
        return self.passages.get(number)

    def hand_out(self, findings: Findings, hits: Sequence[Hit]) -> str:
        """The tool's response for the first retrieval, which was made before the model is called."""
        self._vector = findings.vector
        output = self._respond(findings.query, hits, hits)
        use = ToolUse(
            call_id=f"call_{uuid.uuid4().hex}",
            name=TOOL_NAME,
            arguments=json.dumps({"query": findings.query}, ensure_ascii=False),
            output=output,
            timestamp=utc_now(),
        )
        self.record(use)
        return output

    def record(self, use: ToolUse) -> None:
        """Keep a call of a tool with the turn."""
        self.tool_uses.append(use)

    async def retrieve(self, query: str, top_k: int | None, similarity_threshold: float | None) -> str:
        """Passages for a query that the model wrote."""
        try:
            if top_k is not None and not 1 <= top_k <= TOOL_LIMIT:
                raise BadInput(f"top_k must be 1 to {TOOL_LIMIT}, not {top_k}", field="top_k")
            floors = [floor for floor in (self.floor, similarity_threshold) if floor is not None]
            search = SearchQuery(
                text=query,
                limit=top_k or self.top_k,
                similarity_threshold=max(floors, default=None),
            )
            findings = await self._timed(self.library.search(self.scope, search))
        except LecternError as exc:
            return error_response(query, str(exc))
        return self._respond(query, findings.hits, [self._for_reader(hit) for hit in findings.hits])

    async def read_lesson(self, parent_doc_id: str) -> str:
        """A lesson of the reader's scope, in order; its passages can be cited."""
        try:
            chunks = await self._lesson(parent_doc_id)
        except LecternError as exc:
            return error_response(parent_doc_id, str(exc))
        hits = [self._from_lesson(chunk) for chunk in chunks[:LESSON_LIMIT]]
        self._log_look_up("read_lesson", parent_doc_id, len(hits), _mean(hits))
        if not hits:
            return error_response(parent_doc_id, "the book has no such lesson for this reader")
        return tool_response(parent_doc_id, self._number(hits))

    async def passages_of(self, parent_doc_id: str) -> list[Hit]:
        """The passages of a lesson that this reader may see, in order."""
        return [self._from_lesson(chunk) for chunk in await self._lesson(parent_doc_id)]

    async def outline(self) -> str:
        """The table of contents; each lesson has the id that `read_lesson` takes."""
        outline = await self._timed(self.library.outline(self.scope.book_id))
        self._log_look_up(
            "outline", "", sum(len(chapter.lessons) for part in outline.modules for chapter in part.chapters), 0.0
        )
        modules = [
            {
                "module": module.title,
                "chapters": [
                    {
                        "chapter": chapter.title,
                        "lessons": [
                            {"title": lesson.title, "parent_doc_id": lesson.parent_doc_id} for lesson in chapter.lessons
                        ],
                    }
                    for chapter in module.chapters
                ],
            }
            for module in outline.modules
        ]
        return json.dumps({"title": outline.title, "modules": modules}, ensure_ascii=False)

    @property
    def retrievals(self) -> int:
        """How often passages were searched for, by us or by the model."""
        return sum(look_up.tool_name == TOOL_NAME for look_up in self.look_ups)

    def best(self) -> list[Hit]:
        """The best `top_k` of all passages from searches; confidence is measured on these."""
        hits = [hit for hit in self.passages.values() if hit.chunk.id in self.retrieved]
        return sorted(hits, key=lambda hit: -hit.similarity)[: self.top_k]

    async def _lesson(self, parent_doc_id: str) -> list[IndexedChunk]:
        """The chunks of a lesson that are in the reader's scope, which may be limited to another lesson."""
        where = self.scope.where
        if where.parent_doc_id not in (None, parent_doc_id):
            return []
        return await self._timed(self.library.lesson(replace(where, parent_doc_id=parent_doc_id)))

    def _respond(self, query: str, hits: Sequence[Hit], for_reader: Sequence[Hit]) -> str:
        """The tool's response. It has the similarities to its own query; the turn keeps those to the reader's question,
        which confidence is measured on."""
        self._log_look_up(TOOL_NAME, query, len(hits), _mean(hits))
        self.retrieved |= {hit.chunk.id for hit in hits}
        return tool_response(query, dict(zip(self._number(for_reader), hits, strict=True)))

    def _log_look_up(self, tool: str, query: str, results: int, similarity: float) -> None:
        """Store a tool call with the turn, so that an auditor sees what the model looked at."""
        look_up = LookUp(
            tool_name=tool, query=query, results_count=results, avg_similarity=similarity, timestamp=utc_now()
        )
        self.look_ups.append(look_up)

    def _number(self, hits: Sequence[Hit]) -> dict[int, Hit]:
        numbered: dict[int, Hit] = {}
        for hit in hits:
            number = self._numbers.setdefault(hit.chunk.id, len(self._numbers) + 1)
            numbered[number] = self.passages.setdefault(number, hit)
        return numbered

    def _for_reader(self, hit: Hit) -> Hit:
        """The hit with its similarity to the reader's question instead of the model's query."""
        similarity = self._similarity(hit.windows)
        return replace(hit, similarity=similarity, relevance=self.scale(similarity))

    def _from_lesson(self, indexed: IndexedChunk) -> Hit:
        windows = tuple(tuple(vector) for vector in indexed.vectors)
        similarity = self._similarity(windows)
        return Hit(
            chunk=indexed.stored.chunk,
            rank=indexed.stored.chunk.chunk_index + 1,
            score=0.0,
            similarity=similarity,
            relevance=self.scale(similarity),
            lexical=0.0,
            windows=windows,
        )

    def _similarity(self, windows: Sequence[Sequence[float]]) -> float:
        if not self._vector:  # the outline answered before anything was searched
            return 0.0
        cosines = [sum(a * b for a, b in zip(window, self._vector, strict=True)) for window in windows]
        return min(max(max(cosines, default=0.0), 0.0), 1.0)

    async def _timed(self, work: Awaitable[T]) -> T:
        start = time.perf_counter()
        try:
            return await work
        finally:
            self.seconds += time.perf_counter() - start


def _mean(hits: Sequence[Hit]) -> float:
    return fmean(hit.relevance for hit in hits) if hits else 0.0
