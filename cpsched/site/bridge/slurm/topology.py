"""Slurm's topology as levels: what ``scontrol show topology``, ``topology.conf`` or ``topology.yaml`` say."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from cpsched.domain import FrozenMap
from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats import MAX_NODES, expand_hostlist

#: The levels of the switches that have nodes (those above them are ``switch1``, ``switch2``, …), and of blocks.
LEAF, BLOCK = "switch", "block"
#: What the lines of each form begin with.
_BEGINS = re.compile(r"\s*(?:#.*\n|---\s*\n|\s)*(?:SwitchName=|BlockName=|- topology:)", re.IGNORECASE)
_PAIR = re.compile(r"([A-Za-z_]+)(?:=|:\s+)(\S+)")
#: The first of the sizes of blocks, the least.
_SIZE = re.compile(r"block_?sizes?(?:=|:[\s\[-]*)(\d+)", re.IGNORECASE)
#: More levels of switches are refused: each has the names of all nodes.
_MOST_LEVELS = 20
#: What YAML may have and this reader has not: mappings in braces, and lists of host lists.
_OTHER = re.compile(r"[{}]|\b(?:nodes|children):\s*$", re.IGNORECASE)
_KINDS = {"switchname": LEAF, "switch": LEAF, "blockname": BLOCK, "block": BLOCK}


@dataclass(frozen=True, slots=True)
class Topology:
    """Which nodes are near each other."""

    #: Nodes by level and group.
    levels: FrozenMap[str, FrozenMap[str, tuple[str, ...]]] = FrozenMap()
    #: A job on so many nodes or fewer is always in one block, as Slurm 24.11 does it; 0: there are no blocks.
    block_size: int = 0

    def __len__(self) -> int:
        return len(self.levels)


#: No node is nearer to another one than to all.
FLAT = Topology()


@dataclass(slots=True)
class _Part:
    """A switch or block as it is read; mutable."""

    kind: str
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


def is_topology(text: str) -> bool:
    """Tell whether a text is a topology in one of its forms."""
    return _BEGINS.match(text) is not None


def read_topology(text: str, source: str) -> Topology:
    """Return the nodes below each switch, by the height of the switch, and those of each block.

    Of several topologies in a ``topology.yaml`` that of the whole cluster, which is marked or the first. Raises
    `DocumentError` if a host list cannot be read, a switch is there twice, below itself, or nowhere but in another one,
    nodes are named before their switch, a node is in two groups of a level, or there are too many nodes or levels.
    """
    parts: dict[str, _Part] = {}
    left = MAX_NODES
    try:
        for name, key, value in _pairs(text):
            if not name or (key in _KINDS and name in parts):
                raise ValueError(
                    f"the {key} {value} " + ("a second time" if name else "before the name of their switch")
                )
            if key in _KINDS:
                parts[name] = _Part(_KINDS[key])
            elif key == "nodes":
                nodes = expand_hostlist(value, limit=left)
                parts[name].nodes += nodes
                left -= len(nodes)
            else:
                parts[name].children += expand_hostlist(value, limit=left)
        levels = _levels(parts)
    except (SyntaxFault, ValueError) as error:
        raise DocumentError(source, [Fault("", f"Expected a topology, got: {error}")]) from None
    ordered = sorted(levels, key=lambda level: (len(level), level), reverse=True)
    size = _SIZE.search(text)
    smallest = min(map(len, levels.get(BLOCK, {}).values()), default=0)
    return Topology(
        levels=FrozenMap({level: FrozenMap(levels[level]) for level in ordered}),
        block_size=int(size[1]) if size and smallest else smallest,
    )


def _pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (switch or block, key, value) of the topology that counts; the first pair of each has its kind as key."""
    documents: list[list[tuple[str, str, str]]] = [[]]
    name: str | None = ""  # None: that of a group that is left out
    chosen = 0
    for whole in text.splitlines():
        line = whole.partition("#")[0]
        if _OTHER.search(line):
            raise ValueError(f"{line.strip()} without key and host list on lines of their own")
        name = "" if line.lstrip().startswith("- ") else name
        for written, value in _PAIR.findall(line):
            key, value = written.lower(), value.strip("\"'")
            if key == "topology":
                documents.append([])
                name, chosen = "", chosen or 1
            elif key == "cluster_default" and value.lower() in ("true", "yes"):
                chosen = len(documents) - 1
            elif key in _KINDS or key == "aggregatedblock":
                name = value if key in _KINDS else None
                documents[-1] += [(name, key, value)] if name is not None else []
            elif name is not None and key in ("nodes", "switches", "children"):
                documents[-1].append((name, key, value))
    return iter(documents[chosen])


def _levels(parts: dict[str, _Part]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the nodes of each switch, and of all that are below it, by its level: of how many are below one another.

    Raises `ValueError`, see `read_topology`.
    """
    try:
        order = [*TopologicalSorter({name: part.children for name, part in parts.items()}).static_order()]
    except CycleError as error:
        raise ValueError(f"the switch {error.args[1][0]} is below itself") from None
    heights, below = dict[str, int](), dict[str, tuple[str, ...]]()
    group_of: dict[tuple[str, str], str] = {}
    for name in order:
        if name not in parts:
            above = next(one for one, part in parts.items() if name in part.children)
            raise ValueError(f"the switch {name} below {above} alone, without its own nodes or switches")
        part = parts[name]
        heights[name] = max((1 + heights[child] for child in part.children), default=0)
        if heights[name] > _MOST_LEVELS:
            raise ValueError(f"more than {_MOST_LEVELS} levels below {name}")
        nodes = (*part.nodes, *(node for child in part.children for node in below[child]))
        below[name] = tuple(dict.fromkeys(nodes))
    levels: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, part in parts.items():
        level = f"{part.kind}{heights[name] or ''}"
        if below[name]:
            levels.setdefault(level, {})[name] = below[name]
        for node in below[name]:
            if (other := group_of.setdefault((level, node), name)) != name:
                raise ValueError(f"the node {node} in two groups of one level, {other} and {name}")
    return levels
