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
from cpsched.lab.sim.load import Load
from cpsched.lab.sim.world import SimWorld

#: Arrays of the state that no event changes.
_CONSTANT = (
    "demand", "cores", "links_of", "links", "after_of", "after", "user", "outages", "out", "steps", "smith", "latest",
    "start_at", "aside_times", "aside_columns", "aside_of", "aside_of_sums", "whole", "classes", "promised",
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
    load, clock = world.load, s.clock.tolist()
    jobs, pool = len(load.jobs), clock[C.POOL]
    queue = s.queue[: clock[C.QUEUED]]
    yield "queue", _within(queue, 0, jobs - 1) and len(np.unique(queue)) == len(queue)
    running = s.ends[: clock[C.RUNNING], 1]
    yield "ends", _within(running, 0, jobs - 1) and len(np.unique(running)) == len(running)
    heap = s.heap[: clock[C.HEAP]]
    yield (
        "heap",
        (
            _within(heap[:, 0], clock[C.NOW], 2**62)
            and bool((heap[(np.arange(1, len(heap)) - 1) // 2, 0] <= heap[1:, 0]).all())  # no event before its parent
            and _within(heap[:, 1], arrays.ENDED, arrays.RELEASED)
            and _within(heap[:, 2], 0, jobs - 1)
        ),
    )
    entries = s.pool[:pool]
    yield (
        "pool",
        (
            _within(entries[:, 0], 0, len(load.columns.node_names) - 1)
            and _within(entries[:, 1], 0, len(world.tables.kinds) - 1)
            and _within(entries[:, 2], 0, 2**31 - 1)
        ),
    )
    yield (
        "runs",
        (
            _within(s.runs[:, R.ENDING], arrays.WAITING, arrays.KILLED)
            and _within(s.runs[:, R.STARTS], 0, 2**62)
            and _are_parts(s.runs[:, R.FIRST], s.runs[:, R.COUNT], pool)
        ),
    )
    attempts = s.attempts[: clock[C.ATTEMPTS]]
    yield "attempts", _within(attempts[:, 0], 0, jobs - 1) and _are_parts(attempts[:, 3], attempts[:, 4], pool)
    yield "fixed", _are_parts(s.fixed[:, 0], s.fixed[:, 1], clock[C.FIXED])
    yield "fixed_columns", _within(s.fixed_columns[: clock[C.FIXED]], 0, len(world.machine.free) - 1)
    changes = s.changes[: clock[C.CHANGES]]
    changing = np.array(sorted(load.job_modes), dtype=np.int64)
    yield "changes", bool(np.isin(changes[:, 0], changing).all()) and _within(changes[:, 2], 0, clock[C.MODES])
    yield "modes", _within(s.modes[: clock[C.MODES]], 0, _most_modes(load) - 1)
    yield "bumps", _within(s.bumps, 0, 2**62)
    yield "awaited", _within(s.awaited, 0, len(s.after))
    yield "missing", _within(s.missing, 0, len(s.links))
    yield "history", _within(s.history, 0, 2**62)
    yield "down", _within(s.down, 0, len(s.outages))
    yield "arrived", _within(s.arrived, 0, jobs)
    yield "turns", _within(s.turns[: clock[C.COME]], 0, jobs - 1)
    replayed = np.append(s.replay_queue[: clock[C.REPLAY_QUEUED]], s.replay_ends[: clock[C.REPLAY_RUNNING], 1])
    is_once = len(np.unique(replayed)) == len(replayed) <= clock[C.TURN]
    for name in ("replay_queue", "replay_ends"):
        yield name, is_once and _within(replayed, 0, jobs - 1) and len(getattr(s, name)) == jobs
    yield "gone", _within(s.gone, 0, jobs)
    yield "expired", _within(s.expired, 0, jobs)
    yield "learnt", bool((s.learnt >= 0).all())
    for name, is_good in _reserved(world, s):
        yield name, is_good
    for name in ("cores", "predicted", "smith", "keys"):
        yield name, not np.isnan(getattr(s, name)).any()
    yield "jobs", np.array_equal(s.jobs[:, [J.SUBMIT, J.ARRIVAL, J.ENDING]],
        world.state.jobs[:, [J.SUBMIT, J.ARRIVAL, J.ENDING]])  # fmt: skip


def _reserved(world: SimWorld, s: arrays.SimState) -> Iterator[tuple[str, bool]]:
    """Yield the same for the arrays of reservations."""
    reserved, columns = s.reserved[: s.clock[C.BLOCKED]], len(world.machine.free)
    for name in ("reserved", "reserved_columns", "reserved_amounts", "beside", "ahead"):
        yield name, getattr(s, name).shape == getattr(world.state, name).shape
    yield "step_sums", len(s.step_sums) == len(s.step_times)
    yield (
        "reserved",
        _within(reserved[:, V.JOB], 0, len(world.load.jobs) - 1)
        and _within(reserved[:, V.START], 0, 2**62)
        and _within(reserved[:, V.END], 0, 2**62)
        and _are_parts(reserved[:, V.FIRST], reserved[:, V.COUNT], len(s.reserved_columns)),
    )
    yield "reserved_columns", _within(s.reserved_columns, 0, columns - 1)


def _most_modes(load: Load) -> int:
    """Return the largest number of modes that a job has."""
    return max((len(job_modes.modes) for job_modes in load.job_modes.values()), default=1)


def _within(numbers: NDArray[Any], least: int, most: int) -> bool:
    """Return whether all numbers lie within bounds."""
    return not len(numbers) or bool(numbers.min() >= least and numbers.max() <= most)


def _are_parts(first: NDArray[Any], count: NDArray[Any], length: int) -> bool:
    """Return whether all ranges lie within an array of so many entries."""
    return _within(first, 0, length) and _within(count, 0, length) and _within(first + count, 0, length)
