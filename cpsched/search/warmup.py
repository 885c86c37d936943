"""Compiling the search's kernels ahead of time."""

from dataclasses import replace

import numpy as np

from cpsched.domain import Instance, Job
from cpsched.planner import warmup_window
from cpsched.problem import Machine
from cpsched.search.chain import Chain
from cpsched.search.counted import CountedChain
from cpsched.search.genetic import Breeding
from cpsched.search.skeletons import Skeletons


def warm_up_search() -> None:
    """Compile the kernels of the search for rigid jobs, or load them if they are compiled already."""
    instance, waiting = _window()
    _planned(Chain(instance, waiting, seed=0)).run(1, 1.0)
    CountedChain(instance, waiting, Machine.of(instance), seed=0).run(1, 1.0)


def warm_up_breeding() -> None:
    """Compile the search's kernels for projects, whose jobs wait for each other, or load them."""
    instance, waiting = _window()
    Breeding(_planned(Chain(instance, waiting, seed=0)), [], seed=0).run(250)
    ones = np.ones(2, dtype=np.int64)
    Skeletons(ones, ones, ones, 1, seed=0).run(1)


def warm_up_changing_search() -> None:
    """Compile the search's kernels for jobs that change while they run, or load them."""
    instance, waiting = _window()
    jobs = [replace(job, steps=job.steps * 2) for job in waiting]
    _planned(Chain(instance, jobs, seed=0, changing=True)).run(1, 1.0)


def _window() -> tuple[Instance, list[Job]]:
    """Return a small window, and the jobs that wait in it."""
    instance = warmup_window()
    return instance, [job for job in instance.elements() if job.running is None]


def _planned(chain: Chain) -> Chain:
    """Return a chain with a plan that is a list, and then adopted."""
    chain.plan_list(np.arange(len(chain.ledger.jobs), dtype=np.float64))
    chain.adopt(chain.best())
    return chain
