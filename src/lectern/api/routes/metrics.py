"""Metrics over HTTP, for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lectern.api.deps import AdminCaller
from lectern.api.metrics import CONTENT_TYPE
from lectern.schemas.common import problems

router = APIRouter(tags=["operations"], responses=problems(401, 403))
TEXT_RESPONSE = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text form"}
}


@router.get("/metrics", operation_id="readMetrics", response_class=Response, responses=TEXT_RESPONSE)  # type: ignore[arg-type]  # FastAPI asks for a wider key type
async def metrics(request: Request, _: AdminCaller) -> Response:
    """Metrics of this server, for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE)
