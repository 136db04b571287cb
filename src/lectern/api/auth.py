"""Finds out who sends a request, once, before it reaches a route. Every bad key gets the same answer, whatever is wrong
with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers

from lectern.api.readers import TOKEN_HEADER, Readers
from lectern.domain.errors import BadKey, WrongOrigin
from lectern.domain.keys import LOCAL, Caller, Key
from lectern.ports.keys import KeyStore

CALLER = "lectern.caller"  # the key of the caller in the ASGI scope
READER_NEEDED = (
    "send the token of a reader as `X-Reader-Token`; POST /readers gives one, and another when it has expired"
)
MALFORMED = ""  # in place of a key that cannot be valid
_BEARER = HTTPBearer(auto_error=False, scheme_name="bearer", description="A key, once one exists.")
_HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, scheme_name="apiKey", description="The same, in a header.")


async def caller_of(
    request: Request,
    # these two only describe the headers, which the gate has checked already
    _bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    _header: Annotated[str | None, Security(_HEADER)],
) -> Caller:
    """The caller of a request. The gate sets it; without the gate the request fails."""
    caller: Caller = request.scope[CALLER]
    return caller


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Finds the caller of a request by its key and its reader token."""

    keys: KeyStore
    readers: Readers
    local: bool  # only this machine can reach the server: no key is needed while none exists

    async def caller(self, headers: Headers) -> Caller:
        """The caller who sent these headers."""
        if self.local and not await self.keys.exist():
            return LOCAL
        text = key_in(headers)
        key = await self.keys.verify(text) if text else None
        if key is None:
            raise BadKey(key_sent=text is not None)
        caller = _key_caller(key) if key.kind == "secret" else await self._publishable_caller(key, headers)
        await self.keys.note_use(key)
        return caller

    async def _publishable_caller(self, key: Key, headers: Headers) -> Caller:
        """The caller behind a publishable key: a reader if the token is valid."""
        if _page_origins(headers).isdisjoint(key.origins):
            raise WrongOrigin("this key is for pages of other origins; its operator can make one for this page's")
        token = headers.get(TOKEN_HEADER)
        reader = await self.readers.reader(key.key_id, token) if token else None
        return Caller(
            owner=f"{key.owner}/{reader}" if reader else key.owner,
            rights=key.rights,
            books=key.books,
            key_id=key.key_id,
            reader=reader,
            nameless=reader is None,
        )


def key_in(headers: Headers) -> str | None:
    """The key in the headers. None if there is none, `MALFORMED` if it cannot be valid or there are several."""
    keys = {_bearer_key(value) for value in headers.getlist("authorization")}
    keys |= {value.strip() for value in headers.getlist("x-api-key")}
    if not keys:
        return None
    text = keys.pop()
    return text if not keys and text.isascii() else MALFORMED


def _bearer_key(value: str) -> str:
    scheme, _, text = value.strip().partition(" ")
    return text.strip() if scheme.lower() == "bearer" else MALFORMED


def _key_caller(key: Key) -> Caller:
    return Caller(owner=key.owner, rights=key.rights, books=key.books, key_id=key.key_id)


def _page_origins(headers: Headers) -> frozenset[str]:
    """The possible origins of the page that sent a request. A browser sends no origin when it reads from the page's own
    server; then the origin is this host, in either scheme, because a proxy may have ended TLS."""
    if (origin := headers.get("origin")) is not None:
        return frozenset({origin})
    if headers.get("sec-fetch-site") == "same-origin":
        host = headers.get("host", "").lower()
        return frozenset({f"https://{host}", f"http://{host}"})
    return frozenset()
