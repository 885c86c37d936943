"""Slurm's topology as levels: what ``scontrol show topology``, ``topology.conf`` or ``topology.yaml`` say."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from cpsched.domain import MAX_NAME, FrozenMap
from cpsched.errors import Fault, SyntaxFault
from cpsched.formats import MAX_NODES, expand_hostlist
from cpsched.text import did_you_mean, printable

#: The levels of the switches that have nodes (those above them are ``switch1``, ``switch2``, …), and of blocks.
LEAF, BLOCK = "switch", "block"
#: What the lines of each form begin with.
_BEGINS = re.compile(r"\s*(?:#.*\n|---\s*\n|\s)*(?:SwitchName=|BlockName=|- topology:)", re.IGNORECASE)
_PAIR = re.compile(r"([A-Za-z_]+)(?:=|:\s+)(\S+)")
#: Of each topology of a ``topology.yaml``: its first line, and that it is the one of the whole cluster.
_NEXT = re.compile(r"^[\s-]*topology:", re.IGNORECASE | re.MULTILINE)
_DEFAULT = re.compile(r"^\s*cluster_default:\s*[\"']?(?:true|yes)", re.IGNORECASE | re.MULTILINE)
#: The first of the sizes of blocks, the least.
_SIZE = re.compile(r"^[^#\n]*block_?sizes?(?:=|:[\s\[-]*)(\w{1,9})", re.IGNORECASE | re.MULTILINE)
#: More levels of switches are refused: each has the names of all nodes.
_MOST_LEVELS = 20
#: What YAML may have and this reader has not: mappings in braces, and lists of host lists.
_OTHER = re.compile(r"[{}]|\b(?:nodes|children):\s*$", re.IGNORECASE)
_KINDS = {"switchname": LEAF, "switch": LEAF, "blockname": BLOCK, "block": BLOCK}
_MEMBERS = ("nodes", "switches", "children")
#: What says nothing of nodes, or is read elsewhere.
_OTHERS = re.compile(r"level|link_?speed|block_?(?:index|sizes?)|cluster_default|flat", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topology:
    """Which nodes are near each other."""

    #: Nodes by level and group.
    levels: FrozenMap[str, FrozenMap[str, tuple[str, ...]]] = FrozenMap()
    #: A job on so many nodes or fewer is always in one block, as Slurm 24.11 does it; 0: there are no blocks.
    block_size: int = 0
    #: What of it counts for nothing, and why; without levels, why the whole does.
    notes: tuple[Fault, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.levels.values())) or len(self.notes)


#: No node is nearer to another one than to all.
FLAT = Topology()


#: Takes what is expected where, and what was found.
_Note = Callable[[str, str, str], None]


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

    Of several topologies in a ``topology.yaml`` that of the whole cluster, which is marked or the first. Slurm plans on
    where a topology has faults, so none is raised: notes say which switches count for nothing, and that all do if a
    host list cannot be read, a switch is there twice, below itself, or nowhere but in another one, nodes are named
    before their switch, a node is in two groups of a level, or there are too many nodes or levels.
    """
    topologies = _NEXT.split(text)[1:] or [text]
    chosen = next(filter(_DEFAULT.search, topologies), topologies[0])
    notes = list[Fault]()

    def note(where: str, expected: str, got: str) -> None:
        notes.append(Fault(printable(f"{source}: {where}"), f"Expected {expected}, got {printable(got)}"))

    try:
        parts = _parts(chosen, note)
        levels = _levels(parts, note)
    except (SyntaxFault, ValueError) as error:
        said = printable(f"Expected a topology, got: {error}; no node counts as near another one")
        return Topology(notes=(Fault(source, said),))
    ordered = sorted(levels, key=lambda level: (len(level), level), reverse=True)
    smallest = min(map(len, levels.get(BLOCK, {}).values()), default=0)
    size, least = _SIZE.search(chosen), 0
    if size and smallest:
        least = int(size[1]) if size[1].isdecimal() else 0
        if not 1 <= least <= smallest:
            note("BlockSizes", f"1 to {smallest}, the nodes of the smallest block", size[1])
    by_level = FrozenMap({level: FrozenMap(levels[level]) for level in ordered})
    return Topology(levels=by_level, block_size=least or smallest, notes=tuple(notes))


def _parts(text: str, note: _Note) -> dict[str, _Part]:
    """Return switches and blocks by name. Raises `SyntaxFault` or `ValueError`, see `read_topology`."""
    parts: dict[str, _Part] = {}
    left = MAX_NODES
    for name, written, value in _pairs(text):
        key = written.lower()
        if key in _KINDS:
            if not name or name in parts or len(name) > MAX_NAME or not name.isprintable():
                raise ValueError(f"the {key} {value} a second time, or with an empty, long or unprintable name")
            parts[name] = _Part(_KINDS[key])
        elif key not in _MEMBERS:
            note(name or "before all switches", "known keys", f"{written}={value}{did_you_mean(key, _MEMBERS)}")
        elif not name:
            raise ValueError(f"the {key} {value} before the name of their switch")
        elif key == "nodes":
            nodes = expand_hostlist(value, limit=left)
            parts[name].nodes += nodes
            left -= len(nodes)
        else:
            parts[name].children += expand_hostlist(value, limit=left)
    return parts


def _pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (switch or block, key, value) of a topology; the first pair of each has its kind as key."""
    name: str | None = ""  # None: that of a group that is left out
    for whole in text.splitlines():
        line = whole.partition("#")[0]
        if _OTHER.search(line):
            raise ValueError(f"{line.strip()} without key and host list on lines of their own")
        name = "" if line.lstrip().startswith("- ") else name
        for key, quoted in _PAIR.findall(line):
            value = quoted.strip("\"'")
            if key.lower() in _KINDS or key.lower() == "aggregatedblock":
                name = value if key.lower() in _KINDS else None
            if name is not None and not _OTHERS.fullmatch(key):
                yield name, key, value


def _levels(parts: dict[str, _Part], note: _Note) -> dict[str, dict[str, tuple[str, ...]]]:
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
        of_children = dict.fromkeys(node for child in part.children for node in below[child])
        below[name] = tuple(dict.fromkeys((*part.nodes, *of_children)))
        if not below[name]:
            note(name, "nodes or switches with nodes", "none")
        elif part.children and not of_children.keys() >= {*part.nodes}:
            note(name, "nodes or switches", "both; all nodes below it count")
    levels: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, part in parts.items():
        level = f"{part.kind}{heights[name] or ''}"
        if below[name]:
            levels.setdefault(level, {})[name] = below[name]
        for node in below[name]:
            if (other := group_of.setdefault((level, node), name)) != name:
                raise ValueError(f"the node {node} in two groups of one level, {other} and {name}")
    return levels
