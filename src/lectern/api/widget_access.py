"""What pages of other origins may load besides the API: the widget's files and words, and the page for iframes. Files
and words are public and the same for everybody, so any page may load them. Only pages that may use the API may show the
iframe."""

from __future__ import annotations

import json
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lectern.api.errors import problem_of
from lectern.api.middleware import CONTENT_SECURITY_POLICY
from lectern.api.web_files import WebFile, prepared
from lectern.domain.errors import LecternError
from lectern.ports.keys import KeyStore
from lectern.text.strings import languages, strings_of

WIDGET_SCRIPT = "/widget.js"
WIDGET_FOLDERS = ("/shared/", "/style/", "/widget/")  # what the script loads
WIDGET_WORDS = (  # what the keys of its words begin with; the page and the author's page have many more
    "ask.",
    "claim.",
    "confidence.",
    "conversations.current",
    "diagram.",
    "dialog.",
    "empty.suggestions",
    "feedback.",
    "listing.",
    "problem.",
    "refusal.",
    "sources.",
    "task.",
    "turn.",
    "widget.",
)
FRAME_PATH = "/embed/"
WIDGET_HEADERS = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
FIRST_ERROR_STATUS = 400


def widget_paths(paths: Iterable[str]) -> frozenset[str]:
    """Those of the web page's paths that the widget loads."""
    return frozenset(path for path in paths if path == WIDGET_SCRIPT or path.startswith(WIDGET_FOLDERS))


def widget_words() -> dict[str, WebFile]:
    """The widget's words in each language, by their paths on the server."""
    return {f"/widget/strings/{language}.json": _words(language) for language in languages()}


def _words(language: str) -> WebFile:
    sentences = strings_of(language).sentences
    words = {key: sentence for key, sentence in sentences.items() if key.startswith(WIDGET_WORDS)}
    return prepared(json.dumps(words, ensure_ascii=False, separators=(",", ":")), "application/json")


def frame_policy(origins: Iterable[str]) -> str:
    """The security policy of the page for iframes, which pages of these origins may show."""
    ancestors = " ".join(sorted(origins)) or "'none'"
    return CONTENT_SECURITY_POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {ancestors}")


class WidgetAccess:
    """Adds the headers that let other origins load the widget's files and show the page for iframes."""

    def __init__(self, app: ASGIApp, *, paths: frozenset[str], allowed: frozenset[str], keys: KeyStore) -> None:
        self._app = app
        self._paths = paths
        self._allowed, self._keys = allowed, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to the response."""
        path = scope["path"] if scope["type"] == "http" else ""
        if path in self._paths:
            await self._app(scope, receive, _with_headers(send, WIDGET_HEADERS))
        elif path == FRAME_PATH:
            try:
                origins = self._allowed | await self._keys.origins()
            except LecternError as exc:
                await problem_of(exc)(scope, receive, send)
                return
            await self._app(scope, receive, _with_headers(send, {"Content-Security-Policy": frame_policy(origins)}))
        else:
            await self._app(scope, receive, send)


def _with_headers(send: Send, extra: dict[str, str]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] < FIRST_ERROR_STATUS:
            MutableHeaders(scope=message).update(extra)
        await send(message)

    return send_with_headers
