"""Slurm's topology as levels: what ``scontrol show topology``, ``topology.conf`` or ``topology.yaml`` say."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cpsched.domain import FrozenMap
from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats import expand_hostlist

#: The levels of the switches that have nodes (those above them are ``switch1``, ``switch2``, …), and of blocks.
LEAF, BLOCK = "switch", "block"
#: What the lines of each form begin with.
_BEGINS = re.compile(r"\s*(?:#.*\n|---\s*\n|\s)*(?:SwitchName=|BlockName=|- topology:)", re.IGNORECASE)
_PAIR = re.compile(r"([A-Za-z_]+)(?:=|:\s+)(\S+)")
#: The first of the sizes of blocks, the least.
_SIZE = re.compile(r"block_?sizes?(?:=|:[\s\[-]*)(\d+)", re.IGNORECASE)
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
    `DocumentError` if a host list cannot be read, a switch is there twice or below itself, or nodes are named before
    their switch.
    """
    parts: dict[str, _Part] = {}
    try:
        for name, key, value in _pairs(text):
            if not name or (key in _KINDS and name in parts):
                raise ValueError(
                    f"the {key} {value} " + ("a second time" if name else "before the name of their switch")
                )
            if key in _KINDS:
                parts[name] = _Part(_KINDS[key])
            elif key == "nodes":
                parts[name].nodes = expand_hostlist(value)
            else:
                parts[name].children = expand_hostlist(value)
        levels: dict[str, dict[str, tuple[str, ...]]] = {}
        for name, part in parts.items():
            height = _height(name, parts, ())
            level = part.kind if height == 0 else f"{part.kind}{height}"
            if nodes := tuple(dict.fromkeys(_below(name, parts))):
                levels.setdefault(level, {})[name] = nodes
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
    for line in text.splitlines():
        name = "" if line.lstrip().startswith("- ") else name
        for written, value in _PAIR.findall(line.partition("#")[0]):
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


def _height(name: str, parts: dict[str, _Part], above: tuple[str, ...]) -> int:
    """Return how many levels of switches are below one."""
    if name in above:
        raise ValueError(f"the switch {name} is below itself")
    known = [child for child in parts[name].children if child in parts]
    return max((1 + _height(child, parts, (*above, name)) for child in known), default=0)


def _below(name: str, parts: dict[str, _Part]) -> Iterator[str]:
    """Yield the nodes of a switch, and of all that are below it."""
    yield from parts[name].nodes
    for child in parts[name].children:
        if child in parts:
            yield from _below(child, parts)
