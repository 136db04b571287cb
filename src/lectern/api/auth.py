"""Who asks. Decided once, before any route is looked for; whatever is wrong with a key, the answer is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers

from lectern.api.readers import TOKEN_HEADER, Readers
from lectern.domain.errors import BadKey, WrongOrigin
from lectern.domain.keys import LOCAL, Caller, Key
from lectern.store.keys import SqlKeys

CALLER = "lectern.caller"  # where the scope of a request has its caller
READER = "send the token of a reader as `X-Reader-Token`; POST /readers gives one, and another when it has expired"
MALFORMED = ""  # what was sent as a key and cannot be one
_BEARER = HTTPBearer(auto_error=False, scheme_name="bearer", description="A key, once one exists.")
_HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, scheme_name="apiKey", description="The same, in a header.")


async def caller_of(
    request: Request,
    # these two only describe what the gate has looked at already
    _bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    _header: Annotated[str | None, Security(_HEADER)],
) -> Caller:
    """The caller behind a request; without the gate before it there is none, and the request fails."""
    caller: Caller = request.scope[CALLER]
    return caller


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Lets callers in."""

    keys: SqlKeys
    readers: Readers
    local: bool  # only this machine can reach the server: nobody needs a key while none exists

    async def caller(self, headers: Headers) -> Caller:
        """Whoever sent these headers."""
        if self.local and not await self.keys.exist():
            return LOCAL
        text = key_in(headers)
        key = await self.keys.verified(text) if text else None
        if key is None:
            raise BadKey(key_sent=text is not None)
        caller = _holder(key) if key.kind == "secret" else await self._visitor(key, headers)
        await self.keys.note_use(key)
        return caller

    async def _visitor(self, key: Key, headers: Headers) -> Caller:
        """Whoever uses a publishable key: a reader, where the token is good."""
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
    """The one key that was sent: None where there is none, `MALFORMED` where it is unclear which one is meant."""
    given = {_bearer_key(value) for value in headers.getlist("authorization")}
    given |= {value.strip() for value in headers.getlist("x-api-key")}
    if not given:
        return None
    text = given.pop()
    return text if not given and text.isascii() else MALFORMED


def _bearer_key(value: str) -> str:
    scheme, _, text = value.strip().partition(" ")
    return text.strip() if scheme.lower() == "bearer" else MALFORMED


def _holder(key: Key) -> Caller:
    return Caller(owner=key.owner, rights=key.rights, books=key.books, key_id=key.key_id)


def _page_origins(headers: Headers) -> frozenset[str]:
    """Where the page that asks comes from. A browser leaves the origin out when it reads from the page's own server;
    then it is the one that was asked, in either scheme, because a proxy may have taken the encryption off."""
    if (origin := headers.get("origin")) is not None:
        return frozenset({origin})
    if headers.get("sec-fetch-site") == "same-origin":
        host = headers.get("host", "").lower()
        return frozenset({f"https://{host}", f"http://{host}"})
    return frozenset()
