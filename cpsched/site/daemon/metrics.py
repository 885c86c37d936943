"""The daemon's metrics in Prometheus's format, on a loopback port or in a file."""

from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

from cpsched.writing import whole_file

#: Bounds of the classes of seconds.
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 20, 30, 60)


class Metrics:
    """All figures of one daemon. Mutable."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        self.cycles = counter("cpsched_cycles", "Cycles")
        self.cycle_seconds = Histogram(
            "cpsched_cycle_seconds", "Seconds of a cycle, all included", buckets=_SECONDS, registry=self.registry
        )
        self.overruns = counter("cpsched_cycle_overruns", "Cycles that took longer than their budget")
        self.fallbacks = counter("cpsched_fallbacks", "Plans that the engine failed to make")
        self.failures = counter("cpsched_failures", "What failed, by what it was", ["what"])
        self.orders = counter("cpsched_orders", "Orders, by kind and by the manager's answer", ["kind", "result"])
        self.vetoes = counter("cpsched_vetoes", "Starts that the verifier refused")
        self.promises_moved = counter("cpsched_promises_moved", "Promised starts that moved later")
        self.jobs = gauge("cpsched_jobs", "Jobs, by state", ["state"])
        self.value = gauge("cpsched_plan_value", "The objective of the last plan")
        self.is_dry_run = gauge("cpsched_dry_run", "1 in a dry run")
        self.engine = gauge("cpsched_engine", "1 for the engine in use", ["engine"])
        self.last_cycle = gauge("cpsched_last_good_cycle_timestamp_seconds", "When the last good cycle ended")
        self.gave_up = gauge("cpsched_gave_up", "1 while everything is handed back after bad cycles")

    def serve(self, port: int) -> None:
        """Answer on a port of the loopback interface."""
        start_http_server(port, addr="127.0.0.1", registry=self.registry)

    def write(self, path: str | Path) -> None:
        """Write a file that is whole or not there, readable by its owner only as the process's mask says."""
        with whole_file(path) as unfinished:
            unfinished.write_bytes(generate_latest(self.registry))
            unfinished.chmod(0o600)
