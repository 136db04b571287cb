"""What an operator's program asks for and hears: the calibration of a book, and the doctor's findings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from lectern.domain.scope import QUERY_LENGTH
from lectern.schemas.common import Name, Request, Response

MAX_QUESTIONS = 500  # as many of usual length as fit the limit of a request


def _number_or_none(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


Figure = Annotated[float | None, BeforeValidator(_number_or_none)]  # JSON has no NaN


class LabelledQuestionIn(Request):
    """A question that somebody has judged."""

    text: Annotated[
        Name, StringConstraints(strip_whitespace=True, min_length=QUERY_LENGTH[0], max_length=QUERY_LENGTH[1])
    ]
    answerable: bool = Field(description="Whether the book answers it.")


class CalibrationRequest(Request):
    """What to calibrate with."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{}, {"questions": [{"text": "What is a node?", "answerable": True}]}]}
    )

    questions: list[LabelledQuestionIn] = Field(
        default=[],
        max_length=MAX_QUESTIONS,
        description="At least ten that the book answers, and ten that it does not, unless all are answerable; without "
        "any, they are made of the book itself.",
    )


class FiguresOut(Response):
    """How parameters do on questions they were not fitted on; null where there were none of a kind."""

    false_refusal_rate: Figure
    refusal_rate: Figure
    auroc: Figure
    ece: Figure
    log_loss: Figure


class RelevanceScaleOut(Response):
    """From cosines to relevance."""

    points: tuple[tuple[float, float], ...] = Field(description="Cosine and relevance; linear in between.")
    n: int = Field(description="Covered questions it was fitted on; 0 for a starting point.")


class CalibrationOut(Response):
    """Parameters of the probability that a book answers a question."""

    fingerprint: str
    signals: tuple[str, ...]
    weights: tuple[float, ...]
    intercept: float
    zero: float
    one: float
    floor: float
    n: int = Field(description="Questions it was fitted on.")
    notes: str
    scale: RelevanceScaleOut


class CalibrationReportOut(Response):
    """What calibrating a book came to."""

    book_id: str
    fingerprint: str
    source: Literal["questions", "book"]
    covered: int
    uncovered: int
    before: FiguresOut = Field(description="Of the parameters in use, on the questions that were held out.")
    after: FiguresOut = Field(description="Of those fitted on the other half.")
    was: CalibrationOut
    now: CalibrationOut
    stored: str | None = Field(description="The name of the new file; null where nothing better was found.")


class DoctorRequest(Request):
    """Whether to look only, or to mend."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"mend": True}]})

    mend: bool = Field(default=False, description="Put right what is found.")


class FindingOut(Response):
    """One disagreement between index and ledger, and what became of it; or what the language model can do."""

    kind: str
    book_id: str | None
    detail: str
    mended: bool
    severity: Literal["ok", "note", "problem"] = Field(
        description="`problem` for everything about the index; `ok` and `note` are about the language model alone."
    )


def without_paths(text: str, names: Mapping[str, str]) -> str:
    """A text for callers, who are told nothing of the machine's folders: each is named by what it is for."""
    for path in sorted(names, key=len, reverse=True):
        text = text.replace(path, names[path])
    return text
