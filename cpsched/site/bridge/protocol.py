"""`ResourceManager`: what cpsched asks of the software that really starts jobs, and the values that pass between them.

A manager is asked for a `Snapshot`, and given orders. Its clock is its own: whole seconds from a second 0 that never
changes, so that the times of two snapshots, and of a plan made in between, can be compared. Jobs of arrays occur one
by one, each with its own id.

*Steered* is a waiting job that the manager's own scheduler leaves alone: it starts by an order only. All other waiting
jobs are in the hands of the manager's own scheduler.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from cpsched.domain import Instance, Placement
from cpsched.errors import Fault

State = TypeVar("State")


def by_word(words: Mapping[State, str]) -> dict[str, State]:
    """Return the state that each word of a manager means. `words`: those of each state, with blanks between them."""
    return {word: state for state, listed in words.items() for word in listed.split()}


def digest_of(asked: object) -> str:
    """Return a short text that is another one where a job asks for something else (see `JobFacts.revision`)."""
    return hashlib.blake2b(repr(asked).encode(), digest_size=8).hexdigest()


class JobState(StrEnum):
    """The state of a job as its manager has it, in our words."""

    WAITING = "waiting"
    #: Its user or an administrator holds it: nobody may start it.
    HELD = "held"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    #: It was ended at its walltime.
    TIMED_OUT = "timed_out"
    #: A node of it failed, and it was not queued again.
    NODE_FAILED = "node_failed"

    def __init__(self, word: str) -> None:
        #: Whether a job in this state never runs again.
        self.is_over = word not in ("waiting", "held", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What the manager knows of one job, besides what the instance says."""

    state: JobState
    #: Changes whenever what a plan rests on changes: the request, the walltime, another start after a failure. Opaque.
    revision: str
    #: How often the job was queued again after it had started.
    restarts: int = 0
    #: Whether the manager's own scheduler leaves the waiting job alone.
    is_steered: bool = False
    #: The place of the waiting job among others that the manager's own scheduler looks at, greatest first; 0: it is
    #: not known, or was set by hand and is not to be changed.
    priority: int = 0
    #: The place that it has by the manager's own rules, whatever was ordered; 0: it is not known.
    own_priority: int = 0
    #: Whether others than this cpsched have set that place lately: it is not to be changed for now.
    is_foreign: bool = False
    #: The same text for all waiting tasks of an array that have one priority; empty: the job has one of its own.
    batch: str = ""
    #: The second at which the manager starts the waiting job by an order that it has; None: it has none.
    due: int | None = None
    #: The second from which on the manager's own scheduler has the steered job, unless it is held again before; None:
    #: there is none, or it starts by the order that its manager has.
    until: int | None = None
    #: Whether there is something on the job, of orders, that handing it back takes away.
    is_marked: bool = False
    #: The forecast that its note says: the likely start, and that by which it starts with 80 %; None: it says none.
    noted: tuple[int, int | None] | None = None
    #: Whether a forecast may be noted on the waiting job: nobody else writes there.
    may_note: bool = False
    #: The nodes of that order, or those on which the job runs or ran, in ascending order.
    nodes: tuple[str, ...] = ()
    #: Whether its run is over or was stopped, and its nodes are not free yet.
    is_leaving: bool = False
    #: When the job started, of one that runs or is over; None also where it was cancelled as it waited.
    start: int | None = None
    #: When the job ended, of one that is over.
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftJob:
    """A waiting job that stays the manager's, since the instance cannot say what it asks for, or since it is held."""

    id: str
    #: In words; never empty.
    reason: str
    #: Whether its own scheduler is to start it, since the instance cannot say what it asks for; a job that is held, or
    #: waits for another one, nobody is to start.
    is_for_manager: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The cluster and its jobs at one moment, as the manager reported them."""

    #: The cluster, the rules, the running jobs, and the waiting jobs that may be planned; its `now` is `taken_at`.
    instance: Instance
    #: The other waiting jobs.
    left: tuple[LeftJob, ...]
    #: Seconds on the manager's clock.
    taken_at: int
    #: By id: all jobs that wait or run, and those that ended lately, as far back as the manager remembers them.
    jobs: Mapping[str, JobFacts]
    #: Whether jobs submitted from now on are steered; None where the manager cannot say.
    gate_is_closed: bool | None = None
    #: What else was left out or is not as the manager said it: nodes, reservations, licences, each with the reason.
    notes: tuple[Fault, ...] = ()
    #: Another cpsched that steers these jobs, in words; empty: there is none.
    rival: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start a waiting job at a second on exactly these nodes; it is steered from then on.

    In place of an order to start that the manager has for this job already. It starts as soon as these nodes are free.
    """

    job: str
    #: At this second, or at once if it has passed.
    at: int
    allocation: tuple[Placement, ...]
    #: Of the job as it was planned: a job that has changed since is not started.
    revision: str
    #: By which of its alternatives, from 1 on; 0: by its own request.
    alternative: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Steer a waiting job: it starts by another order only. An order to start that the manager has is withdrawn."""

    job: str
    #: From this second on the manager's own scheduler has the job again, if it hears nothing before.
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Stop a running job for a more urgent one: it waits again, and its work is lost."""

    job: str
    #: The job for which it is stopped.
    urgent: str
    #: Of the run that is planned to be stopped, with its nodes in ascending order: no other run is.
    revision: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A waiting job, with all of its batch, has the place of this priority for the manager's own scheduler."""

    job: str
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """Show the users when and where a waiting job is going to start, as far as the manager can show it."""

    job: str
    #: The planned second.
    start: int
    #: In ascending order.
    nodes: tuple[str, ...]
    #: One line.
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Show the users when a waiting job will start most likely, in place of what was noted before."""

    job: str
    #: The likely start, and the second by which it starts with 80 %; None: nothing is noted.
    forecast: tuple[int, int | None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBack:
    """Give a waiting job back to the manager's own scheduler, free of all that other orders did to it."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Close the gate, so that jobs submitted from now on are steered; or open it, and they are the manager's own."""

    #: At this second it opens by itself, unless it is closed again before; None: it opens now.
    until: int | None

    @property
    def is_closed(self) -> bool:
        """Whether it is to be closed."""
        return self.until is not None


JobOrder = Start | Hold | Requeue | Rank | Announce | Note | HandBack
Order = JobOrder | Gate


class Result(StrEnum):
    """The result of an order."""

    DONE = "done"
    #: All was as ordered before.
    ALREADY = "already"
    REFUSED = "refused"
    #: The manager did not answer: the next snapshot tells.
    UNKNOWN = "unknown"


class Refusal(StrEnum):
    """Why an order was refused."""

    #: The job is over, or the manager does not know it.
    GONE = "gone"
    #: It runs: somebody else has started it.
    RUNNING = "running"
    HELD = "held"
    #: It is not what it was when it was planned.
    CHANGED = "changed"
    #: A node is unknown, or may not be used.
    NODES = "nodes"
    #: The job cannot be on these nodes with what it asks for.
    IMPOSSIBLE = "impossible"
    #: cpsched may not do this.
    FORBIDDEN = "forbidden"
    #: This manager has no such thing.
    UNSUPPORTED = "unsupported"
    #: For a reason that the manager gives in words of its own.
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The manager's answer to one order."""

    order: Order
    result: Result
    #: Of a refused order.
    refusal: Refusal | None = None
    #: What the manager said, in words.
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one thing that cpsched needs."""

    what: str
    is_fine: bool
    #: What it is, and if it is not fine what to do.
    said: str


class ResourceManager(Protocol):
    """Software that starts jobs. All its methods can be called again after an error: they are idempotent."""

    #: As the configuration names it.
    name: str

    def snapshot(self) -> Snapshot:
        """Take a snapshot.

        Raises `BridgeError` if the manager does not answer, or answers what cannot be understood.
        """

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Carry out orders, and return a receipt for each, in their order.

        What happens to one order does not hinder the others. An order that is carried out already is done again
        without harm, and so is one whose receipt was lost.

        Raises `BridgeError` if it is not known what became of any of them: the next snapshot tells.
        """

    def watch(self, seconds: float) -> bool:
        """Wait until something may have changed, for at most some seconds, and tell whether it has.

        A manager that cannot tell waits for as long, or less, and returns False.
        """
