"""Limits per user and group, and free pools that are kept for some jobs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cpsched.verify.case import Case, Violation
from cpsched.verify.cluster import check_known, items_of, read_hosts, read_totals
from cpsched.verify.documents import MAX_AREA, Cursor
from cpsched.verify.jobs import parsed
from cpsched.verify.model import Booking, Instance, ItemBound, Job
from cpsched.verify.sweep import Use, holders, overloads
from cpsched.verify.syntax import parse_items
from cpsched.verify.validity import Clock, Validity, first_moment, read_validity

JobUse = Use[Booking]
#: The members of a job by which a rule tells whose it is.
CONSUMERS = ("user", "group")


class Consumer(NamedTuple):
    """A user or group (`kind`), or each of them where `name` is None."""

    kind: str
    name: str | None

    def subject_of(self, job: Job) -> str | None:
        """Return the user or group of the job that this speaks of, or None."""
        own = _subject(self.kind, job)
        return own if self.name in (None, own) else None


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on the use of a resource by users or groups."""

    path: str
    consumer: Consumer
    resource: str
    items: ItemBound
    duration: int | None
    area: int | None
    is_outstanding: bool
    validity: Validity
    soft: bool


@dataclass(frozen=True, slots=True)
class Access:
    """The jobs with access to a free pool."""

    users: tuple[str, ...]
    groups: tuple[str, ...]
    asks_for: tuple[str, ...]
    most: Mapping[str, int] | None
    max_walltime: int | None


@dataclass(frozen=True, slots=True)
class Pool:
    """The amount that jobs without access leave free together."""

    path: str
    resource: str
    items: ItemBound
    open_to: Access
    otherwise_max_walltime: int | None
    validity: Validity
    nodes: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Usage:
    """The area (resource x seconds) that a user or group has used."""

    consumer: Consumer
    resource: str
    area: int


#: The nouns of ``limits``.
AnyLimit = Limit


def _read_consumer(cursor: Cursor) -> Consumer:
    """Read the user or group of a rule."""
    members = cursor.members(optional=[*CONSUMERS, "each"])
    if len(members) != 1:
        cursor.refuse(f"expected one of {', '.join(CONSUMERS)} and each")
    kind, name = next(iter(members.items()))
    return Consumer(name.choice(CONSUMERS), None) if kind == "each" else Consumer(kind, name.name())


def _read_items(cursor: Cursor | None) -> ItemBound:
    """Read ``min/max%``; a limit without it bounds no items."""
    return ItemBound(None, None) if cursor is None else parsed(cursor, parse_items)


def read_limit(cursor: Cursor, resources: Collection[str], clock: Clock | None) -> AnyLimit:
    """Read a limit."""
    members = cursor.members(["consumer", "resource"], ["items", "duration", "area", "area_scope", "validity", "soft"])
    resource = members["resource"].name()
    check_known(members["resource"], resource, resources)
    if not {"items", "duration", "area"} & members.keys():
        cursor.refuse("expected items, duration or area, got no bound")
    scope = members["area_scope"].choice(["request", "outstanding"]) if "area_scope" in members else "request"
    return Limit(
        path=cursor.path,
        consumer=_read_consumer(members["consumer"]),
        resource=resource,
        items=_read_items(members.get("items")),
        duration=members["duration"].duration() if "duration" in members else None,
        area=members["area"].integer(0, MAX_AREA) if "area" in members else None,
        is_outstanding=scope == "outstanding",
        validity=read_validity(members.get("validity"), clock),
        soft=members["soft"].flag() if "soft" in members else False,
    )


def read_pool(cursor: Cursor, resources: Collection[str], nodes: Collection[str], clock: Clock | None) -> Pool:
    """Read a free pool."""
    members = cursor.members(["resource", "items"], ["open_to", "validity", "nodes", "otherwise"])
    check_known(members["resource"], members["resource"].name(), resources)
    among = frozenset(read_hosts(members["nodes"], nodes)) if "nodes" in members else None
    otherwise = members["otherwise"].members(["max_walltime"]) if "otherwise" in members else None
    return Pool(
        path=cursor.path,
        resource=members["resource"].name(),
        items=_read_items(members["items"]),
        open_to=_read_access(members.get("open_to"), resources),
        otherwise_max_walltime=None if otherwise is None else otherwise["max_walltime"].duration(),
        validity=read_validity(members.get("validity"), clock),
        nodes=among,
    )


def _read_access(cursor: Cursor | None, resources: Collection[str]) -> Access:
    """Read the jobs with access to a pool."""
    members = {} if cursor is None else cursor.members(optional=["users", "groups", "asks_for", "max", "max_walltime"])
    for item in items_of(members, "asks_for"):
        check_known(item, item.name(), resources)
    for name, amount in members["max"].entries() if "max" in members else ():
        check_known(amount, name, resources)
    return Access(
        users=members["users"].names() if "users" in members else (),
        groups=members["groups"].names() if "groups" in members else (),
        asks_for=members["asks_for"].names() if "asks_for" in members else (),
        most=read_totals(members["max"]) if "max" in members else None,
        max_walltime=members["max_walltime"].duration() if "max_walltime" in members else None,
    )


def read_usage(cursor: Cursor, resources: Collection[str]) -> Usage:
    """Read what a consumer has used up."""
    members = cursor.members(["consumer", "resource", "area"])
    consumer, resource = _read_consumer(members["consumer"]), members["resource"].name()
    if consumer.name is None:
        members["consumer"].refuse("expected a user or a group by name, got each")
    check_known(members["resource"], resource, resources)
    return Usage(consumer, resource, members["area"].integer(0, MAX_AREA))


class Bound(NamedTuple):
    """A limit applied to one user or group and one resource."""

    limit: Limit
    subject: str
    resource: str
    #: While one of these holds, the subject has a limit of its own for the resource, which overrides ``*``.
    unless: tuple[Validity, ...]

    def moment(self, start: int, end: int) -> int | None:
        """Return the first second of ``[start, end)`` at which the bound holds, or None."""
        return first_moment(self.limit.validity, self.unless, start, end)

    @property
    def consumer(self) -> str:
        """The subject of the limit, in words."""
        return f"{self.limit.consumer.kind} {self.subject}"


def _uses(booking: Booking, resource: str, nodes: frozenset[str] | None = None) -> list[JobUse]:
    """Return the amounts of a resource, licence or job count that a job takes, by segment (on `nodes` only)."""
    whole = {"jobs": 1, "arrayjobs": int(booking.job.is_array)}.get(resource, booking.job.licenses.get(resource))
    if whole is not None:
        return [Use(booking.start, booking.end, {resource: whole}, booking)] if whole else []
    uses: list[JobUse] = []
    for segment, total in zip(booking.segments, booking.totals, strict=True):
        if nodes is None:
            amount = total.get(resource, 0)
        else:
            amount = sum(one.resources.get(resource, 0) for one in segment.allocation if one.node in nodes)
        if amount:
            uses.append(Use(segment.start, segment.end, {resource: amount}, booking))
    return uses


def check_limits(case: Case) -> Iterator[Violation]:
    """No user and no group exceeds a hard limit: items at a time, duration and area of a request, outstanding area."""
    if not case.instance.limits:
        return
    for kind in CONSUMERS:
        bookings: dict[str, list[Booking]] = {}
        for booking in case.bookings:
            subject = _subject(kind, booking.job)
            if subject is not None:
                bookings.setdefault(subject, []).append(booking)
        for subject, own in bookings.items():
            yield from _check_subject(case, kind, subject, own)


def _subject(kind: str, job: Job) -> str | None:
    """Return the user or group of a job."""
    name: str | None = getattr(job, kind)
    return name


def _check_subject(case: Case, kind: str, subject: str, own: Sequence[Booking]) -> Iterator[Violation]:
    """Check the hard limits of one user or group, whose jobs are given."""
    limits = [
        limit
        for limit in case.instance.limits
        if limit.consumer.kind == kind and limit.consumer.name in (None, subject)
    ]
    by_resource: dict[str, list[JobUse]] = {}
    for bound in _bounds(case.instance, limits, subject):
        if bound.resource not in by_resource:
            by_resource[bound.resource] = [use for booking in own for use in _uses(booking, bound.resource)]
        uses = by_resource[bound.resource]
        yield from _check_items(case.instance, bound, uses)
        yield from _check_requests(bound, uses)
        yield from _check_outstanding(case, bound, uses)


def _bounds(instance: Instance, limits: Sequence[Limit], subject: str) -> Iterator[Bound]:
    """Yield the hard limits of one subject, ``*`` once for every resource."""
    for limit in limits:
        if limit.soft:
            continue
        if limit.resource != "*":
            yield Bound(limit, subject, limit.resource, ())
            continue
        for resource in instance.limited_by_star:
            own = tuple(other.validity for other in limits if other.resource == resource)
            yield Bound(limit, subject, resource, own)


def _check_items(instance: Instance, bound: Bound, uses: Sequence[JobUse]) -> Iterator[Violation]:
    """Check that the subject's jobs together take no more items at a time, wherever a planned one takes part."""
    if bound.limit.items.is_unlimited:
        return
    most = bound.limit.items.of(instance.up_amount(bound.resource))
    for excess in _excesses(uses, bound.resource, most, bound.limit.validity, bound.unless):
        message = (
            f"at {excess.moment}: {bound.consumer} has {excess.level} {bound.resource}, expected at most {most} "
            f"(last: job {excess.last.id})"
        )
        yield Violation("limit", bound.limit.path, message)
        return


class Excess(NamedTuple):
    """At a moment jobs have more of a resource than they may; not all of them run already."""

    moment: int
    level: int
    #: The last job that has some of it.
    last: Booking


def _excesses(
    uses: Sequence[JobUse], resource: str, most: int, validity: Validity, unless: Sequence[Validity] = ()
) -> Iterator[Excess]:
    """Yield when jobs together have more than `most` of a resource while a rule holds and a planned one takes part."""
    for overload in overloads(uses, {resource: most}):
        moment = first_moment(validity, unless, overload.start, overload.end)
        if moment is None:
            continue
        owners = holders(uses, resource, moment)
        if not all(owner.is_fact for owner in owners):
            yield Excess(moment, overload.level, owners[-1])


def _by_run(uses: Sequence[JobUse]) -> list[list[JobUse]]:
    """Sort uses by the run of a job that has them; the pieces of a running job are one."""
    by_run: dict[str | int, list[JobUse]] = {}
    for use in uses:
        by_run.setdefault(use.owner.id if use.owner.is_running else id(use.owner), []).append(use)
    return list(by_run.values())


def _area(uses: Sequence[JobUse], resource: str) -> int:
    """Add up resource x seconds."""
    return sum(use.amounts[resource] * (use.end - use.start) for use in uses)


def _check_requests(bound: Bound, uses: Sequence[JobUse]) -> Iterator[Violation]:
    """No planned job of the subject uses the resource for longer, or more of it times time, than one request may."""
    limit, resource = bound.limit, bound.resource
    if limit.duration is None and (limit.area is None or limit.is_outstanding):
        return
    for own in _by_run(uses):
        name = own[0].owner.id
        if own[0].owner.is_running or bound.moment(own[0].start, own[-1].end) is None:
            continue
        duration = sum(use.end - use.start for use in own)
        if limit.duration is not None and duration > limit.duration:
            message = (
                f"{bound.consumer} uses {resource} for {duration} s, expected at most {limit.duration} ({limit.path})"
            )
            yield Violation("limit", name, message)
        area = _area(own, resource)
        if limit.area is not None and not limit.is_outstanding and area > limit.area:
            message = f"{bound.consumer} asks for {area} {resource} x s, expected at most {limit.area} ({limit.path})"
            yield Violation("limit", name, message)


def _check_outstanding(case: Case, bound: Bound, uses: Sequence[JobUse]) -> Iterator[Violation]:
    """All planned and running work of the subject, and what it has used up, stay within its outstanding area."""
    limit = bound.limit
    if limit.area is None or not limit.is_outstanding:
        return
    counted = [own for own in _by_run(uses) if bound.moment(own[0].start, own[-1].end) is not None]
    used = sum(
        usage.area
        for usage in case.instance.usage
        if usage.resource == bound.resource
        and usage.consumer.kind == limit.consumer.kind
        and usage.consumer.name in (None, bound.subject)
    )
    areas = [Use(own[0].start, own[-1].end, {"area": _area(own, bound.resource)}, own[0].owner) for own in counted]
    if not case.plan.is_record:
        areas = [use._replace(start=0, end=1) for use in areas]
    for overload in overloads(areas, {"area": limit.area - used}):
        if not all(owner.is_fact for owner in holders(areas, "area", overload.start)):
            has = f"{bound.consumer} has {overload.level + used} {bound.resource} x s outstanding and used"
            yield Violation("limit", limit.path, f"{has}, expected at most {limit.area}")
            return


def check_free_pools(case: Case) -> Iterator[Violation]:
    """Jobs that a free pool does not let in together never use more than what is available less its items."""
    for pool in case.instance.pools:
        yield from _check_pool(case, pool, case.bookings)


def _check_pool(case: Case, pool: Pool, bookings: Sequence[Booking]) -> Iterator[Violation]:
    """Check that the jobs that one pool does not let in leave its items free; of all faults, yield the first."""
    uses = [
        use
        for booking in bookings
        if not is_let_in(pool, booking.job)
        for use in _uses(booking, pool.resource, pool.nodes)
    ]
    most = _left_to_others(case.instance, pool)
    for excess in _excesses(uses, pool.resource, most, pool.validity):
        message = (
            f"at {excess.moment}: jobs that are not let in use {excess.level} {pool.resource}, expected at most "
            f"{most} (last: job {excess.last.id})"
        )
        yield Violation("free_pool", pool.path, message)
        return


def _left_to_others(instance: Instance, pool: Pool) -> int:
    """Return the amount that jobs without access may use together."""
    available = instance.up_amount(pool.resource, pool.nodes)
    return max(0, available - pool.items.of(available))


def is_let_in(pool: Pool, job: Job) -> bool:
    """Return whether a job may use a pool: by its user, group, request and size, or by the rule for others."""
    access = pool.open_to
    if job.user in access.users or job.group in access.groups or any(map(job.asks_for, access.asks_for)):
        return True
    if access.most is not None or access.max_walltime is not None:
        small = all(job.peak(name) <= amount for name, amount in (access.most or {}).items())
        short = access.max_walltime is None or job.walltime <= access.max_walltime
        if small and short:
            return True
    return pool.otherwise_max_walltime is not None and job.walltime <= pool.otherwise_max_walltime


def is_limited(instance: Instance, job: Job) -> bool:
    """Return whether some limit is about a job."""
    return any(limit.consumer.subject_of(job) is not None for limit in instance.limits)


def is_ruled_out(instance: Instance, job: Job) -> bool:
    """Return whether some limit or free pool may keep a job off even an empty cluster, at some time at least."""
    for limit in instance.limits:
        subject = limit.consumer.subject_of(job)
        if subject is None or limit.soft:
            continue
        for bound in _bounds(instance, [limit], subject):
            peak = {"jobs": 1, "arrayjobs": int(job.is_array)}.get(bound.resource) or job.peak(bound.resource)
            if not peak:
                continue
            too_many = not limit.items.is_unlimited and peak > limit.items.of(instance.up_amount(bound.resource))
            too_long = limit.duration is not None and job.walltime > limit.duration
            too_much = limit.area is not None and (limit.is_outstanding or peak * job.walltime > limit.area)
            if too_many or too_long or too_much:
                return True
    return any(
        not is_let_in(pool, job) and job.peak(pool.resource) > _left_to_others(instance, pool)
        for pool in instance.pools
    )
