"""The cluster and the rules in documents: what they say by other keys than fields, and what lies between their keys."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from cpsched.domain import (
    AdmitCondition,
    Cluster,
    Consumer,
    ConsumerKind,
    Entries,
    FairShare,
    FrozenMap,
    ItemBound,
    Key,
    Limit,
    Name,
    NodeState,
    Objective,
    ObjectiveTerm,
    Outage,
    Placement,
    Price,
    Request,
    Reservation,
    Text,
    Usage,
    Validity,
    Weight,
    Written,
)
from cpsched.formats.faults import Location, first_few, shown
from cpsched.formats.hostlist import fold_hostlist
from cpsched.formats.job_reader import Requests, written_place
from cpsched.formats.kinds import FORMS, NOTATIONS, Choice, Either, Form, Listed, Mapped, Spelt, kind_of
from cpsched.formats.links import LevelsOrLinks, has_links, read_links
from cpsched.formats.notations import check_cron, format_items, parse_items
from cpsched.formats.reading import Reading, cycle_of, read_allocation

_Entry = Mapping[str, Any]

#: Names that a limit or a request's text means otherwise.
_NO_LICENSES = ("jobs", "arrayjobs", "*", "place")


def _read_cluster(reading: Reading, location: Location, cluster: _Entry, said: dict[str, Any]) -> Cluster:
    """Return the cluster; of a node that occurs twice only the first entry counts."""
    for name in cluster.get("licenses", ()):
        if name in reading.countable or name in _NO_LICENSES:
            reading.faults.add((*location, "licenses", name), "Expected a name that means nothing else")
    for place, name in enumerate(consumed := cluster.get("consumed", ())):
        reading.check_known((*location, "consumed", place), "licence", name, cluster.get("licenses", ()), "licenses")
        if name in consumed[:place]:
            reading.faults.add((*location, "consumed", place), f"Expected each licence once, got {shown(name)} again")
    reading.cluster = Cluster(**said)
    said_of, at = cluster.get("topology", {}), (*location, "topology")
    if has_links(said_of):
        topology = read_links(reading, at, said_of)
    else:
        topology = {level: _read_level(reading, (*at, level), groups) for level, groups in said_of.items()}
    for level in cluster.get("slowdown", ()):
        reading.check_known((*location, "slowdown", level), "level of the topology", level, topology, "nodes")
    if cluster.get("states"):
        reading.cluster = _with_states(reading, reading.cluster, cluster["states"])
    if topology:
        reading.cluster = replace(reading.cluster, topology=FrozenMap(topology))
    return reading.cluster


def _read_level(reading: Reading, location: Location, groups: Mapping[str, str]) -> FrozenMap[str, tuple[str, ...]]:
    """Return the nodes of each group of a level of the topology; no node is in two, and one in none is said."""
    found, group_of = dict[str, tuple[str, ...]](), dict[str, str]()
    for group, hosts in groups.items():
        found[group] = reading.node_list((*location, group), hosts)
        twice = [name for name in found[group] if name in group_of]
        if twice:
            message = (
                f"Expected every node in one {location[-1]}, got again: {first_few(twice)} (in {group_of[twice[0]]})"
            )
            reading.faults.add((*location, group), message)
        group_of.update(dict.fromkeys(found[group], group))
    if alone := [name for name in reading.cluster.node_names if name not in group_of]:
        reading.on_warning(reading.faults.fault(location, f"no group has {first_few(alone)}"))
    return FrozenMap(found)


def _write_cluster(cluster: Cluster, writing: Any) -> dict[str, Any]:
    topology = {
        level: {group: fold_hostlist(nodes) for group, nodes in groups.items()}
        for level, groups in cluster.topology.items()
    }
    return {"topology": topology or None}


def _with_states(reading: Reading, cluster: Cluster, states: Mapping[str, str]) -> Cluster:
    """Split classes whose nodes have several states into one for each state, in the order of their first nodes.

    So the nodes that are up keep their order, and there are few classes however many nodes are not.
    """
    state_of: dict[str, NodeState] = {}
    for hosts, state in states.items():
        where: Location = ("cluster", "states", hosts)
        names = reading.node_list(where, hosts)
        twice = [name for name in names if name in state_of]
        if twice:
            reading.faults.add(where, f"Expected one state for every node, got another for {first_few(twice)}")
        state_of.update(dict.fromkeys(names, NodeState(state)))
    classes = []
    for node_class in cluster.classes:
        parts: dict[NodeState, list[str]] = {}
        for name in node_class.names:
            parts.setdefault(state_of.get(name, node_class.state), []).append(name)
        classes += [replace(node_class, names=tuple(names), state=state) for state, names in parts.items()]
        classes += [node_class] if not parts else []
    return replace(cluster, classes=tuple(classes))


def _read_queue_nodes(written: str | Mapping[str, str], where: Location, reading: Reading) -> tuple[str, ...]:
    """Return the nodes of a host list, or those that have all of some properties."""
    if isinstance(written, str):
        return reading.node_list(where, written)
    nodes = tuple(
        name
        for node_class in reading.cluster.classes
        if written.items() <= node_class.properties.items()
        for name in node_class.names
    )
    if not nodes and "nodes" not in reading.incomplete:
        wanted = ", ".join(f"{name}={value}" for name, value in written.items())
        reading.faults.add(where, f"Expected properties that some node has, got {shown(wanted)}")
    return nodes


def _rule_of_reservations(entry: _Entry) -> str | None:
    when = entry.keys() & {"start", "end", "validity"}
    if when not in ({"start", "end"}, {"validity"}):
        return "Expected either start and end, or validity"
    if "start" in entry and entry["start"] >= entry["end"]:
        return f"Expected start < end, got {entry['start']} and {entry['end']}"
    if "validity" in entry and "cron" not in entry["validity"]:
        return "Expected cron in the validity of a reservation, or start and end in its place"
    if ("request" in entry) == ("nodes" in entry):
        return "Expected either request or nodes"
    if "nodes" in entry and entry.keys() & {"place", "allocation"}:
        return "Expected place and allocation only together with request"
    if "nodes" in entry and entry.get("kind") == "downtime" and "licenses" in entry:
        return "Expected no licenses in a downtime of nodes"
    return None


def _read_reservation(reading: Reading, where: Location, entry: _Entry, said: dict[str, Any]) -> Reservation | None:
    """Return a reservation, or None where its request has faults."""
    if "request" in entry:
        read = reading.request((*where, "request"), entry["request"], entry.get("place"), entry.get("licenses"))
        if read is None:
            return None
        said["request"], said["licenses"] = read
        if read[0].place.within is not None:
            reading.faults.add((*where, "request"), "Expected no within in the place of a reservation")
        if "allocation" in entry:
            held = entry["allocation"]
            said["allocation"] = _read_slice(reading, (*where, "allocation"), held, said["request"])
    reading.check_held((*where, "licenses"), said.get("licenses", ()))
    return Reservation(**said)


def _read_slice(
    reading: Reading, where: Location, placements: Sequence[_Entry], request: Request
) -> tuple[Placement, ...]:
    """Return the nodes that a reservation has got already: its chunks are stated of all nodes or of none."""
    for index, held in enumerate(placements):
        at = (*where, index)
        reading.check_known((*at, "node"), "node", held["node"], reading.cluster.class_of, "nodes")
        if ("chunk" in held) != ("chunk" in placements[0]):
            reading.faults.add(at, "Expected chunk and count as on its other nodes, or on none of them")
        elif held.get("chunk", 0) >= len(request.chunks):
            message = f"Expected a kind of chunks from 0 to {len(request.chunks) - 1}, got {held['chunk']}"
            reading.faults.add((*at, "chunk"), message)
    return read_allocation(reading, where, placements)


def _write_reservation(reservation: Reservation, requests: Requests) -> dict[str, Any]:
    request = reservation.request
    return {
        "request": None if request is None else requests[request.chunks],
        "allocation": kind_of(tuple[Placement, ...]).write(reservation.allocation, None) or None,
        "place": None if request is None else written_place(request),
    }


def _read_fair_share(reading: Reading, where: Location, entry: _Entry, said: dict[str, Any]) -> FairShare:
    """Return the shares; note faults where they are no tree, or where those below an account sum to nothing."""
    found = FairShare(**said)
    names = set(found.accounts)
    shares = Counter[str | None]()
    for name, account in found.accounts.items():
        shares[account.parent] += account.shares
        if account.parent is not None:
            at = (*where, "accounts", name, "parent")
            reading.check_known(at, "account", account.parent, names, "fair_share")
    first: dict[tuple[str, str | None], int] = {}
    for place, user in enumerate(found.users):
        shares[user.account] += user.shares
        if user.account is not None:
            reading.check_known((*where, "users", place, "account"), "account", user.account, names, "fair_share")
        if first.setdefault((user.user, user.account), place) != place:
            at = (*where, "users", place, "user")
            reading.faults.add(at, f"Expected each user of an account once, got {shown(user.user)} again")
    for account_name, total in shares.items():
        if not total:
            at = where if account_name is None else (*where, "accounts", account_name)
            reading.faults.add(at, "Expected shares below it that sum to more than 0, got 0")
    above = {name: [] if one.parent is None else [one.parent] for name, one in found.accounts.items()}
    if cycle := cycle_of(above):
        at = (*where, "accounts", cycle[0], "parent")
        reading.faults.add(at, f"Expected a tree, got a cycle of {first_few(cycle)}")
    return found


def _rule_of_validities(times: _Entry) -> str | None:
    if not times:
        return "Expected at least one of from, until and cron, got none"
    if "from" in times and "until" in times and times["from"] >= times["until"]:
        return f"Expected from < until, got {times['from']} and {times['until']}"
    return None


def _read_validity(reading: Reading, where: Location, times: _Entry, said: dict[str, Any]) -> Validity:
    if "cron" in times:
        reading.faults.parsed((*where, "cron"), check_cron, times["cron"], None)
        if not reading.has_epoch:
            message = "Expected the instance to have an epoch, which a calendar needs; got none"
            reading.faults.add((*where, "cron"), message)
    return Validity(**said)


def _rule_validity() -> Spelt:
    """Return the kind of ``always``, or of times."""
    times = kind_of(Validity)
    return Spelt(
        Either(Choice({"always": Validity()}), times),
        lambda value, at, reading: Validity() if value == "always" else times.read(value, at, reading),
        lambda value, writing: "always" if value == Validity() else times.write(value, writing),
    )


def _read_consumer(reading: Reading, where: Location, consumer: _Entry, said: dict[str, Any]) -> Consumer:
    ((kind, name),) = consumer.items()
    return (
        Consumer(kind=ConsumerKind(name), name=None) if kind == "each" else Consumer(kind=ConsumerKind(kind), name=name)
    )


def _objective() -> Spelt:
    """Return the kind of a term, of weights of terms, or of a list of aims in order: each a term, a list of terms that
    are added up, or weights of terms, with a tolerance where other aims follow.
    """
    term, weight = kind_of(ObjectiveTerm), kind_of(Weight)
    weights = Mapped(term, weight, 1)
    keys = Choice({str(member): str(member) for member in ObjectiveTerm} | {"tolerance": "tolerance"})
    aims = Listed(Either(term, Mapped(keys, kind_of(Price), 1), Listed(term, 1)), 1)

    def weights_of(aim: Any) -> dict[str, float]:
        return dict(aim) if isinstance(aim, dict) else dict.fromkeys([aim] if isinstance(aim, str) else aim, 1)

    def read(value: Any, at: Location, reading: Any) -> Objective:
        if not isinstance(value, list):
            return Objective(weights=weights.read(weights_of(value), at, reading))
        found: Objective | None = None
        for place, entry in reversed(list(enumerate(value))):
            aim = weights_of(entry)
            tolerance, here = aim.pop("tolerance", None), (*at, place)
            if tolerance is not None and found is None:
                reading.faults.add((*here, "tolerance"), "Expected a tolerance of an aim before another one only")
            if not aim:
                reading.faults.add(here, "Expected at least one term")
            elif not weights.accepts(aim):
                weights.explain(aim, here, reading.faults)
            if isinstance(entry, list) and len(aim) < len(entry):
                reading.faults.add(here, "Expected each term once")
            if found is not None and any(FrozenMap(aim) == later.weights for later in found.aims):
                reading.faults.add(here, f"Expected each aim once, got {' + '.join(aim)} again behind it")
            found = Objective(weights=weights.read(aim, here, reading), tolerance=tolerance or 0.0, then=found)
        return found or Objective()  # the kind asks for an entry

    def write_one(aim: Objective, writing: Any) -> str | dict[str, float]:
        written = weights.write(aim.weights, writing)
        if aim.tolerance:
            return written | {"tolerance": aim.tolerance}
        return next(iter(written)) if list(written.values()) == [1] else written

    def write(objective: Objective, writing: Any) -> Any:
        listed = [write_one(aim, writing) for aim in objective.aims]
        return listed[0] if len(listed) == 1 else listed

    return Spelt(Either(term, weights, aims), read, write)


def _hosts(read: Any) -> Spelt:
    """Return the kind of a host list, which is read in this way."""
    return Spelt(kind_of(Text), read, lambda names, writing: fold_hostlist(names))


_Groups = Annotated[FrozenMap[Name, Text], Entries(1)]
FORMS[Cluster] = Form(
    instead={
        "topology": {
            "topology": Annotated[
                FrozenMap[Name, _Groups] | None,
                Written("levels or links"),
                Key('Which nodes are near each other, by level and group: {"switch": {"s1": "n[1-4]"}}; or links'),
            ]
        }
    },
    also={
        "states": Annotated[
            FrozenMap[Text, NodeState] | None, Key('States of single nodes, by host list: {"n7": "down"}')
        ]
    },
    read=_read_cluster,
    write=_write_cluster,
)
FORMS[AdmitCondition] = Form(
    rule=lambda condition: None if condition else "Expected min or max_walltime, got neither",
    write=lambda condition, writing: {} if condition != AdmitCondition() else {"min": {}},
)
FORMS[Limit] = Form(
    rule=lambda limit: (
        None if limit.keys() & {"items", "duration", "area"} else "Expected items, duration or area, got no bound"
    )
)
FORMS[Reservation] = Form(
    instead={
        "request": {"request": Request | None},
        "allocation": {
            "allocation": Annotated[
                tuple[Placement, ...] | None, Entries(1), Key("What it has got already, and keeps")
            ],
            "place": Text | None,
        },
    },
    rule=_rule_of_reservations,
    read=_read_reservation,
    write=_write_reservation,
)
FORMS[Consumer] = Form(
    instead={"kind": {**{str(kind): Name | None for kind in ConsumerKind}, "each": ConsumerKind | None}, "name": {}},
    rule=lambda consumer: None if len(consumer) == 1 else f"Expected exactly one of {', '.join(ConsumerKind)} and each",
    read=_read_consumer,
    write=lambda one, writing: {"each": str(one.kind)} if one.name is None else {str(one.kind): one.name},
)
FORMS[Usage] = Form(
    rule=lambda usage: "Expected a user or a group by name, got each" if "each" in usage["consumer"] else None
)
FORMS[FairShare] = Form(read=_read_fair_share)
FORMS[Outage] = Form(
    rule=lambda outage: (
        f"Expected start < end, got {outage['start']} and {outage['end']}" if outage["start"] >= outage["end"] else None
    )
)
FORMS[Validity] = Form(rule=_rule_of_validities, read=_read_validity)
NOTATIONS["always or times"] = _rule_validity
NOTATIONS["host list"] = lambda: _hosts(lambda text, at, reading: reading.node_list(at, text))
NOTATIONS["new nodes"] = lambda: _hosts(lambda text, at, reading: reading.new_nodes(at, text))
NOTATIONS["levels or links"] = lambda: LevelsOrLinks(kind_of(FrozenMap[Name, _Groups]))
NOTATIONS["nodes or properties"] = lambda: Spelt(
    Either(kind_of(Text), Mapped(kind_of(Name), kind_of(Text), 1)),
    _read_queue_nodes,
    lambda names, writing: fold_hostlist(names),
)
NOTATIONS[ItemBound] = lambda: Spelt(
    kind_of(Text),
    lambda text, at, reading: reading.faults.parsed(at, parse_items, text, ItemBound(least=0)),
    lambda items, writing: format_items(items),
)
NOTATIONS[Objective] = _objective
