"""What the terminal can ask about keys. Only whoever can read the home gets here: there is no route for keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from lectern.app import keys as revoking
from lectern.app.open import Lectern
from lectern.domain.clock import utc_now
from lectern.domain.keys import IssuedKey, Key, KeyRequest, origin_of

Params = dict[str, Any]
Lines = AsyncIterator[dict[str, Any]]


async def create_key(lectern: Lectern, params: Params) -> Lines:
    """A new key with its text, the only time it is shown, and which of its books are not indexed yet."""
    books = params["books"]
    wanted = KeyRequest(
        name=params["name"],
        kind="publishable" if params["publishable"] else "secret",
        rights=frozenset(params["rights"]),
        books=frozenset(books) if books else None,
        origins=frozenset(origin_of(one) for one in params["origins"]),
        days=params["days"],
    )
    issued = await lectern.keys.create(wanted)
    missing = sorted(set(books) - set(await lectern.book_ids()))
    yield {**_shown(issued), "not_indexed": missing}


async def keys(lectern: Lectern, params: Params) -> Lines:  # every action has the same shape
    """Every key without its text, a line each, the oldest first."""
    for key in await lectern.keys.all():
        yield _described(key)


async def rotate_key(lectern: Lectern, params: Params) -> Lines:
    """The key with its new text, the only time it is shown."""
    yield _shown(await lectern.keys.rotate(params["key_id"], grace=params["grace"], days=params["days"]))


async def revoke_key(lectern: Lectern, params: Params) -> Lines:
    """The key, which opens nothing any more."""
    yield _described(await revoking.revoke_key(params["key_id"], lectern.keys, lectern.runs, lectern.jobs))


async def delete_key(lectern: Lectern, params: Params) -> Lines:
    """The key as it was, and how many conversations went with it."""
    gone, threads = await revoking.delete_key(params["key_id"], lectern.keys, lectern.runs, lectern.jobs)
    yield {"key_id": gone.key_id, "name": gone.name, "threads_deleted": threads}


def _shown(issued: IssuedKey) -> dict[str, Any]:
    return {"key": issued.text, **_described(issued.key)}


def _described(key: Key) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "name": key.name,
        "kind": key.kind,
        "state": key.state(utc_now()),
        "rights": sorted(key.rights),
        "books": None if key.books is None else sorted(key.books),
        "origins": sorted(key.origins),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
    }
