"""Turns a chat request into a turn of a conversation. With an idempotency key, the ids of the run and of a new thread
are made from owner and key, so that a repeated request has the same ids."""

from __future__ import annotations

import hashlib
import uuid

from lectern.conversations.turns import TurnRequest
from lectern.domain.keys import Caller
from lectern.schemas.chat import ChatRequest

RUN_NAMESPACE = uuid.UUID("6f1b6c0e-6a0e-4d7e-9a57-0f6f4e1f5b11")  # of run ids that are made from keys
NON_FILTER_FIELDS = frozenset(
    {"message", "session_id", "stream", "html", "top_k", "similarity_threshold", "book_id", "metadata"}
)


def turn_request(body: ChatRequest, caller: Caller, idempotency_key: str | None, *, stream: bool) -> TurnRequest:
    """The turn that a request asks for, with its caller."""
    fields = body.model_dump(mode="json", exclude_unset=True)
    session = str(body.session_id) if body.session_id else None
    return TurnRequest(
        owner=caller.owner,
        thread_id=session or _new_thread(caller, idempotency_key),
        run_id=str(_run_id(caller, idempotency_key)),
        digest=_digest(body) if idempotency_key else "",
        text=body.message,
        new=session is None and idempotency_key is None,
        book_id=body.book_id,
        filters={name: value for name, value in fields.items() if name not in NON_FILTER_FIELDS},
        metadata=body.metadata or {},
        top_k=body.top_k,
        similarity_threshold=body.similarity_threshold,
        readable=caller.books,
        stream=stream,
    )


def _digest(body: ChatRequest) -> str:
    return hashlib.sha256(body.model_dump_json(exclude_unset=True, exclude={"html"}).encode()).hexdigest()


def _run_id(caller: Caller, key: str | None) -> uuid.UUID:
    return uuid.uuid4() if key is None else uuid.uuid5(RUN_NAMESPACE, f"{caller.owner}\n{key}")


def _new_thread(caller: Caller, key: str | None) -> str:
    """The id of a new thread; two requests with the same key get the same id."""
    if key is None:
        return str(uuid.uuid4())
    digest = hashlib.sha256(f"thread\n{caller.owner}\n{key}".encode()).digest()[:16]
    return str(uuid.UUID(bytes=digest, version=4))
