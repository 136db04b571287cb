"""Opens the lessons of books that are published nowhere. The address of such a lesson is a path of its site, and a
citation leads there: on this server it leads on to the page, with the lesson open. A browser keeps the anchor of an
address that is redirected. Paths of the API and of the page's own files stay what they are."""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlencode

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import Scope

from lectern.api.auth import CALLER
from lectern.domain.keys import Caller

_READING = ("GET", "HEAD")


async def lesson_page(request: Request) -> RedirectResponse | None:
    """The page with the lesson whose address is the path of this request; None if the caller may read no such
    lesson."""
    caller = request.scope.get(CALLER)
    if request.method not in _READING or not isinstance(caller, Caller) or "read" not in caller.rights:
        return None
    place = await request.app.state.lectern.app.library.lesson_at(request.url.path, caller.books)
    if place is None:
        return None
    book_id, parent_doc_id = place
    return _to_page(request.url.path, {"book": book_id, "lesson": parent_doc_id})


def keyless_visit(scope: Scope, api: Collection[str]) -> RedirectResponse | None:
    """Where a browser is sent that follows an address without a key: to the page, which asks for the key and then looks
    for the lesson. Whether there is one is not told. None for every other request; `api` are the first steps of the
    API's paths."""
    headers, path = Headers(scope=scope), scope["path"]
    if scope["method"] not in _READING or "text/html" not in headers.get("accept", ""):
        return None
    return None if path.split("/")[1] in api else _to_page(path, {"at": path})


def _to_page(path: str, query: dict[str, str]) -> RedirectResponse:
    """The address is relative, because a proxy may serve us under a prefix."""
    up = "../" * (path.count("/") - 1) or "./"
    return RedirectResponse(f"{up}?{urlencode(query)}", HTTPStatus.FOUND, headers={"Cache-Control": "no-cache"})
