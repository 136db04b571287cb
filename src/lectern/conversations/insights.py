"""Adds up what readers asked a book: how many questions were answered, which were refused and near which lesson, which
sections are cited, and the feedback. It reads stored turns, so a deleted conversation leaves no trace. Only counts and
titles of the book go out, and the texts of questions and comments only if the operator shows them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lectern.domain.chunks import StampedChunk
from lectern.domain.clock import in_utc
from lectern.domain.insights import (
    BookSection,
    CitedSection,
    DayCount,
    Insights,
    PastTurn,
    QuestionGroup,
    Thumbs,
)
from lectern.domain.outline import Outline
from lectern.ports.threads import TurnHistory

MAX_TURNS = 20_000
MAX_GROUPS = 100
MAX_QUESTIONS = 20  # of one group
MAX_COMMENTS = 20
MAX_MOST_CITED = 20
MAX_NEVER_CITED = 200
SectionId = tuple[str, str]  # parent_doc_id and heading


@dataclass(frozen=True, slots=True, kw_only=True)
class BookContents:
    """The lessons and sections of a book as it is indexed now."""

    book_id: str
    titles: dict[str, str]  # of lessons, by parent_doc_id, in the order of the book
    sections: frozenset[SectionId]


def contents_of(outline: Outline, chunks: Iterable[StampedChunk]) -> BookContents:
    """The contents of a book; sections are named as citations name them."""
    lessons = [lesson for module in outline.modules for chapter in module.chapters for lesson in chapter.lessons]
    sections: set[SectionId] = set()
    for stamped in chunks:
        chunk = stamped.chunk
        if not chunk.sections or chunk.sections[0].at > 0:
            sections.add((chunk.parent_doc_id, chunk.section_title or chunk.lesson_title))
        sections.update((chunk.parent_doc_id, mark.title) for mark in chunk.sections)
    return BookContents(
        book_id=outline.book_id,
        titles={lesson.parent_doc_id: lesson.title for lesson in lessons},
        sections=frozenset(sections),
    )


async def read_insights(history: TurnHistory, contents: BookContents, *, days: int, texts: bool) -> Insights:
    """The insights of the last days; the texts of questions and comments only with `texts`."""
    first_day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
    tally = _Tally()
    async for batch in history.turns(contents.book_id, in_utc(first_day), MAX_TURNS + 1):
        await asyncio.to_thread(tally.add, batch)  # the event loop goes on meanwhile
    day_names = [(first_day + timedelta(days=day)).date().isoformat() for day in range(days)]
    return await asyncio.to_thread(tally.insights, contents, day_names, texts=texts)


@dataclass(slots=True)
class _Group:
    """Questions near one lesson."""

    title: str
    count: int = 0
    questions: dict[str, None] = field(default_factory=dict)  # a set in the order of its items

    def add(self, question: str) -> None:
        self.count += 1
        if len(self.questions) < MAX_QUESTIONS:
            self.questions[question] = None


class _Tally:
    """Counts turns, the newest first."""

    def __init__(self) -> None:
        self.turns, self.low, self.more = 0, 0, False
        self.days: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}  # by whether it was refused
        self.ratings: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.comments: list[str] = []
        self.citations: Counter[SectionId] = Counter()
        self.cited_titles: dict[str, str] = {}
        self.groups: dict[bool, dict[str | None, _Group]] = {True: {}, False: {}}

    def add(self, turns: Sequence[PastTurn]) -> None:
        """Count a batch of turns; those after the first `MAX_TURNS` are not counted."""
        for turn in turns:
            if self.turns == MAX_TURNS:
                self.more = True
                return
            self.turns += 1
            self._count(turn)

    def _count(self, turn: PastTurn) -> None:
        self.days[turn.refused][turn.asked_at[:10]] += 1
        sources = [source for source in _rows(turn.reply, "sources") if source.get("parent_doc_id")]
        for section in {(str(source["parent_doc_id"]), str(source.get("section"))) for source in sources}:
            self.citations[section] += 1
        for source in sources:
            self.cited_titles.setdefault(str(source["parent_doc_id"]), str(source.get("page_title", "")))
        low = not turn.refused and turn.reply.get("confidence_level") == "low"
        self.low += low
        if turn.refused or low:
            parent_doc_id, title = _nearest_lesson(turn)
            group = self.groups[turn.refused].setdefault(parent_doc_id, _Group(title))
            group.add(turn.question)
        if turn.feedback is not None:
            self.ratings[turn.feedback.rating] += 1
            if turn.feedback.reason is not None:
                self.reasons[turn.feedback.reason] += 1
            if turn.feedback.comment and len(self.comments) < MAX_COMMENTS:
                self.comments.append(turn.feedback.comment)

    def insights(self, contents: BookContents, day_names: Sequence[str], *, texts: bool) -> Insights:
        """What was counted, beside the contents of the book."""
        answered, refused = self.days[False], self.days[True]
        unread = contents.sections - self.citations.keys()
        place = {parent_doc_id: number for number, parent_doc_id in enumerate(contents.titles)}
        never = sorted((section for section in unread if section[0] in place), key=lambda key: (place[key[0]], key[1]))
        return Insights(
            book_id=contents.book_id,
            days=len(day_names),
            turns=self.turns,
            answered=answered.total(),
            refused=refused.total(),
            low=self.low,
            thumbs=Thumbs(
                up=self.ratings["up"],
                down=self.ratings["down"],
                reasons=dict(self.reasons.most_common()),
                comments=tuple(self.comments) if texts else None,
            ),
            per_day=tuple(DayCount(day=day, answered=answered[day], refused=refused[day]) for day in day_names),
            refused_questions=self._question_groups(contents, refused=True, texts=texts),
            low_questions=self._question_groups(contents, refused=False, texts=texts),
            most_cited=tuple(
                CitedSection(
                    parent_doc_id=lesson,
                    section=section,
                    title=contents.titles.get(lesson) or self.cited_titles[lesson],
                    count=count,
                )
                for (lesson, section), count in self.citations.most_common(MAX_MOST_CITED)
            ),
            never_cited=tuple(
                BookSection(parent_doc_id=lesson, section=section, title=contents.titles[lesson])
                for lesson, section in never[:MAX_NEVER_CITED]
            ),
            never_cited_total=len(never),
            sections=len(contents.sections),
            max_turns=MAX_TURNS,
            more=self.more,
        )

    def _question_groups(self, contents: BookContents, *, refused: bool, texts: bool) -> tuple[QuestionGroup, ...]:
        groups = sorted(self.groups[refused].items(), key=lambda item: -item[1].count)
        return tuple(
            QuestionGroup(
                parent_doc_id=parent_doc_id,
                title=contents.titles.get(parent_doc_id or "") or group.title,
                count=group.count,
                questions=tuple(group.questions) if texts else None,
            )
            for parent_doc_id, group in groups[:MAX_GROUPS]
        )


def _nearest_lesson(turn: PastTurn) -> tuple[str | None, str]:
    """The lesson that a question came nearest to, and its title: what a refusal names, or the first source."""
    names = ("nearest", "outside_scope") if turn.refused else ("sources",)
    lesson = next((row for name in names for row in _rows(turn.reply, name) if row.get("parent_doc_id")), None)
    if lesson is None:
        return None, ""
    return str(lesson["parent_doc_id"]), str(lesson.get("title") or lesson.get("page_title") or "")


def _rows(reply: Any, name: str) -> list[dict[str, Any]]:  # noqa: ANN401  # stored JSON
    """The objects in a list of a stored reply; a damaged reply has none."""
    rows = reply.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
