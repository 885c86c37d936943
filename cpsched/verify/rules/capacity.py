"""No use exceeds a capacity: nodes, `keep_free`, exclusive nodes and licences, over time."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from cpsched.verify.case import Case, Holder, HolderUse, Violation, named
from cpsched.verify.model import Booking, Slice, SliceKey
from cpsched.verify.sweep import Overload, Use, holders, overloads


def _over(
    rule: str, subject: str, uses: Sequence[HolderUse], amounts: Mapping[str, int], found: Iterable[Overload]
) -> Iterator[Violation]:
    """Yield the first overload of each resource in which something takes part that is no fact."""
    said: set[str] = set()
    for overload in found:
        if overload.resource in said:
            continue
        owners = holders(uses, overload.resource, overload.start)
        if not all(owner.is_fact for owner in owners):
            said.add(overload.resource)
            has = amounts.get(overload.resource, 0)
            message = f"at {overload.start}: {overload.level} {overload.resource} are taken, there are {has}"
            yield Violation(rule, subject, f"{message} ({named(owners)})")


def overcommitted(uses: Sequence[HolderUse], amounts: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return the times ``[start, end)`` at which running jobs alone take more of a node than there is."""
    facts = [use for use in uses if isinstance(use.owner.who, Booking) and use.owner.is_fact]
    return sorted({(overload.start, overload.end) for overload in overloads(facts, amounts)})


def _check_overcommitted(node: str, uses: Sequence[HolderUse], amounts: Mapping[str, int]) -> Iterator[Violation]:
    """Check that nothing is planned on a node while running jobs alone take more of it than there is."""
    for start, end in overcommitted(uses, amounts):
        for use in uses:
            if not use.owner.is_fact and use.start < end and use.end > start:
                message = (
                    f"at {max(start, use.start)}: {use.owner} is planned where running jobs take more than there is"
                )
                yield Violation("capacity", node, message)
                return


def check_capacity(case: Case) -> Iterator[Violation]:
    """At no time do jobs and reservations take more of a node, or jobs more of their reservation, than there is.

    What runs is a fact; but nothing is planned on a node while running jobs alone take more of it than there is.
    """
    for node, node_class in case.instance.nodes.items():
        of_jobs = uses = case.job_uses.get(node, [])
        inside: dict[SliceKey, list[HolderUse]] = {}
        if case.plan.slices:
            uses, inside = sort_out(case, uses)
            uses += case.slice_uses.get(node, [])
        found = list(overloads(uses, node_class.resources))
        yield from _over("capacity", node, uses, node_class.resources, found)
        for slice_ in case.plan.slices if inside else ():
            guests, amounts = inside.get(slice_.key, []), slice_amounts(slice_, node)
            subject = f"{node} in reservation {slice_.reservation.id}"
            yield from _over("capacity", subject, guests, amounts, overloads(guests, amounts))
        if found or inside:
            everybody = [*of_jobs, *case.slice_uses.get(node, ())]
            yield from _check_overcommitted(node, everybody, node_class.resources)


def sort_out(case: Case, uses: Sequence[HolderUse]) -> tuple[list[HolderUse], dict[SliceKey, list[HolderUse]]]:
    """Part the uses of a node into those of the cluster and those inside a reservation at one of its times."""
    outside: list[HolderUse] = []
    inside: dict[SliceKey, list[HolderUse]] = {}
    for use in uses:
        slices = case.slices_for(use.owner.who.job) if isinstance(use.owner.who, Booking) else ()
        time = use.start
        for slice_ in slices:
            first, last = max(time, slice_.start), min(use.end, slice_.end)
            if first < last:
                inside.setdefault(slice_.key, []).append(use._replace(start=first, end=last))
                if time < first:
                    outside.append(use._replace(start=time, end=first))
                time = last
        if time < use.end:
            outside.append(use._replace(start=time))
    return outside, inside


def slice_amounts(slice_: Slice, node: str) -> dict[str, int]:
    """Add up what a reservation has on a node."""
    amounts: dict[str, int] = {}
    for placement in slice_.allocation:
        if placement.node == node:
            for name, amount in placement.resources.items():
                amounts[name] = amounts.get(name, 0) + amount
    return amounts


def check_closures(case: Case) -> Iterator[Violation]:
    """Nothing is planned on a node during a downtime of it; running work and what a reservation has already go on."""
    for node, closures in case.closures.items():
        closed = sorted(closures, key=lambda one: one.start)
        latest = list(accumulate((one.end for one in closed), max))
        for use in (*case.job_uses.get(node, ()), *case.slice_uses.get(node, ())):
            begun = bisect_left(closed, use.end, key=lambda one: one.start)
            if begun and latest[begun - 1] > use.start and not use.owner.is_fact:
                closure = next(one for one in closed if one.end > use.start)
                message = f"{use.owner} is on {node} at {max(use.start, closure.start)}, in the time of {closure.owner}"
                yield Violation("reservation", node, message)


def check_keep_free(case: Case) -> Iterator[Violation]:
    """Chunks that do not ask for what `keep_free` is for leave its items free together; running work only counts."""
    for node, node_class in case.instance.nodes.items():
        for entry in node_class.keep_free:
            uses = [
                use._replace(amounts={entry.resource: use.amounts[entry.resource]})
                for use in case.job_uses.get(node, ())
                if entry.beneficiary not in use.amounts and entry.resource in use.amounts
            ]
            most = max(0, node_class.resources.get(entry.resource, 0) - entry.items)
            for overload in overloads(uses, {entry.resource: most}):
                owners = holders(uses, entry.resource, overload.start)
                if not all(owner.is_fact for owner in owners):
                    message = (
                        f"at {overload.start}: work without {entry.beneficiary} takes {overload.level} "
                        f"{entry.resource}, expected at most {most} ({named(owners)})"
                    )
                    yield Violation("keep_free", node, message)
                    break


def check_exclusive(case: Case) -> Iterator[Violation]:
    """While a job has a node exclusively no other job, running or planned, and no foreign reservation is on it."""
    for node in case.instance.nodes:
        uses = [*case.job_uses.get(node, ()), *case.slice_uses.get(node, ())]
        if not any(use.owner.exclusive for use in uses):
            continue
        active: list[HolderUse] = []
        for use in sorted(uses, key=lambda use: use.start):
            active = [other for other in active if other.end > use.start]
            for other in active:
                if _conflict(use.owner, other.owner):
                    message = f"at {use.start}: {use.owner} and {other.owner} share the node, one has it exclusively"
                    yield Violation("exclusive", node, message)
                    break
            active.append(use)


def _conflict(one: Holder, other: Holder) -> bool:
    """Return whether two holders may not be on a node at a time; two running jobs are a fact."""
    if one.who is other.who or not (one.exclusive or other.exclusive) or (one.is_fact and other.is_fact):
        return False
    return not (_is_guest(one.who, other.who) or _is_guest(other.who, one.who))


def _is_guest(one: Booking | Slice, host: Booking | Slice) -> bool:
    """Return whether a job runs inside a reservation."""
    return isinstance(one, Booking) and isinstance(host, Slice) and one.job.reservation == host.reservation.id


def license_uses(case: Case) -> tuple[list[HolderUse], dict[SliceKey, list[HolderUse]]]:
    """Return the holders of licences that come back, of the cluster and of each reservation at each of its times."""
    outside: list[HolderUse] = []
    inside: dict[SliceKey, list[HolderUse]] = {}
    for booking in case.bookings:
        held = {name: n for name, n in booking.job.licenses.items() if name not in case.instance.consumed}
        if held:
            use = Use(booking.start, booking.end, held, Holder(booking, False))
            slices = case.slices_for(booking.job)
            slice_ = next((one for one in slices if one.start < booking.end and booking.start < one.end), None)
            (outside if slice_ is None else inside.setdefault(slice_.key, [])).append(use)
    for slice_ in case.plan.slices:
        if slice_.reservation.licenses:
            outside.append(Use(slice_.start, slice_.end, slice_.reservation.licenses, Holder(slice_, False)))
    return outside, inside


def check_licenses(case: Case) -> Iterator[Violation]:
    """At no time do jobs and reservations hold more licences than there are, in the cluster or in the reservation; and
    over all time they take no more of one that does not come back.
    """
    outside, inside = license_uses(case)
    has = case.instance.licenses
    yield from _over("licenses", "cluster", outside, has, overloads(outside, has))
    for (name, _), uses in inside.items():
        has = case.instance.reservations[name].licenses
        yield from _over("licenses", f"reservation {name}", uses, has, overloads(uses, has))
    for name in sorted(case.instance.consumed):
        takers = [booking for booking in case.bookings if booking.job.licenses.get(name)]
        taken, there = sum(booking.job.licenses[name] for booking in takers), case.instance.licenses[name]
        if taken > there and not all(booking.job.running for booking in takers):
            owners = named([Holder(booking, False) for booking in takers])
            yield Violation("licenses", "cluster", f"{taken} {name} are consumed, there are {there} ({owners})")
