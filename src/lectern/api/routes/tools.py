"""The retrieval tool over HTTP, for agents of other programs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from lectern.api.deps import LecternDep, ReadCaller
from lectern.domain.retrieval import passage_of
from lectern.domain.scope import Scope, SearchQuery
from lectern.schemas.common import problems
from lectern.schemas.tool_response import RETRIEVAL_TOOL, TOOL_NAME, ToolArguments, ToolResponse

router = APIRouter(prefix="/tools", tags=["tools"], responses=problems(401, 403, 429, 503))


@router.get("", operation_id="listTools")
async def list_tools(_: ReadCaller) -> list[dict[str, Any]]:
    """The definition of the retrieval tool, as language models take it (`tools` of OpenAI's Chat Completions)."""
    return [RETRIEVAL_TOOL]


@router.post(
    f"/{TOOL_NAME}",
    operation_id="retrieveDocumentation",
    response_model_exclude_unset=True,
    responses=problems(404, 408, 413, 422),
)
async def retrieve_documentation(body: ToolArguments, lectern: LecternDep, caller: ReadCaller) -> ToolResponse:
    """The passages of a book for a query, in the form that language models are given."""
    query = SearchQuery(
        text=body.query,
        scope=Scope(book_id=await lectern.app.library.book_id(body.book_id, caller.books)),
        limit=body.top_k,
        similarity_threshold=body.similarity_threshold,
    )
    found = await lectern.app.search(query)
    return ToolResponse.of([passage_of(hit, rank=hit.rank) for hit in found.hits], found.query)
