"""Plans of all deterministic engines on generated windows are those that were recorded: code that only moves changes no
start and no node.

Record anew, after a change that is meant to change plans: ``python -m tests.portfolio.test_digests``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from cpsched.domain import Instance, Plan
from cpsched.errors import UnsupportedError
from cpsched.policies import POLICIES
from cpsched.portfolio import solve
from cpsched.workloads import eurora_window, evolving_window, with_evolving, with_malleable

RECORDED = Path(__file__).with_name("plan_digests.json")
ENGINES = ("planner", *POLICIES)


def windows() -> Iterator[Instance]:
    """Yield windows with rigid, malleable and evolving jobs, on a machine that is partly busy."""
    busy = eurora_window(60, 3, busy=0.8, demand=40)
    yield eurora_window(80, 1, demand=50)
    yield busy
    yield with_malleable(busy, 1)
    yield with_evolving(busy, 2)
    yield evolving_window(1)


def digest(plan: Plan) -> str:
    """Return a fingerprint of all starts, ends and nodes of a plan, and of its waiting room."""
    rows = [
        (
            job.id,
            [
                (part.start, part.end, [(one.node, one.chunk, one.count) for one in part.allocation])
                for part in job.segments
            ],
        )
        for job in plan.jobs
    ]
    waiting = [(job.id, str(job.reason)) for job in plan.waiting_room]
    return sha256(json.dumps([rows, waiting]).encode()).hexdigest()[:16]


def digests(engine: str) -> list[str]:
    """Return the fingerprints of an engine's plans; of a window that it does not plan, the word ``unsupported``."""
    found = []
    for window in windows():
        try:
            found.append(digest(solve(window, engine=engine, budget=0)))
        except UnsupportedError:
            found.append("unsupported")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_plans_are_those_that_were_recorded(engine: str) -> None:
    """Each engine plans each window as it did when the plans were recorded."""
    assert digests(engine) == json.loads(RECORDED.read_text())[engine]


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({engine: digests(engine) for engine in ENGINES}, indent=1) + "\n")
