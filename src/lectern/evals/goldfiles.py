"""The files of a question set, line by line. Others write them, so every line is validated, and what is wrong is said
with file and line; keys we do not use are none of our business."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from lectern.domain.errors import SourceError
from lectern.domain.scope import QUERY_LENGTH

QUERIES, CORPUS, QRELS = "queries.jsonl", "corpus.jsonl", "qrels.tsv"
QREL_COLUMNS = 3


class GoldLine(BaseModel):
    """A document that answers a question; `grade` says how well, `span` where in its text."""

    doc: str = Field(min_length=1)
    score: float = 1
    grade: float | None = None
    span: tuple[int, int] | None = None

    @field_validator("span")
    @classmethod
    def _some_text(cls, span: tuple[int, int] | None) -> tuple[int, int] | None:
        """An empty or backward span answers nothing, and a negative one would count from the document's end."""
        if span is not None and not 0 <= span[0] < span[1]:
            raise PydanticCustomError("span", "{span} must be 0 <= start < end", {"span": str(list(span))})
        return span


class QueryLine(BaseModel):
    """One question."""

    id: str = Field(alias="_id", min_length=1)
    text: str
    answerable: bool = True
    gold: list[GoldLine] = []
    meta: dict[str, Any] | None = None


class DocumentLine(BaseModel):
    """One document of the corpus."""

    id: str = Field(alias="_id", min_length=1)
    title: str | None = None
    text: str


Line = TypeVar("Line", QueryLine, DocumentLine)


def wrong(file: Path, number: int, message: str) -> SourceError:
    """What is wrong with a line."""
    return SourceError(f"{file}, line {number}: {message}")


def read_queries(folder: Path) -> dict[int, QueryLine]:
    """Every question, by its line."""
    file = folder / QUERIES
    read = dict(_records(file, QueryLine))
    low, high = QUERY_LENGTH
    for number, line in read.items():
        if line.answerable and not low <= len(line.text.strip()) <= high:
            raise wrong(file, number, f"text must have {low} to {high} characters, not {len(line.text.strip())}")
    return read


def read_corpus(folder: Path) -> dict[int, DocumentLine]:
    """Every document, by its line."""
    return dict(_records(folder / CORPUS, DocumentLine))


def read_qrels(folder: Path) -> dict[int, tuple[str, str, float]]:
    """Query, document and score by line; none where there is no such file. A first line without a number is a head."""
    file = folder / QRELS
    found: dict[int, tuple[str, str, float]] = {}
    if not file.exists():
        return found
    for number, raw in _lines(file):
        cells = raw.split("\t")
        if len(cells) != QREL_COLUMNS:
            raise wrong(file, number, f"there must be {QREL_COLUMNS} columns between tabs, not {len(cells)}")
        try:
            found[number] = (cells[0], cells[1], float(cells[2]))
        except ValueError:
            if number > 1:
                raise wrong(file, number, f"the score must be a number, not {cells[2]!r}") from None
    return found


def _records(file: Path, kind: type[Line]) -> Iterator[tuple[int, Line]]:
    seen: dict[str, int] = {}
    for number, raw in _lines(file):
        try:
            line = kind.model_validate_json(raw)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            raise wrong(file, number, f"{where}: {first['msg']}" if where else first["msg"]) from None
        if line.id in seen:
            raise wrong(file, number, f"_id {line.id!r} was used on line {seen[line.id]} already")
        seen[line.id] = number
        yield number, line


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        raw = file.read_bytes()
    except OSError as exc:
        raise SourceError(f"{file} cannot be read ({exc.strerror}); a question set has {QUERIES}") from exc
    for number, line in enumerate(raw.split(b"\n"), start=1):
        try:
            text = line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError as exc:
            raise wrong(file, number, f"byte {line[exc.start]:#04x} is not valid UTF-8") from exc
        if text.strip():
            yield number, text
