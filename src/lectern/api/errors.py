"""Errors as HTTP responses: `application/problem+json`, without details of the server's internals. The status of
an error is a field of its class in `domain/errors.py`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from lectern.api.lesson_addresses import lesson_page
from lectern.domain.errors import BadInput, LecternError, RateLimited, TooMany, Unexpected, error_code
from lectern.schemas.common import Problem

MEDIA_TYPE = "application/problem+json"
DEFAULT_RETRY_AFTER = 5.0  # seconds, if the error does not say how long to wait
RETRY_STATUSES = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)


def problem_body(exc: LecternError) -> Problem:
    """An error of Lectern as the body of a problem response."""
    field = exc.field if isinstance(exc, BadInput) else None
    return Problem(
        title=HTTPStatus(exc.status).phrase,
        status=exc.status,
        detail=str(exc),
        field=field,
        code=error_code(type(exc)),
    )


def problem(
    status: int,
    detail: str,
    field: str | None = None,
    retry_after: float = DEFAULT_RETRY_AFTER,
    kind: type[LecternError] | None = None,
) -> JSONResponse:
    """A problem as a response. It says how long to wait if waiting helps, and how to send a key if one is missing."""
    code = error_code(kind) if kind is not None else None
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, field=field, code=code)
    headers = {"Retry-After": str(math.ceil(retry_after))} if status in RETRY_STATUSES else {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body.model_dump(), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def problem_of(exc: LecternError, status: int | None = None) -> JSONResponse:
    """An error of Lectern as a response, with the error's status unless another is given."""
    field = exc.field if isinstance(exc, BadInput) else None
    wait = exc.retry_after if isinstance(exc, RateLimited | TooMany) else DEFAULT_RETRY_AFTER
    return problem(status or exc.status, str(exc), field, wait, type(exc))


def _body_problem(error: dict[str, Any]) -> str | None:
    """The message for a body that is not a JSON object; None for every other error."""
    if error["type"] == "json_invalid":
        return f"the body is no valid JSON: {error.get('ctx', {}).get('error', 'it cannot be read')}"
    if tuple(error["loc"]) == ("body",):
        return "send a JSON object as the body, with Content-Type: application/json"
    return None


def _message(error: Mapping[str, Any]) -> str:
    """What is wrong, in plain words: the validator says "items" of a string's characters."""
    limits = error.get("ctx", {})
    if error["type"] in ("too_short", "string_too_short") and isinstance(error["input"], str):
        return f"must have at least {limits['min_length']} character{'s' * (limits['min_length'] != 1)}"
    if error["type"] in ("too_long", "string_too_long") and isinstance(error["input"], str):
        return f"must have at most {limits['max_length']} characters"
    if error["type"] == "extra_forbidden":
        return "is not known here; check its spelling, or leave it out"
    return str(error["msg"]).removeprefix("Value error, ")


def install(app: FastAPI) -> None:
    """Register the handlers that turn the application's errors into problem responses."""

    @app.exception_handler(LecternError)
    async def lectern_error(_: Request, exc: LecternError) -> JSONResponse:
        return problem_of(exc)

    @app.exception_handler(RequestValidationError)
    async def validation_error(_: Request, exc: RequestValidationError) -> JSONResponse:
        first = exc.errors()[0]
        if (detail := _body_problem(first)) is not None:
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, kind=BadInput)
        field = ".".join(str(part) for part in first["loc"][1:]) or None
        detail = f"{field}: {_message(first)}" if field else _message(first)
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, field, kind=BadInput)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, exc: HTTPException) -> Response:
        no_route = exc.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
        if no_route and (page := await lesson_page(request)) is not None:
            return page
        if exc.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's status for a body that it cannot decode
            text = "the body is not JSON in UTF-8; send it so"
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, text, kind=BadInput)
        headers = exc.headers or {}
        detail = str(exc.detail)
        if exc.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            detail = "this path takes another method; /docs describes the API"
        elif detail == HTTPStatus.NOT_FOUND.phrase:
            detail = "nothing is at this path; /docs lists what there is"
        response = problem(exc.status_code, detail)
        response.headers.update(headers)
        return response

    @app.exception_handler(Exception)
    async def unexpected(_: Request, __: Exception) -> JSONResponse:
        text = "something went wrong on the server; its log has the details"
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, text, kind=Unexpected)
