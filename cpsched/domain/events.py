"""What happens between two plans: the events after which a window is planned again (OCCS-34, 36, 39, 45, 48)."""

from dataclasses import dataclass
from typing import Any

from cpsched.domain.cluster import NodeState
from cpsched.domain.frozen import Amounts, FrozenMap
from cpsched.domain.job import Step
from cpsched.domain.rules import Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """Something happens to a job, or to an array or one of its elements."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(JobEvent):
    """A running job has ended, before its walltime."""

    #: None: not known, so that each job that waits for its success or failure may start.
    is_success: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelled(JobEvent):
    """A job, an array or one of its elements is not wanted any more, whether it runs or waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAltered(JobEvent):
    """A waiting job asks for something else (renegotiation) (OCCS-48)."""

    #: The fields of `Job` that change, with their new values.
    changes: FrozenMap[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobExtended(JobEvent):
    """A running job asks for a later end."""

    #: Positive.
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationFailed(JobEvent):
    """A job that should have started could not, maybe because of some of its nodes: these are down (OCCS-38)."""

    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesChanged:
    """Nodes have another state."""

    nodes: tuple[str, ...]
    state: NodeState


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityChanged:
    """Nodes have other amounts of some resources, or the cluster has of some licences (OCCS-45)."""

    nodes: tuple[str, ...] = ()
    resources: Amounts = Amounts()
    licenses: Amounts = Amounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationMade:
    """A slice of the cluster is to be set aside."""

    reservation: Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationDropped:
    """A reservation is not wanted any more."""

    reservation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange(JobEvent):
    """A new profile of a running evolving job from now on, in place of the promised one."""

    #: At least one. The first is the one it is in: what it holds, and for how many more seconds.
    steps: tuple[Step, ...]


WindowEvent = (
    JobEnded
    | JobCancelled
    | JobAltered
    | JobExtended
    | AllocationFailed
    | NodesChanged
    | CapacityChanged
    | ReservationMade
    | ReservationDropped
    | ProfileChange
)
