"""Requests to a running server: JSON in, JSON or Server-Sent Events out. The server's problems become the errors that a
local call raises. No request is repeated, because a repeated question would be answered twice."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from lectern.domain.errors import (
    BadInput,
    BadKey,
    Conflict,
    Forbidden,
    LecternError,
    Overloaded,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    TooMany,
    Unauthorised,
    UnknownBook,
    error_code,
)
from lectern.schemas.common import Problem

SERVER = "lectern server"  # the provider that connection errors name
CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
RETRY_AFTER = 5.0  # seconds, where the server does not say how long to wait

_BY_STATUS: dict[int, type[LecternError]] = {  # for problems without a code, which come from middleware
    HTTPStatus.UNAUTHORIZED: Unauthorised,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.REQUEST_TIMEOUT: ProviderTimeout,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: BadInput,
    HTTPStatus.UNPROCESSABLE_ENTITY: BadInput,
    HTTPStatus.TOO_MANY_REQUESTS: TooMany,
    HTTPStatus.SERVICE_UNAVAILABLE: Overloaded,
}
_UNKNOWN_BOOK = re.compile(r"there is no book '(.*)'; indexed: (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """One event of a stream."""

    name: str
    body: dict[str, Any]


class ServerConnection:
    """One server and the key that is sent to it."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = _checked_url(url)
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers=_headers(key),
            timeout=_timeout(READ_SECONDS),
            trust_env=False,  # a proxy from the environment would get the key
        )

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._client.is_closed

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = READ_SECONDS,
    ) -> Any:  # noqa: ANN401  # JSON of any shape
        """The JSON of a response; None where it has no body. `seconds` is how long the server may be silent."""
        with self._lectern_errors():
            response = await self._client.request(
                method, path, params=_query_parameters(query), timeout=_timeout(seconds), **_content(body, headers)
            )
        if not response.is_success:
            raise _error_of(response)
        return _json(response.content) if response.content else None

    async def events(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[ServerEvent]:
        """The events of a stream as they arrive, without a time limit."""
        with self._lectern_errors():
            async with self._client.stream(
                method, path, timeout=_timeout(None), **_content(body, {"Accept": "text/event-stream"})
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise _error_of(response)
                _check_stream(response)
                async for event in _events(response.aiter_lines()):
                    yield event

    def interrupted(self) -> ProviderError:
        """The error of a stream that ends before its last event."""
        return ProviderError(
            SERVER, f"at {self.url} stopped in the middle; what was finished is kept, so look before you try again"
        )

    @contextmanager
    def _lectern_errors(self) -> Iterator[None]:
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
            raise ProviderError(
                SERVER, f"nothing answers at {self.url}; start it with `lectern serve`, or check the address"
            ) from exc
        except httpx.TimeoutException as exc:
            raise ProviderTimeout(SERVER, f"at {self.url} did not answer in time; try again in a moment") from exc
        except httpx.HTTPError as exc:
            raise self.interrupted() from exc


def _check_stream(response: httpx.Response) -> None:
    with response_errors():
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            raise ValueError(kind)


def path_of(*parts: str | int) -> str:
    """A path from parts that may contain any text: `..` and `/` in a part are escaped."""
    return "".join(f"/{quote(str(part), safe='').replace('.', '%2E')}" for part in parts)


def error_from(body: object, retry_after: float = RETRY_AFTER) -> LecternError:
    """The error that a problem describes, of the class that a local call would have raised."""
    problem = Problem.model_validate(body)
    kind = _kinds().get(problem.code or "") or _BY_STATUS.get(problem.status)
    if kind is None:
        return ProviderError(SERVER, f"answered {problem.status}: {problem.detail}")
    error = kind.__new__(kind, problem.detail)  # not by its constructor, which would write another message
    if isinstance(error, BadInput):
        error.field = problem.field
    if isinstance(error, UnknownBook):
        match = _UNKNOWN_BOOK.fullmatch(problem.detail)
        error.book_id, error.known = (match[1], tuple(match[2].split(", "))) if match else ("", ())
    if isinstance(error, TooMany | RateLimited):
        error.retry_after = retry_after
    if isinstance(error, ProviderError):
        error.provider = problem.detail.partition(": ")[0] if problem.code else SERVER
    if isinstance(error, BadKey):
        error.key_sent = True
    return error


@contextmanager
def response_errors() -> Iterator[None]:
    """Raise a ProviderError if a response does not have the expected form: the server may have another version."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as exc:
        raise ProviderError(
            SERVER, f"answered what this version does not understand ({type(exc).__name__}); use the server's version"
        ) from exc


def _kinds() -> dict[str, type[LecternError]]:
    """Every kind of error by its code."""
    kinds = [LecternError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {error_code(kind): kind for kind in kinds}


def _error_of(response: httpx.Response) -> LecternError:
    wait = response.headers.get("Retry-After", "")
    try:
        return error_from(json.loads(response.content), float(wait) if wait.isdecimal() else RETRY_AFTER)
    except (ValueError, ValidationError):
        return ProviderError(
            SERVER, f"answered {response.status_code} and not as Lectern does; check that the address is a server's"
        )


def _json(content: bytes) -> Any:  # noqa: ANN401  # JSON of any shape
    with response_errors():
        return json.loads(content)


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[ServerEvent]:
    """Server-Sent Events as Lectern sends them: a name and one line of data; comments keep the connection open."""
    name = ""
    async for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield ServerEvent(name=name, body=_json(value.encode()))


def _checked_url(url: str) -> str:
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parts = httpx.URL("")
    if parts.userinfo:  # not repeated: it may be a password
        raise BadInput("the address has a user name; write it as http://HOST:PORT, and give the key apart", field="url")
    if parts.scheme not in ("http", "https") or not parts.host:
        raise BadInput(f"{url!r} is no address of a server; write it as http://HOST:PORT", field="url")
    return url.rstrip("/")


def _headers(key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if not (key.isascii() and key.isprintable() and key.strip()):
        raise BadInput("a key is one line of ASCII letters; copy it whole", field="key")
    return {"Authorization": f"Bearer {key.strip()}"}


def _timeout(seconds: float | None) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=CONNECT_SECONDS)


def _content(body: Mapping[str, Any] | None, headers: Mapping[str, str] | None) -> dict[str, Any]:
    """A body as ASCII, so that text that is not valid UTF-8 reaches the server, which rejects it with a reason."""
    if body is None:
        return {"headers": dict(headers or {})}
    return {"content": json.dumps(body), "headers": {"Content-Type": "application/json", **(headers or {})}}


def _query_parameters(query: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (query or {}).items() if value is not None}
