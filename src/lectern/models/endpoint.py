"""The calls of a language model at an endpoint: Chat Completions or the Responses API. The Agents SDK builds the
requests and reads the answers. What is in between is decided here.

- Only parameters that an operator set, or that the task needs, are sent. One that the endpoint refuses is left out, and
  the call is repeated.
- An answer that did not come to its end is an error, or is marked as cut, whole or streamed. The SDK would take most of
  them for an empty answer.
- A whole answer where a stream was asked for is an answer: some endpoints cannot stream.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, cast

from agents import Model, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel
from openai import APIStatusError, AsyncOpenAI, AsyncStream, NotGiven, Omit, OpenAIError
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseCompletedEvent, ResponseStreamEvent, ResponseTextDeltaEvent

from lectern.domain.dependencies import calling
from lectern.domain.errors import ProviderError, ToolsUnknown
from lectern.domain.replies import CutReason
from lectern.models.provider_errors import (
    BASE_URL,
    KEY_NAME,
    PROVIDER,
    SERVER_ERROR,
    UNREADABLE,
    URL_NAME,
    check_base_url,
    check_key,
    error_in_answer,
    errors_of,
    http_client,
    sdk_error,
    unreadable_answer,
)

Api = Literal["chat", "responses"]
MAX_RETRIES = 2  # of a call, by the SDK, which honours Retry-After
PATHS: dict[Api, str] = {"chat": "/chat/completions", "responses": "/responses"}
NEEDED = ("model", "messages", "input", "instructions", "stream")
OPTIONAL = (  # what may be sent besides, and left out again
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "stream_options",
    "store",
    "tool_choice",
    "tools",
    "response_format",
    "text",
)
RENAMED = {"max_tokens": "max_completion_tokens"}  # newer models take the limit under the second name
REFUSING_STATUSES = (400, 404, 422)
CUT_REASONS: dict[str, CutReason] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
FAILED_REASONS = ("error", "failed", "cancelled")
PAIRS_TO_JUDGE = 4  # of equal pieces, after which it is plain that all come twice
MIN_DISTINCT_PAIRS = 2  # with letters; an answer may be "ha ha ha ha"
MIN_DOUBLED_WORDS = 4  # of one piece that came twice

# what errors call a parameter that they do not name
_OTHER_NAMES = {
    "tools": re.compile(r"\btools?\b|tool[_ -]|function[_ -]call", re.IGNORECASE),
    "response_format": re.compile(r"json[_ -]?schema|structured[_ -]output", re.IGNORECASE),
    "text": re.compile(r"json[_ -]?schema|structured[_ -]output", re.IGNORECASE),
}
_TOOLS_UNSUPPORTED = re.compile(r"\btools?\b[^.\"]{0,60}\b(?:requires?|unsupported|not support)", re.IGNORECASE)
_ROLES = re.compile(
    r"\broles? must alternate\b|\b(?:unknown|invalid|unexpected|unsupported)\b.{0,20}\brole", re.IGNORECASE
)
log = logging.getLogger("lectern.models")
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Ending:
    """How the calls of one run ended. Made by who starts the run."""

    cut: CutReason | None = None  # of the last call
    refused: dict[str, str | None] = field(default_factory=dict)  # parameters, and the name to be sent instead


def client(api_key: str, base_url: str | None, timeout: float) -> AsyncOpenAI:
    """A client for an endpoint; the caller closes it."""
    return AsyncOpenAI(
        api_key=check_key(api_key, KEY_NAME),
        base_url=check_base_url(base_url or BASE_URL, URL_NAME),
        timeout=timeout,
        max_retries=MAX_RETRIES,
        http_client=http_client(timeout),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model at an endpoint, and how it is called."""

    client: AsyncOpenAI
    model: str
    api: Api
    settings: ModelSettings
    trace_headers: Callable[[], Mapping[str, str]] = dict  # that tell the endpoint which trace a call belongs to

    def sdk_model(self, ending: Ending) -> Model:
        """The model for one run of the Agents SDK, which tells `ending` how its calls ended."""
        calls: Any = _Calls(self.client, ending, self.trace_headers)
        if self.api == "responses":
            return OpenAIResponsesModel(model=self.model, openai_client=calls)
        return OpenAIChatCompletionsModel(model=self.model, openai_client=calls)


class _Calls:
    """What the SDK's models see of a client: how to create an answer."""

    def __init__(
        self, client: AsyncOpenAI, ending: Ending, trace_headers: Callable[[], Mapping[str, str]] = dict
    ) -> None:
        self._client = client
        self._ending = ending
        self._trace_headers = trace_headers
        self.base_url = client.base_url
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create_completion))
        self.responses = SimpleNamespace(create=self._create_response)

    async def _create_completion(self, **arguments: object) -> ChatCompletion | AsyncIterator[ChatCompletionChunk]:
        with self._call() as call:
            answer = await self._send("chat", request_body(arguments))
            if isinstance(answer, AsyncStream):
                return _within(call.pop_all(), _watch_chunks(cast("_ChunkStream", answer), self._ending))
            return check_completion(answer, self._ending)

    async def _create_response(self, **arguments: object) -> Response | AsyncIterator[ResponseStreamEvent]:
        with self._call() as call:
            answer = await self._send("responses", request_body(arguments))
            if isinstance(answer, AsyncStream):
                return _within(call.pop_all(), _watch_events(answer, self._ending))
            return check_response(answer, self._ending)

    def _call(self) -> ExitStack:
        """What surrounds one call, until the last event of its stream: it is reported, and its errors name the
        endpoint."""
        call = ExitStack()
        call.enter_context(calling("language_model"))
        call.enter_context(errors_of(str(self.base_url)))
        return call

    async def _send(self, api: Api, body: dict[str, Any]) -> object:
        """The answer to a request, repeated without each parameter that the endpoint refuses."""
        for refused, replacement in self._ending.refused.items():
            leave_out(body, refused, replacement)
        while True:
            try:
                return await self._post(api, body)
            except APIStatusError as exc:
                name = refused_parameter(exc, body)
                if name is None:
                    raise sdk_error(exc) from None
                if name in ("tools", "tool_choice"):
                    raise ToolsUnknown(PROVIDER, "the model cannot call tools; choose another model") from None
                newer = RENAMED.get(name)
                replacement = newer if newer is not None and newer in _text_of(exc) else None
                log.info("the endpoint refuses %s (%d); it is left out", name, exc.status_code)
                self._ending.refused[name] = replacement
                leave_out(body, name, replacement)
            except OpenAIError as exc:
                raise sdk_error(exc) from None  # the SDK's own texts may quote the key
            except UNREADABLE as exc:
                raise unreadable_answer(PROVIDER, exc) from None

    async def _post(self, api: Api, body: dict[str, Any]) -> object:
        kind: Any = ChatCompletion if api == "chat" else Response
        stream_kind: Any = _ChunkStream if api == "chat" else AsyncStream[ResponseStreamEvent]
        return await self._client.post(
            PATHS[api],
            cast_to=kind,
            body=body,
            # this client's key, never one from the environment
            options=cast("Any", {"security": {"bearer_auth": True}, "headers": dict(self._trace_headers())}),
            stream=bool(body.get("stream")),
            stream_cls=stream_kind,
        )


async def _within(call: ExitStack, events: AsyncGenerator[T, None]) -> AsyncIterator[T]:
    """The events of a stream, within the call that gave it."""
    with call:
        async with aclosing(events):
            async for event in events:
                yield event


def request_body(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The request that the SDK wants to send, with nothing in it but what is needed or was set."""
    body = {
        name: value
        for name, value in arguments.items()
        if name in (*NEEDED, *OPTIONAL) and not isinstance(value, Omit | NotGiven) and value not in (None, [])
    }
    for name in ("messages", "input"):
        if isinstance(items := body.get(name), list):
            body[name] = decodable([_with_json_arguments(item) for item in items])
    return body


def decodable(value: T) -> T:
    """A JSON value with a question mark for every half of a character, which an endpoint may send and nobody can
    encode: the next call, a search and the database would fail."""
    cleaned: Any = value
    if isinstance(value, str):
        cleaned = value.encode("utf-8", "replace").decode()
    elif isinstance(value, list):
        cleaned = [decodable(item) for item in value]
    elif isinstance(value, dict):
        cleaned = {name: decodable(item) for name, item in value.items()}
    return cast("T", cleaned)


def _with_json_arguments(item: dict[str, Any]) -> dict[str, Any]:
    """An item of the conversation in which the arguments of every call are a JSON object. Some endpoints refuse a
    conversation with anything else; the model was told what was wrong with its call."""
    if item.get("type") == "function_call":
        return {**item, "arguments": _json_object(item["arguments"])}
    if calls := item.get("tool_calls"):
        functions = [{**call["function"], "arguments": _json_object(call["function"]["arguments"])} for call in calls]
        pairs = zip(calls, functions, strict=True)
        return {**item, "tool_calls": [{**call, "function": function} for call, function in pairs]}
    return item


def _json_object(arguments: str) -> str:
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def refused_parameter(exc: APIStatusError, body: Mapping[str, Any]) -> str | None:
    """The parameter of a request that this error is about, if it is one that can be left out."""
    if _refuses_tools(exc, body):
        return "tools"
    if exc.status_code not in REFUSING_STATUSES:
        return None
    names = [name for name in OPTIONAL if name in body]
    param = re.split(r"[.\[]", exc.param or "")[0]
    if param in names:
        return param
    text = _text_of(exc)
    for name in names:
        if re.search(rf"(?<![a-z_]){name}(?![a-z_])", text):
            return name
    return next((name for name, words in _OTHER_NAMES.items() if name in names and words.search(text)), None)


def _refuses_tools(exc: APIStatusError, body: Mapping[str, Any]) -> bool:
    """Whether a server fails because of the tools (llama.cpp without `--jinja`), or a template of its model knows no
    messages of tools."""
    text = _text_of(exc)
    if "tools" in body and exc.status_code >= SERVER_ERROR and _TOOLS_UNSUPPORTED.search(text):
        return True
    messages = body.get("messages") or ()
    has_tool_messages = any(message.get("role") == "tool" for message in messages)
    return exc.status_code in (*REFUSING_STATUSES, SERVER_ERROR) and has_tool_messages and bool(_ROLES.search(text))


def _text_of(exc: APIStatusError) -> str:
    return json.dumps(exc.body) if exc.body is not None else str(exc)


def leave_out(body: dict[str, Any], name: str, replacement: str | None) -> None:
    """Take a parameter out of a request, or send it under another name."""
    value = body.pop(name, None)
    if replacement is not None and value is not None:
        body[replacement] = value


def check_completion(answer: object, ending: Ending) -> ChatCompletion:
    """A whole answer of Chat Completions, or an error if it is none."""
    if not isinstance(answer, ChatCompletion):
        raise _no_answer()
    if (error := getattr(answer, "error", None)) is not None:
        raise error_in_answer(error)
    choices = getattr(answer, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        raise ProviderError(PROVIDER, f"sent an answer without a choice; check {URL_NAME}, or ask again")
    message = choices[0].message
    _end(getattr(choices[0], "finish_reason", None), message.content, message.tool_calls, ending)
    return answer


def check_response(answer: object, ending: Ending) -> Response:
    """A whole answer of the Responses API, or an error if it is none."""
    if not isinstance(answer, Response):
        raise _no_answer()
    if (error := getattr(answer, "error", None)) is not None:
        raise error_in_answer(error)
    output = getattr(answer, "output", None)
    if not isinstance(output, list):
        raise _no_answer()
    why = getattr(answer, "incomplete_details", None)
    reason = getattr(why, "reason", None) or getattr(answer, "status", None)
    calls = [item for item in output if item.type == "function_call"]
    _end("length" if reason == "incomplete" else reason, answer.output_text, calls, ending)
    # the SDK takes an incomplete answer for an error; here its text counts, and `ending` says that it was cut
    return answer.model_copy(update={"status": "completed", "incomplete_details": None})


def _end(reason: str | None, text: str | None, calls: Sequence[object] | None, ending: Ending) -> None:
    """Note how a call ended; raise if nothing can be made of its answer."""
    ending.cut = CUT_REASONS.get((reason or "").lower())
    if (reason or "").lower() in FAILED_REASONS:
        raise ProviderError(PROVIDER, "failed while it answered; ask again")
    if ending.cut is None:
        return
    if calls:
        raise ProviderError(PROVIDER, "cut off a call of a tool; raise LECTERN_MAX_TOKENS, or ask again")
    if not (text or "").strip():
        raise cut_before_text(ending.cut)


def cut_before_text(reason: CutReason) -> ProviderError:
    """The error of an answer that was cut off before its first word."""
    if reason == "length":
        return ProviderError(
            PROVIDER, "used up its tokens before it wrote a word; raise LECTERN_MAX_TOKENS, or choose another model"
        )
    return ProviderError(PROVIDER, "withheld the answer (content filter); ask in other words")


def _no_answer() -> ProviderError:
    return ProviderError(PROVIDER, f"sent a web page or an empty body instead of an answer; check {URL_NAME}")


class _ChunkStream(AsyncStream[ChatCompletionChunk]):
    """A stream that remembers whether the endpoint said that it was over. The SDK's own keeps that to itself."""

    has_events = False
    is_done = False

    async def _iter_events(self) -> AsyncIterator[Any]:
        async for event in super()._iter_events():
            self.has_events = True
            self.is_done = self.is_done or event.data.startswith("[DONE]")
            yield event


async def _watch_chunks(stream: _ChunkStream, ending: Ending) -> AsyncGenerator[ChatCompletionChunk, None]:
    """The chunks of a streamed answer; an error if it does not come to its end."""
    pieces = _Pieces()
    reason: str | None = None
    calls: list[object] = []
    async with stream:
        if "choices" in (body := await _json_body(stream)):
            yield _as_chunk(check_completion(ChatCompletion.construct(**body), ending))
            return
        async for chunk in _provider_errors(stream):
            if _is_error(chunk):
                raise error_in_answer(chunk)
            for choice in (getattr(chunk, "choices", None) or ())[:1]:
                reason = getattr(choice, "finish_reason", None) or reason
                pieces.add(getattr(choice.delta, "content", None))
                calls += getattr(choice.delta, "tool_calls", None) or ()
            yield chunk
    if not stream.has_events:
        raise _no_answer()
    if reason is None and not stream.is_done:
        raise _broken_off()
    pieces.check()
    _end(reason, pieces.text, calls, ending)


async def _watch_events(
    stream: AsyncStream[ResponseStreamEvent], ending: Ending
) -> AsyncGenerator[ResponseStreamEvent, None]:
    """The events of a streamed answer; an error if it does not come to its end."""
    pieces = _Pieces()
    event: Any = None
    async with stream:
        if "output" in (body := await _json_body(stream)):
            for whole_event in _as_events(check_response(Response.construct(**body), ending)):
                yield whole_event
            return
        async for event in _provider_errors(stream):
            if event.type == "response.output_text.delta":
                pieces.add(event.delta)
            elif event.type in ("error", "response.error"):
                raise error_in_answer(event)
            elif event.type in ("response.completed", "response.incomplete", "response.failed"):
                pieces.check()
                response = check_response(event.response, ending)
                yield ResponseCompletedEvent.model_construct(
                    type="response.completed", response=response, sequence_number=event.sequence_number
                )
                return
            yield event
    raise _no_answer() if event is None else _broken_off()


async def _json_body(stream: AsyncStream[Any]) -> dict[str, Any]:
    """The JSON object that came where a stream was asked for, or an empty one; an error object is raised. Any other
    body can still be read as a stream: some servers send one under the wrong content type."""
    if "json" not in stream.response.headers.get("content-type", ""):
        return {}
    try:
        body = json.loads(await stream.response.aread())
    except Exception:  # noqa: BLE001  # of the HTTP library, or no JSON: reading the stream will tell
        return {}
    if not isinstance(body, dict):
        return {}
    if body.get("error"):
        raise error_in_answer(body["error"])
    return body


def _as_chunk(answer: ChatCompletion) -> ChatCompletionChunk:
    """A whole answer as the only chunk of a stream."""
    body = answer.model_dump(warnings=False)  # a server may leave fields out
    for choice in body["choices"]:
        delta = choice["delta"] = choice.pop("message")
        delta["tool_calls"] = [
            {**call, "index": place} for place, call in enumerate(delta.get("tool_calls") or ())
        ] or None
    return ChatCompletionChunk.construct(**{**body, "object": "chat.completion.chunk"})


def _as_events(response: Response) -> Iterator[ResponseStreamEvent]:
    """A whole answer as the events of a stream."""
    if response.output_text:
        yield ResponseTextDeltaEvent.construct(
            type="response.output_text.delta",
            delta=response.output_text,
            item_id="",
            output_index=0,
            content_index=0,
            logprobs=[],
            sequence_number=0,
        )
    yield ResponseCompletedEvent.construct(type="response.completed", response=response, sequence_number=1)


async def _provider_errors(stream: AsyncStream[Any]) -> AsyncIterator[Any]:
    """A stream whose errors are Lectern's."""
    try:
        async for event in stream:
            yield event
            await asyncio.sleep(0)  # thousands of events may be here already, and others are waiting
    except OpenAIError as exc:
        raise sdk_error(exc) from None  # the SDK's own texts may quote the key
    except UNREADABLE as exc:
        raise unreadable_answer(PROVIDER, exc) from None


def _is_error(chunk: object) -> bool:
    """Whether an endpoint sent an error in place of a chunk, and did not call it `error`."""
    if getattr(chunk, "choices", None) is not None:
        return False
    return getattr(chunk, "object", None) == "error" or any(hasattr(chunk, name) for name in ("detail", "message"))


def _broken_off() -> ProviderError:
    return ProviderError(PROVIDER, "broke off before the end of its answer; ask again")


class _Pieces:
    """The pieces of a streamed text. Proxies were seen to send each of them twice."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def add(self, piece: str | None) -> None:
        """The next piece; an error as soon as it is plain that all come twice."""
        if piece:
            self._pieces.append(piece)
            if len(self._pieces) == 2 * PAIRS_TO_JUDGE:
                self.check()

    def check(self) -> None:
        """An error if every piece came twice. Pieces without letters may do so by chance: `1100`."""
        first, second = self._pieces[::2], self._pieces[1::2]
        words = {piece for piece in first if any(map(str.isalpha, piece))}
        is_long = any(len(piece.split()) >= MIN_DOUBLED_WORDS for piece in words)
        if first == second and (len(words) >= MIN_DISTINCT_PAIRS or is_long):
            raise ProviderError(
                PROVIDER, f"sent every piece of its answer twice; ask again, and check the proxy at {URL_NAME}"
            )
