"""A topology as a graph of links between nodes and switches, reduced to levels of groups by single linkage.

At a level two nodes are in one group if a chain of nodes joins them, each no farther from the next by the shortest path
than the distance of the level. The groups are what is left of a minimum spanning tree of all distances without its
longer edges (Gower and Ross, Applied Statistics 18, 1969). The tree is found without all pairs: a vertex belongs to its
nearest node, and a link is a path between the nodes of its ends (Mehlhorn, Information Processing Letters 27, 1988).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from cpsched.domain import MAX_AMOUNT, Bounds, Entries, FrozenMap, Key, Name, Text
from cpsched.formats.faults import Location, first_few, shown
from cpsched.formats.hostlist import MAX_NODES, expand_hostlist
from cpsched.formats.kinds import Either, Kind, Listed, object_of
from cpsched.formats.reading import Reading

if TYPE_CHECKING:
    from networkx import Graph

Level = FrozenMap[str, tuple[str, ...]]

#: More levels are refused: each has the names of all nodes.
_MOST_LEVELS = 20
_Distance = Annotated[int, Bounds(above=0, most=MAX_AMOUNT)]


class LevelsOrLinks(Either):
    """The levels of a topology, or an object whose ``links`` are a list."""

    def __init__(self, levels: Kind) -> None:
        link = {
            "from": Annotated[Text, Key("A host list of nodes or switches")],
            "to": Annotated[Text, Key("Another one: each of these is linked with each of those")],
            "length": Annotated[_Distance | None, Key("Of the link, in any unit (default 1)")],
        }
        keys = {
            "switches": Annotated[Text | None, Key("A host list")],
            "links": Listed(object_of("Link", "Links between nodes and switches.", link), 1),
            "levels": Annotated[
                FrozenMap[Name, _Distance] | None, Entries(1), Key("The distance of each level; default: all distances")
            ],
        }
        super().__init__(levels, object_of("Links", "A graph, which is reduced to levels.", keys))

    def _of(self, value: Any) -> Kind:
        return self._other if has_links(value) else self._text


def has_links(topology: object) -> bool:
    """Tell whether a topology is a graph of links."""
    return isinstance(topology, dict) and not isinstance(topology.get("links", {}), dict)


def read_links(reading: Reading, location: Location, topology: Mapping[str, Any]) -> dict[str, Level]:
    """Return the levels of a graph, the widest first; faults and nodes without a link are noted.

    A group is named after the switch in it that is farthest from all nodes, of several the one declared first, or after
    its first node where it has no switch.
    """
    from networkx import multi_source_dijkstra_path_length
    from networkx.utils import UnionFind

    switches = _read_switches(reading, (*location, "switches"), topology.get("switches"))
    graph = _read_graph(reading, (*location, "links"), topology["links"], switches)
    nodes = [name for name in reading.cluster.node_names if name in graph]
    if not nodes:
        reading.faults.add((*location, "links"), "Expected links of nodes, got none")
        return {}
    near = multi_source_dijkstra_path_length(graph, nodes, weight="length")
    nearest = {node: node for node in nodes}
    # lengths are above 0: the vertex before another one on its path has got its node before
    for vertex in sorted(near, key=near.__getitem__):
        if vertex not in nearest:
            last = (one for one, link in graph.adj[vertex].items() if near[one] + link["length"] == near[vertex])
            nearest[vertex] = nearest[next(last)]
    paths = sorted(
        (near[one] + length + near[other], nearest[one], nearest[other])
        for one, other, length in graph.edges(data="length")
        if one in near
    )
    forest = UnionFind(nodes)
    steps = []
    for distance, one, other in paths:
        if forest[one] != forest[other]:
            forest.union(one, other)
            steps.append((distance, one, other))
    levels = topology.get("levels") or {str(distance): distance for distance, _, _ in steps}
    if len(levels) > _MOST_LEVELS:
        message = f"Expected at most {_MOST_LEVELS} levels by name and distance, got {len(levels)} distances"
        reading.faults.add((*location, "levels"), message)
        return {}
    found = dict[str, Level]()
    by_height = sorted((name for name in switches if name in near), key=near.__getitem__, reverse=True)
    for level, most in sorted(levels.items(), key=lambda item: item[1], reverse=True):
        forest = UnionFind(nodes)
        for distance, one, other in steps:
            if distance <= most:
                forest.union(one, other)
        name_of = dict[str, str]()
        for switch in by_height:
            if 2 * near[switch] <= most:
                name_of.setdefault(forest[nearest[switch]], switch)
        groups = dict[str, list[str]]()
        for node in nodes:
            groups.setdefault(name_of.setdefault(forest[node], node), []).append(node)
        found[level] = FrozenMap({name: tuple(group) for name, group in groups.items()})
    return found


def _read_switches(reading: Reading, location: Location, text: str | None) -> Collection[str]:
    """Return the names of all switches, none of which is a node."""
    parse = partial(expand_hostlist, limit=MAX_NODES)
    names = () if text is None else reading.faults.parsed(location, parse, text, ())
    switches = dict.fromkeys(name for name in names if name not in reading.cluster.class_of)
    if len(switches) < len(names):
        reading.faults.add(location, f"Expected every switch once, and no nodes, got {shown(text)}")
    return switches.keys()


def _read_graph(
    reading: Reading, location: Location, links: list[Mapping[str, Any]], switches: Collection[str]
) -> Graph:
    """Return the graph; of several links between two vertices the shortest counts."""
    from networkx import Graph

    graph = Graph()
    known = dict.fromkeys((*reading.cluster.node_names, *switches))
    left = MAX_NODES
    for index, link in enumerate(links):
        at, length = (*location, index), link.get("length", 1)
        ends, others = (reading.node_list((*at, key), link[key], known) for key in ("from", "to"))
        left -= len(ends) * len(others)
        if left < 0:
            reading.faults.add(at, f"Expected at most {MAX_NODES} links, got more")
            break
        if loops := set(ends) & set(others):
            reading.faults.add(at, f"Expected links between two vertices, got {first_few(sorted(loops))} with itself")
        for one, other in product(ends, others):
            if one != other and (not graph.has_edge(one, other) or length < graph.edges[one, other]["length"]):
                graph.add_edge(one, other, length=length)
    alone = [name for name in reading.cluster.node_names if name not in graph]
    if alone:
        reading.on_warning(reading.faults.fault(location, f"no link has {first_few(alone)}: in no group of any level"))
    return graph
