"""The site's rules: queues, limits, free pools, reservations and the times at which they hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from cpsched.domain.frozen import Amounts
from cpsched.domain.job import Placement
from cpsched.domain.request import Request

__all__ = [
    "Access",
    "AreaScope",
    "Consumer",
    "ConsumerKind",
    "FreePool",
    "ItemBound",
    "Limit",
    "MaxWait",
    "Queue",
    "Reservation",
    "ReservationKind",
    "Usage",
    "Validity",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxWait:
    """The longest wait of a queue's jobs, against starvation: each second beyond it has a price of its own."""

    #: Seconds from submission to the latest start that costs nothing more, positive.
    seconds: int
    #: Added to the objective for each expected wait (s) beyond it, at least 0.
    price: float = 10
    #: Whether a job that can still start in time must do so; a job that is overdue already has only the price.
    is_hard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue, and the wait that its users expect (BRIDI-3)."""

    #: Seconds, positive: the weight of a second of waiting is its inverse.
    expected_wait: int
    priority: int = 0
    #: The factor of its jobs' terms in the objective, positive.
    weight: float = 1
    #: The longest walltime (s) that the queue accepts, or None.
    max_walltime: int | None = None
    #: Against starvation, or None.
    max_wait: MaxWait | None = None
    #: Names of the nodes on which its jobs may run; None: all nodes.
    nodes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """The times at which a rule holds: always by default; in ``[from_, until)``; in the minutes that `cron` matches."""

    from_: int | None = None
    until: int | None = None
    cron: str | None = None


class ConsumerKind(StrEnum):
    """Whether a rule is about users or about groups."""

    USER = "user"
    GROUP = "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A user or a group; without `name`, each of them separately."""

    kind: ConsumerKind
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBound:
    """An amount ``min/max%``: the larger of `least` and `percent` of what is available (OCCS-15)."""

    least: int | None = None
    percent: Fraction | None = None

    def of(self, available: int) -> int:
        """Return the amount when `available` is up; percent round down."""
        percent = self.percent
        share = 0 if percent is None else percent.numerator * available // (100 * percent.denominator)
        return max(self.least or 0, share)


class AreaScope(StrEnum):
    """The jobs' areas that an area limit adds up."""

    REQUEST = "request"
    OUTSTANDING = "outstanding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit on a consumer's use of a resource: at a time, in duration, and in area (amount times time; OCCS-15)."""

    consumer: Consumer
    #: A countable resource, a licence, ``jobs``, ``arrayjobs``, or ``*``.
    resource: str
    items: ItemBound | None = None
    duration: int | None = None
    area: int | None = None
    area_scope: AreaScope = AreaScope.REQUEST
    validity: Validity = Validity()
    soft: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The jobs to which a free pool is open (OCCS-16)."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    asks_for: tuple[str, ...] = ()
    #: Job totals; together with `max_walltime` it admits a job that meets both.
    max: Amounts | None = None
    max_walltime: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FreePool:
    """The amount that all jobs without access must leave free together (OCCS-16)."""

    resource: str
    items: ItemBound
    open_to: Access
    validity: Validity = Validity()
    #: Names of the pool's nodes; None: the whole cluster.
    nodes: tuple[str, ...] | None = None
    #: Seconds: jobs without access may use the pool up to this walltime.
    otherwise_max_walltime: int | None = None


class ReservationKind(StrEnum):
    """The purpose of a reservation."""

    USERS = "users"
    DOWNTIME = "downtime"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A slice of the cluster, set aside for a time or for recurring times (OCCS-42, MAUI-8).

    It has `start` and `end`, or `validity`; a `request`, or `nodes`.
    """

    id: str
    start: int | None = None
    end: int | None = None
    #: The times of a recurring one, with a cron expression: each interval is an occurrence.
    validity: Validity | None = None
    #: What it asks for as a job does.
    request: Request | None = None
    #: The names of the nodes that it has as a whole.
    nodes: tuple[str, ...] | None = None
    #: What it has got already and keeps, a recurring one in its first occurrence that has not ended; empty: nothing.
    allocation: tuple[Placement, ...] = ()
    licenses: Amounts = Amounts()
    users: tuple[str, ...] = ()
    kind: ReservationKind = ReservationKind.USERS

    @property
    def is_exclusive(self) -> bool:
        """Whether nobody else has anything on its nodes."""
        return self.request is None or self.request.place.exclusive

    @property
    def is_closure(self) -> bool:
        """Whether it is a downtime of named nodes, which is had whatever runs there: nothing new does."""
        return self.kind is ReservationKind.DOWNTIME and self.nodes is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The area (resource x seconds) that a consumer has used already, for area limits."""

    consumer: Consumer
    resource: str
    area: int
