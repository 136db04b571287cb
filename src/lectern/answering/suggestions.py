"""What a refusal suggests: the nearest lessons of the reader's scope, the lesson outside it that has the answer, other
books that cover the question, or other questions that the book answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from lectern.answering.desk import TurnDesk
from lectern.confidence.answerability import Answerability
from lectern.confidence.signals import CONFIDENCE_HITS
from lectern.domain.books import TOP_TIER
from lectern.domain.evidence import Hit
from lectern.domain.replies import NearestLesson
from lectern.domain.scope import ChunkFilter, ResolvedScope, Scope, SearchQuery
from lectern.ports.answering import ConfidencePolicy

MAX_NEAREST_LESSONS = 3
PolicyOf = Callable[[str], Awaitable[ConfidencePolicy]]  # of a book
MAX_OTHER_BOOKS = 5  # that are searched; more would make a refusal slow
MAX_REMEMBERED = 2_000  # questions; the headings of a few books


def nearest_lessons(hits: Sequence[Hit]) -> tuple[NearestLesson, ...]:
    """The lessons of the hits, best first."""
    lessons: dict[str, NearestLesson] = {}
    for hit in hits:
        page = hit.chunk.url.partition("#")[0]
        lesson = NearestLesson(title=hit.chunk.lesson_title, url=page, parent_doc_id=hit.chunk.parent_doc_id)
        lessons.setdefault(hit.chunk.parent_doc_id, lesson)
    return tuple(lessons.values())[:MAX_NEAREST_LESSONS]


class AnsweredQuestions:
    """Remembers which questions are answered, because many refusals are near to the same headings."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ChunkFilter, str], bool] = {}

    async def among(
        self, questions: Iterable[str], scope: ResolvedScope, is_answered: Callable[[str], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """Those of the questions that are answered in a scope, as they are found."""
        for question in questions:
            key = (scope.entry.epoch, scope.where, question)
            if key not in self._known:
                if len(self._known) >= MAX_REMEMBERED:
                    self._known.clear()
                self._known[key] = await is_answered(question)
            if self._known[key]:
                yield question


async def answers_elsewhere(
    question: str, desk: TurnDesk, policy: PolicyOf, answerability: Answerability | None
) -> tuple[tuple[NearestLesson, ...], tuple[str, ...]]:
    """Lessons that the reader's filters hide, and other books, that answer the question with confidence."""
    book = desk.scope.book_id
    outside: tuple[NearestLesson, ...] = ()
    if desk.scope.where != ChunkFilter(book_id=book):  # the author's default for readers hides lessons, too
        outside = nearest_lessons(await _confident_hits(question, book, desk, policy, answerability))[:1]
    if outside:
        return outside, ()
    other_books = [name for name in await desk.library.books() if name != book][:MAX_OTHER_BOOKS]
    return (), tuple(
        [name for name in other_books if await _confident_hits(question, name, desk, policy, answerability)]
    )


async def _confident_hits(
    question: str, book: str, desk: TurnDesk, policy: PolicyOf, answerability: Answerability | None
) -> list[Hit]:
    """The hits in a whole book if their confidence is high or medium, so that a suggestion is worth following."""
    scope = await desk.library.resolve(Scope(book_id=book, tier=TOP_TIER))
    findings = await desk.library.search(
        scope, SearchQuery(text=question.ljust(3, "?"), limit=CONFIDENCE_HITS, find_absent=True)
    )
    hits, book_policy = list(findings.hits), await policy(book)
    metrics = book_policy.measure(question, hits, hits[: desk.top_k])
    if metrics.should_answer and answerability is not None:
        best = [hit for hit in hits if hit.relevance >= book_policy.floor]
        metrics = await answerability.adjust(question, best, metrics, findings.language, len(findings.absent))
    return hits if metrics.confidence_level in ("high", "medium") else []
