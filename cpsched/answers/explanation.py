"""What an answer says: why a job does not start earlier, which jobs it waits for, and what would change it."""

from dataclasses import dataclass
from enum import StrEnum

from cpsched.domain import WaitingReason


class CauseKind(StrEnum):
    """The kinds of causes for which a job cannot start at a second, in the order in which they are looked for."""

    #: The job's own times: `now`, its submission, `not_before`, `start_at`, `deadline`.
    TIME = "time"
    #: A job that it waits for.
    DEPENDENCY = "dependency"
    #: A rule of the site that leaves too little even if no job ran: a reservation, a downtime, a calendar.
    RULE = "rule"
    #: Nodes that are free keep it out: ``admits`` or ``keep_free``.
    GUARD = "guard"
    #: Too little of a limit is left by the jobs of the same consumer.
    LIMIT = "limit"
    #: Too little is left by the other jobs that are not let into a free pool.
    FREE_POOL = "free_pool"
    #: Too few licences are left by other jobs.
    LICENSE = "license"
    #: Other jobs hold the resources at that second.
    RESOURCE = "resource"
    #: It could start, but would hold resources when other jobs, which are planned for later, get them.
    PROMISE = "promise"
    #: Nothing: the job could start then, beside all others.
    NOTHING = "nothing"


class ChangeKind(StrEnum):
    """A change to a job or to the machine with which the job would start earlier."""

    CHUNKS = "chunks"
    CORES = "cores"
    WALLTIME = "walltime"
    LICENSE = "license"
    DEPENDENCY = "dependency"
    TIME = "time"
    PLACE = "place"
    PROPERTY = "property"
    NODES = "nodes"
    ALTERNATIVE = "alternative"


class JobState(StrEnum):
    """The states that a job can have in a plan."""

    RUNNING = "running"
    PLANNED = "planned"
    WAITING_ROOM = "waiting_room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Another job of the plan, and until when it is in the way."""

    job: str
    user: str | None
    is_running: bool
    #: When it starts and ends in the plan; None: it has no start.
    start: int | None
    end: int | None
    #: Its nodes that the job would get if all holders were gone; empty where no nodes are in question.
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause for which a job cannot start, and the interval in which it holds."""

    kind: CauseKind
    #: In one sentence without names of jobs.
    detail: str
    #: The resources, and licences, of which too little is free.
    resources: tuple[str, ...] = ()
    #: The nodes in question: those that the job would get without the cause.
    nodes: tuple[str, ...] = ()
    #: The place of the rule in the instance, ``limits[3]``; None: it is no rule.
    rule: str | None = None
    #: Without these jobs the job could start; beside any one of them it cannot. Those that end first come first.
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """The seconds ``[start, end)`` at each of which a job cannot start for the same cause."""

    start: int
    end: int
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a job with which it could start earlier, beside all other jobs as they are planned."""

    kind: ChangeKind
    #: In words: ``with 5 of its 8 chunks``.
    detail: str
    #: The second at which it could then start.
    start: int
    #: The number of chunks, cores, seconds or licences with which it could; None: the change is none of a number.
    amount: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """Why a job starts when a plan says, and not earlier."""

    job: str
    state: JobState
    #: In the plan; None in the waiting room.
    start: int | None
    end: int | None
    #: Of the waiting room.
    reason: WaitingReason | None = None
    detail: str | None = None
    #: How an evolving or malleable job was looked for; None: as the one block that it is.
    form: str | None = None
    #: In order of time, up to the planned start; unless it `is_whole`, seconds are left out.
    blocked: tuple[Blocked, ...] = ()
    is_whole: bool = True
    #: The first second at which the job could start beside all others; None: there is none.
    free_start: int | None = None
    changes: tuple[Change, ...] = ()

    def __repr__(self) -> str:
        start = "without a start" if self.start is None else f"starts at {self.start} s"
        causes = ", ".join(dict.fromkeys(blocked.cause.kind for blocked in self.blocked))
        return f"<Explanation of {self.job!r}: {self.state}, {start}{causes and ', not earlier: '}{causes}>"
