"""The files of the web pages as they are sent. They are prepared once, when the server starts: style sheets contain
what they import, lines that are comments and sentences that only the server writes are left out, and each file is
compressed. A browser asks before it uses its copy, and is answered with a 304 as long as the file is the same."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from lectern.text.strings import STRINGS_FOLDER, languages

Route = Callable[[Request], Awaitable[Response]]
SERVER_SENTENCES = ("answer.", "book.", "doubtful.", "outline.", "question.", "talk.")  # no page writes these
MEDIA_TYPES = {".js": "text/javascript", ".json": "application/json"}  # a system may know others
_COMMENT_LINES = re.compile(r"^[ \t]*(?://[^\n]*|/\*(?:(?!\*/).)*\*/[ \t]*)\n", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r'^@import "([^"]+)";$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFile:
    """A file as it is sent."""

    content: bytes
    compressed: bytes
    media_type: str
    etag: str


def page_files(web: Path) -> dict[str, Path]:
    """The files of the web pages, and their sentences in each language, by their paths on the server."""
    files = {f"/{file.relative_to(web).as_posix()}": file for file in web.rglob("*") if file.is_file()}
    files |= {f"/strings/{language}.json": STRINGS_FOLDER / f"{language}.json" for language in languages()}
    return files | {
        path.removesuffix("index.html"): file for path, file in files.items() if path.endswith("/index.html")
    }


def web_file(file: Path) -> WebFile:
    """A file of the web pages, ready to be sent."""
    media_type = MEDIA_TYPES.get(file.suffix) or guess_type(file.name)[0] or "application/octet-stream"
    return prepared(_sent_text(file), media_type)


def prepared(text: str, media_type: str) -> WebFile:
    """A text, ready to be sent."""
    content = text.encode()
    return WebFile(
        content=content,
        compressed=gzip.compress(content, mtime=0),
        media_type=media_type,
        etag=f'W/"{hashlib.sha256(content).hexdigest()[:16]}"',  # weak: it names both encodings
    )


def _sent_text(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        sentences = {key: words for key, words in json.loads(text).items() if not key.startswith(SERVER_SENTENCES)}
        return json.dumps(sentences, ensure_ascii=False, separators=(",", ":"))
    if file.suffix == ".css":
        text = _IMPORT.sub(lambda match: _sent_text(file.parent / match[1]), text)
    return _COMMENT_LINES.sub("", text) if file.suffix in (".js", ".css") else text


def file_route(file: WebFile) -> Route:
    """A route for one file. A mount at the root would also answer wrong methods of other routes."""
    headers = {"Cache-Control": "no-cache", "ETag": file.etag, "Vary": "Accept-Encoding"}

    async def serve(request: Request) -> Response:
        if file.etag in request.headers.get("If-None-Match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("Accept-Encoding", ""):
            return Response(file.content, media_type=file.media_type, headers=headers)
        encoded = {**headers, "Content-Encoding": "gzip"}
        return Response(file.compressed, media_type=file.media_type, headers=encoded)

    return serve
