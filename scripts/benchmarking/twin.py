"""Side by side with the naive twin: the same work, the same start times, in the same run."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from cpsched.domain import Instance
from cpsched.planner import Planner
from tests.oracle.literal_planner import plan_literally

__all__ = ["TWIN_HEADER", "TWIN_NOTE", "Comparison", "compare"]

TWIN_HEADER = ("window", "nodes", "jobs planned", "this planner, s", "naive twin, s", "faster by", "start times")
TWIN_NOTE = (
    "The twin is `tests/oracle/literal_planner.py`: OpenCCS taken literally, on vector values, in plain Python. This "
    "planner's time is the whole of `Planner(instance)` and `plan()`."
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same window, planned twice."""

    instance: Instance
    planned: int
    ours: float
    twins: float

    def row(self) -> tuple[str, ...]:
        """Return the row of a table with `TWIN_HEADER`."""
        nodes, factor = len(self.instance.cluster.node_names), self.twins / self.ours
        figures = (f"{self.ours:.4f}", f"{self.twins:.1f}", f"{factor:,.0f}")
        return (self.instance.name, f"{nodes:,}", f"{self.planned:,}", *figures, "equal")


def compare(instance: Instance) -> Comparison:
    """Plan a window by the planner and by its naive twin.

    Raises
    ------
    SystemExit
        If they do not agree on all start times: then no figure is worth anything.
    """
    Planner(instance).plan()  # loads the kernels
    begin = time.process_time()
    planner = Planner(instance)
    planner.plan()
    ours = time.process_time() - begin
    begin = time.process_time()
    literal = plan_literally(instance)
    twins = time.process_time() - begin
    found = {job.id: job.start for job in planner.outcome().jobs if job.id in literal}
    expected = {job_id: place[0] for job_id, place in literal.items() if place is not None}
    if found != expected:
        differing = sorted(job_id for job_id in literal if found.get(job_id) != expected.get(job_id))
        sys.exit(f"{instance.name}: the naive twin disagrees about the starts of {', '.join(differing[:10])}")
    return Comparison(instance, len(expected), ours, twins)
