"""A job of a resource manager's log of any kind."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from cpsched.domain import Amounts, Chunk, Dependency, DependencyType, Request
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import shown

_DEPENDENCIES = tuple(DependencyType)

#: The value of a property that a node just has: a feature of Slurm, a node property of Torque.
FEATURE = "yes"


class LogKind(StrEnum):
    """The logs that are read here."""

    SWF = "log in Standard Workload Format"
    TORQUE = "Torque accounting"
    SBATCH = "sbatch events"
    SACCT = "accounting of Slurm or Alibaba"
    BATSIM = "workload of Batsim"
    ELASTISIM = "jobs of ElastiSim"


class LogAnomaly(StrEnum):
    """The anomalies of jobs of a log, in words."""

    DELETED = "left out: deleted before it started, and nothing says what it asked for"
    NOT_STARTED = "left out: not started when the log ends, and nothing says what it asked for"
    CANCELLED = "left out: cancelled before it started"
    PART = "left out: a part of a job"
    TWICE = "left out: its id occurs twice"
    NO_SIZE = "left out: no size"
    NO_WALLTIME = "left out: no walltime"
    NO_RUNTIME = "left out: no run time"
    BEYOND = "left out: beyond the bounds of a document"
    RAN_AGAIN = "ran several times: the last run is taken"
    WALLTIME_IS_RUNTIME = "requested time unknown: the run time is its walltime"
    RUNTIME_UNKNOWN = "run time unknown: runtime is left out"
    RUNTIME_IS_ZERO = "run time 0: its runtime is 1 s"
    RUNS_TO_THE_LIMIT = "run time below 0, which is without end: its walltime is its runtime"
    SIZE_IS_WHAT_IT_GOT = "nothing says what it asked for: what it got is its size"
    VIRTUAL_MEMORY = "memory not requested: the virtual memory is"
    NO_MEMORY = "memory not requested: none is booked"
    ON_ONE_NODE = "number of nodes not requested, but amounts per node: all on one node"
    NOT_SIMULATED = "something that it asked for is not simulated: done without"
    WAITS = "waits for its preceding job (fields 17 and 18)"
    OUT_OF_ORDER = "submitted before the job above: sorted in"
    NO_CALENDAR = "when the log began is not understood: the instance has no epoch"
    TOO_LARGE = "larger than the machine: it can never run"


#: Something odd, and in words about this very job.
Note = tuple[LogAnomaly, str]


class NotTaken(Exception):  # noqa: N818 - control flow, never seen outside
    """A job cannot be taken: what is odd, and why in words."""

    def __init__(self, anomaly: LogAnomaly, message: str) -> None:
        self.anomaly = anomaly
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The amounts that a job held on one node."""

    node: str
    cores: int
    #: One more than the highest slot that it was given there; 0 where slots have no numbers.
    slots: int = 0
    #: What it held besides; None: not known.
    others: Amounts | None = None


class LogJob(NamedTuple):
    """One job; times in seconds on the log's own clock, None is unknown."""

    id: str
    #: The line of the file, from 1.
    line: int
    submit: int
    request: Request
    walltime: int | None
    runtime: int | None
    #: The time from which on it was eligible to start.
    eligible: int | None = None
    start: int | None = None
    user: str | None = None
    group: str | None = None
    project: str | None = None
    queue: str | None = None
    partition: str | None = None
    #: As in field 11 of the Standard Workload Format: 0 failed, 1 completed, 5 cancelled.
    status: int | None = None
    after: tuple[Dependency, ...] = ()
    #: The nodes on which it ran; empty if the log does not state them.
    allocation: tuple[Held, ...] = ()
    #: Smaller requests that do as well, and how many times its walltime it takes by each.
    smaller: tuple[tuple[Request, float], ...] = ()
    #: Whether it may change between them while it runs.
    is_resizable: bool = False
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JobLog:
    """A log as it was read."""

    #: The file it came from.
    source: str
    #: The kind of log.
    kind: LogKind
    #: In the order of the lines.
    jobs: tuple[LogJob, ...]
    #: The lines without a job; the path is ``line N``.
    faults: tuple[Fault, ...]
    #: Jobs of the log with too little information: the anomaly, and its place.
    left_out: tuple[tuple[LogAnomaly, Fault], ...] = ()
    #: Whether second 0 of the log's clock is that of 1970.
    has_unix_times: bool = False
    #: The number of nodes of one core that the machine has, where the log says so.
    hosts: int | None = None

    def __repr__(self) -> str:
        return f"<JobLog of {self.source!r}: {len(self.jobs)} jobs, {len(self.faults)} lines without a job>"


def on_hosts(number: int) -> Request:
    """Return a request for so many nodes of one core."""
    return Request(chunks=(Chunk(count=number, resources=Amounts({"cores": 1})),))


def log_of(
    path: str | Path, kind: LogKind, jobs: Iterable[LogJob], faults: Sequence[Fault], *, expected: str, **others: Any
) -> JobLog:
    """Return a log. Raises `DocumentError` if it has no job; `expected`: what was."""
    taken = tuple(jobs)
    if not taken:
        raise DocumentError(str(path), [Fault("", f"Expected {expected}, got none"), *faults[:5]])
    return JobLog(source=str(path), kind=kind, jobs=taken, faults=tuple(faults), **others)


def read_dependencies(
    text: str | None, notes: list[Note], id_of: Callable[[str], str] = str, *, is_whole: bool = False
) -> tuple[Dependency, ...]:
    """``dependencies := TYPE ':' ID (':' ID)* (',' …)*``, all of them; what no job can wait for is done without.

    `id_of`: the job of an id. `is_whole`: whether ids are numbers, of which there is at least one.
    """
    found: list[Dependency] = []
    for part in text.split(",") if text else ():
        kind, *ids = part.split(":")
        if kind in _DEPENDENCIES and (not is_whole or (ids and all(map(str.isdecimal, ids)))):
            found.extend(Dependency(job=id_of(job), type=DependencyType(kind)) for job in ids if job)
        else:
            notes.append((LogAnomaly.NOT_SIMULATED, f"waits for {shown(part)}: done without"))
    return tuple(found)
