"""What a checkpoint must be like before kernels, which check nothing, work on it: sizes, indices and counters."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.sim import arrays
from cpsched.lab.sim.arrays import C, J, R, V
from cpsched.lab.sim.world import SimWorld

#: More than any second or number.
_MOST = 2**62
#: Arrays of the state that no event changes.
_CONSTANT = (
    "choices_of", "choices", "links_of", "links", "after_of", "after", "user", "outages", "out", "steps", "smith",
    "latest", "start_at", "aside_times", "aside_columns", "aside_of", "aside_of_sums", "whole", "classes", "promised",
)  # fmt: skip


def check_sizes(file: IO[bytes]) -> None:
    """Check that each array of an archive is as large as it says, and that none takes more memory than the file.

    Raises `ValueError` if that is not so, or a member is no array; `zipfile.BadZipFile` if the file is no archive.
    """
    whole = file.seek(0, 2)
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > whole:
            raise ValueError("arrays that are larger than the file")
        if len({member.filename for member in members}) < len(members):
            raise ValueError("an array twice")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError("arrays that are packed")
            with archive.open(member) as stream:
                if np.lib.format.read_magic(stream) != (1, 0):
                    raise ValueError("arrays in another version of the format")
                shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
                if dtype.hasobject or math.prod(shape) * dtype.itemsize != member.file_size - stream.tell():
                    raise ValueError("an array that is not as large as it says")
    file.seek(0)


def wrong_arrays(world: SimWorld, state: arrays.SimState, machine: arrays.Machine) -> list[str]:
    """Return the names of the arrays that a simulation of this workload cannot have, in their order, each once.

    `world`: at its beginning. `state`, `machine`: what a checkpoint says, in arrays of the right types, and at least as
    long as those of the beginning.
    """
    wrong = [
        f"state.{name}" for name in _CONSTANT if not np.array_equal(getattr(state, name), getattr(world.state, name))
    ]
    if not _has_good_counters(world, state):
        return ["state.clock", *wrong]
    wrong += [f"state.{name}" for name, is_good in _checked(world, state) if not is_good]
    wrong += [
        f"machine.{name}"
        for name, found in machine._asdict().items()
        if len(found) != len(getattr(world.machine, name))
    ]
    return list(dict.fromkeys(wrong))


def _has_good_counters(world: SimWorld, s: arrays.SimState) -> bool:
    """Return whether each counter lies within the array that it counts."""
    jobs = len(world.load.jobs)
    clock = s.clock.tolist()
    counted = {
        C.SUBMITTED: jobs,
        C.QUEUED: jobs,
        C.RUNNING: jobs,
        C.DONE: jobs,
        C.HEAP: len(s.heap),
        C.POOL: len(s.pool),
        C.OUTAGE: len(s.outages),
        C.ATTEMPTS: len(s.attempts),
        C.GONE: len(s.gone),
        C.EXPIRED: len(s.expired),
        C.CHANGES: len(s.changes),
        C.MODES: len(s.modes),
        C.FIXED: len(s.fixed_columns),
        C.IS_FULL: 1,
        C.LACKS: 1,
        C.OVERTAKING: jobs,
        C.LEVEL: max(0, len(s.aside_times) - 1),
        C.BLOCKED: len(s.reserved),
        C.STEPS: len(s.step_times),
        C.COME: jobs,
        C.TURN: clock[C.COME],
        C.REPLAY_QUEUED: jobs,
        C.REPLAY_RUNNING: jobs,
    }
    of_jobs = (C.HEAD, C.RESERVED, C.RESUME)
    return (
        clock[C.SPARE] == world.state.clock[C.SPARE]
        and all(0 <= clock[counter] <= most for counter, most in counted.items())
        and all(-1 <= clock[counter] < jobs for counter in of_jobs)
        and clock[C.PASSES] >= 0
        and clock[C.STAMP] >= 0
        and clock[C.BOOKINGS] >= 0
        and clock[C.NOW] >= world.now
        and len(s.fixed_columns) == len(s.fixed_amounts)
    )


def _checked(world: SimWorld, s: arrays.SimState) -> Iterator[tuple[str, bool]]:
    """Yield the name of each array that holds indices or numbers of something, and whether all of them are good."""
    load, clock, columns = world.load, s.clock.tolist(), len(world.machine.free)
    jobs, last = len(load.jobs), len(load.jobs) - 1
    queue, running, heap = s.queue[: clock[C.QUEUED]], s.ends[: clock[C.RUNNING], 1], s.heap[: clock[C.HEAP]]
    pool, attempts = s.pool[: clock[C.POOL]], s.attempts[: clock[C.ATTEMPTS]]
    changes, reserved = s.changes[: clock[C.CHANGES]], s.reserved[: clock[C.BLOCKED]]
    replayed = np.append(s.replay_queue[: clock[C.REPLAY_QUEUED]], s.replay_ends[: clock[C.REPLAY_RUNNING], 1])
    bounds: list[tuple[str, NDArray[Any], float, float]] = [
        ("queue", queue, 0, last),
        ("ends", running, 0, last),
        ("heap", heap[:, 0], clock[C.NOW], _MOST),
        ("heap", heap[:, 1], arrays.ENDED, arrays.RELEASED),
        ("heap", heap[:, 2], 0, last),
        ("pool", pool[:, 0], 0, len(load.columns.node_names) - 1),
        ("pool", pool[:, 1], 0, len(world.tables.kinds) - 1),
        ("pool", pool[:, 2], 0, 2**31 - 1),
        ("runs", s.runs[:, R.ENDING], arrays.WAITING, arrays.KILLED),
        ("runs", s.runs[:, R.STARTS], 0, _MOST),
        ("attempts", attempts[:, 0], 0, last),
        ("fixed_columns", s.fixed_columns[: clock[C.FIXED]], 0, columns - 1),
        ("changes", changes[:, 2], 0, clock[C.MODES]),
        (
            "modes",
            s.modes[: clock[C.MODES]],
            0,
            max((len(one.modes) for one in load.job_modes.values()), default=1) - 1,
        ),
        ("bumps", s.bumps, 0, _MOST),
        ("awaited", s.awaited, 0, len(s.after)),
        ("missing", s.missing, 0, len(s.links)),
        ("history", s.history, 0, _MOST),
        ("down", s.down, 0, len(s.outages)),
        ("arrived", s.arrived, 0, jobs),
        ("turns", s.turns[: clock[C.COME]], 0, last),
        ("replay_queue", replayed, 0, last),
        ("replay_ends", replayed, 0, last),
        ("gone", s.gone, 0, jobs),
        ("expired", s.expired, 0, jobs),
        ("learnt", s.learnt, 0, np.inf),
        ("reserved", reserved[:, V.JOB], 0, last),
        ("reserved", reserved[:, V.START : V.END + 1], 0, _MOST),
        ("reserved_columns", s.reserved_columns, 0, columns - 1),
    ]
    yield from ((name, _within(numbers, least, most)) for name, numbers, least, most in bounds)
    for name, ranges, length in (
        ("runs", s.runs[:, R.FIRST : R.COUNT + 1], clock[C.POOL]),
        ("attempts", attempts[:, 3:], clock[C.POOL]),
        ("fixed", s.fixed, clock[C.FIXED]),
        ("reserved", reserved[:, V.FIRST : V.COUNT + 1], len(s.reserved_columns)),
    ):
        yield name, _within(ranges, 0, length) and _within(ranges.sum(axis=1), 0, length)
    for name, numbers in (("queue", queue), ("ends", running), ("replay_queue", replayed), ("replay_ends", replayed)):
        yield name, len(np.unique(numbers)) == len(numbers)
    parents = heap[(np.arange(1, len(heap)) - 1) // 2, 0]
    yield "heap", bool((parents <= heap[1:, 0]).all())  # no event before its parent
    changing = np.array(sorted(load.job_modes), dtype=np.int64)
    yield "changes", bool(np.isin(changes[:, 0], changing).all())
    for name in ("replay_queue", "replay_ends"):
        yield name, len(replayed) <= clock[C.TURN] and len(getattr(s, name)) == jobs
    for name in ("reserved", "reserved_columns", "reserved_amounts", "beside", "ahead"):
        yield name, getattr(s, name).shape == getattr(world.state, name).shape
    yield "step_sums", len(s.step_sums) == len(s.step_times)
    for name in ("cores", "predicted", "smith", "keys", "learnt"):
        yield name, not np.isnan(getattr(s, name)).any()
    chosen = np.flatnonzero(np.diff(s.choices_of))
    is_one = s.choices[:, 4] == np.repeat(s.choice[chosen], np.diff(s.choices_of)[chosen])
    taken = s.choices[is_one]
    is_good = len(taken) == len(chosen)
    yield "choice", is_good and np.array_equal(np.delete(s.choice, chosen), np.delete(world.state.choice, chosen))
    for name, column in (("demand", 0), ("cores", 3)):
        numbers = getattr(world.state, name).copy()
        if is_good:
            numbers[chosen] = taken[:, column]
        yield name, np.array_equal(getattr(s, name), numbers)
    same = [J.SUBMIT, J.ARRIVAL, J.ENDING]
    yield "jobs", np.array_equal(s.jobs[:, same], world.state.jobs[:, same])


def _within(numbers: NDArray[Any], least: float, most: float) -> bool:
    """Return whether all numbers lie within bounds."""
    return not numbers.size or bool(numbers.min() >= least and numbers.max() <= most)
