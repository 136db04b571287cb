"""The dossier as a model sees it: the design's tool response, whose `rank` is the number to cite."""

from __future__ import annotations

import json

from lectern.domain.evidence import Dossier

TOOL_NAME = "retrieve_documentation"


def tool_response(dossier: Dossier) -> str:
    """The completed retrieval as JSON."""
    results = [
        {
            "chunk_text": hit.chunk.text,
            "page_title": hit.chunk.page_title,
            "section_heading": hit.chunk.section_title,
            "source_url": hit.chunk.url,
            "similarity_score": round(hit.similarity, 4),
            "rank": number,
        }
        for number, hit in enumerate(dossier.hits, start=1)
    ]
    body = {"results": results, "total_results": len(results), "query": dossier.question}
    return json.dumps(body, ensure_ascii=False, indent=2)
