"""The first document: from raw JSON to the judge's `Instance`.

A plan can only be judged against an instance that is in order: the first fault here is a `DocumentError`.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from zoneinfo import ZoneInfo

from cpsched.verify import cluster as machine
from cpsched.verify import model
from cpsched.verify.anomalies import overcommitments
from cpsched.verify.documents import MAX_DURATION, MAX_SIZE, Cursor, refuse_format
from cpsched.verify.fair_share import read_fair_share
from cpsched.verify.jobs import JobReader, join_licenses, read_allocation, read_price, read_request, read_weight
from cpsched.verify.rules.limits import read_limit, read_pool, read_usage
from cpsched.verify.validity import ALWAYS, Clock, Validity, read_validity

FORMAT = "cpsched-instance/1"
TERMS = ("weighted_wait", "wait", "slowdown", "completion", "makespan", "tardiness", "waste")
BUILT_IN = ("cores", "mem", "gpus", "mics")
#: The names that a limit may have besides resources and licences.
COUNTED_JOBS = ("jobs", "arrayjobs", "*")


def read_instance(document: object, source: str) -> model.Instance:
    """Read an instance. Raises `DocumentError` at its first fault, with the path."""
    top = Cursor(document, "", source)
    if top.mapping().get("format") != FORMAT:
        refuse_format(Cursor(top.mapping().get("format"), "format", source), FORMAT)
    members = top.members(
        ["format", "name", "cluster"],
        [
            "epoch", "time_zone", "now", "queues", "jobs", "limits", "free_pools", "reservations", "usage", "objective",
            "priorities", "outages", "fair_share", "preemption",
        ],
    )  # fmt: skip
    if "priorities" in members:
        members["priorities"].choice(["strict"])
    clock = _read_clock(members.get("epoch"), members.get("time_zone"))
    now = members["now"].time() if "now" in members else 0
    cluster = members["cluster"].members(["nodes"], ["licenses", "consumed", "states", "topology", "slowdown"])
    nodes = machine.read_nodes(cluster["nodes"])
    nodes = machine.with_states(nodes, cluster["states"]) if "states" in cluster else nodes
    classes = {id(node): node for node in nodes.values()}.values()
    countable = {*BUILT_IN, *(name for node in classes for name in node.resources)}
    licenses = cluster["licenses"].amounts() if "licenses" in cluster else {}
    known = {*countable, *(cluster["licenses"].mapping() if "licenses" in cluster else ())}
    for name, amount in cluster["licenses"].entries() if "licenses" in cluster else ():
        if name in countable or name in (*COUNTED_JOBS, "place"):
            amount.refuse("expected a name that means nothing else")
    consumed = [one.name() for one in cluster["consumed"].items()] if "consumed" in cluster else []
    if not set(consumed) <= licenses.keys() or len(set(consumed)) < len(consumed):
        cluster["consumed"].refuse("expected names of licences, each once")
    known -= set(consumed)
    for item in cluster["nodes"].items():
        machine.check_rules_of_nodes(item, countable)
    queues = machine.read_queues(members["queues"], nodes) if "queues" in members else {}
    nodes = machine.closed_to_queues(nodes, queues)
    reservations = (
        _read_reservations(members["reservations"], countable, nodes, clock) if "reservations" in members else {}
    )
    topology = machine.read_topology(cluster["topology"], nodes) if "topology" in cluster else {}
    slowdown = machine.read_slowdown(cluster["slowdown"], topology) if "slowdown" in cluster else {}
    for name, reservation in reservations.items():
        if not reservation.licenses.keys().isdisjoint(consumed):
            members["reservations"].refuse(f"expected licences that come back in the reservation {name!r}")
    jobs = JobReader(countable, nodes, queues, reservations, now, topology)
    jobs.read_all(members["jobs"].items() if "jobs" in members else ())
    weights, *later_aims = _read_objective(members.get("objective"))
    return model.Instance(
        name=members["name"].name(),
        now=now,
        nodes=nodes,
        topology=topology,
        slowdown=slowdown,
        licenses=licenses,
        consumed=frozenset(consumed),
        queues=queues,
        jobs=jobs.jobs,
        members=jobs.members,
        limits=tuple(read_limit(item, {*known, *COUNTED_JOBS}, clock) for item in machine.items_of(members, "limits")),
        pools=tuple(read_pool(item, known, nodes, clock) for item in machine.items_of(members, "free_pools")),
        reservations=reservations,
        usage=tuple(read_usage(item, known) for item in machine.items_of(members, "usage")),
        weights=weights,
        later_aims=tuple(later_aims),
        factors=read_fair_share(members["fair_share"]) if "fair_share" in members else {},
        preemption=_read_preemption(members["preemption"], queues) if "preemption" in members else None,
        outages=_read_outages(machine.items_of(members, "outages"), nodes, jobs.jobs, now),
        warnings=(*jobs.warnings, *overcommitments(jobs.running, nodes, licenses)),
    )


def _read_clock(epoch: Cursor | None, time_zone: Cursor | None) -> Clock | None:
    """Read second 0 and the site's time zone."""
    if time_zone is None:
        return None if epoch is None else Clock(_read_epoch(epoch))
    if epoch is None:
        time_zone.refuse("expected the instance to have an epoch, which a time zone needs")
    try:
        return Clock(_read_epoch(epoch), ZoneInfo(time_zone.text()))
    except (KeyError, ValueError, OSError):
        time_zone.refuse(f"expected a time zone such as Europe/Berlin, got {time_zone.value!r}")


def _read_epoch(cursor: Cursor) -> datetime:
    """Read second 0 of the clock, which needs an offset."""
    try:
        epoch = datetime.fromisoformat(cursor.text())
    except ValueError:
        cursor.refuse(f"expected an ISO-8601 time, got {cursor.value!r}")
    if epoch.tzinfo is None:
        cursor.refuse(f"expected a time with its offset, got {cursor.value!r}")
    if epoch.microsecond:
        cursor.refuse(f"expected whole seconds, got {cursor.value!r}")
    return epoch


def _read_reservations(
    cursor: Cursor, countable: Collection[str], nodes: Collection[str], clock: Clock | None
) -> dict[str, model.Reservation]:
    reservations: dict[str, model.Reservation] = {}
    for item in cursor.items():
        members = item.members(
            ["id"], ["start", "end", "validity", "request", "nodes", "allocation", "users", "kind", "place", "licenses"]
        )
        name = members["id"].name()
        if name in reservations:
            members["id"].refuse(f"expected an id of its own, got {name!r} again")
        kind = members["kind"].choice(["users", "downtime"]) if "kind" in members else "users"
        time, validity = _read_reserved_times(item, members, clock)
        if ("request" in members) == ("nodes" in members):
            item.refuse("expected either request or nodes")
        if "nodes" in members and {"place", "allocation"} & members.keys():
            item.refuse("expected place and allocation only together with request")
        if "nodes" in members and "licenses" in members and kind == "downtime":
            item.refuse("expected no licenses in a downtime of nodes")
        request, asked = None, dict[str, int]()
        if "request" in members:
            request, asked = read_request(members["request"], members.get("place"), countable)
            if request.within is not None:
                members["request"].refuse("expected no within in the place of a reservation")
        kept = _read_kept(members["allocation"], nodes, request) if "allocation" in members else ()
        reservations[name] = model.Reservation(
            id=name,
            time=time,
            validity=validity,
            request=request,
            nodes=machine.read_hosts(members["nodes"], nodes) if "nodes" in members else (),
            allocation=kept,
            licenses=join_licenses(asked, members.get("licenses")),
            users=members["users"].names() if "users" in members else (),
            is_downtime=kind == "downtime",
        )
    return reservations


def _read_reserved_times(
    item: Cursor, members: Mapping[str, Cursor], clock: Clock | None
) -> tuple[tuple[int, int] | None, Validity]:
    """Read the one time of a reservation, or its recurring times."""
    given = {"start", "end", "validity"} & members.keys()
    if given == {"validity"}:
        if "cron" not in members["validity"].mapping():
            item.refuse("expected cron in the validity of a reservation, or start and end in its place")
        return None, read_validity(members["validity"], clock)
    if given != {"start", "end"}:
        item.refuse("expected either start and end, or validity")
    start, end = members["start"].time(), members["end"].time()
    if end <= start:
        members["end"].refuse(f"expected an end after {start}, got {end}")
    return (start, end), ALWAYS


def _read_kept(cursor: Cursor, nodes: Collection[str], request: model.Request | None) -> tuple[model.Placement, ...]:
    """Read what a reservation has already: kinds of chunks that its request has, on all nodes or on none."""
    allocation = read_allocation(cursor, nodes)
    num_kinds = 0 if request is None else len(request.chunks)
    for held in allocation:
        if (held.chunk is None) != (allocation[0].chunk is None) or (held.chunk or 0) >= num_kinds:
            cursor.refuse(f"expected chunk (below {num_kinds}) and count on all nodes, or on none of them")
    return allocation


def _read_preemption(cursor: Cursor, queues: Collection[str]) -> model.Preemption:
    """Read whose jobs may be stopped for whose; no queue may stop its own jobs by way of others."""
    members = cursor.members([], ["queues", "stops", "notice", "exempt", "resume"])
    above: dict[str, tuple[str, ...]] = {}
    for name, others in members["queues"].entries() if "queues" in members else ():
        for place, queue in ((others, name), *((item, item.name()) for item in others.items())):
            if queue not in queues:
                place.refuse(f"expected a declared queue, got {queue!r}")
        above[name] = others.names()
    try:
        TopologicalSorter(above).prepare()
    except CycleError:
        members["queues"].refuse("expected no queues that may stop each other")
    return model.Preemption(
        queues=above,
        stops=members["stops"].integer(1, MAX_SIZE) if "stops" in members else None,
        notice=members["notice"].integer(0, MAX_DURATION) if "notice" in members else 0,
        exempt=members["exempt"].integer(0, MAX_DURATION) if "exempt" in members else 0,
        resume=members["resume"].flag() if "resume" in members else False,
    )


def _read_outages(
    items: Sequence[Cursor], nodes: Collection[str], jobs: Mapping[str, model.Job], now: int
) -> tuple[model.Outage, ...]:
    """Read the outages of nodes; no job runs at `now` on a node that is down by one."""
    in_use = {
        placement.node
        for job in jobs.values()
        for segment in job.running
        if segment.start <= now < segment.end
        for placement in segment.allocation
    }
    outages: list[model.Outage] = []
    for item in items:
        members = item.members(["nodes", "start", "end"])
        outage = model.Outage(
            machine.read_hosts(members["nodes"], nodes), members["start"].time(), members["end"].time()
        )
        if outage.end <= outage.start:
            members["end"].refuse(f"expected an end after {outage.start}, got {outage.end}")
        if outage.start <= now < outage.end and not in_use.isdisjoint(outage.nodes):
            node = min(in_use.intersection(outage.nodes))
            members["nodes"].refuse(f"expected no running job on a node that is down, got one on {node}")
        outages.append(outage)
    return tuple(outages)


def _read_objective(cursor: Cursor | None) -> list[dict[str, Fraction]]:
    """Read the aims of the objective in order: the terms of each, and their weights."""
    if cursor is None:
        return [{"weighted_wait": Fraction(1)}]
    if not isinstance(cursor.value, list | tuple):
        return [_read_aim(cursor, ())]
    items, aims = cursor.items(), list[dict[str, Fraction]]()
    for item in items:
        aims.append(_read_aim(item, () if item is items[-1] else ("tolerance",)))
        if aims[-1] in aims[:-1]:
            item.refuse("expected each aim once")
    if not aims:
        cursor.refuse("expected at least one aim")
    return aims


def _read_aim(cursor: Cursor, also: Collection[str]) -> dict[str, Fraction]:
    """Read one aim, in which some other keys may stand: what the tolerance allows is the engine's matter."""
    if isinstance(cursor.value, str):
        return {cursor.choice(TERMS): Fraction(1)}
    if isinstance(cursor.value, list | tuple):
        weights = {item.choice(TERMS): Fraction(1) for item in cursor.items()}
        if len(weights) < len(cursor.items()):
            cursor.refuse("expected each term once")
    else:
        weights = {}
        for name, weight in cursor.entries():
            if name in also:
                read_price(weight, Fraction(0))
            elif name in TERMS:
                weights[name] = read_weight(weight)
            else:
                weight.refuse("expected one of the terms " + ", ".join((*TERMS, *also)))
    if not weights:
        cursor.refuse("expected at least one term")
    return weights
