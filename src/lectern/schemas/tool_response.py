"""Passages as a model sees them: the design's tool response, whose `rank` is the number to cite, and its error
response."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lectern.domain.evidence import Hit

TOOL_NAME = "retrieve_documentation"


def tool_response(query: str, numbered: Mapping[int, Hit]) -> str:
    """A completed retrieval as JSON."""
    results = [
        {
            "chunk_text": hit.chunk.text,
            "page_title": hit.chunk.page_title,
            "section_heading": hit.chunk.section_title,
            "source_url": hit.chunk.url,
            "similarity_score": round(hit.similarity, 4),
            "rank": number,
        }
        for number, hit in numbered.items()
    ]
    body = {"results": results, "total_results": len(results), "query": query}
    return json.dumps(body, ensure_ascii=False, indent=2)


def error_response(query: str, message: str) -> str:
    """A retrieval that failed, as JSON."""
    return json.dumps({"error": message, "query": query}, ensure_ascii=False, indent=2)
