"""The endpoints for machines that watch: events as they happen, and metrics."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse

from cpsched.site.serve.figures import metrics_text
from cpsched.site.serve.problems import problem_responses
from cpsched.site.serve.reading import AllParts, Reader

router = APIRouter(prefix="/v1")


@router.get(
    "/events",
    summary="What changes, as it changes",
    response_class=StreamingResponse,
    responses={**problem_responses(422), 200: {"content": {"text/event-stream": {}}, "description": "Does not end"}},
)
async def events(
    parts: AllParts, viewer: Reader, last_event_id: Annotated[str | None, Header(max_length=64)] = None
) -> StreamingResponse:
    """Stream server-sent events: `state` when the state is another one, `heartbeat` when nothing happens.

    A new stream begins with the newest event; with `Last-Event-ID` it goes on after that one.
    """
    stream = parts.streams.open(viewer.key, last_event_id)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={**problem_responses(), 200: {"content": {"text/plain": {}}, "description": "Prometheus's format"}},
)
async def metrics(parts: AllParts) -> Response:
    """Return figures of the server, and of what it serves."""
    return Response(metrics_text(parts), media_type="text/plain; version=0.0.4; charset=utf-8")
