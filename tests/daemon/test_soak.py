"""A soak: a thousand cycles in the world in memory, without growth of memory or of open files."""

from __future__ import annotations

import gc
import random
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.domain import NodeState
from cpsched.site.bridge import JobState
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, site
from tests.daemon.making import LIVE, daemon_on
from tests.sizes import LARGE

CYCLES = 1000 if LARGE else 120
#: Bytes by which what is reachable may grow between two looks that are half of all cycles apart.
MOST_GROWTH = 400_000
#: And of open files: other tests' threads in this process open and close some.
MOST_FILES = 10


def open_files() -> int:
    """Return the number of open file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.slow
def test_a_thousand_cycles_grow_nothing(tmp_path: Path) -> None:
    """Jobs come and go, nodes fail and return: after any number of cycles the daemon holds what it held before."""
    rng = random.Random(0)
    there = PlayedWorld(site(nodes="n[1-4]"), gate_is_closed=True, remember=100)
    daemon, lines = daemon_on(there, tmp_path, replace(LIVE, keep_days=1, snapshot_every=600))
    taken: list[tuple[int, int]] = []
    tracemalloc.start()
    try:
        for cycle in range(CYCLES):
            if rng.random() < 0.7:
                name, shape = f"j{cycle}", rng.choice(["ncpus=4", "ncpus=2", "2:ncpus=3"])
                entry = job(name, shape, walltime=rng.randint(10, 60), submit=there.now, runtime=rng.randint(5, 50))
                there.submit(site(entry).jobs[0])
            if rng.random() < 0.05:
                there.set_node(f"n{rng.randint(1, 4)}", rng.choice([NodeState.UP, NodeState.DOWN, NodeState.DRAIN]))
            if cycle % 50 == 0:
                for node in ("n1", "n2", "n3", "n4"):
                    there.set_node(node, NodeState.UP)
            waiting = [name for name, one in there.jobs.items() if one.state is JobState.WAITING]
            for name in waiting[8:]:
                there.cancel(name)
            assert daemon.cycle()
            there.advance(there.now + 10)
            lines.clear()
            if cycle in (CYCLES // 2 - 1, CYCLES - 1):
                gc.collect()
                taken.append((tracemalloc.get_traced_memory()[0], open_files()))
    finally:
        tracemalloc.stop()
    (half, files_at_half), (whole, files) = taken
    assert whole - half < MOST_GROWTH, f"{half} bytes after {CYCLES // 2} cycles, {whole} after {CYCLES}"
    grown = files - files_at_half
    assert grown < MOST_FILES, f"{files_at_half} open files after {CYCLES // 2} cycles, {grown} more after {CYCLES}"
    assert len(daemon.store.cycles()) == CYCLES
    assert not daemon.state.plan.keys() - there.jobs.keys()
