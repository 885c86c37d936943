"""Checkpoints: the state of a simulation as a file, from which it can be resumed later.

Kernels check nothing. A file is resumed from if its digest is right: then it is as it was written.
"""

import hashlib
import json
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cpsched.errors import DocumentError, Fault
from cpsched.lab.sim.world import SimWorld
from cpsched.writing import whole_file

#: Changes whenever the arrays of `SimWorld` mean something else.
_FORMAT = "cpsched-checkpoint/7"


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
        """Set the world to what the file says, once it is known to be as it was written: kernels trust it."""
        found = self._read()
        self._check_identity(found)
        digest = found.pop("digest", None)
        if digest is None or str(digest) != _digest_of(found):
            self._refuse("Expected a checkpoint as it was written, got one that was damaged or changed")
        world = self._world
        state = world.state._replace(**{name: found[f"state.{name}"] for name in world.state._fields})
        machine = world.machine._replace(**{name: found[f"machine.{name}"] for name in world.machine._fields})
        world.state, world.machine = state, machine
        world.mend()
        self._seconds.extend(found["seconds"].tolist())
        self._began -= float(found["elapsed"])

    def _check_identity(self, found: Mapping[str, NDArray[Any]]) -> None:
        """Refuse the checkpoint of another workload, scheduler or version."""
        try:
            identity = json.loads(str(found["identity"]))
        except (KeyError, ValueError, RecursionError):
            identity = None
        if not isinstance(identity, dict):
            self._refuse("Expected a checkpoint of a simulation")
        for what, ours in self._identity.items():
            theirs = identity.get(what)
            if theirs != ours:
                self._refuse(f"Expected a checkpoint of this {what}, {ours}, got one of {str(theirs)[:100]}")

    def _read(self) -> dict[str, NDArray[Any]]:
        if self._path.exists() and not self._path.is_file():
            self._refuse("Expected a checkpoint that can be read, got: no regular file")
        try:
            with self._path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (
            AttributeError,
            OSError,
            TypeError,
            ValueError,
            EOFError,
            NotImplementedError,
            zipfile.BadZipFile,
        ) as error:
            self._refuse(f"Expected a checkpoint that can be read, got: {error}")

    def _refuse(self, message: str) -> NoReturn:
        raise DocumentError(str(self._path), [Fault("", message)]) from None


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
