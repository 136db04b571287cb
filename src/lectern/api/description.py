"""What the routes cannot say of themselves in `openapi.json`: the headers that the guards before them add to responses.
A client that is written from the description alone knows when to ask again, and what to tell an operator."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "X-Request-ID": (_TEXT, "The id of the request in the log: the caller's own if it is a plain one, else a new one."),
    "X-Run-ID": (_TEXT, "The run that answers, for `/chat/stream/{run_id}` and `/chat/runs/{run_id}/cancel`."),
    "ETag": (_TEXT, "The version that was read, for `If-Match`."),
    "Location": (_TEXT, "The address of the job."),
    "Retry-After": (_COUNT, "Seconds to wait before trying again."),
    "WWW-Authenticate": (_TEXT, "How to send a key: `Bearer`."),
    "RateLimit-Limit": (_COUNT, "Requests that the caller may make in a window; not sent if nothing is limited."),
    "RateLimit-Remaining": (_COUNT, "Requests that are left in the window."),
    "RateLimit-Reset": (_COUNT, "Seconds until the oldest request of the window no longer counts."),
    "RateLimit-Policy": (_TEXT, "The limit and its window in seconds, as in `100;w=60`."),
}
LIMITS = tuple(name for name in HEADERS if name.startswith("RateLimit"))
WAITING, UNKNOWN = ("429", "503"), "401"
OWN = {  # of one operation, where it succeeds
    ("chatRun", "200"): "X-Run-ID",
    ("readThread", "200"): "ETag",
    ("editThread", "200"): "ETag",
    ("startIngestion", "202"): "Location",
}


def describe_headers(app: FastAPI) -> None:
    """Have the description name every header of ours, for each operation and status."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = plain()
            made.setdefault("components", {})["headers"] = {
                name: {"schema": schema, "description": said} for name, (schema, said) in HEADERS.items()
            }
            for methods in made["paths"].values():
                for operation in methods.values():
                    for status, response in operation["responses"].items():
                        named = _headers(operation, status)
                        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in named}
        assert app.openapi_schema is not None  # FastAPI keeps what it made
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's own way to extend it


def _headers(operation: dict[str, Any], status: str) -> list[str]:
    names = ["X-Request-ID"]
    if operation.get("security") and status != UNKNOWN:
        names += LIMITS
    if status in WAITING:
        names.append("Retry-After")
    if status == UNKNOWN:
        names.append("WWW-Authenticate")
    return [*names, *([own] if (own := OWN.get((operation["operationId"], status))) else [])]
