"""Checkpoints: the state of a simulation as a file, from which it can be resumed later."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cpsched.errors import DocumentError, Fault
from cpsched.lab.sim.checkpoint_checks import check_sizes, wrong_arrays
from cpsched.lab.sim.world import SimWorld
from cpsched.writing import whole_file

#: Changes whenever the arrays of `SimWorld` mean something else.
_FORMAT = "cpsched-checkpoint/5"

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

    Raises `DocumentError` if the file to resume from cannot be read, or is of another workload, scheduler or version of
    cpsched.

    `checkpoint`: where to, and how often.
    `world`: at its beginning; where the simulation is resumed, it is set to what the file says.
    `seconds`: of the decisions so far, as they are noted; where the simulation is resumed, those of the file are put
      here.
    """

    def __init__(self, checkpoint: Checkpoint, world: SimWorld, seconds: list[float]) -> None:
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
        with whole_file(self._path) as unfinished, unfinished.open("wb") as stream:
            np.savez(stream, **self._arrays())
        self._written = time.perf_counter()

    def _arrays(self) -> dict[str, Any]:
        arrays = {
            "identity": np.array(json.dumps(self._identity)),
            "seconds": np.array(self._seconds, dtype=np.float64),
            "elapsed": np.array(self.elapsed),
            **dict(self._changing()),
        }
        return {**arrays, "digest": np.array(_digest_of(arrays))}

    def _changing(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the arrays of the world by the names that they have in the file."""
        for room, arrays in (("state", self._world.state), ("machine", self._world.machine)):
            for name, array in arrays._asdict().items():
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
    """Return a digest of named arrays."""
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
