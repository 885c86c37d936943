"""The daemon's metrics in Prometheus's format, on a loopback port or in a file."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

from cpsched.writing import whole_file

#: Bounds of the classes of seconds.
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 20, 30, 60)


class Metrics:
    """All figures of one daemon. Mutable."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.cycles = Counter("cpsched_cycles", "Cycles", registry=self.registry)
        self.cycle_seconds = Histogram(
            "cpsched_cycle_seconds", "Seconds of a cycle, all included", buckets=_SECONDS, registry=self.registry
        )
        self.overruns = Counter(
            "cpsched_cycle_overruns", "Cycles that took longer than their budget", registry=self.registry
        )
        self.fallbacks = Counter("cpsched_fallbacks", "Plans that the engine failed to make", registry=self.registry)
        self.failures = Counter("cpsched_failures", "What failed, by what it was", ["what"], registry=self.registry)
        self.orders = Counter(
            "cpsched_orders", "Orders, by kind and by the manager's answer", ["kind", "result"], registry=self.registry
        )
        self.vetoes = Counter("cpsched_vetoes", "Starts that the verifier refused", registry=self.registry)
        self.promises_moved = Counter(
            "cpsched_promises_moved", "Promised starts that moved later", registry=self.registry
        )
        self.jobs = Gauge("cpsched_jobs", "Jobs, by state", ["state"], registry=self.registry)
        self.value = Gauge("cpsched_plan_value", "The objective of the last plan", registry=self.registry)
        self.is_dry_run = Gauge("cpsched_dry_run", "1 in a dry run", registry=self.registry)
        self.last_cycle = Gauge(
            "cpsched_last_good_cycle_timestamp_seconds", "When the last good cycle ended", registry=self.registry
        )

        self.gave_up = Gauge(
            "cpsched_gave_up", "1 while everything is handed back after bad cycles", registry=self.registry
        )

    def serve(self, port: int) -> None:
        """Answer on a port of the loopback interface."""
        start_http_server(port, addr="127.0.0.1", registry=self.registry)

    def write(self, path: str | Path) -> None:
        """Write a file that is whole or not there, readable by its owner only as the process's mask says."""
        with whole_file(path) as unfinished:
            unfinished.write_bytes(generate_latest(self.registry))
            unfinished.chmod(0o600)
