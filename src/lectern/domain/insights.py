"""What readers asked a book and how it went, added up over all of them. Nothing here says who asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lectern.domain.errors import BadInput
from lectern.domain.threads import Feedback, Json

MAX_DAYS = 366
DEFAULT_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """A stored turn, without whose it is."""

    asked_at: str
    question: str  # as it was searched for: a follow-up alone says little
    refused: bool
    reply: Json  # as it was shown
    feedback: Feedback | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCount:
    """The turns of one day (UTC)."""

    day: str
    answered: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionGroup:
    """Questions whose nearest lesson is the same; a question without one is in the group without a lesson."""

    parent_doc_id: str | None
    title: str
    count: int
    questions: tuple[str, ...] | None  # the newest, each once; None unless the operator shows them


@dataclass(frozen=True, slots=True, kw_only=True)
class BookSection:
    """A section of a lesson, by its heading; the title is the lesson's."""

    parent_doc_id: str
    section: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedSection:
    """A section, and in how many answers it was cited."""

    parent_doc_id: str
    section: str
    title: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Thumbs:
    """The feedback on the turns."""

    up: int
    down: int
    reasons: Mapping[str, int]
    comments: tuple[str, ...] | None  # the newest; None unless the operator shows them


@dataclass(frozen=True, slots=True, kw_only=True)
class Insights:
    """What readers asked a book in the last days."""

    book_id: str
    days: int  # today (UTC) and the days before it
    turns: int  # answered + refused
    answered: int
    refused: int
    low: int  # of the answers
    thumbs: Thumbs
    per_day: tuple[DayCount, ...]  # every day, the oldest first
    refused_questions: tuple[QuestionGroup, ...]  # the largest groups first
    low_questions: tuple[QuestionGroup, ...]
    most_cited: tuple[CitedSection, ...]
    never_cited: tuple[BookSection, ...]  # in the order of the book
    never_cited_total: int
    sections: int  # of the book
    max_turns: int  # at most this many turns are read
    more: bool  # whether there were more: then everything above is of the newest turns


def check_days(days: int) -> None:
    """Refuse a number of days that is out of range."""
    if not 1 <= days <= MAX_DAYS:
        raise BadInput(f"days must be 1 to {MAX_DAYS}, not {days}", field="days")
