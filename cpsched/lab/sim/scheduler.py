"""The joint: what a scheduler is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cpsched.domain import Instance, Placement, Segment
    from cpsched.lab.sim.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The events since the last call of the scheduler; jobs by their index in the load."""

    now: int
    #: The jobs that have arrived.
    arrived: Sequence[int]
    #: The jobs that have ended, or were cut short and wait again.
    gone: Sequence[int]
    #: The jobs that have left the queue since they can no longer meet their deadlines.
    expired: Sequence[int] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A waiting job that starts now."""

    job: int
    #: int32 (·, 3): rows of (node, kind, chunks), as a `Fit` of the timeline has them.
    entries: NDArray[Any]
    #: int8 (·,): in which of its modes (`cpsched.domain.modes`) it runs on each entry; None: at full share.
    modes: NDArray[Any] | None = None
    #: Of an evolving job: what it holds in each of its steps, from when to when, each until the next one begins. What
    #: later steps hold is decided when they begin; until then it may be empty.
    segments: tuple[Segment, ...] | None = None
    #: Of a job with alternatives: by which of its choices it runs, by its index in `Job.choices`; None: by the first
    #: that could start on the empty machine.
    choice: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A running malleable job that continues on other shares of its cores from now on."""

    job: int
    #: int8 (·,): in which of its modes it runs on each of the entries that it has had since its start.
    modes: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class NextStep:
    """A running evolving job whose next step begins now, as its start has told."""

    job: int
    allocation: tuple[Placement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """A running evolving job whose next steps begin at other seconds than before."""

    job: int
    #: The step in which it is, and all after it, as a `Start` has them; what they hold is not stated.
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The jobs that start now, and the latest time of the scheduler's next call (None: at the next event).

    Running jobs change in this order, before the others start; steps of evolving jobs begin together, after these.
    A running job that is resizable continues, in the order of `starts`, by the choice and on the nodes of its entry.
    Where jobs are stopped, the scheduler is asked again in the same second.
    """

    #: Running evolving jobs that end as if a node of theirs had failed: no nodes are left for their next steps.
    stops: Sequence[int] = ()
    courses: Sequence[Course] = ()
    starts: Sequence[Start] = ()
    changes: Sequence[Change] = ()
    steps: Sequence[NextStep] = ()
    wake: int | None = None


@runtime_checkable
class Preparing(Protocol):
    """A scheduler that says itself which jobs may be stopped for others, and how; of these, small ones first."""

    def prepared(self, instance: Instance) -> Instance:
        """Return a workload with these stops; the same object where each job is stopped as it says itself."""


@runtime_checkable
class Scheduler(Protocol):
    """A scheduler that plays a part in a simulation. It never sees runtimes, nor outages to come.

    One that has ``counters`` counts what it does beside starting jobs: how often it has done what, since it began.
    """

    #: As users name it on the command line.
    name: str

    def begin(self, site: Site) -> None:
        """Prepare for a simulation, and forget all earlier ones. The site has the jobs that run and wait already."""

    def decide(self, site: Site, news: News) -> Decision:
        """Decide which jobs start now. The queue is not empty, or a job runs that is not at full share."""
