"""Windows with deadlines: how many jobs have one, and that each leaves time."""

from __future__ import annotations

from tests.workloads.deadlines import with_deadlines
from tests.workloads.eurora_windows import eurora_window


def test_deadlines_and_dependencies_are_drawn() -> None:
    """A fifth of the jobs has a deadline, a tenth waits for an earlier job; each could end in time if it were alone."""
    window = with_deadlines(eurora_window(100, 1), 1)
    assert window == with_deadlines(eurora_window(100, 1), 1)
    assert sum(job.deadline is not None for job in window.jobs) == 20
    assert sum(bool(job.after) for job in window.jobs) == 10
    ends: dict[str, int] = {}
    for job in window.jobs:
        ends[job.id] = job.walltime + max((ends[one.job] for one in job.after), default=window.now)
        assert job.deadline is None or ends[job.id] <= job.deadline <= window.now + 3 * (ends[job.id] - window.now)
