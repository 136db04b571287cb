"""Passages as a model sees them: the design's tool response, whose `rank` is the number to cite, and its error
response. `similarity_score` is the relevance, `similarity` the cosine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lectern.domain.evidence import Hit
from lectern.domain.retrieval import NOTHING_FOUND, RetrievedPassage, passage_of

TOOL_NAME = "retrieve_documentation"


def tool_response(query: str, numbered: Mapping[int, Hit]) -> str:
    """A completed retrieval as JSON."""
    return format_tool_response([passage_of(hit, rank=number) for number, hit in numbered.items()], query)


def format_tool_response(results: Sequence[RetrievedPassage], query: str) -> str:
    """Passages as JSON."""
    rows = [
        {
            "chunk_text": passage.chunk_text,
            "page_title": passage.page_title,
            "section_heading": passage.section_heading,
            "source_url": passage.source_url,
            "similarity_score": round(passage.similarity_score, 4),
            "similarity": round(passage.similarity, 4),
            "rank": passage.rank,
        }
        for passage in results
    ]
    body: dict[str, object] = {"results": rows, "total_results": len(rows), "query": query}
    if not rows:
        body["message"] = NOTHING_FOUND
    return json.dumps(body, ensure_ascii=False, indent=2)


def error_response(query: str, message: str) -> str:
    """A retrieval that failed, as JSON."""
    return json.dumps({"error": message, "query": query}, ensure_ascii=False, indent=2)
