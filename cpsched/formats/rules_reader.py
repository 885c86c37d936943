"""Cluster, limits, free pools, reservations, usage and outages of an instance: from models to domain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cpsched.domain import (
    Access,
    AdmitCondition,
    Amounts,
    AreaScope,
    Cluster,
    Consumer,
    ConsumerKind,
    FreePool,
    FrozenMap,
    ItemBound,
    KeepFree,
    Limit,
    MaxWait,
    NodeClass,
    NodeState,
    Outage,
    Placement,
    Queue,
    Request,
    Reservation,
    ReservationKind,
    Usage,
    Validity,
)
from cpsched.errors import SyntaxFault
from cpsched.formats.faults import Location, first_few, path_of, shown
from cpsched.formats.hostlist import MAX_NODES, expand_hostlist, meant_range
from cpsched.formats.instance_model import (
    AccessModel,
    ClusterModel,
    ConsumerModel,
    FreePoolModel,
    LimitModel,
    NodesModel,
    OutageModel,
    PlacementModel,
    QueueModel,
    ReservationModel,
    TimesModel,
    UsageModel,
)
from cpsched.formats.notations import check_cron, parse_items
from cpsched.formats.reading import Reading, frozen_amounts, read_allocation

__all__ = [
    "read_cluster",
    "read_free_pool",
    "read_limit",
    "read_outage",
    "read_queue",
    "read_reservation",
    "read_usage",
]

#: The names that a limit may have besides resources and licences.
_COUNTED_JOBS = ("jobs", "arrayjobs", "*")
#: Names that a limit or a request's text means otherwise.
_NO_LICENSES = (*_COUNTED_JOBS, "place")


def read_queue(reading: Reading, where: Location, model: QueueModel, cluster: Cluster) -> Queue:
    """Return a queue, with the names of its nodes."""
    held, nodes = model.max_wait, None
    if isinstance(model.nodes, str):
        nodes = _read_node_list(reading, (*where, "nodes"), model.nodes, cluster)
    elif model.nodes is not None:
        nodes = _nodes_with(cluster, model.nodes)
        if not nodes and "nodes" not in reading.incomplete:
            wanted = ", ".join(f"{name}={value}" for name, value in model.nodes.items())
            message = f"Expected properties that some node has, got {shown(wanted)}"
            reading.faults.add((*where, "nodes"), message)
    return Queue(
        expected_wait=model.expected_wait,
        priority=model.priority,
        weight=model.weight,
        max_walltime=model.max_walltime,
        max_wait=None if held is None else MaxWait(seconds=held.seconds, price=held.price, is_hard=held.hard),
        nodes=nodes,
    )


def _nodes_with(cluster: Cluster, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes that have all of some properties."""
    return tuple(
        name
        for node_class in cluster.classes
        if properties.items() <= node_class.properties.items()
        for name in node_class.names
    )


def read_cluster(reading: Reading, model: ClusterModel) -> Cluster:
    """Return the cluster; of a node that occurs twice only the first entry counts."""
    first_place: dict[str, Location] = {}
    classes = []
    for index, nodes in enumerate(model.nodes):
        where: Location = ("cluster", "nodes", reading.positions["nodes"][index])
        names = _read_names(reading, (*where, "names"), nodes.names, first_place)
        _check_guards(reading, where, nodes)
        classes.append(
            NodeClass(
                names=names,
                resources=Amounts(nodes.resources),
                properties=FrozenMap(nodes.properties),
                priority=nodes.priority,
                state=NodeState(nodes.state),
                admits=tuple(
                    AdmitCondition(min=Amounts(a.min or {}), max_walltime=a.max_walltime) for a in nodes.admits
                ),
                keep_free=tuple(
                    KeepFree(resource=kept.resource, items=kept.items, beneficiary=kept.for_)
                    for kept in nodes.keep_free
                ),
            )
        )
    for name in model.licenses:
        if name in reading.countable or name in _NO_LICENSES:
            reading.faults.add(("cluster", "licenses", name), "Expected a name that means nothing else")
    cluster = Cluster(classes=tuple(classes), licenses=Amounts(model.licenses))
    return _with_states(reading, cluster, model.states) if model.states else cluster


def _with_states(reading: Reading, cluster: Cluster, states: Mapping[str, str]) -> Cluster:
    """Split classes whose nodes have several states into one for each state, in the order of their first nodes.

    So the nodes that are up keep their order, and there are few classes however many nodes are not.
    """
    state_of: dict[str, NodeState] = {}
    for hosts, state in states.items():
        where: Location = ("cluster", "states", hosts)
        names = _read_node_list(reading, where, hosts, cluster)
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
    return Cluster(classes=tuple(classes), licenses=cluster.licenses)


def _read_names(reading: Reading, where: Location, text: str, first_place: dict[str, Location]) -> tuple[str, ...]:
    try:
        names = expand_hostlist(text, limit=MAX_NODES - len(first_place))
    except SyntaxFault as error:
        reading.faults.add_syntax(where, error)
        return ()
    for name in names:
        if meant := meant_range(name):
            message = f"one node is called {shown(name)}; did you mean the nodes {meant}?"
            reading.on_warning(reading.faults.fault(where, message))
    twice: list[str] = []
    for name in names:
        if name in first_place:
            twice.append(name)
        else:
            first_place[name] = where
    if twice:
        earlier = path_of(first_place[twice[0]])
        reading.faults.add(where, f"Expected every node once, got again: {first_few(twice)} (first in {earlier})")
    return names


def _check_guards(reading: Reading, where: Location, nodes: NodesModel) -> None:
    for index, condition in enumerate(nodes.admits):
        for name in condition.min or ():
            reading.check_resource((*where, "admits", index, "min", name), name)
    for index, kept in enumerate(nodes.keep_free):
        reading.check_resource((*where, "keep_free", index, "resource"), kept.resource)
        reading.check_resource((*where, "keep_free", index, "for"), kept.for_)


def read_limit(reading: Reading, where: Location, model: LimitModel) -> Limit:
    """Return a limit."""
    reading.check_resource((*where, "resource"), model.resource, also=[*reading.licenses, *_COUNTED_JOBS])
    return Limit(
        consumer=_read_consumer(model.consumer),
        resource=model.resource,
        items=None if model.items is None else _read_items(reading, (*where, "items"), model.items),
        duration=model.duration,
        area=model.area,
        area_scope=AreaScope(model.area_scope),
        validity=_read_validity(reading, (*where, "validity"), model.validity),
        soft=model.soft,
    )


def read_free_pool(reading: Reading, where: Location, model: FreePoolModel, cluster: Cluster) -> FreePool:
    """Return a free pool."""
    reading.check_resource((*where, "resource"), model.resource, also=reading.licenses)
    nodes = None
    if model.nodes is not None:
        nodes = _read_node_list(reading, (*where, "nodes"), model.nodes, cluster)
    return FreePool(
        resource=model.resource,
        items=_read_items(reading, (*where, "items"), model.items),
        open_to=_read_access(reading, (*where, "open_to"), model.open_to),
        validity=_read_validity(reading, (*where, "validity"), model.validity),
        nodes=nodes,
        otherwise_max_walltime=None if model.otherwise is None else model.otherwise.max_walltime,
    )


def read_reservation(
    reading: Reading, where: Location, model: ReservationModel, cluster: Cluster
) -> Reservation | None:
    """Return a reservation, or None where its request has faults."""
    request, nodes, licenses = None, None, frozen_amounts(model.licenses)
    if model.request is not None:
        read = reading.request((*where, "request"), model.request, model.place, model.licenses)
        if read is None:
            return None
        request, licenses = read
    elif model.nodes is not None:
        nodes = _read_node_list(reading, (*where, "nodes"), model.nodes, cluster)
    allocation = tuple[Placement, ...]()
    if model.allocation is not None and request is not None:
        allocation = _read_slice(reading, (*where, "allocation"), model.allocation, request, cluster)
    return Reservation(
        id=model.id,
        start=model.start,
        end=model.end,
        validity=None if model.validity is None else _read_validity(reading, (*where, "validity"), model.validity),
        request=request,
        nodes=nodes,
        allocation=allocation,
        licenses=licenses,
        users=tuple(model.users),
        kind=ReservationKind(model.kind),
    )


def _read_slice(
    reading: Reading, where: Location, models: Sequence[PlacementModel], request: Request, cluster: Cluster
) -> tuple[Placement, ...]:
    """Return the nodes that a reservation has got already: its chunks are stated of all nodes or of none."""
    for index, held in enumerate(models):
        at = (*where, index)
        reading.check_known((*at, "node"), "node", held.node, cluster.class_of, "nodes")
        if (held.chunk is None) != (models[0].chunk is None):
            reading.faults.add(at, "Expected chunk and count as on its other nodes, or on none of them")
        elif held.chunk is not None and held.chunk >= len(request.chunks):
            message = f"Expected a kind of chunks from 0 to {len(request.chunks) - 1}, got {held.chunk}"
            reading.faults.add((*at, "chunk"), message)
    return read_allocation(reading, where, models)


def read_usage(reading: Reading, where: Location, model: UsageModel) -> Usage:
    """Return the area that a user or group has used."""
    reading.check_resource((*where, "resource"), model.resource, also=reading.licenses)
    return Usage(consumer=_read_consumer(model.consumer), resource=model.resource, area=model.area)


def read_outage(reading: Reading, where: Location, model: OutageModel, cluster: Cluster) -> Outage:
    """Return an outage."""
    nodes = _read_node_list(reading, (*where, "nodes"), model.nodes, cluster)
    return Outage(nodes=nodes, start=model.start, end=model.end)


def _read_consumer(model: ConsumerModel) -> Consumer:
    if model.each is not None:
        return Consumer(kind=ConsumerKind(model.each), name=None)
    kind = ConsumerKind.USER if model.user is not None else ConsumerKind.GROUP
    return Consumer(kind=kind, name=model.user if model.user is not None else model.group)


def _read_items(reading: Reading, where: Location, text: str) -> ItemBound:
    try:
        return parse_items(text)
    except SyntaxFault as error:
        reading.faults.add_syntax(where, error)
        return ItemBound(least=0)


def _read_validity(reading: Reading, where: Location, model: str | TimesModel) -> Validity:
    if isinstance(model, str):
        return Validity()
    if model.cron is not None:
        try:
            check_cron(model.cron)
        except SyntaxFault as error:
            reading.faults.add_syntax((*where, "cron"), error)
        if not reading.has_epoch:
            reading.faults.add(
                (*where, "cron"), "Expected the instance to have an epoch, which a calendar needs; got none"
            )
    return Validity(from_=model.from_, until=model.until, cron=model.cron)


def _read_access(reading: Reading, where: Location, model: AccessModel) -> Access:
    for index, name in enumerate(model.asks_for):
        reading.check_resource((*where, "asks_for", index), name, also=reading.licenses)
    for name in model.max or ():
        reading.check_resource((*where, "max", name), name, also=reading.licenses)
    return Access(
        users=tuple(model.users),
        groups=tuple(model.groups),
        asks_for=tuple(model.asks_for),
        max=None if model.max is None else Amounts(model.max),
        max_walltime=model.max_walltime,
    )


def _read_node_list(reading: Reading, where: Location, text: str, cluster: Cluster) -> tuple[str, ...]:
    try:
        names = expand_hostlist(text, limit=MAX_NODES if "nodes" in reading.incomplete else len(cluster.node_names))
    except SyntaxFault as error:
        reading.faults.add_syntax(where, error)
        return ()
    unknown = [name for name in names if name not in cluster.class_of]
    if unknown and "nodes" not in reading.incomplete:
        meant = meant_range(unknown[0])
        hint = f", did you mean {meant}?" if meant else reading.faults.suggestion(unknown[0], cluster.class_of)
        reading.faults.add(where, f"Expected nodes of the cluster, got also: {first_few(unknown)}{hint}")
    if len(set(names)) < len(names):
        reading.faults.add(where, "Expected every node once")
    return names
