"""Runs what a reader of the design documents pastes: code as it is printed there, requests as they are."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any, Literal, Optional

import httpx


def names_after(code: str, **values: Any) -> dict[str, Any]:
    """The names that a document's code defines, run with these values."""
    standard = {
        "Literal": Literal,
        "Optional": Optional,
        "cosine_similarity": cosine_similarity,
        "dataclass": dataclass,
        "datetime": datetime,
        "field": field,
        "json": json,
        "mean": fmean,
        "uuid": uuid,
    }
    scope = {**standard, **values}
    exec(compile(f"from __future__ import annotations\n{code}", "a design document", "exec"), scope)
    return scope


def cosine_similarity(first: list[float], second: list[float]) -> float:
    """The function that the fourth document calls without defining it."""
    product = math.fsum(one * other for one, other in zip(first, second, strict=True))
    return product / (math.hypot(*first) * math.hypot(*second))


def read(server: str, path: str, **parameters: str | int) -> Any:
    """The body of a GET."""
    response = httpx.get(f"{server}{path}", params=parameters, timeout=120)
    assert response.status_code == 200, response.text
    return response.json()


def send(server: str, path: str, body: dict[str, Any] | str) -> httpx.Response:
    """A POST of a body, or of JSON as it is printed."""
    content = body if isinstance(body, str) else json.dumps(body)
    return httpx.post(f"{server}{path}", content=content, headers={"Content-Type": "application/json"}, timeout=120)


def chunks_of(server: str, book: str) -> Iterator[dict[str, Any]]:
    """Every stored chunk of a book, page by page."""
    cursor: dict[str, str | int] = {}
    while True:
        page = read(server, f"/books/{book}/chunks", limit=100, **cursor)
        yield from page["chunks"]
        if not page["next_cursor"]:
            return
        cursor = {"cursor": page["next_cursor"]}
