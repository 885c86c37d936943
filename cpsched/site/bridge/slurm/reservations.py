"""Reservations of Slurm in an instance.

A reservation of whole nodes that are free is one of the instance, with those of its nodes that are up; one with the
flag ``MAINT`` that no job names is a downtime. All others are set aside (`reserving.py`): those of cores or licences,
on nodes on which jobs still run or which others have reserved too, those whose jobs may be elsewhere (``MAGNETIC``,
``FLEX``), and those that come again (``DAILY`` and so on).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cpsched.domain import Amounts, Cluster, Instance, NodeState, Reservation, ReservationKind, Validity
from cpsched.errors import SyntaxFault
from cpsched.formats import expand_hostlist
from cpsched.site.bridge.reserving import Reserved, for_members_only
from cpsched.site.bridge.slurm.records import JobRecord, NodeRecord, ReservationRecord

#: With one of these, jobs of a reservation may be elsewhere, or others on its nodes.
_LOOSE = frozenset({"MAGNETIC", "FLEX", "OVERLAP"})
#: Minutes after which those with these flags come again; and the days on which they do, Sunday first, where that is not
#: every day, or that of the first time.
_PERIODS = {"HOURLY": 60, "DAILY": 1440, "WEEKDAY": 1440, "WEEKEND": 1440, "WEEKLY": 10_080}
_DAYS = {"WEEKDAY": range(1, 6), "WEEKEND": (0, 6)}
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
#: Of the first day of Unix time.
_THURSDAY = 4
#: Days for which they come again, as far as plans are concerned.
_AHEAD = 28


def with_reservations(
    instance: Instance,
    records: Sequence[ReservationRecord],
    views: Mapping[str, JobRecord],
    nodes: Mapping[str, NodeRecord],
) -> Instance:
    """Return an instance with the reservations that have not ended; `views` are its jobs as Slurm has them."""
    coming = {one.name: one for one in records if one.end > max(instance.now, one.start)}
    every = [
        Reserved(
            name=one.name,
            start=one.start,
            end=one.end,
            nodes=_nodes(one, instance.cluster),
            cores=_cpus(one, _nodes(one, instance.cluster), nodes),
            licenses=one.licenses,
            again=_again(one, instance.now),
        )
        for one in coming.values()
    ]
    every = [one for one in every if one.nodes or one.licenses]
    if not every:
        return instance
    named = {job.reservation for job in instance.jobs}
    busy = _busy(instance)
    plain, others = list[Reservation](), dict[str, Reserved]()
    for one in every:
        record = coming[one.name]
        is_free = all(busy.get(name, 0) <= record.start for name in one.nodes)
        is_alone = not any(other is not one and one.meets(other) for other in every)
        if one.again:
            others[one.name] = one
        elif "MAINT" in record.flags and one.name not in named and one.nodes:
            plain.append(_plain(record, one.nodes, ReservationKind.DOWNTIME))
        elif (up := _whole(record, one, instance.cluster)) and is_free and is_alone:
            plain.append(_plain(record, up, ReservationKind.USERS))
        else:
            others[one.name] = one
    inside, let_in = dict[str, Reserved](), dict[str, list[Reserved]]()
    for job in instance.jobs if others else ():
        view = views[job.id]
        for name, one in others.items():
            if job.reservation == name and "FLEX" not in coming[name].flags:
                inside[job.id] = one
            elif job.reservation == name or (not job.reservation and _draws(coming[name], view)):
                let_in.setdefault(job.id, []).append(one)
    return for_members_only(replace(instance, reservations=tuple(plain)), tuple(others.values()), inside, let_in)


def _again(record: ReservationRecord, now: int) -> tuple[Validity, ...]:
    """Return the times (in UTC) at which a reservation comes again in the next weeks; empty: it does not."""
    until = (now // _DAY + _AHEAD) * _DAY
    return tuple(
        Validity(from_=record.end, until=until, cron=cron) for cron in _calendars(record) if record.end < until
    )


def _calendars(record: ReservationRecord) -> tuple[str, ...]:
    flag = next((flag for flag in _PERIODS if flag in record.flags), None)
    if flag is None or "TIME_FLOAT" in record.flags:
        return ()
    first, last = record.start // _MINUTE * _MINUTE, -(-record.end // _MINUTE) * _MINUTE
    if last - first >= _PERIODS[flag] * _MINUTE:
        return ("* * * * *",)
    hours = dict[tuple[str, str], list[str]]()
    for hour in range(first // _HOUR, -(-last // _HOUR)):
        begin, end = max(first, hour * _HOUR), min(last, (hour + 1) * _HOUR)
        minutes = f"{begin % _HOUR // _MINUTE}-{(end - 1) % _HOUR // _MINUTE}"
        later = begin // _DAY - first // _DAY
        on = _DAYS.get(flag, (first // _DAY + _THURSDAY,)) if flag not in ("HOURLY", "DAILY") else ()
        days = ",".join(str((day + later) % 7) for day in on) or "*"
        hours.setdefault((minutes, days), []).append("*" if flag == "HOURLY" else str(hour % 24))
    return tuple(f"{minutes} {','.join(of)} * * {days}" for (minutes, days), of in hours.items())


def _nodes(record: ReservationRecord, cluster: Cluster) -> tuple[str, ...]:
    try:
        names = expand_hostlist(record.nodes) if record.nodes else ()
    except SyntaxFault:
        names = ()
    return tuple(dict.fromkeys(name for name in names if name in cluster.class_of))


def _cpus(record: ReservationRecord, names: Sequence[str], nodes: Mapping[str, NodeRecord]) -> Amounts | None:
    """Return how many CPUs of each node are reserved; None where it is whole nodes.

    Where only the cores in all are known, each node has an equal part of them, rounded up.
    """
    cores: Mapping[str, int] | None = record.cores
    has = {name: nodes[name].cpus // nodes[name].threads for name in names}
    if cores is None and record.core_count and record.core_count < sum(has.values()):
        cores = dict.fromkeys(names, -(-record.core_count // len(names)))
    if cores is None or all(cores.get(name, 0) >= has[name] for name in names):
        return None
    return Amounts({name: cores.get(name, 0) * nodes[name].threads for name in names if cores.get(name, 0)})


def _busy(instance: Instance) -> dict[str, int]:
    """Return until when jobs that run now are on each node."""
    found: dict[str, int] = {}
    for job in instance.jobs:
        for segment in job.running.segments if job.running is not None else ():
            for place in segment.allocation:
                found[place.node] = max(found.get(place.node, 0), segment.end)
    return found


def _plain(record: ReservationRecord, nodes: tuple[str, ...], kind: ReservationKind) -> Reservation:
    users = tuple(user for user in record.users if user[:1] != "-") if kind is ReservationKind.USERS else ()
    return Reservation(id=record.name, start=record.start, end=record.end, nodes=nodes, users=users, kind=kind)


def _whole(record: ReservationRecord, one: Reserved, cluster: Cluster) -> tuple[str, ...]:
    """Return the nodes that are up of a reservation of whole nodes; empty where it is of something else."""
    if one.licenses or one.cores is not None or not _LOOSE.isdisjoint(record.flags) or "MAINT" in record.flags:
        return ()
    return tuple(name for name in one.nodes if cluster.class_of[name].state is NodeState.UP)


def _draws(record: ReservationRecord, view: JobRecord) -> bool:
    """Tell whether a reservation draws a job that does not name it: one of its users, accounts or groups."""
    if "MAGNETIC" not in record.flags:
        return False
    for names, mine in ((record.users, view.user), (record.accounts, view.account), (record.groups, view.group)):
        barred = {name[1:] for name in names if name[:1] == "-"}
        if mine in names or (barred and mine not in barred):
            return True
    return False
