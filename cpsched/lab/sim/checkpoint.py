"""Checkpoints: the state of a simulation as a file, from which it can be resumed later.

Kernels check nothing: what a file says is checked before they work on it, its sizes, indices and counters.
"""

import hashlib
import json
import math
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cpsched.errors import DocumentError, Fault
from cpsched.lab.sim import arrays
from cpsched.lab.sim.arrays import C, J, R, V
from cpsched.lab.sim.world import SimWorld
from cpsched.writing import whole_file

#: More than any second or number.
_MOST = 2**62
#: Arrays of the state that no event changes.
_CONSTANT = (
    "choices_of", "choices", "links_of", "links", "after_of", "after", "user", "outages", "out", "steps", "smith",
    "latest", "start_at", "aside_times", "aside_columns", "aside_of", "aside_of_sums", "whole", "classes", "promised",
    "stops", "stop_rules", "may_stop", "of_rules", "stop_weights", "stop_prices", "stoppable",
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

    `world`: at its beginning. `state`, `machine`: what a checkpoint says, in arrays of the right types and lengths.
    """
    wrong = [
        f"state.{name}" for name in _CONSTANT if not np.array_equal(getattr(state, name), getattr(world.state, name))
    ]
    state = state._replace(**{name: getattr(world.state, name) for name in _CONSTANT})  # others count by these
    if not _has_good_counters(world, state):
        return ["state.clock", *wrong]
    wrong += [f"state.{name}" for name, is_good in _checked(world, state) if not is_good]
    wrong += [
        f"machine.{name}"
        for name, found in machine._asdict().items()
        if len(found) != len(getattr(world.machine, name))
    ]
    return list(dict.fromkeys(wrong))


def _has_good_counters(world: SimWorld, state: arrays.SimState) -> bool:
    """Return whether each counter lies within the array that it counts."""
    jobs = len(world.load.jobs)
    clock = state.clock.tolist()
    counted = {
        C.SUBMITTED: jobs,
        C.QUEUED: jobs,
        C.RUNNING: jobs,
        C.DONE: jobs,
        C.HEAP: len(state.heap),
        C.POOL: len(state.pool),
        C.OUTAGE: len(state.outages),
        C.ATTEMPTS: len(state.attempts),
        C.GONE: len(state.gone),
        C.EXPIRED: len(state.expired),
        C.CHANGES: len(state.changes),
        C.MODES: len(state.modes),
        C.FIXED: len(state.fixed_columns),
        C.IS_FULL: 1,
        C.LACKS: 1,
        C.CHOICE: max(1, int(np.diff(state.choices_of).max(initial=1))) - 1,
        C.OVERTAKING: jobs,
        C.LEVEL: max(0, len(state.aside_times) - 1),
        C.BLOCKED: len(state.reserved),
        C.STEPS: len(state.step_times),
        C.COME: jobs,
        C.TURN: clock[C.COME],
        C.COMPARED: clock[C.COME],
        C.REPLAY_QUEUED: jobs,
        C.REPLAY_RUNNING: jobs,
        C.AS_EASY: 1,
        C.EASY_UNTIL: clock[C.NOW],
        C.EASY_SECONDS: clock[C.NOW] - world.now,
    }
    of_jobs = (C.HEAD, C.RESERVED, C.RESUME)
    return (
        clock[C.SPARE] == world.state.clock[C.SPARE]
        and all(0 <= clock[counter] <= most for counter, most in counted.items())
        and all(-1 <= clock[counter] < jobs for counter in of_jobs)
        and clock[C.PASSES] >= 0
        and clock[C.STAMP] >= 0
        and clock[C.OPENS] >= 0
        and clock[C.BOOKINGS] >= 0
        and clock[C.NOW] >= world.now
        and -1 <= clock[C.EASY_FROM] <= clock[C.NOW]
        and len(state.fixed_columns) == len(state.fixed_amounts)
    )


def _checked(world: SimWorld, state: arrays.SimState) -> Iterator[tuple[str, bool]]:
    """Yield the name of each array that holds indices or numbers of something, and whether all of them are good."""
    load, clock, columns = world.load, state.clock.tolist(), len(world.machine.free)
    jobs, last = len(load.jobs), len(load.jobs) - 1
    queue, running, heap = (
        state.queue[: clock[C.QUEUED]],
        state.ends[: clock[C.RUNNING], 1],
        state.heap[: clock[C.HEAP]],
    )
    pool, attempts = state.pool[: clock[C.POOL]], state.attempts[: clock[C.ATTEMPTS]]
    changes, reserved = state.changes[: clock[C.CHANGES]], state.reserved[: clock[C.BLOCKED]]
    replayed = np.append(state.replay_queue[: clock[C.REPLAY_QUEUED]], state.replay_ends[: clock[C.REPLAY_RUNNING], 1])
    bounds: list[tuple[str, NDArray[Any], float, float]] = [
        ("queue", queue, 0, last),
        ("ends", running, 0, last),
        ("heap", heap[:, 0], clock[C.NOW], _MOST),
        ("heap", heap[:, 1], arrays.ENDED, arrays.RELEASED),
        ("heap", heap[:, 2], 0, last),
        ("pool", pool[:, 0], 0, len(load.columns.node_names) - 1),
        ("pool", pool[:, 1], 0, len(world.tables.kinds) - 1),
        ("pool", pool[:, 2], 0, 2**31 - 1),
        ("runs", state.runs[:, R.ENDING], arrays.WAITING, arrays.KILLED),
        ("runs", state.runs[:, R.STARTS], 0, _MOST),
        ("attempts", attempts[:, 0], 0, last),
        ("fixed_columns", state.fixed_columns[: clock[C.FIXED]], 0, columns - 1),
        ("changes", changes[:, 2], 0, clock[C.MODES]),
        (
            "modes",
            state.modes[: clock[C.MODES]],
            0,
            max((len(one.modes) for one in load.job_modes.values()), default=1) - 1,
        ),
        ("jobs", state.jobs[:, J.ENDING], arrays.WAITING, arrays.KILLED),
        ("bumps", state.bumps, 0, _MOST),
        ("awaited", state.awaited, 0, len(state.after)),
        ("missing", state.missing, 0, len(state.links)),
        ("history", state.history, 0, _MOST),
        ("down", state.down, 0, len(state.outages)),
        ("arrived", state.arrived, 0, jobs),
        ("turns", state.turns[: clock[C.COME]], 0, last),
        ("replay_queue", replayed, 0, last),
        ("replay_ends", replayed, 0, last),
        ("replay_waits", state.replay_waits, -1, _MOST),
        ("compared", state.compared, 0, np.inf),
        ("replay_free", state.replay_free, 0, _MOST),
        ("gone", state.gone, 0, jobs),
        ("expired", state.expired, 0, jobs),
        ("learnt", state.learnt, 0, np.inf),
        ("reserved", reserved[:, V.JOB], 0, last),
        ("reserved", reserved[:, V.START : V.END + 1], 0, _MOST),
        ("reserved_columns", state.reserved_columns, 0, columns - 1),
    ]
    yield from ((name, _within(numbers, least, most)) for name, numbers, least, most in bounds)
    for name, ranges, length in (
        ("runs", state.runs[:, R.FIRST : R.COUNT + 1], clock[C.POOL]),
        ("attempts", attempts[:, 3:5], clock[C.POOL]),
        ("fixed", state.fixed, clock[C.FIXED]),
        ("reserved", reserved[:, V.FIRST : V.COUNT + 1], len(state.reserved_columns)),
    ):
        yield name, _within(ranges, 0, length) and _within(ranges.sum(axis=1), 0, length)
    for name, numbers in (("queue", queue), ("ends", running), ("replay_queue", replayed), ("replay_ends", replayed)):
        yield name, len(np.unique(numbers)) == len(numbers)
    parents = heap[(np.arange(1, len(heap)) - 1) // 2, 0]
    yield "heap", bool((parents <= heap[1:, 0]).all())  # no event before its parent
    changing = np.array(sorted(load.job_modes), dtype=np.int64)
    yield "changes", bool(np.isin(changes[:, 0], changing).all())
    for name in ("replay_queue", "replay_ends"):
        yield name, len(replayed) <= clock[C.TURN] and len(getattr(state, name)) == jobs
    for name in ("reserved", "reserved_columns", "reserved_amounts", "beside", "ahead"):
        yield name, getattr(state, name).shape == getattr(world.state, name).shape
    for name in ("near", "slowdown", "base", "asked"):
        yield name, np.array_equal(getattr(state, name), getattr(world.state, name))
    yield "step_sums", len(state.step_sums) == len(state.step_times)
    for name in ("cores", "predicted", "smith", "keys", "learnt"):
        yield name, not np.isnan(getattr(state, name)).any()
    chosen = np.flatnonzero(np.diff(state.choices_of))
    is_one = state.choices[:, 4] == np.repeat(state.choice[chosen], np.diff(state.choices_of)[chosen])
    taken = state.choices[is_one]
    is_good = len(taken) == len(chosen)
    yield "choice", is_good and np.array_equal(np.delete(state.choice, chosen), np.delete(world.state.choice, chosen))
    for name, column in (("demand", 0), ("cores", 3)):
        numbers = getattr(world.state, name).copy()
        if is_good:
            numbers[chosen] = taken[:, column]
        yield name, np.array_equal(getattr(state, name), numbers)
    same = [J.SUBMIT, J.ARRIVAL, *([] if len(state.slowdown) else [J.ENDING])]
    yield "jobs", np.array_equal(state.jobs[:, same], world.state.jobs[:, same])


def _within(numbers: NDArray[Any], least: float, most: float) -> bool:
    """Return whether all numbers lie within bounds."""
    return not numbers.size or bool(numbers.min() >= least and numbers.max() <= most)


#: Changes whenever the arrays of `SimWorld` mean something else.
_FORMAT = "cpsched-checkpoint/12"

#: The arrays that grow during a simulation.
_GROWING = frozenset(
    f"state.{name}"
    for name in (
        "pool", "heap", "attempts", "fixed_columns", "fixed_amounts", "changes", "modes", "step_times",
        "step_sums",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where the state of a simulation is kept, and how often.

    Raises `ValueError` if the interval is negative.
    """

    path: Path
    #: The scheduler with its parameters, in words: what others have left is refused.
    scheduler: str
    #: Seconds between two writings; 0: at each look at the clock.
    interval: float = 60.0
    #: Whether the file exists, and the simulation is resumed from it.
    resume: bool = False

    def __post_init__(self) -> None:
        if not self.interval >= 0:
            raise ValueError(f"Expected an interval of 0 or more seconds, got {self.interval}")


class Keeper:
    """Writes the state of a world at intervals; mutable.

    Raises `DocumentError` if the file to resume from cannot be read, or is of another workload, scheduler or version.

    `checkpoint`: where to, and how often.
    `world`: at its beginning; where the simulation is resumed, it is set to what the file says.
    `seconds`: of the decisions so far, as they are noted; where the simulation is resumed, those of the file are put
      here.
    """

    def __init__(self, checkpoint: Checkpoint, world: SimWorld, seconds: list[float]) -> None:
        from importlib.metadata import version  # most simulations have none

        self._path, self._interval, self._world, self._seconds = checkpoint.path, checkpoint.interval, world, seconds
        self._identity = {
            "format": _FORMAT,
            "version": version("cpsched"),
            "scheduler": checkpoint.scheduler,
            "workload": _digest(world),
        }
        self._began = time.perf_counter()
        if checkpoint.resume:
            self._restore()
        self._written = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds that the simulation has taken, with those before it was resumed."""
        return time.perf_counter() - self._began

    def look(self) -> None:
        """Write the state if it is time to."""
        if time.perf_counter() - self._written >= self._interval:
            self.write()

    def write(self) -> None:
        """Write the state, by way of a file beside it, so that there is always a whole one.

        Raises `DiskFullError`, `DocumentError` if it cannot be written.
        """
        arrays: dict[str, Any] = {
            "identity": np.array(json.dumps(self._identity)),
            "seconds": np.array(self._seconds, dtype=np.float64),
            "elapsed": np.array(self.elapsed),
            **dict(self._changing()),
        }
        with whole_file(self._path) as unfinished, unfinished.open("wb") as stream:
            np.savez(stream, **arrays, digest=np.array(_digest_of(arrays)))
        self._written = time.perf_counter()

    def _changing(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the arrays of the world by the names that they have in the file."""
        for room, bundle in (("state", self._world.state), ("machine", self._world.machine)):
            for name, array in bundle._asdict().items():
                yield f"{room}.{name}", array

    def _restore(self) -> None:
        """Set the world to what the file says, which is checked in every part: kernels trust it."""
        found = self._read()
        self._check_identity(found)
        world, seconds, elapsed = self._world, found["seconds"], found["elapsed"]
        for name, array in self._changing():
            if name not in found or not _is_alike(name, found[name], array):
                self._refuse(f"Expected an array {name} like that of this workload")
        digest = found.pop("digest", None)
        if digest is None or str(digest) != _digest_of(found):
            self._refuse("Expected a checkpoint as it was written, got one that was damaged or changed")
        if not _are_seconds(seconds, ndim=1) or not _are_seconds(elapsed, ndim=0):
            self._refuse("Expected seconds of decisions, and of the simulation, that are 0 or more")
        state = world.state._replace(**{name: found[f"state.{name}"] for name in world.state._fields})
        machine = world.machine._replace(**{name: found[f"machine.{name}"] for name in world.machine._fields})
        if wrong := wrong_arrays(world, state, machine):
            self._refuse(f"Expected arrays of a simulation of this workload, got others: {', '.join(wrong)}")
        world.state, world.machine = state, machine
        world.mend()
        self._seconds.extend(seconds.tolist())
        self._began -= float(elapsed)

    def _check_identity(self, found: Mapping[str, NDArray[Any]]) -> None:
        """Refuse the checkpoint of another workload, scheduler or version."""
        try:
            identity = json.loads(str(found["identity"]))
        except (KeyError, ValueError, RecursionError):
            identity = None
        if not isinstance(identity, dict) or not {"seconds", "elapsed"} <= found.keys():
            self._refuse("Expected a checkpoint of a simulation")
        for what, ours in self._identity.items():
            theirs = identity.get(what)
            if theirs != ours:
                self._refuse(f"Expected a checkpoint of this {what}, {ours}, got one of {str(theirs)[:100]}")

    def _read(self) -> dict[str, NDArray[Any]]:
        if self._path.exists() and not self._path.is_file():
            self._refuse("Expected a checkpoint that can be read, got: no regular file")
        try:
            with self._path.open("rb") as stream:
                check_sizes(stream)
                archive = np.load(stream, allow_pickle=False)
                return {name: archive[name] for name in archive.files}
        except (OSError, ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile) as error:
            self._refuse(f"Expected a checkpoint that can be read, got: {error}")

    def _refuse(self, message: str) -> NoReturn:
        raise DocumentError(str(self._path), [Fault("", message)]) from None


def _is_alike(name: str, found: NDArray[Any], array: NDArray[Any]) -> bool:
    """Return whether an array from the file can replace one of the state; some grow during a simulation."""
    if found.dtype != array.dtype or found.ndim != array.ndim or not found.flags.c_contiguous:
        return False
    is_long_enough = len(found) >= len(array) if name in _GROWING else len(found) == len(array)
    return found.shape[1:] == array.shape[1:] and is_long_enough


def _are_seconds(found: NDArray[Any], *, ndim: int) -> bool:
    is_good = found.dtype == np.float64 and found.ndim == ndim
    return is_good and bool((np.isfinite(found) & (found >= 0)).all())


def _digest_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    sha = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        sha.update(f"{name} {array.dtype} {array.shape}\n".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def _digest(world: SimWorld) -> str:
    """Return a digest of all that a simulation depends on: the arrays of its beginning, and what schedulers see."""
    load, instance = world.load, world.load.instance
    sha = hashlib.sha256("\n".join(load.columns.node_names).encode())
    for array in (*world.state, *world.machine, *world.tables):
        sha.update(f"{array.dtype} {array.shape}".encode())
        sha.update(array.tobytes())
    for job in load.jobs:
        seen = (job.id, job.user, job.group, job.queue, job.project, job.malleability)
        said = (instance.priority(job), instance.expected_wait(job), instance.weight(job))
        sha.update(f"{seen} {said}\n".encode())
    return sha.hexdigest()
