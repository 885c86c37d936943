"""The windows that benches plan: real ones where they are present, else those that the repository ships."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cpsched.domain import Plan

__all__ = ["REAL", "ROOT", "changeable", "eurora_windows", "shipped"]

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "data"


def shipped() -> list[Path]:
    """Return the windows of the repository, smallest first."""
    return sorted((ROOT / "instances").glob("eurora-like-*.json.gz"))


def eurora_windows(*, quick: bool) -> Sequence[Path]:
    """Return the real Eurora windows of 100 jobs and more where they are present, else those shipped."""
    real = [path for path in sorted((REAL / "eurora").glob("window-*.json.gz")) if "window-0050" not in path.name]
    return shipped()[:1] if quick else real or shipped()


def changeable(plan: Plan) -> float:
    """Return Z: the part of a plan's value that a plan can change."""
    return plan.objective.value - plan.objective.suffered
