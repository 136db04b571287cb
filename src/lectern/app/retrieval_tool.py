"""The retrieval tool of the second design document, for agents of other programs. It returns JSON for a model, errors
too: a model can read them, and search in other words."""

from __future__ import annotations

import asyncio
from typing import Protocol

from lectern.app.open import open_lectern
from lectern.domain.errors import BadInput, LecternError
from lectern.domain.evidence import Findings
from lectern.domain.replies import check_question
from lectern.schemas.tool_response import TOOL_LIMIT, error_response, tool_response


class Searcher(Protocol):
    """A Lectern, here or on a server."""

    async def search(
        self, text: str, *, book: str | None = None, limit: int = 5, similarity_threshold: float | None = None
    ) -> Findings:
        """The passages of a book that are nearest to a text."""


async def retrieve_documentation(
    lectern: Searcher, query: str, top_k: int = 5, similarity_threshold: float = 0.0, *, book: str | None = None
) -> str:
    """The passages of a book for a query, as JSON with `results`, `total_results` and `query`, or with `error`."""
    try:
        check_question(query, top_k, similarity_threshold)
        if top_k > TOOL_LIMIT:
            raise BadInput(f"top_k must be 1 to {TOOL_LIMIT}, not {top_k}", field="top_k")
        found = await lectern.search(query, book=book, limit=top_k, similarity_threshold=similarity_threshold)
    except LecternError as exc:
        return error_response(query, str(exc))
    return tool_response(query, {hit.rank: hit for hit in found.hits})


def execute_retrieval_tool(query: str, top_k: int = 5, similarity_threshold: float = 0.0) -> str:
    """`retrieve_documentation` for programs without an event loop, in the book that the settings name. It opens Lectern
    for this one call; a program with several calls opens it once, and awaits `retrieve_documentation`."""

    async def retrieve() -> str:
        try:
            async with open_lectern() as lectern:
                return await retrieve_documentation(lectern, query, top_k, similarity_threshold)
        except LecternError as exc:
            return error_response(query, str(exc))

    return asyncio.run(retrieve())
