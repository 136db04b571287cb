"""Feedback and insights in requests and responses."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints

from lectern.domain.insights import Insights
from lectern.domain.threads import COMMENT_LENGTH, Feedback, FeedbackReason, Rating
from lectern.schemas.common import Name, Request, Response

Comment = Annotated[Name, StringConstraints(strip_whitespace=True, max_length=COMMENT_LENGTH)]
MAX_TURN = 2**31 - 1  # both databases can compare it


class FeedbackIn(Request):
    """What a reader thinks of a reply."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"turn": 1, "rating": "down", "reason": "incomplete"}, {"turn": 1}]}
    )

    turn: int = Field(ge=1, le=MAX_TURN, description="The turn's `number` in an export.")
    rating: Rating | None = Field(default=None, description="Null takes the feedback on this turn back.")
    reason: FeedbackReason | None = Field(default=None, description="Of a thumb down.")
    comment: Comment | None = None

    def feedback(self) -> Feedback | None:
        """The request as a `Feedback`; None takes it back."""
        if self.rating is None:
            return None
        return Feedback(rating=self.rating, reason=self.reason, comment=self.comment or "")


class DayCountOut(Response):
    """The questions of one day (UTC)."""

    day: str
    answered: int
    refused: int


class QuestionGroupOut(Response):
    """Questions whose nearest lesson is the same."""

    parent_doc_id: str | None = Field(description="The lesson; null for questions without one.")
    title: str
    count: int
    questions: list[str] | None = Field(description="The newest, each once; null unless LECTERN_INSIGHTS_QUESTIONS.")


class BookSectionOut(Response):
    """A section of a lesson; the title is the lesson's."""

    parent_doc_id: str
    section: str
    title: str


class CitedSectionOut(BookSectionOut):
    """A section, and in how many answers it was cited."""

    count: int


class ThumbsOut(Response):
    """The feedback."""

    up: int
    down: int
    reasons: dict[str, int]
    comments: list[str] | None = Field(description="The newest; null unless LECTERN_INSIGHTS_QUESTIONS.")


class InsightsOut(Response):
    """What readers asked a book in the last days, added up over all of them."""

    book_id: str
    days: int = Field(description="Today (UTC) and the days before it.")
    turns: int = Field(description="Questions: answered + refused.")
    answered: int
    refused: int
    low: int = Field(description="Answers of low confidence.")
    thumbs: ThumbsOut
    per_day: list[DayCountOut] = Field(description="Every day, the oldest first.")
    refused_questions: list[QuestionGroupOut] = Field(description="By nearest lesson; the 100 largest groups.")
    low_questions: list[QuestionGroupOut] = Field(description="By first cited lesson; the 100 largest groups.")
    most_cited: list[CitedSectionOut] = Field(description="The 20 sections that most answers cite.")
    never_cited: list[BookSectionOut] = Field(description="In the order of the book; the first 200.")
    never_cited_total: int
    sections: int = Field(description="Of the book.")
    max_turns: int = Field(description="At most this many questions are read.")
    more: bool = Field(description="Whether there were more: then everything is of the newest.")

    @classmethod
    def of(cls, insights: Insights) -> Self:
        """Insights as a response."""
        return cls.model_validate(insights, from_attributes=True)
