"""The endpoints for machines that watch: events as they happen, and metrics."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from cpsched.site.serve.parts import Parts
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
    return Response(_metrics_text(parts), media_type="text/plain; version=0.0.4; charset=utf-8")


def _metrics_text(parts: Parts) -> bytes:
    """Return the figures of now."""
    registry = CollectorRegistry()

    def gauge(name: str, words: str, value: float) -> None:
        Gauge(f"cpsched_serve_{name}", words, registry=registry).set(value)

    view = parts.view_or_none
    gauge("ready", "1 if something is known", float(view is not None))
    gauge("event_streams", "Open event streams", parts.streams.num_open)
    gauge("questions_waiting", "Questions that wait for an answer", parts.answering.num_waiting)
    gauge("plans_queued", "Submitted instances that wait", parts.submissions.num_queued)
    if view is not None:
        jobs = Gauge("cpsched_serve_jobs", "Jobs, by state", ["state"], registry=registry)
        for state, count in view.counts.items():
            jobs.labels(state).set(count)
        gauge("plan_value", "The objective of the last plan", view.made.objective.value)
        if view.made.objective.gap is not None:
            gauge("plan_gap", "The gap of the last plan", view.made.objective.gap)
        if view.cycle is not None:
            gauge("cycle_seconds", "Seconds of the last cycle", view.cycle.seconds)
            gauge("cycle_lag_seconds", "Seconds since the last cycle", view.lag)
            gauge("cycle_fallbacks", "Fallbacks in the last 100 cycles", view.cycle.fallbacks)
    return generate_latest(registry)
