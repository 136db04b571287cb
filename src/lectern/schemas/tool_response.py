"""The retrieval tool as a model sees it: its definition, its response, whose `rank` is the number to cite, and its
error response. `similarity_score` is the relevance, `similarity` the cosine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints

from lectern.domain.evidence import Hit
from lectern.domain.retrieval import NOTHING_FOUND, RetrievedPassage, passage_of
from lectern.schemas.common import Name, Request, Response

TOOL_NAME = "retrieve_documentation"
TOOL_LIMIT = 20  # passages that a model may ask for at once
TOOL_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "The question or topic to search for in the documentation"},
        "top_k": {
            "type": "integer",
            "description": "Number of most relevant chunks to retrieve (default: 5)",
            "default": 5,
            "minimum": 1,
            "maximum": TOOL_LIMIT,
        },
        "similarity_threshold": {
            "type": "number",
            "description": "Minimum similarity score for results (0.0-1.0, default: 0.0)",
            "default": 0.0,
            "minimum": 0,
            "maximum": 1,
        },
    },
    "required": ["query"],
}
RETRIEVAL_TOOL: dict[str, Any] = {  # in the form of OpenAI's Chat Completions
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": "Search the book documentation for relevant information based on a question or topic. "
        "Returns chunks of text from the book with metadata about their source.",
        "parameters": TOOL_PARAMETERS,
    },
}


class ToolArguments(Request):
    """What the retrieval tool is called with."""

    query: Annotated[Name, StringConstraints(strip_whitespace=True, min_length=3, max_length=1000)]
    top_k: int = Field(default=5, ge=1, le=TOOL_LIMIT)
    similarity_threshold: float = Field(default=0.0, ge=0, le=1)
    book_id: Name | None = Field(default=None, description="The book; may be left out while only one is indexed.")


class ToolResult(Response):
    """One passage for a model."""

    chunk_text: str
    page_title: str
    section_heading: str | None
    source_url: str
    similarity_score: float = Field(description="The relevance.")
    similarity: float = Field(description="The cosine.")
    rank: int = Field(description="The number to cite.")


class ToolResponse(Response):
    """What the retrieval tool found."""

    results: list[ToolResult]
    total_results: int
    query: str
    message: str | None = Field(default=None, description="That nothing was found, in words; only then.")

    @classmethod
    def of(cls, results: Sequence[RetrievedPassage], query: str) -> Self:
        """Passages as a response."""
        rows = [
            ToolResult(
                chunk_text=passage.chunk_text,
                page_title=passage.page_title,
                section_heading=passage.section_heading,
                source_url=passage.source_url,
                similarity_score=round(passage.similarity_score, 4),
                similarity=round(passage.similarity, 4),
                rank=passage.rank,
            )
            for passage in results
        ]
        nothing = {} if rows else {"message": NOTHING_FOUND}
        return cls(results=rows, total_results=len(rows), query=query, **nothing)


def tool_response(query: str, numbered: Mapping[int, Hit]) -> str:
    """A completed retrieval as JSON."""
    return format_tool_response([passage_of(hit, rank=number) for number, hit in numbered.items()], query)


def format_tool_response(results: Sequence[RetrievedPassage], query: str) -> str:
    """Passages as JSON."""
    body = ToolResponse.of(results, query).model_dump(exclude_unset=True)
    return json.dumps(body, ensure_ascii=False, indent=2)


def error_response(query: str, message: str) -> str:
    """A retrieval that failed, as JSON."""
    return json.dumps({"error": message, "query": query}, ensure_ascii=False, indent=2)
