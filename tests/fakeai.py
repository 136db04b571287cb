"""A scripted OpenAI and Cohere on loopback, over real HTTP: each request is answered as the provider would, or as the
next step of the script says. Errors quote the key they were sent, as the real ones do in part, so that a test can show
that nobody repeats it.

An endpoint is a function from a request to a reply; add one to `ENDPOINTS` to script another (a reply of several parts
is sent in chunks). The server runs in a thread of its own, for tests that are async, that are not, and for processes
that tests start.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

Vector = list[float]
HOLD_SECONDS = 20  # that a part waits at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: dict[str, Any]

    @property
    def key(self) -> str:
        """The key that was sent."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def texts(self) -> list[str]:
        """The texts to embed, whichever provider is asked."""
        return self.body.get("input") or self.body.get("texts") or []


def unspoilt(vectors: list[Vector]) -> list[Any]:
    """As the provider would."""
    return vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """What a chat model says: words, or calls of tools (name, arguments as JSON)."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: Literal["stop", "length", "content_filter", "error"] = "stop"
    error: dict[str, Any] | None = None  # an error object after the words


Say = Callable[[dict[str, Any]], ScriptedReply]  # from the request's body


def saying(text: str) -> Say:
    """A model that says this, whatever it is asked."""
    return lambda _: ScriptedReply(text=text)


def calling(name: str, **arguments: Any) -> Say:
    """A model that calls a tool."""
    return lambda _: ScriptedReply(calls=((name, json.dumps(arguments)),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How one request is answered; as it stands, as the provider would."""

    status: int = 200
    code: str = "scripted"  # in OpenAI's errors
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  # in place of the right one
    content_type: str = "application/json"  # of that body
    delay: float = 0  # seconds before the first byte
    drip: float = 0  # seconds before each hundredth part of the body
    ending: Literal["whole", "cut", "reset"] = "whole"
    spoil: Callable[[list[Vector]], list[Any]] = unspoilt
    shuffled: bool = False  # OpenAI's rows in another order, each with its right index
    plain: bool = False  # an OpenAI-like server that knows no base64
    say: Say | None = None  # what a chat model answers to a request; otherwise nothing
    refuses: tuple[str, ...] = ()  # parameters that this endpoint's model does not take
    whole: bool = False  # one JSON answer, although a stream is asked for
    doubled: bool = False  # every piece of a streamed text twice
    signs: Literal["all", "finish", "done", "none"] = "all"  # how a stream says that it is over
    counted: bool = True  # whether the answer says how many tokens it took
    hold: threading.Event | None = None  # the second half of the parts waits for it, and never comes without it


NORMAL = Step()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back."""

    parts: tuple[bytes, ...]
    status: int = 200
    content_type: str = "application/json"


class Complaint(Exception):
    """A request that the provider itself would turn down."""

    def __init__(self, status: int, code: str, param: str | None = None, message: str = "") -> None:
        self.status, self.code, self.param, self.message = status, code, param, message
        super().__init__(status, code)


def vector_of(text: str, dimensions: int, side: str = "") -> Vector:
    """A unit vector that is a function of the text alone; texts that share words are near each other."""
    raw = [0.0] * dimensions
    weights = [(word, 1.0) for word in re.findall(r"\w+", text.lower())] + [(f"{side}\0{text}", 0.1)]
    for word, weight in weights:
        digest = hashlib.blake2b(word.encode(), digest_size=32).digest()
        for place in range(0, len(digest), 4):
            [number] = struct.unpack_from(">I", digest, place)
            raw[number // 2 % dimensions] += weight if number % 2 else -weight
    length = sum(value * value for value in raw) ** 0.5
    return [value / length for value in raw]


def openai_embeddings(received: Received, step: Step) -> Reply:
    """POST /v1/embeddings."""
    model, texts = received.body.get("model"), received.texts
    packed = received.body.get("encoding_format") == "base64" and not step.plain
    dimensions = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072}.get(str(model))
    if not received.key:
        raise Complaint(401, "invalid_api_key")
    if dimensions is None:
        raise Complaint(404, "model_not_found")
    if not texts or not all(texts) or len(texts) > 2048:
        raise Complaint(400, "invalid_request_error")
    if any(len(text.split()) > 8191 for text in texts):  # a word is at least a token
        raise Complaint(400, "context_length_exceeded")
    vectors = step.spoil([vector_of(text, dimensions) for text in texts])
    rows = [
        {"object": "embedding", "index": place, "embedding": _packed(vector) if packed else vector}
        for place, vector in enumerate(vectors)
    ]
    if step.shuffled:
        rows.reverse()
    token_count = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": token_count, "total_tokens": token_count}
    return Reply(parts=(_json({"object": "list", "data": rows, "model": model, "usage": usage}),))


def cohere_embed(received: Received, step: Step) -> Reply:
    """POST /v2/embed."""
    body, texts = received.body, received.texts
    side = body.get("input_type")
    if not received.key:
        raise Complaint(401, "unauthorized")
    dimensions = {"embed-english-v3.0": 1024, "embed-english-light-v3.0": 384}.get(str(body.get("model")))
    if dimensions is None:
        raise Complaint(404, "not_found")
    if side not in ("search_document", "search_query") or not 0 < len(texts) <= 96:
        raise Complaint(400, "bad_request")
    if body.get("truncate") == "NONE" and any(len(re.findall(r"\w+|[^\w\s]", text)) > 510 for text in texts):
        raise Complaint(400, "bad_request")  # a word or a sign is at least a token
    vectors = step.spoil([vector_of(text, dimensions, side) for text in texts])
    return Reply(parts=(_json({"id": "1", "embeddings": {"float": vectors}, "texts": texts}),))


def _scripted_reply(received: Received, step: Step) -> ScriptedReply:
    """What the scripted model says, if the endpoint takes the request."""
    if not received.key:
        raise Complaint(401, "invalid_api_key")
    for name in step.refuses:
        if name in received.body:
            instead = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
            message = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
            raise Complaint(400, "unsupported_parameter", name, message)
    return step.say(received.body) if step.say else ScriptedReply()


def _pieces(scripted_reply: ScriptedReply, step: Step) -> list[str]:
    pieces = re.findall(r"[\s\S]{1,7}", scripted_reply.text)
    return [piece for piece in pieces for _ in range(2)] if step.doubled else pieces


def chat_completions(received: Received, step: Step) -> Reply:
    """POST /v1/chat/completions, streamed or not."""
    scripted_reply = _scripted_reply(received, step)
    calls = [
        {"index": place, "id": f"call_{place}_{abs(hash(arguments))}", "type": "function"}
        | {"function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(scripted_reply.calls)
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15} if step.counted else None
    finish = "tool_calls" if calls and scripted_reply.finish == "stop" else scripted_reply.finish
    common = {"id": "chatcmpl-1", "created": 1, "model": received.body.get("model")}
    if step.whole or not received.body.get("stream"):
        message = {"role": "assistant", "content": scripted_reply.text or None} | (
            {"tool_calls": calls} if calls else {}
        )
        choice = {"index": 0, "message": message, "finish_reason": finish}
        whole = {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
        return Reply(parts=(_json(whole | ({"error": scripted_reply.error} if scripted_reply.error else {})),))
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(scripted_reply, step)]
    deltas += [{"tool_calls": [call]} for call in calls]
    chunks: list[dict[str, Any]] = [
        {**common, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    if scripted_reply.error:
        chunks.append({"error": scripted_reply.error})
    last = {"index": 0, "delta": {}, "finish_reason": finish if step.signs in ("all", "finish") else None}
    chunks.append({**common, "object": "chat.completion.chunk", "choices": [last], "usage": usage})
    events = [b"data: " + _json(chunk) + b"\n\n" for chunk in chunks]
    done = [b"data: [DONE]\n\n"] if step.signs in ("all", "done") else []
    return Reply(parts=(*events, *done), content_type="text/event-stream")


def responses(received: Received, step: Step) -> Reply:
    """POST /v1/responses, streamed or not."""
    scripted_reply = _scripted_reply(received, step)
    whole = _whole_response(scripted_reply, step, received.body.get("model"))
    if step.whole or not received.body.get("stream"):
        return Reply(parts=(_json(whole),))
    events = _response_events(scripted_reply, step, whole)
    lines = [
        f"event: {event['type']}\n".encode() + b"data: " + _json({**event, "sequence_number": number}) + b"\n\n"
        for number, event in enumerate(events)
    ]
    return Reply(parts=tuple(lines), content_type="text/event-stream")


def _whole_response(scripted_reply: ScriptedReply, step: Step, model: object) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if scripted_reply.text:
        part = {"type": "output_text", "text": scripted_reply.text, "annotations": []}
        output.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]})
    output += [
        {"id": f"fc_{place}", "type": "function_call", "status": "completed"}
        | {"call_id": f"call_{place}_{abs(hash(arguments))}", "name": name, "arguments": arguments}
        for place, (name, arguments) in enumerate(scripted_reply.calls)
    ]
    status = {"stop": "completed", "error": "failed"}.get(scripted_reply.finish, "incomplete")
    why = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(scripted_reply.finish)
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": model,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": output,
        "status": status,
        "incomplete_details": {"reason": why} if why else None,
        "usage": usage if step.counted else None,
        "error": {"code": "server_error", "message": "scripted"} if status == "failed" else scripted_reply.error,
    }


def _response_events(scripted_reply: ScriptedReply, step: Step, whole: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress", "error": None}}
    ]
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events += [
        {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **place}
        for piece in _pieces(scripted_reply, step)
    ]
    events += [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(whole["output"])
    ]
    if scripted_reply.error:
        events.append({"type": "error", "param": None, **scripted_reply.error})
    elif step.signs in ("all", "finish"):
        events.append({"type": f"response.{whole['status']}", "response": whole})
    return events


def models(received: Received, step: Step) -> Reply:
    """GET /v1/models."""
    if not received.key:
        raise Complaint(401, "invalid_api_key")
    rows = [{"id": name, "object": "model", "created": 1, "owned_by": "tests"} for name in ("scripted-model", "other")]
    return Reply(parts=(_json({"object": "list", "data": rows}),))


Endpoint = Callable[[Received, Step], Reply]
ENDPOINTS: dict[str, Endpoint] = {
    "/v1/embeddings": openai_embeddings,
    "/v1/chat/completions": chat_completions,
    "/v1/responses": responses,
    "/v1/models": models,
    "/v2/embed": cohere_embed,
}


def _packed(vector: Vector) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _problem(received: Received, complaint: Complaint) -> Reply:
    status, error_text = complaint.status, f"{complaint.message} scripted trouble with the key {received.key}"
    openai_like = {
        "error": {"message": error_text, "type": "scripted", "param": complaint.param, "code": complaint.code}
    }
    return Reply(status=status, parts=(_json({**openai_like, "message": error_text}),))


class FakeAI:
    """The server's script and memory. Made by `fake_ai`."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[Received] = []
        self.most_at_once = 0
        self.at_once = 0
        self._script: deque[Step] = deque()
        self._otherwise = NORMAL

    def script(self, *steps: Step, then: Step = NORMAL) -> None:
        """What the next requests get, in the order in which they come, and what all later ones do."""
        self._script = deque(steps)
        self._otherwise = then

    def assert_exhausted(self) -> None:
        """Every step was used."""
        assert not self._script, f"{len(self._script)} steps were never asked for"

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests until either side has enough."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        received = await _read(reader)
        self.received.append(received)
        step = self._script.popleft() if self._script else self._otherwise
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await _answer(writer, received, step)
        finally:
            self.at_once -= 1


async def _answer(writer: asyncio.StreamWriter, received: Received, step: Step) -> bool:
    await asyncio.sleep(step.delay)
    if step.ending == "reset":
        _reset(writer)
    else:
        await _write(writer, _reply(received, step), step)
    return step.ending == "whole"


def _reply(received: Received, step: Step) -> Reply:
    endpoint = ENDPOINTS.get(received.path)
    if step.body is not None:
        return Reply(status=step.status, parts=(step.body,), content_type=step.content_type)
    if step.status != 200 or endpoint is None:
        return _problem(received, Complaint(step.status if endpoint else 404, step.code))
    try:
        return endpoint(received, step)
    except Complaint as complaint:
        return _problem(received, complaint)


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    path = head[0].split(" ")[1]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(path=path, headers=headers, body=json.loads(raw) if raw else {})


async def _write(writer: asyncio.StreamWriter, reply: Reply, step: Step) -> None:
    whole = b"".join(reply.parts) if len(reply.parts) == 1 else b"".join(map(_chunk, (*reply.parts, b"")))
    sized = f"content-length: {len(whole)}" if len(reply.parts) == 1 else "transfer-encoding: chunked"
    lines = [f"HTTP/1.1 {reply.status} Scripted", f"content-type: {reply.content_type}", sized]
    lines += [f"{name}: {value}" for name, value in step.headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    if step.hold is not None:
        first_half = b"".join(map(_chunk, reply.parts[: len(reply.parts) // 2]))
        writer.write(first_half)
        await writer.drain()
        if not await asyncio.to_thread(step.hold.wait, HOLD_SECONDS):
            _reset(writer)
            return
        whole = whole[len(first_half) :]
    body_part = whole[: len(whole) // 2] if step.ending == "cut" else whole
    piece = len(body_part) // 100 + 1 if step.drip else len(body_part) or 1
    for start in range(0, len(body_part), piece):
        await asyncio.sleep(step.drip)
        writer.write(body_part[start : start + piece])
        await writer.drain()


def _chunk(part: bytes) -> bytes:
    return f"{len(part):x}\r\n".encode() + part + b"\r\n"


def _reset(writer: asyncio.StreamWriter) -> None:
    plug = writer.get_extra_info("socket")
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing sends RST
    writer.transport.abort()


@contextmanager
def fake_ai() -> Iterator[FakeAI]:
    """A server on a free port, gone at the end."""
    ai = FakeAI()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()

    async def serve() -> None:
        over = asyncio.Event()
        open_ones: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(ai.converse(reader, writer))
            open_ones[task] = writer

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        async with server:
            started.set_result((asyncio.get_running_loop(), over, server.sockets[0].getsockname()[1]))
            await over.wait()
        for _ in range(3):  # on a busy machine somebody who was just knocking comes in late
            await asyncio.sleep(0.01)
            for task, writer in open_ones.items():
                task.cancel()
                writer.transport.abort()
            await asyncio.gather(*open_ones, return_exceptions=True)
        await asyncio.sleep(0)  # an aborted socket is closed in the next round of the loop

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    loop, over, port = started.result(timeout=60)
    ai.url = f"http://127.0.0.1:{port}"
    try:
        yield ai
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(timeout=60)
