"""The figures of the server in Prometheus's format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, generate_latest

if TYPE_CHECKING:
    from cpsched.site.serve.parts import Parts


def metrics_text(parts: Parts) -> bytes:
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
