"""What requests and responses share: strict requests, the filters, the form of an error."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from lectern.domain.books import Layer, Level
from lectern.domain.errors import BadInput
from lectern.domain.keys import Right
from lectern.domain.scope import Scope
from lectern.domain.threads import check_metadata
from lectern.schemas.scope import scope_from


def _checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        check_metadata(metadata)
    except BadInput as exc:
        raise ValueError(str(exc)) from None
    return metadata


def decodable(text: object) -> object:
    """A text, if UTF-8 can encode it; other values are checked by their own type."""
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("the text is not valid UTF-8") from None
    return text


Metadata = Annotated[dict[str, Any], AfterValidator(_checked_metadata)]
Name = Annotated[str, BeforeValidator(decodable)]
RELEVANCE = (
    "The cosine on a scale that means the same for every embedder, 0 to 1: 0.30 is noise, 0.70 keeps the best passage "
    "of 95 in 100 questions that a book covers, 0.85 is the median of these."
)


class Request(BaseModel):
    """A request; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_bool(cls, value: object, info: ValidationInfo) -> object:
        """A number is never true or false: Pydantic would take them for 1 and 0."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and bool not in (annotation, *get_args(annotation)):
            raise ValueError("true and false are not allowed here")
        return value


class Response(BaseModel):
    """A response."""

    model_config = ConfigDict(frozen=True)


class Filters(Request):
    """What a reader may narrow a question to; the filters are combined with AND."""

    book_id: Name | None = Field(default=None, description="The book; may be left out while only one is indexed.")
    hardware_tier_filter: int | None = Field(default=None, ge=1, le=4, description="This tier or lower.")
    module_filter: Name | None = None
    chapter_min: int | None = Field(default=None, ge=0, le=2**31)
    chapter_max: int | None = Field(default=None, ge=0, le=2**31)
    lesson_filter: int | None = Field(default=None, ge=0, le=2**31)
    proficiency_levels: list[Level] | None = Field(default=None, min_length=1, description="Any of these.")
    layer_filter: Layer | None = None
    parent_doc_id: Name | None = Field(default=None, description="One lesson only.")

    def scope(self) -> Scope:
        """The filters as a `Scope`."""
        return scope_from(self.model_dump(include=set(Filters.model_fields)))


class Problem(Response):
    """An error (application/problem+json)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | None = None
    code: str | None = Field(
        default=None, description="The kind of error, such as `unknown_book`; null where the status says all."
    )


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route documents."""
    shape = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": shape} for status in statuses}


def event_stream(**events: str) -> dict[int | str, dict[str, Any]]:
    """The Server-Sent Events that a route documents, each with the content of its data. The schema is that of one
    event."""
    contents = "; ".join(f"`{name}`: {holds}" for name, holds in events.items())
    data = {"type": "string", "contentMediaType": "application/json"}
    event = {
        "type": "object",
        "properties": {"event": {"enum": list(events)}, "data": data, "id": {"type": "string"}},
        "required": ["event", "data", "id"],
    }
    return {
        200: {
            "description": f"Server-Sent Events, the data of each one JSON object. {contents}.",
            "content": {"text/event-stream": {"schema": event}},
        }
    }


class Health(Response):
    """Whether the server runs, or can answer."""

    status: Literal["ok"] = "ok"


class Readiness(Health):
    """That the server can answer, and how many of its books it cannot serve."""

    books: int
    books_not_ready: int = Field(description="The server's log names them.")


class CallerOut(Response):
    """What a caller may do."""

    rights: list[Right]


class ReaderOut(Response):
    """A reader's token."""

    reader_token: str = Field(description="To be sent back as `X-Reader-Token`.")
    expires_at: str
