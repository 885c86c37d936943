"""The nodes and queues of the first document: classes, states of single nodes, and which queue may use which node."""

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import product
from math import inf
from typing import TypeVar

from cpsched.verify.documents import MAX_AMOUNT, MAX_SIZE, Cursor
from cpsched.verify.jobs import parsed, read_price, read_weight
from cpsched.verify.model import Condition, KeepFree, MaxWait, NodeClass, Queue
from cpsched.verify.syntax import expand_hosts

T = TypeVar("T", bound=Hashable)

STATES = ("up", "drain", "down")
#: The most levels that links are read as.
MAX_LEVELS = 20
#: The default price of an expected wait beyond a queue's ``max_wait``.
DEFAULT_PRICE = Fraction(10)


def items_of(members: Mapping[str, Cursor], key: str) -> list[Cursor]:
    """Return the elements of an array that may be left out."""
    return members[key].items() if key in members else []


def read_nodes(cursor: Cursor) -> dict[str, NodeClass]:
    """Read all nodes; each name occurs once."""
    nodes: dict[str, NodeClass] = {}
    for item in cursor.items():
        members = item.members(["names", "resources"], ["properties", "priority", "state", "admits", "keep_free"])
        if "priority" in members:
            members["priority"].integer(-MAX_AMOUNT, MAX_AMOUNT)
        node_class = NodeClass(
            resources=read_totals(members["resources"]),
            properties={name: value.text() for name, value in members["properties"].entries()}
            if "properties" in members
            else {},
            state=members["state"].choice(STATES) if "state" in members else "up",
            admits=tuple(_read_condition(condition) for condition in items_of(members, "admits")),
            keep_free=tuple(_read_keep_free(entry) for entry in items_of(members, "keep_free")),
        )
        for name in parsed(members["names"], lambda text: tuple(expand_hosts(text))):
            if name in nodes:
                members["names"].refuse(f"expected each node once, got {name!r} again")
            nodes[name] = node_class
        if len(nodes) > MAX_SIZE:
            cursor.refuse(f"expected at most {MAX_SIZE} nodes")
    if not nodes:
        cursor.refuse("expected at least one node")
    return nodes


def with_states(nodes: Mapping[str, NodeClass], cursor: Cursor) -> dict[str, NodeClass]:
    """Read the states of single nodes, which override those of their entries; each node is named once."""
    state_of: dict[str, str] = {}
    for hosts, state in cursor.mapping().items():
        item = Cursor(state, f"{cursor.path}.{hosts}", cursor.source)
        for name in read_hosts(Cursor(hosts, item.path, cursor.source), nodes):
            if name in state_of:
                item.refuse(f"expected one state for each node, got another for {name!r}")
            state_of[name] = item.choice(STATES)
    return _split(
        {name: (node_class, state_of.get(name, node_class.state)) for name, node_class in nodes.items()},
        lambda node_class, state: replace(node_class, state=state),
    )


def closed_to_queues(nodes: Mapping[str, NodeClass], queues: Mapping[str, Queue]) -> dict[str, NodeClass]:
    """Note at each node the queues that have nodes of their own, none of which it is."""
    own = {name: queue.nodes for name, queue in queues.items() if queue.nodes is not None}
    return _split(
        {
            node: (node_class, frozenset(queue for queue, among in own.items() if node not in among))
            for node, node_class in nodes.items()
        },
        lambda node_class, closed: replace(node_class, closed_to=closed),
    )


def read_topology(cursor: Cursor, nodes: Collection[str]) -> dict[str, dict[str, str]]:
    """Read the levels of the topology: the group of each node that is in one."""
    levels: dict[str, dict[str, str]] = {}
    if not isinstance(cursor.mapping().get("links", {}), dict):
        return _levels_of_links(cursor, nodes)
    for level, groups in cursor.entries():
        group_of = levels[level] = {}
        for group, hosts in groups.entries():
            for name in read_hosts(hosts, nodes):
                if group_of.setdefault(name, group) != group:
                    hosts.refuse(f"expected each node in one {level}, got {name!r} again")
        if not groups.entries():
            groups.refuse("expected at least one group")
    return levels


def _levels_of_links(cursor: Cursor, nodes: Collection[str]) -> dict[str, dict[str, str]]:
    """Read a graph of links: the groups of a level are parts of one walk through all nodes, which always goes to the
    node that is nearest to any it has been to (Prim, 1957), cut where the next one is farther than the level says.
    """
    members = cursor.members(["links"], ["switches", "levels"])
    switches = parsed(members["switches"], lambda text: tuple(expand_hosts(text))) if "switches" in members else ()
    known = {*nodes, *switches}
    if len(known) < len(nodes) + len(switches):
        members["switches"].refuse("expected each switch once, and no nodes")
    lengths: dict[str, dict[str, int]] = {}
    total = 0
    for link in members["links"].items():
        ends = link.members(["from", "to"], ["length"])
        length = ends["length"].integer(1, MAX_AMOUNT) if "length" in ends else 1
        sides = read_hosts(ends["from"], known), read_hosts(ends["to"], known)
        total += len(sides[0]) * len(sides[1])
        if total > MAX_SIZE or not set(sides[0]).isdisjoint(sides[1]):
            link.refuse(f"expected at most {MAX_SIZE} links, each between two vertices")
        for one, other in (*product(*sides), *product(*reversed(sides))):
            of_one = lengths.setdefault(one, {})
            of_one[other] = min(length, of_one.get(other, length))
    walk = _walk(lengths, nodes)
    distances = {str(step): step for step, _ in walk if step < inf}
    if "levels" in members:
        distances = {level: most.integer(1, MAX_AMOUNT) for level, most in members["levels"].entries()}
    if lengths.keys().isdisjoint(nodes):
        members["links"].refuse("expected links of nodes")
    if len(distances) > MAX_LEVELS or ("levels" in members and not distances):
        cursor.refuse(f"expected 1 to {MAX_LEVELS} levels, got {len(distances)}")
    levels: dict[str, dict[str, str]] = {}
    for level, most in distances.items():
        group, levels[level] = "", {}
        for step, node in walk:
            group = node if step > most else group
            levels[level][node] = group
    return levels


def _walk(lengths: Mapping[str, Mapping[str, int]], nodes: Collection[str]) -> list[tuple[float, str]]:
    """Return all nodes with links, each with its distance to the nearest one before it; `inf`: no path."""
    heap = [(inf, node) for node in nodes if node in lengths]
    nearest = {node: inf for _, node in heap}
    walk: list[tuple[float, str]] = []
    while heap:
        away, vertex = heappop(heap)
        if away > nearest[vertex]:
            continue
        if vertex in nodes:
            walk.append((away, vertex))
            away = nearest[vertex] = 0
        for other, length in lengths[vertex].items():
            if away + length < nearest.get(other, inf):
                nearest[other] = away + length
                heappush(heap, (nearest[other], other))
    return walk


def read_slowdown(cursor: Cursor, levels: Collection[str]) -> dict[str, int]:
    """Read by how many percent jobs take longer in a record whose nodes are in several groups of a level."""
    for level, percent in cursor.entries():
        if level not in levels:
            percent.refuse(f"expected a declared level, got {level!r}")
    return {level: percent.integer(0, 10_000) for level, percent in cursor.entries()}


def _split(
    parts: Mapping[str, tuple[NodeClass, T]], part_of: Callable[[NodeClass, T], NodeClass]
) -> dict[str, NodeClass]:
    """Return for each node its class or the part of it that it is in; the nodes of a part share it."""
    found: dict[tuple[int, T], NodeClass] = {}
    for node_class, part in parts.values():
        if (id(node_class), part) not in found:
            found[id(node_class), part] = part_of(node_class, part)
    return {name: found[id(node_class), part] for name, (node_class, part) in parts.items()}


def read_totals(cursor: Cursor) -> dict[str, int]:
    """Read what one node has; a resource of which it has 0 is known all the same."""
    return {name: amount.integer(0, MAX_AMOUNT) for name, amount in cursor.entries()}


def _read_condition(cursor: Cursor) -> Condition:
    members = cursor.members(optional=["min", "max_walltime"])
    if not members:
        cursor.refuse("expected min or max_walltime, got neither")
    return Condition(
        members["min"].amounts() if "min" in members else {},
        members["max_walltime"].duration() if "max_walltime" in members else None,
    )


def _read_keep_free(cursor: Cursor) -> KeepFree:
    """Read one entry of ``keep_free``."""
    members = cursor.members(["resource", "items", "for"])
    return KeepFree(members["resource"].name(), members["items"].integer(0, MAX_AMOUNT), members["for"].name())


def check_rules_of_nodes(cursor: Cursor, countable: Collection[str]) -> None:
    """Check that guards and ``keep_free`` speak of countable resources."""
    members = cursor.members(["names", "resources"], ["properties", "priority", "state", "admits", "keep_free"])
    for condition in items_of(members, "admits"):
        guard = condition.members(optional=["min", "max_walltime"])
        for name, amount in guard["min"].entries() if "min" in guard else ():
            check_known(amount, name, countable)
    for entry in items_of(members, "keep_free"):
        rule = entry.members(["resource", "items", "for"])
        for key in ("resource", "for"):
            check_known(rule[key], rule[key].name(), countable)


def check_known(cursor: Cursor, name: str, known: Collection[str]) -> None:
    """Refuse the name of a resource or licence that is not declared."""
    if name not in known:
        cursor.refuse(f"expected a known resource, got {name!r}")


def read_queues(cursor: Cursor, nodes: Mapping[str, NodeClass]) -> dict[str, Queue]:
    """Read the queues of a cluster with some nodes."""
    queues: dict[str, Queue] = {}
    for name, entry in cursor.entries():
        members = entry.members(["expected_wait"], ["priority", "weight", "max_walltime", "max_wait", "nodes"])
        priority = members["priority"].integer(-MAX_AMOUNT, MAX_AMOUNT) if "priority" in members else 0
        most = members["max_walltime"].duration() if "max_walltime" in members else None
        max_wait = _read_max_wait(members["max_wait"]) if "max_wait" in members else None
        weight = read_weight(members["weight"]) if "weight" in members else Fraction(1)
        among = _read_queue_nodes(members["nodes"], nodes) if "nodes" in members else None
        queues[name] = Queue(members["expected_wait"].duration(), most, max_wait, weight, among, priority)
    return queues


def _read_queue_nodes(cursor: Cursor, nodes: Mapping[str, NodeClass]) -> frozenset[str]:
    """Read the nodes of a queue: a host list, or properties that at least one node has."""
    if isinstance(cursor.value, str):
        return frozenset(read_hosts(cursor, nodes))
    wanted = {name: value.text() for name, value in cursor.entries()}
    among = frozenset(
        name
        for name, node_class in nodes.items()
        if all(node_class.properties.get(key) == value for key, value in wanted.items())
    )
    if not wanted or not among:
        cursor.refuse("expected a host list, or properties that some node has")
    return among


def _read_max_wait(cursor: Cursor) -> MaxWait:
    """Read the longest wait that a queue wants."""
    members = cursor.members(["seconds"], ["price", "hard"])
    return MaxWait(
        members["seconds"].duration(),
        read_price(members.get("price"), DEFAULT_PRICE),
        members["hard"].flag() if "hard" in members else False,
    )


def read_hosts(cursor: Cursor, nodes: Collection[str]) -> tuple[str, ...]:
    """Read a list of nodes of the cluster, each once."""
    listed = parsed(cursor, lambda hosts: tuple(expand_hosts(hosts)))
    among = frozenset(listed)
    unknown = sorted(among.difference(nodes))
    if unknown:
        cursor.refuse(f"expected nodes of the cluster, got {unknown[0]!r}")
    if len(among) < len(listed):
        cursor.refuse("expected each node once")
    return listed
