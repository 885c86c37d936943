"""Real windows and the shipped ones: every plan is verified, and every job is accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpsched.formats import instance_to_document, plan_to_document, read_instance
from cpsched.portfolio import solve
from cpsched.verify import verify
from tests.sizes import some

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
SHIPPED = sorted((ROOT / "instances").glob("*.json*"))
REAL = sorted(path for folder in ("eurora", "snapshots") for path in (DATA / folder).glob("*.json*"))


def assert_plans(path: Path) -> None:
    """Plan a window; the judge finds no fault with it."""
    instance = read_instance(path)
    plan = solve(instance, engine="planner")
    seen = {job.id for job in plan.jobs} | {job.id for job in plan.waiting_room}
    assert seen == {job.id for job in instance.elements()}
    assert plan.objective.value >= plan.objective.suffered >= 0
    assert not verify(instance_to_document(instance), plan_to_document(plan))


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_windows(path: Path) -> None:
    """Each window that the repository ships plans and verifies."""
    assert_plans(path)


def test_windows_are_shipped() -> None:
    """There are shipped windows, tiny and Eurora-like ones."""
    assert len(SHIPPED) >= 10


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason=f"the real windows are not here ({DATA})")
@pytest.mark.parametrize("path", some(REAL, 3), ids=lambda path: path.name)
def test_real_windows(path: Path) -> None:
    """Each window of the Eurora cluster and each queue snapshot of a real machine plans and verifies."""
    assert_plans(path)
