"""Questions over HTTP."""

from __future__ import annotations

from fastapi import APIRouter

from lectern.answering.turns import Question
from lectern.api.deps import LecternDep
from lectern.api.schemas.chat import ChatRequest, ChatResponse
from lectern.api.schemas.common import Problem

router = APIRouter(tags=["chat"])


@router.post("/chat/run", operation_id="chatRun", responses={404: {"model": Problem}, 422: {"model": Problem}})
async def chat_run(body: ChatRequest, lectern: LecternDep) -> ChatResponse:
    """Answer a question from the book, with citations, or refuse."""
    entry = await lectern.book(body.book_id)
    question = Question(
        text=body.message, scope=body.scope(), top_k=body.top_k, similarity_threshold=body.similarity_threshold
    )
    reply = await lectern.reply(question)
    return ChatResponse.of(reply, book_id=entry.manifest.book_id, session_id=body.session_id)
