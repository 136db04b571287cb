"""What a refusal can still say: the nearest lessons of the reader's scope, the lesson outside it that has the answer,
and other books that cover the question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from lectern.answering.desk import TurnDesk
from lectern.confidence.answerability import Answerability
from lectern.domain.books import TOP_TIER
from lectern.domain.evidence import Hit
from lectern.domain.replies import NearestLesson
from lectern.domain.scope import ChunkFilter, Scope, SearchQuery
from lectern.ports.answering import ConfidencePolicy

NEAREST = 3
FIELD = 10
PolicyOf = Callable[[str], Awaitable[ConfidencePolicy]]  # of a book
OTHER_BOOKS = 5  # that are asked; more would make a refusal slow


def nearest(hits: Sequence[Hit]) -> tuple[NearestLesson, ...]:
    """The lessons behind some hits, best first."""
    lessons: dict[str, NearestLesson] = {}
    for hit in hits:
        page = hit.chunk.url.partition("#")[0]
        lesson = NearestLesson(title=hit.chunk.lesson_title, url=page, parent_doc_id=hit.chunk.parent_doc_id)
        lessons.setdefault(hit.chunk.parent_doc_id, lesson)
    return tuple(lessons.values())[:NEAREST]


async def elsewhere(
    question: str, desk: TurnDesk, policy: PolicyOf, look: Answerability | None
) -> tuple[tuple[NearestLesson, ...], tuple[str, ...]]:
    """Lessons that the reader's filters hide, and other books, that answer the question with confidence."""
    book = desk.scope.book_id
    outside: tuple[NearestLesson, ...] = ()
    if desk.scope.where != ChunkFilter(book_id=book):  # the author's default for readers hides lessons, too
        outside = nearest(await _confident(question, book, desk, policy, look))[:1]
    if outside:
        return outside, ()
    others = [name for name in await desk.library.books() if name != book][:OTHER_BOOKS]
    return (), tuple([other for other in others if await _confident(question, other, desk, policy, look)])


async def _confident(
    question: str, book: str, desk: TurnDesk, policy: PolicyOf, look: Answerability | None
) -> list[Hit]:
    """The hits of a whole book, if they would have been enough, and not just so: whoever is sent there must find it."""
    scope = await desk.library.resolve(Scope(book_id=book, tier=TOP_TIER))
    found = await desk.library.search(scope, SearchQuery(text=question.ljust(3, "?"), limit=FIELD))
    hits, its = list(found.hits), await policy(book)
    metrics = its.measure(question, hits, hits[: desk.top_k])
    if metrics.should_answer and look is not None:
        best = [hit for hit in hits if hit.similarity >= (its.floor or 0.0)]
        metrics = await look.at(question, best, metrics, found.language)
    return hits if metrics.confidence_level in ("high", "medium") else []
