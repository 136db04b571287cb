"""What a program on a running server hears when something goes wrong: the errors of a local call, at once and once."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from lectern.api.errors import problem_of
from lectern.app.client import connect
from lectern.app.client_http import _error_of, error_from
from lectern.domain import errors
from lectern.schemas.jobs import IngestionJob
from tests.app.test_client import drain

QUESTION = "What is a node?"


def problems() -> Iterator[errors.LecternError]:
    """One error of each class that a server can send."""
    yield errors.BadInput("no", field="text")
    yield errors.KeyUsed()
    yield errors.UnknownBook("x", ("a", "b"))
    yield errors.UnknownBook("x")
    yield errors.TooMany("wait", 17)
    yield errors.ProviderError("cohere", "is down: try again")
    yield errors.RateLimited("openai", 21)
    yield errors.BadKey(key_sent=True)
    plain = (
        "UnknownLesson UnknownThread UnknownRun UnknownJob SourceError BookNotFound BadManifest WrongBook ConfigError "
        "IndexMismatch IndexDamaged ModelDamaged InUse Busy Conflict Cancelled JobCancelled JobFailed Unauthorised "
        "Forbidden WrongOrigin Overloaded StoreUnavailable OutOfResources WorkerLost Unexpected"
    )
    for name in plain.split():
        yield getattr(errors, name)("what to do")
    for name in ("ProviderTimeout", "ProviderRefused", "ToolsUnknown"):
        yield getattr(errors, name)("openai", "what to do")


@pytest.mark.parametrize("error", list(problems()), ids=lambda error: type(error).__name__)
def test_every_error_comes_back_as_it_was(error: errors.LecternError) -> None:
    """What a server raises a client raises: class, words, and every value it carries."""
    response = problem_of(error)
    wire = httpx.Response(response.status_code, headers=dict(response.headers), content=bytes(response.body))
    back = _error_of(wire)

    assert type(back) is type(error)
    assert str(back) == str(error)
    nothing_known = {"book_id": ""} if isinstance(error, errors.UnknownBook) and not error.known else {}
    assert vars(back) == {**vars(error), **nothing_known}
    assert (back.status, back.exit_code, back.retryable) == (error.status, error.exit_code, error.retryable)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, errors.Unauthorised), (404, errors.ProviderError), (413, errors.BadInput), (418, errors.ProviderError)],
)
def test_a_problem_without_a_code_is_told_by_its_status(status: int, kind: type[errors.LecternError]) -> None:
    """What stands before the routes, and a server of another version, send no code, or one that is not known."""
    for code in ({}, {"code": None}, {"code": "of_tomorrow"}):
        error = error_from({"title": "T", "status": status, "detail": "what to do", **code})
        assert type(error) is kind
        assert "what to do" in str(error)


def answer(status: str, kind: str, body: str, **headers: str) -> bytes:
    """A whole response."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}\r\n{body}".encode()


@asynccontextmanager
async def scripted(*answers: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that gives these bytes in order, each on a connection of its own, and what it was asked for."""
    remaining, requests = list(answers), []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readline()).decode().rsplit(" ", 1)[0])
        await reader.readuntil(b"\r\n\r\n")
        writer.write(remaining.pop(0) if remaining else b"")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests
    finally:
        server.close()


STATUS = {"state": "pending", "run_id": "r", "session_id": "s", "book_id": "b"}
STREAM_START = f"event: status\ndata: {json.dumps(STATUS)}\nid: 1-1\n\n: ping\n\n"


@pytest.mark.parametrize("length", [{}, {"Content_Length": "9999"}])
async def test_a_server_that_stops_in_the_middle_is_a_provider_error(length: dict[str, str]) -> None:
    """What came is there, then an error with advice; the run is ended and the turn is not asked for again."""
    events: list[Any] = []
    stream = answer("200 OK", "text/event-stream", STREAM_START, **length)
    async with scripted(stream) as (url, requests), connect(url) as there:
        with pytest.raises(errors.ProviderError, match="look before you try again"):
            await drain(there.stream(QUESTION), events)

    assert [event.kind for event in events] == ["state"]
    assert requests == ["POST /chat/stream", "POST /chat/runs/r/cancel", "DELETE /threads/s"]


async def test_a_stream_that_is_left_is_ended_on_the_server() -> None:
    """The run is cancelled, and the thread that the server made for it deleted; one of the caller's stays."""
    stream = answer("200 OK", "text/event-stream", STREAM_START)
    no_content = answer("204 No Content", "text/plain", "")
    async with scripted(stream, no_content, no_content, stream, no_content) as (url, requests), connect(url) as there:
        for thread in (None, str(uuid.uuid4())):
            events = there.stream(QUESTION, thread=thread)
            await anext(events)
            await events.aclose()  # type: ignore[attr-defined]  # an async generator

    first = ["POST /chat/stream", "POST /chat/runs/r/cancel"]
    assert requests == [*first, "DELETE /threads/s", *first]


@pytest.mark.parametrize(
    ("status", "event", "kind"),
    [("running", "progress", errors.ProviderError), ("cancelled", "finished", errors.JobCancelled)],
)
async def test_a_job_that_does_not_come_to_its_end_raises(
    status: str, event: str, kind: type[errors.LecternError]
) -> None:
    """Nobody takes half an ingestion for a whole one, whether its events stop or somebody cancels it."""
    job = {**IngestionJob.model_config["json_schema_extra"]["examples"][0], "status": status}  # type: ignore[index,call-overload]  # pydantic types it as any JSON
    started = answer("202 Accepted", "application/json", json.dumps(job))
    events = answer("200 OK", "text/event-stream", f"event: {event}\ndata: {json.dumps({'job': job})}\n\n")
    async with scripted(started, events) as (url, requests), connect(url) as there:
        with pytest.raises(kind, match="what was finished is kept"):
            await there.ingest("x", book="b")

    assert requests == ["POST /books/b/ingestions", "GET /ingestions/7/events"]


async def test_an_error_in_a_stream_is_raised() -> None:
    """The last event may be a problem: it is the error that a local call raises, and nothing is left to end."""
    body = json.dumps({"title": "T", "status": 503, "detail": "openai: wait", "field": None, "code": "rate_limited"})
    stream = answer("200 OK", "text/event-stream", f"{STREAM_START}event: error\ndata: {body}\n\n")
    async with scripted(stream) as (url, requests), connect(url) as there:
        with pytest.raises(errors.RateLimited, match="openai: wait") as raised:
            await drain(there.stream(QUESTION), [])

    assert raised.value.provider == "openai"
    assert requests == ["POST /chat/stream"]


async def test_nothing_is_asked_twice() -> None:
    """A limit, an overload, a broken connection: the error comes at once, with what the server said of waiting."""
    limit = answer(
        "429 Too Many Requests",
        "application/problem+json",
        json.dumps({"title": "T", "status": 429, "detail": "wait", "field": None, "code": "too_many"}),
        Retry_After="17",
    )
    foreign = answer("200 OK", "text/html", "<h1>hello</h1>")
    proxy = answer("502 Bad Gateway", "text/html", "<h1>nobody</h1>")
    async with scripted(limit, foreign, proxy, b"") as (url, requests), connect(url) as there:
        with pytest.raises(errors.TooMany) as raised:
            await there.ask(QUESTION)
        assert raised.value.retry_after == 17
        with pytest.raises(errors.ProviderError, match="does not understand"):
            await there.ask(QUESTION)
        with pytest.raises(errors.ProviderError, match="502"):
            await there.ask(QUESTION)
        with pytest.raises(errors.ProviderError, match="look before"):
            await there.ask(QUESTION)

    assert requests == ["POST /chat/stream"] * 4


async def test_an_address_where_nobody_listens_is_a_provider_error() -> None:
    """With the address and what to do."""
    async with scripted() as (url, _):
        pass
    async with connect(url) as there:
        for call in (there.books(), anext(there.stream(QUESTION))):
            with pytest.raises(errors.ProviderError, match=r"nothing answers at .*`lectern serve`") as refused:
                await call
            assert refused.value.provider == "lectern server"
            assert url in str(refused.value)
