"""The parameters of Maui: one frozen dataclass that checks itself, made of smaller ones (MAUI-1 to MAUI-9).

Names of kinds of credentials are those of the documents: an account is a job's ``project``, a class its ``queue``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from cpsched.arguments import plain_argument
from cpsched.domain import FrozenMap

_HOUR = 3600


class Credential(StrEnum):
    """By what a job is known; each has a weight, and may have priorities and fairshare targets."""

    USER = "user"
    GROUP = "group"
    ACCOUNT = "account"
    QUEUE = "queue"
    QOS = "qos"


class Exemption(StrEnum):
    """From which policy the jobs of a quality of service are exempt (MAUI-6)."""

    #: They get a reservation, however many have one.
    DEPTH = "depth"
    #: They may take the nodes that are kept for short jobs.
    SHORTPOOL = "shortpool"
    #: They cost nothing.
    BANK = "bank"
    #: Past usage does not change their priority.
    FAIRSHARE = "fairshare"


def _require(condition: bool, what: str, got: object) -> None:
    if not condition:
        raise ValueError(f"Expected {what}, got {got}")


def _require_words(kinds: Iterable[object], words: type[StrEnum], what: str) -> None:
    known = [str(word) for word in words]
    for kind in kinds:
        _require(kind in known, f"{what} of {', '.join(known)}", repr(kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of a unit of each component of a job's priority (MAUI-4), times the weight of its group in Maui."""

    #: The priorities of its credentials, and of its quality of service.
    user: float = 0
    group: float = 0
    account: float = 0
    queue: float = 0
    qos: float = 0
    #: Each percent that its credentials are below their fairshare targets (MAUI-5).
    fairshare_user: float = 0
    fairshare_group: float = 0
    fairshare_account: float = 0
    fairshare_queue: float = 0
    fairshare_qos: float = 0
    #: Its request: chunks that may have nodes of their own, cores, MiB, core seconds, seconds.
    nodes: float = 0
    processors: float = 0
    memory: float = 0
    processor_seconds: float = 0
    walltime: float = 0
    #: The minutes that it has waited, its expansion factor, and the number of jobs that bypassed it.
    queue_time: float = 1
    xfactor: float = 0
    bypass: float = 0
    #: Its nearness to the targets of its quality of service, from 1 to 10,000.
    target_queue_time: float = 0
    target_xfactor: float = 0


@dataclass(frozen=True, slots=True)
class Target:
    """A share of the past usage that shall be had, in percent (MAUI-5)."""

    percent: float
    #: What follows the number. Without it usage beside the target counts in either direction; ``+``: usage under it
    #: raises the priority, usage over it does nothing; ``-``: usage over it lowers the priority, no other counts.
    mark: str

    @classmethod
    def of(cls, text: str | float) -> "Target":
        """Parse a target: ``25``, ``25+`` or ``25-``. Raises `ValueError` if the text is not a target from 0 to 100."""
        number = str(text).rstrip("+-")
        mark = str(text)[len(number) :]
        try:
            target = cls(float(number), mark)
        except ValueError:
            target = cls(-1, mark)
        is_good = 0 <= target.percent <= 100 and mark in ("", "+", "-")
        _require(is_good, "a fairshare target like 25, 25+ or 25-", repr(text))
        return target

    def distance(self, usage: float) -> float:
        """Return how many percent the usage is under the target, as far as that counts."""
        under = self.percent - usage
        if self.mark == "+":
            return max(under, 0.0)
        return min(under, 0.0) if self.mark == "-" else under


@dataclass(frozen=True, slots=True, kw_only=True)
class Fairshare:
    """How past usage (core seconds of what has run) is looked at (MAUI-5); the defaults are those of Maui's manual."""

    #: Seconds of a window, and of how many windows usage counts.
    interval: int = 24 * _HOUR
    depth: int = 7
    #: The weight of a window relative to the next younger one.
    decay: float = 1.0
    #: By kinds of credentials, and by their names: ``25``, ``25+`` (floor) or ``25-`` (ceiling), in percent.
    targets: FrozenMap[str, FrozenMap[str, str | float]] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        _require(self.interval > 0 and self.depth > 0, "windows of fairshare", f"{self.depth} of {self.interval} s")
        _require(0 < self.decay <= 1, "a decay of fairshare in (0, 1]", self.decay)
        _require_words(self.targets, Credential, "fairshare targets")
        for targets in self.targets.values():
            for text in targets.values():
                Target.of(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """A quality of service (MAUI-6), and the users, groups and accounts that have it, in this order of precedence."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    priority: float = 0
    #: Targets that its jobs should stay below: an expansion factor, and seconds of waiting. None: no target.
    target_xfactor: float | None = None
    target_queue_time: int | None = None
    #: The price of a core second.
    billing_rate: float = 1.0
    exempt: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require(self.billing_rate >= 0, "a billing rate of 0 or more", self.billing_rate)
        _require(self.target_xfactor is None or self.target_xfactor > 1, "a target over 1", self.target_xfactor)
        _require(self.target_queue_time is None or self.target_queue_time > 0, "a target > 0", self.target_queue_time)
        _require_words(self.exempt, Exemption, "exemptions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Downtime:
    """Nodes on which nothing shall run in ``[start, end)`` (MAUI-8)."""

    start: int
    end: int
    #: Names; None: all nodes.
    nodes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _require(self.start < self.end, "a downtime that begins before its end", f"[{self.start}, {self.end})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortPool:
    """Nodes that are kept for short jobs in working hours, Mondays to Fridays (MAUI-7)."""

    nodes: int
    #: Times of the day, by the workload's clock.
    begin_hour: int = 8
    end_hour: int = 18
    #: Jobs that ask for more seconds are held off.
    longest: int = 2 * _HOUR
    #: A busy node counts if it is predicted to be idle within this many seconds.
    lookahead: int = 2 * _HOUR

    def __post_init__(self) -> None:
        _require(self.nodes > 0, "nodes of the short pool > 0", self.nodes)
        hours = f"{self.begin_hour} to {self.end_hour}"
        _require(0 <= self.begin_hour < self.end_hour <= 24, "hours of a day, the first before the last", hours)
        _require(self.longest > 0 and self.lookahead >= 0, "longest > 0 and lookahead >= 0", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credits:
    """The users' credit in the allocation bank (MAUI-9), in core hours."""

    users: FrozenMap[str, float] = field(default_factory=FrozenMap)
    #: The credit of each other user; None: they are not charged, like jobs without user.
    others: float | None = None

    def __post_init__(self) -> None:
        for credit in (*self.users.values(), self.others or 0.0):
            _require(credit >= 0, "credits of 0 or more", credit)


@dataclass(frozen=True, slots=True, kw_only=True)
class MauiParams:
    """All that can be set.

    Raises `ValueError` if something is out of range, or two qualities of service claim the same name.
    """

    #: The number of waiting jobs with a reservation (MAUI-2); 0: every job that fits starts.
    reservation_depth: int = 1
    #: Whether jobs start before others of higher priority.
    backfill: bool = True
    weights: Weights = Weights()
    #: By kinds of credentials, and by their names.
    priorities: FrozenMap[str, FrozenMap[str, float]] = field(default_factory=FrozenMap)
    fairshare: Fairshare = Fairshare()
    #: By their names.
    qos: FrozenMap[str, Qos] = field(default_factory=FrozenMap)
    downtimes: tuple[Downtime, ...] = ()
    shortpool: ShortPool | None = None
    bank: Credits | None = None

    def __post_init__(self) -> None:
        _require(self.reservation_depth >= 0, "a reservation_depth of 0 or more", self.reservation_depth)
        _require_words(self.priorities, Credential, "priorities")
        _require(Credential.QOS not in self.priorities, "the priority of a qos in qos", "it in priorities")
        for kind in ("users", "groups", "accounts"):
            names = [name for qos in self.qos.values() for name in getattr(qos, kind)]
            twice = sorted({name for name in names if names.count(name) > 1})
            _require(not twice, f"one qos for each of the {kind}", f"several for {', '.join(twice)}")


def made(hint: Any, value: object, name: str) -> Any:
    """Return a parameter of a type, made of nested tables and lists as in TOML; objects that are of it are kept.

    Raises `ValueError` if a name is unknown or missing, or something is of another kind, or out of range.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType and NoneType in inner:
        return None if value is None else made(inner[0], value, name)
    if is_dataclass(hint) and isinstance(hint, type) and not isinstance(value, hint):
        _require(isinstance(value, Mapping), f"a table for {hint.__name__}", repr(value))
        known = {one.name: one for one in fields(hint)}
        table, hints = dict(cast(Mapping[str, object], value)), get_type_hints(hint)
        unknown = [key for key in table if key not in known]
        _require(not unknown, f"some of {', '.join(known)} in a table for {hint.__name__}", ", ".join(unknown))
        needed = [key for key, one in known.items() if one.default is MISSING and one.default_factory is MISSING]
        missing = [key for key in needed if key not in table]
        _require(not missing, f"{', '.join(missing)} in a table for {hint.__name__}", repr(table))
        return hint(**{key: made(hints[key], one, key) for key, one in table.items()})
    if origin is FrozenMap:
        _require(isinstance(value, Mapping), f"a table of names in {name}", repr(value))
        return FrozenMap({key: made(inner[1], one, name) for key, one in cast(Mapping[str, object], value).items()})
    if origin is tuple:
        _require(isinstance(value, list | tuple), f"a list in {name}", repr(value))
        return tuple(made(inner[0], one, name) for one in cast(Sequence[object], value))
    return plain_argument(value, hint, name=name)
