"""The nodes of a Qdrant server: their addresses, the time that a call may take, and what their errors mean.

A cluster has several nodes, and any of them answers for all. A call that one node cannot take goes to the next one, so
that a reader does not notice when a node is killed. Every call may be made again: it reads, or it writes points that
carry their own ids. Exceptions of the Qdrant client become errors of Lectern in this module.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
import re
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
from grpc import StatusCode
from grpc.aio import AioRpcError
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from lectern.domain.dependencies import Call, calling, report
from lectern.domain.errors import (
    ConfigError,
    IndexDamaged,
    LecternError,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    RateLimited,
)

log = logging.getLogger("lectern.index")

PROVIDER = "qdrant"
BAD_REQUEST, NOT_FOUND, SERVER_ERROR = 400, 404, 500
OLDEST_RELEASE = (1, 12)  # the first that counts points by a field's values
TESTED_RELEASES = ((1, 16),)
# The client keeps no connection to this machine, because with the client's own headers each answer takes 40 ms more on
# a kept one: the server compresses it in pieces and waits for the first to be acknowledged before it sends the next.
# A server may close a connection that was idle for 5 seconds.
KEEP_ALIVE = httpx.Limits(keepalive_expiry=4)
UNCOMPRESSED = {"accept-encoding": "identity"}  # gRPC takes no capitals
READ_SECONDS = 5.0  # that a call for a reader may take, on all nodes together
WRITE_SECONDS = 20.0  # of a call for a job, on one node
WRITES = frozenset({"upsert", "delete", "create_collection", "create_payload_index", "update_collection"})
REFUSALS = frozenset(
    {
        StatusCode.INVALID_ARGUMENT,
        StatusCode.ALREADY_EXISTS,
        StatusCode.PERMISSION_DENIED,
        StatusCode.UNAUTHENTICATED,
        StatusCode.FAILED_PRECONDITION,
        StatusCode.UNIMPLEMENTED,
    }
)
UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError)  # the client does not catch these
CLIENT_ERRORS = (UnexpectedResponse, ResponseHandlingException, AioRpcError, TimeoutError, *UNREADABLE)


@contextmanager
def client_errors() -> Iterator[None]:
    """Report the call, and turn an exception of the client into an error of Lectern that says what to do."""
    with calling("qdrant"):
        try:
            yield
        except (ResourceExhaustedResponse, *CLIENT_ERRORS) as exc:
            raise error_of(exc) from exc


def error_of(exc: Exception) -> LecternError:
    """The error of Lectern behind an exception of the client."""
    source = exc.source if isinstance(exc, ResponseHandlingException) else exc
    match source:
        case ResourceExhaustedResponse():
            return RateLimited(PROVIDER, float(source.retry_after_s))
        case UnexpectedResponse():
            return _error_of_status(source.status_code or SERVER_ERROR)
        case AioRpcError():
            return _error_of_code(source.code())
        case httpx.TimeoutException() | TimeoutError():
            return ProviderTimeout(PROVIDER, "did not answer in time; try again")
        case json.JSONDecodeError() | UnicodeDecodeError():
            return ProviderError(PROVIDER, "gave an answer that cannot be read; check that QDRANT_URL is a Qdrant")
    return ProviderError(PROVIDER, "could not be reached; check QDRANT_URL and that the server runs")


def _error_of_status(status: int) -> LecternError:
    if status == NOT_FOUND:
        return IndexDamaged("QDRANT_URL is no Qdrant, or it has lost a collection (404); run: lectern doctor --mend")
    if BAD_REQUEST <= status < SERVER_ERROR:
        return ProviderRefused(PROVIDER, f"refused ({status}); check QDRANT_URL and QDRANT_API_KEY")
    return ProviderError(PROVIDER, f"failed ({status}); try again")


def _error_of_code(code: StatusCode) -> LecternError:
    name = code.name.lower()
    if code == StatusCode.NOT_FOUND:
        return _error_of_status(NOT_FOUND)
    if code in REFUSALS:
        return ProviderRefused(PROVIDER, f"refused ({name}); check QDRANT_URL and QDRANT_API_KEY")
    if code == StatusCode.DEADLINE_EXCEEDED:
        return ProviderTimeout(PROVIDER, "did not answer in time; try again")
    if code == StatusCode.UNAVAILABLE:
        return ProviderError(PROVIDER, "could not be reached; check QDRANT_URL and LECTERN_QDRANT_GRPC_PORT")
    return ProviderError(PROVIDER, f"failed ({name}); try again")


class NodeClient(AsyncQdrantClient):
    """Qdrant's client, which sends searches as they are. By itself it copies each of them deeply first, in case it has
    texts to embed, and that takes longer than to send it."""

    async def query_batch_points(  # type: ignore[override]  # the client's options are refused, not ignored
        self, collection_name: str, requests: Sequence[models.QueryRequest]
    ) -> list[models.QueryResponse]:
        """Several searches in one request."""
        return await self._client.query_batch_points(collection_name, requests)


class Nodes:
    """Clients of the nodes of one server, called like one client. The node that answered last is asked first."""

    def __init__(self, clients: Sequence[AsyncQdrantClient], seconds: float) -> None:
        self._clients = clients
        self._seconds = seconds
        self._preferred = random.randrange(len(clients))  # noqa: S311  # processes choose different ones

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """A method of the client, on a node that answers."""

        async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as the client's method has them
            return await self._call(name, args, kwargs)

        return call

    async def close(self) -> None:
        """Close the connections to every node."""
        for client in self._clients:
            await client.close()

    async def _call(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        first, nodes, deadline = self._preferred, len(self._clients), time.perf_counter() + self._seconds
        for tried in range(nodes):
            chosen, start = (first + tried) % nodes, time.perf_counter()
            seconds = WRITE_SECONDS if method in WRITES else (deadline - start) / (nodes - tried)
            try:
                async with asyncio.timeout(seconds):
                    return await getattr(self._clients[chosen], method)(*args, **kwargs)
            except CLIENT_ERRORS as exc:
                error = error_of(exc)
                if tried + 1 == nodes or isinstance(error, ProviderRefused):
                    raise
                report(Call(dependency="qdrant", seconds=time.perf_counter() - start, error=error))
                if self._preferred == chosen:  # else another call has turned to the next one
                    self._preferred = (chosen + 1) % nodes
        raise AssertionError  # the last node's answer or error has ended this


def connect(
    urls: str, api_key: str | None, *, seconds: float = READ_SECONDS, grpc_port: int | None = None
) -> AsyncQdrantClient:
    """A client for a server's addresses, separated by commas; it sends nothing yet. `seconds` bound a read, and with
    `grpc_port` the nodes are asked there, over gRPC."""
    clients = [_client(url, api_key, seconds, grpc_port) for url in addresses(urls)]
    return cast("AsyncQdrantClient", Nodes(clients, seconds))  # it has the same methods


def addresses(urls: str) -> list[str]:
    """The addresses of the nodes."""
    return [url.strip() for url in urls.split(",")]


def _client(url: str, api_key: str | None, seconds: float, grpc_port: int | None) -> AsyncQdrantClient:
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(f"QDRANT_URL: {url!r} is no address; it begins with http:// or https://")
    warnings.filterwarnings("ignore", "Api key is used with an insecure connection")  # within the cluster's network
    try:
        return NodeClient(
            url=url,
            api_key=api_key,
            timeout=math.ceil(max(seconds, WRITE_SECONDS)),  # `Nodes` ends a read before
            check_compatibility=False,  # by a thread that prints warnings; `check_version` does it
            limits=KEEP_ALIVE,
            headers=UNCOMPRESSED,
            prefer_grpc=grpc_port is not None,
            grpc_port=grpc_port or 0,
        )
    except ValueError as exc:
        raise ConfigError(f"QDRANT_URL: {url!r} is no address ({exc})") from exc


def check_version(version: str) -> None:
    """Refuse a server that cannot do what is asked of it, and warn of one that was never tried."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    release = (int(numbers[1]), int(numbers[2])) if numbers else None
    if release is None or release not in TESTED_RELEASES:
        log.warning("the Qdrant server is %s, which was not tested; tested: %s", version, _in_words(TESTED_RELEASES))
    if release is not None and release < OLDEST_RELEASE:
        raise ConfigError(
            f"QDRANT_URL: the Qdrant server is {version}; {_in_words([OLDEST_RELEASE])} or newer is needed, which "
            "counts the points of each version of a lesson. Upgrade the server"
        )


def _in_words(releases: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{major}.{minor}" for major, minor in releases)
