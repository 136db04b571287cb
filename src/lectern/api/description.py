"""Adds the response headers to `openapi.json`. The middleware sets most of them, so the routes cannot declare them. A
client that is written from the description alone then knows when to retry, and which id to report."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "X-Request-ID": (_TEXT, "The id of the request in the log: the caller's own if it is a plain one, else a new one."),
    "X-Run-ID": (_TEXT, "The run that answers, for `/chat/stream/{run_id}` and `/chat/runs/{run_id}/cancel`."),
    "ETag": (_TEXT, "The version that was read, for `If-Match` and `If-None-Match`."),
    "Location": (_TEXT, "The address of the job."),
    "Retry-After": (_COUNT, "Seconds to wait before trying again."),
    "WWW-Authenticate": (_TEXT, "How to send a key: `Bearer`."),
    "RateLimit-Limit": (_COUNT, "Requests that the caller may make in a window; not sent if nothing is limited."),
    "RateLimit-Remaining": (_COUNT, "Requests that are left in the window."),
    "RateLimit-Reset": (_COUNT, "Seconds until the oldest request of the window no longer counts."),
    "RateLimit-Policy": (_TEXT, "The limit and its window in seconds, as in `100;w=60`."),
}
LIMIT_HEADERS = tuple(name for name in HEADERS if name.startswith("RateLimit"))
RETRY_STATUSES, UNAUTHORIZED = ("429", "503"), "401"
OPERATION_HEADERS = {  # of one operation, when it succeeds
    ("chatRun", "200"): "X-Run-ID",
    ("readThread", "200"): "ETag",
    ("editThread", "200"): "ETag",
    ("readFile", "200"): "ETag",
    ("startIngestion", "202"): "Location",
}


def describe_headers(app: FastAPI) -> None:
    """Make the application's OpenAPI description list `HEADERS`, for each operation and status."""
    original = app.openapi

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            description = original()
            description.setdefault("components", {})["headers"] = {
                name: {"schema": schema, "description": text} for name, (schema, text) in HEADERS.items()
            }
            for methods in description["paths"].values():
                for operation in methods.values():
                    for status, response in operation["responses"].items():
                        names = _headers(operation, status)
                        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
        assert app.openapi_schema is not None  # FastAPI stores it
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]  # FastAPI's own way to extend it


def _headers(operation: dict[str, Any], status: str) -> list[str]:
    names = ["X-Request-ID"]
    if operation.get("security") and status != UNAUTHORIZED:
        names += LIMIT_HEADERS
    if status in RETRY_STATUSES:
        names.append("Retry-After")
    if status == UNAUTHORIZED:
        names.append("WWW-Authenticate")
    header = OPERATION_HEADERS.get((operation["operationId"], status))
    return [*names, header] if header else names
