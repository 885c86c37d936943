"""Checkpoints that are forged, and simulations that look at their progress often enough to be interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np

from cpsched.lab.sim import rule_choice

__all__ = ["looking_often", "written"]


def written(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


@contextmanager
def looking_often(portion: int) -> Iterator[None]:
    """Let the event loop look at its progress and at the clock after so many events."""
    with patch.object(rule_choice, "_PORTION", portion):
        yield
