"""Errors as HTTP: `application/problem+json`, one shape, nothing about the inside of the server."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from lectern.api.schemas.common import Problem
from lectern.domain.errors import BadInput, LecternError

MEDIA_TYPE = "application/problem+json"


def problem(status: int, detail: str, field: str | None = None) -> JSONResponse:
    """One problem as a response."""
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, field=field)
    return JSONResponse(body.model_dump(), status_code=status, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Give every error of the application this shape."""

    @app.exception_handler(LecternError)
    async def lectern_error(_: Request, exc: LecternError) -> JSONResponse:
        return problem(exc.status, str(exc), exc.field if isinstance(exc, BadInput) else None)

    @app.exception_handler(RequestValidationError)
    async def validation_error(_: Request, exc: RequestValidationError) -> JSONResponse:
        first = exc.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:]) or None
        detail = f"{field}: {first['msg']}" if field else str(first["msg"])
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, field)

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, exc: HTTPException) -> JSONResponse:
        return problem(exc.status_code, str(exc.detail))

    @app.exception_handler(Exception)
    async def unexpected(_: Request, __: Exception) -> JSONResponse:
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "something went wrong on the server; its log has the details")
