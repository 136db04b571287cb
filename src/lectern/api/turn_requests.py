"""A chat request as a turn: who asks in which thread, and under which id it is tried. With an idempotency key the ids
are made of owner and key, so that the second try meets the first."""

from __future__ import annotations

import hashlib
import uuid

from lectern.conversations.turns import TurnRequest
from lectern.domain.keys import Caller
from lectern.schemas.chat import ChatRequest

RUNS = uuid.UUID("6f1b6c0e-6a0e-4d7e-9a57-0f6f4e1f5b11")  # the space of run ids that come from keys
NO_FILTERS = frozenset({"message", "session_id", "stream", "top_k", "similarity_threshold", "book_id", "metadata"})


def turn_request(body: ChatRequest, caller: Caller, idempotency_key: str | None, *, stream: bool) -> TurnRequest:
    """What the request asks for, in whose name."""
    given = body.model_dump(mode="json", exclude_unset=True)
    session = str(body.session_id) if body.session_id else None
    return TurnRequest(
        owner=caller.owner,
        thread_id=session or _new_thread(caller, idempotency_key),
        run_id=str(_run_id(caller, idempotency_key)),
        digest=_digest(body) if idempotency_key else "",
        text=body.message,
        new=session is None and idempotency_key is None,
        book_id=body.book_id,
        filters={name: value for name, value in given.items() if name not in NO_FILTERS},
        metadata=body.metadata or {},
        top_k=body.top_k,
        similarity_threshold=body.similarity_threshold,
        readable=caller.books,
        stream=stream,
    )


def _digest(body: ChatRequest) -> str:
    return hashlib.sha256(body.model_dump_json(exclude_unset=True).encode()).hexdigest()


def _run_id(caller: Caller, key: str | None) -> uuid.UUID:
    return uuid.uuid4() if key is None else uuid.uuid5(RUNS, f"{caller.owner}\n{key}")


def _new_thread(caller: Caller, key: str | None) -> str:
    """A new thread's id; of two tries with one key the same."""
    if key is None:
        return str(uuid.uuid4())
    made = hashlib.sha256(f"thread\n{caller.owner}\n{key}".encode()).digest()[:16]
    return str(uuid.UUID(bytes=made, version=4))
