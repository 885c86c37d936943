"""Checkpoints that are forged, and simulations that look at their progress often enough to be interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from cpsched.lab.sim import rule_choice
from cpsched.lab.sim.checkpoint import _digest_of

__all__ = ["forged", "looking_often", "written"]


def written(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def forged(arrays: Mapping[str, Any], path: Path) -> None:
    """Write a checkpoint with a digest that is right for these arrays."""
    arrays = {name: array for name, array in arrays.items() if name != "digest"}
    with path.open("wb") as stream:
        np.savez(stream, **{**arrays, "digest": np.array(_digest_of(arrays))})


@contextmanager
def looking_often(portion: int) -> Iterator[None]:
    """Let the event loop look at its progress and at the clock after so many events."""
    with patch.object(rule_choice, "_PORTION", portion):
        yield
