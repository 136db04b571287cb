"""The desk of one turn: everything a model may look up, and the numbers under which passages are handed out. It knows
one book and one reader's scope, so nothing a model asks for can reach further; a passage is numbered once."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TypeVar

from lectern.domain.chunks import IndexedChunk
from lectern.domain.clock import utc_now
from lectern.domain.errors import BadInput, LecternError
from lectern.domain.evidence import Findings, Hit
from lectern.domain.outline import Outline
from lectern.domain.replies import LookUp
from lectern.domain.scope import ChunkFilter, ResolvedScope, Scope, SearchQuery
from lectern.schemas.tool_response import TOOL_NAME, error_response, tool_response

T = TypeVar("T")

TOOL_LIMIT = 20  # passages that a model may ask for at once
LESSON_LIMIT = 40  # passages of a lesson that a model is given; the rest it can search for


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """How a desk reaches the book."""

    search: Callable[[ResolvedScope, SearchQuery], Awaitable[Findings]]
    resolve: Callable[[Scope], Awaitable[ResolvedScope]]  # raises where the scope does not fit the book
    lesson: Callable[[ChunkFilter], Awaitable[list[IndexedChunk]]]
    outline: Callable[[str], Awaitable[Outline]]
    books: Callable[[], Awaitable[tuple[str, ...]]]  # those that this reader may read


@dataclass(slots=True, kw_only=True)
class TurnDesk:
    """Look-ups of one turn."""

    library: Library
    scope: ResolvedScope
    top_k: int
    floor: float | None  # the least cosine; a model may raise it
    question: str  # of the reader, made standalone
    look_ups: list[LookUp] = field(default_factory=list)
    seconds: float = 0.0  # spent on looking up
    handed: dict[int, Hit] = field(default_factory=dict)
    retrieved: set[str] = field(default_factory=set)  # chunks that a retrieval brought, not the reading of a lesson
    succeeded: bool = False
    _vector: tuple[float, ...] = ()  # of the reader's question
    _numbers: dict[str, int] = field(default_factory=dict)

    def passage(self, number: int) -> Hit | None:
        """The passage behind a number, if it was handed out in this turn."""
        return self.handed.get(number)

    def hand_out(self, findings: Findings, hits: Sequence[Hit]) -> str:
        """The first retrieval, already made, as the tool's answer."""
        self._vector, self.succeeded = findings.vector, True
        return self._respond(findings.query, hits)

    async def retrieve(self, query: str, top_k: int | None, similarity_threshold: float | None) -> str:
        """Passages for a query that the model wrote."""
        try:
            if top_k is not None and not 1 <= top_k <= TOOL_LIMIT:
                raise BadInput(f"top_k must be 1 to {TOOL_LIMIT}, not {top_k}", field="top_k")
            floors = [floor for floor in (self.floor, similarity_threshold) if floor is not None]
            wanted = SearchQuery(
                text=query,
                limit=top_k or self.top_k,
                similarity_threshold=max(floors, default=None),
            )
            findings = await self._timed(self.library.search(self.scope, wanted))
        except LecternError as exc:
            return error_response(query, str(exc))
        self.succeeded = True
        return self._respond(query, [self._for_reader(hit) for hit in findings.hits])

    async def read_lesson(self, parent_doc_id: str) -> str:
        """A lesson of the reader's scope, in order; its passages can be cited."""
        try:
            chunks = await self._timed(self.library.lesson(replace(self.scope.where, parent_doc_id=parent_doc_id)))
        except LecternError as exc:
            return error_response(parent_doc_id, str(exc))
        hits = [self._from_lesson(chunk) for chunk in chunks[:LESSON_LIMIT]]
        self._note("read_lesson", parent_doc_id, len(hits), _mean(hits))
        if not hits:
            return error_response(parent_doc_id, "the book has no such lesson for this reader")
        return tool_response(parent_doc_id, self._number(hits))

    async def first_of(self, parent_doc_id: str) -> Hit | None:
        """The first passage of a lesson that this reader may see."""
        chunks = await self._timed(self.library.lesson(replace(self.scope.where, parent_doc_id=parent_doc_id)))
        return self._from_lesson(chunks[0]) if chunks else None

    async def outline(self) -> str:
        """The table of contents, lessons with the id that `read_lesson` takes."""
        outline = await self._timed(self.library.outline(self.scope.book_id))
        self._note(
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
        """How often passages were searched for, by us or the model."""
        return sum(one.tool_name == TOOL_NAME for one in self.look_ups)

    def best(self) -> list[Hit]:
        """What confidence is measured on: all that retrievals brought, the best `top_k`."""
        found = [hit for hit in self.handed.values() if hit.chunk.id in self.retrieved]
        return sorted(found, key=lambda hit: -hit.similarity)[: self.top_k]

    def _respond(self, query: str, hits: Sequence[Hit]) -> str:
        self._note(TOOL_NAME, query, len(hits), _mean(hits))
        self.retrieved |= {hit.chunk.id for hit in hits}
        return tool_response(query, self._number(hits))

    def _note(self, tool: str, query: str, found: int, similarity: float) -> None:
        """Every call of a tool is kept with the turn: who audits an answer sees what its model looked at."""
        made = LookUp(tool_name=tool, query=query, results_count=found, avg_similarity=similarity, timestamp=utc_now())
        self.look_ups.append(made)

    def _number(self, hits: Sequence[Hit]) -> dict[int, Hit]:
        numbered: dict[int, Hit] = {}
        for hit in hits:
            number = self._numbers.setdefault(hit.chunk.id, len(self._numbers) + 1)
            numbered[number] = self.handed.setdefault(number, hit)
        return numbered

    def _for_reader(self, hit: Hit) -> Hit:
        """The hit with its similarity to what the reader asked, not to what the model did."""
        return replace(hit, similarity=self._similarity(hit.windows))

    def _from_lesson(self, one: IndexedChunk) -> Hit:
        windows = tuple(tuple(vector) for vector in one.vectors)
        return Hit(
            chunk=one.stored.chunk,
            rank=one.stored.chunk.chunk_index + 1,
            score=0.0,
            similarity=self._similarity(windows),
            lexical=0.0,
            windows=windows,
        )

    def _similarity(self, windows: Sequence[Sequence[float]]) -> float:
        if not self._vector:  # the outline answered before anything was searched
            return 0.0
        cosines = [sum(a * b for a, b in zip(window, self._vector, strict=True)) for window in windows]
        return min(max(max(cosines, default=0.0), 0.0), 1.0)

    async def _timed(self, work: Awaitable[T]) -> T:
        begun = time.perf_counter()
        try:
            return await work
        finally:
            self.seconds += time.perf_counter() - begun


def _mean(hits: Sequence[Hit]) -> float:
    return fmean(hit.similarity for hit in hits) if hits else 0.0
