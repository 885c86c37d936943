"""A simulation as one file, for reports: the outcome of each job, the scheduler's own times, and the machine.

The file is a NumPy archive (``.npz``): ``about`` is JSON in UTF-8 with texts and names, all other members are columns
of integers with an entry per job, and ``decision_seconds``. It holds no pickled objects, and none is read.
"""

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from cpsched.errors import DocumentError, Fault
from cpsched.metrics.runs import Ending, Runs
from cpsched.metrics.summary import RunsSummary, runs_summary
from cpsched.writing import whole_file

_FORMAT = "cpsched-run/1"
#: The columns of `Runs` that are integers.
_COLUMNS = [one.name for one in fields(Runs) if one.name not in ("ids", "users", "groups", "queues", "asked")]
#: The columns of `Runs` with names, of which each is stored once.
_NAMED = ("users", "groups", "queues")
#: The members of ``about`` and their types.
_ABOUT: Mapping[str, type[Any]] = {
    "workload": str,
    "policy": str,
    "capacity": dict,
    "ids": list,
    "names": dict,
    "asked": list,
    "elapsed": (int, float),  # type: ignore[dict-item]  # what isinstance takes
    "is_whole": bool,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedRun:
    """A simulation: what a report shows of it."""

    workload: str
    #: The policy with its parameters.
    policy: str
    #: The machine's amount of each resource and licence, > 0.
    capacity: Mapping[str, int]
    runs: Runs
    #: Seconds of each decision; for a compiled rule, the means of some thousand passes.
    decision_seconds: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    #: Seconds that the simulation took, and whether it was not interrupted.
    elapsed: float = 0.0
    is_whole: bool = True
    #: Second 0 on the calendar, and the site's time zone; None where they are not known.
    epoch: datetime | None = None
    time_zone: str | None = None
    #: Which rule a choice of rules used when, and why, a sentence each.
    remarks: tuple[str, ...] = ()

    def summary(
        self, *, warm_up: float = 0.0, cool_down: float = 0.0, only: NDArray[np.bool_] | None = None
    ) -> RunsSummary:
        """Return the figures of the simulation, or of the jobs that count; without cores there is no utilisation."""
        return runs_summary(
            self.runs,
            max(1, self.capacity.get("cores", 0)),
            resources={name: amount for name, amount in self.capacity.items() if name in self.runs.asked},
            warm_up=warm_up,
            cool_down=cool_down,
            only=only,
            decision_seconds=self.decision_seconds,
        )

    def local_time(self, time: float) -> datetime | None:
        """Return a second of the clock as the site's clocks show it; None without an epoch, or beyond all dates."""
        if self.epoch is None:
            return None
        try:
            moment = self.epoch + timedelta(seconds=time)
            return moment if self.time_zone is None else moment.astimezone(ZoneInfo(self.time_zone))
        except OverflowError:
            return None


def write_run(path: str | Path, run: SimulatedRun) -> None:
    """Write a simulation; the file is never left half-written.

    Raises `DiskFullError` or `DocumentError` if the file cannot be written.
    """
    runs = run.runs
    # Any: older numpy has no option for objects, and would store it as an array
    columns: dict[str, Any] = {name: np.asarray(getattr(runs, name)) for name in _COLUMNS}
    names: dict[str, list[str | None]] = {}
    for column in _NAMED:
        numbers: dict[str | None, int] = {}
        columns[column] = np.array([numbers.setdefault(name, len(numbers)) for name in getattr(runs, column)], np.int64)
        names[column] = list(numbers)
    columns |= {f"asked_{number}": np.asarray(amounts) for number, amounts in enumerate(runs.asked.values())}
    about = {
        "format": _FORMAT,
        "workload": run.workload,
        "policy": run.policy,
        "capacity": dict(run.capacity),
        "epoch": None if run.epoch is None else run.epoch.isoformat(),
        "time_zone": run.time_zone,
        "elapsed": run.elapsed,
        "is_whole": run.is_whole,
        "remarks": list(run.remarks),
        "ids": list(runs.ids),
        "names": names,
        "asked": list(runs.asked),
    }
    columns["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    columns["decision_seconds"] = np.asarray(run.decision_seconds, dtype=np.float64)
    with whole_file(path) as unfinished, unfinished.open("wb") as stream:
        np.savez_compressed(stream, **columns)


def read_run(path: str | Path) -> SimulatedRun:
    """Read what `write_run` has written. Raises `DocumentError` if it is no such file."""
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as members:
            columns = {name: members[name] for name in members.files}
        about = json.loads(columns["about"].tobytes())
    except OSError as error:
        raise _refusal(path, f"a readable file, got: {error.strerror or error}") from error
    except (AttributeError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise _refusal(path, f"a simulation of the format {_FORMAT}, got: {error}") from error
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        found = about.get("format") if isinstance(about, dict) else about
        raise _refusal(path, f"a simulation of the format {_FORMAT}, got: {found!r}")
    wrong = [
        f"{key}, got {about.get(key)!r:.60}" for key, kind in _ABOUT.items() if not isinstance(about.get(key), kind)
    ]
    if wrong:
        raise _refusal(path, f"a value of its kind for {'; '.join(wrong)}")
    try:
        return _run_of(about, columns)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise _refusal(path, f"columns of one length that belong together, got: {error}") from error


def _run_of(about: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> SimulatedRun:
    """Return the simulation; a member that is missing or does not belong is an error of Python's."""
    numbers: dict[str, Any] = {name: columns[name].astype(np.int64, casting="safe") for name in _COLUMNS}
    if not np.isin(numbers["ending"], list(Ending)).all():
        raise ValueError("an ending that does not exist")
    numbers["ending"] = numbers["ending"].astype(np.int8)
    named: dict[str, Any] = {
        column: tuple(about["names"][column][number] for number in columns[column].tolist()) for column in _NAMED
    }
    if wrong := {name for of_jobs in named.values() for name in of_jobs if not isinstance(name, str | None)}:
        raise TypeError(f"expected names, got {wrong}")
    asked = {
        str(name): columns[f"asked_{number}"].astype(np.int64, casting="safe")
        for number, name in enumerate(about["asked"])
    }
    epoch = about.get("epoch")
    return SimulatedRun(
        workload=about["workload"],
        policy=about["policy"],
        capacity={str(name): int(amount) for name, amount in about["capacity"].items() if int(amount) > 0},
        runs=Runs(ids=tuple(map(str, about["ids"])), asked=asked, **named, **numbers),
        decision_seconds=columns["decision_seconds"].astype(np.float64, casting="safe"),
        elapsed=float(about["elapsed"]),
        is_whole=about["is_whole"],
        epoch=None if epoch is None else datetime.fromisoformat(epoch),
        time_zone=None if (zone := about.get("time_zone")) is None else ZoneInfo(zone).key,
        remarks=tuple(map(str, about.get("remarks", ()))),
    )


def _refusal(path: str | Path, expected: str) -> DocumentError:
    return DocumentError(str(path), [Fault("", f"Expected {expected}")])
