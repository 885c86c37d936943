"""Compiling the search's kernels ahead of time."""

from __future__ import annotations

import numpy as np

from cpsched.planner import warmup_window
from cpsched.search.chain import Chain

__all__ = ["warm_up_search"]


def warm_up_search() -> None:
    """Compile the kernels of the search, or load them if they are compiled already."""
    instance = warmup_window()
    waiting = [job for job in instance.elements() if job.running is None]
    chain = Chain(instance, waiting, seed=0)
    chain.plan_list(np.arange(len(waiting), dtype=np.float64))
    chain.run(1, 1.0)
