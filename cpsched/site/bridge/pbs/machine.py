"""The machine of ``pbsnodes``: vnodes, what each has, and whether its jobs share it.

Attributes are those of the PBS Professional reference guide (2022.1, chapters 5 and 6).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cpsched.domain import Amounts, Cluster, FrozenMap, NodeClass, NodeState
from cpsched.errors import Fault
from cpsched.site.bridge.answers import Answer
from cpsched.site.bridge.protocol import by_word
from cpsched.text import printable

_ORDER = (NodeState.UP, NodeState.DRAIN, NodeState.DOWN)
#: Each word of a node's ``state``; the worst one counts.
NODE_STATES = by_word(
    {
        NodeState.UP: "free job-busy job-exclusive resv-exclusive",
        NodeState.DRAIN: "busy maintenance offline provisioning sleep wait-provisioning",
        NodeState.DOWN: "initializing down stale state-unknown unresolvable",
    }
)

#: Resources that say where a chunk is, not how much of something it takes.
_NO_AMOUNTS = frozenset({"arch", "host", "vnode", "vntype"})
_NAMES = {"ncpus": "cores", "ngpus": "gpus", "nmics": "mics"}
_SIZE = re.compile(r"(\d+)(b|kb|mb|gb|tb|w|kw|mw|gw|tw)?", re.IGNORECASE)
_BYTES = {"b": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_WORD = 8
#: The property of one vnode of each host, for chunks of which each is on another host.
LEAD = "scatter"
YES = "yes"


@dataclass(frozen=True, slots=True)
class Vnode:
    """One vnode."""

    name: str
    host: str
    amounts: Amounts
    properties: FrozenMap[str, str]
    state: NodeState
    #: PBS's words: ``default_shared``, ``force_excl`` and so on.
    sharing: str
    #: What is assigned of it, of which jobs, and the reservations that have it.
    assigned: Mapping[str, int]
    jobs: tuple[str, ...]
    reservations: tuple[str, ...]
    #: The only queue of whose jobs it takes; empty: it takes those of all queues that have no vnodes of their own.
    queue: str

    def is_alone(self, sharing: str) -> bool:
        """Tell whether a job with the sharing of its place has the vnode for itself."""
        if self.sharing.startswith("force_"):
            return True
        if self.sharing == "ignore_excl":
            return False
        return sharing.startswith("excl") or (self.sharing.startswith("default_excl") and sharing != "shared")

    def is_whole(self, sharing: str) -> bool:
        """Tell whether a job that has the vnode for itself has its whole host."""
        return sharing == "exclhost" or self.sharing.endswith("exclhost")


@dataclass(frozen=True, slots=True)
class Machine:
    """All vnodes, by name."""

    vnodes: Mapping[str, Vnode]
    #: Resources that are counted, those of which a node has several values, and those that are true or false.
    countable: frozenset[str]
    arrays: frozenset[str]
    flags: frozenset[str]

    @property
    def hosts(self) -> dict[str, list[Vnode]]:
        """The vnodes of each host."""
        found: dict[str, list[Vnode]] = {}
        for vnode in self.vnodes.values():
            found.setdefault(vnode.host, []).append(vnode)
        return found

    def nodes_of(self, queue: str) -> tuple[str, ...] | None:
        """Return the vnodes of the jobs of a queue: its own, else those that are no queue's; None where none is."""
        names: dict[str, list[str]] = {}
        for vnode in self.vnodes.values():
            names.setdefault(vnode.queue, []).append(vnode.name)
        return tuple(names.get(queue) or names.get("", [])) if names.keys() - {""} else None

    def cluster(self) -> Cluster:
        """Return the cluster; where hosts have several vnodes, the largest of each has a property."""
        hosts = self.hosts
        leads = {max(mine, key=lambda one: one.amounts.get("cores", 0)).name for mine in hosts.values()}
        has_leads = len(hosts) < len(self.vnodes)
        classes = []
        for vnode in self.vnodes.values():
            lead = {LEAD: YES} if has_leads and vnode.name in leads else {}
            properties = FrozenMap({**vnode.properties, **lead})
            classes.append(
                NodeClass(names=(vnode.name,), resources=vnode.amounts, properties=properties, state=vnode.state)
            )
        return Cluster(classes=tuple(classes))


def read_machine(answer: Answer, faults: list[Fault]) -> Machine:
    """Read ``pbsnodes -a -F json``; a vnode with a fault counts as down."""
    nodes = {str(name): value for name, value in answer.get("nodes", {}).items()}
    has = {name: _available(value) for name, value in nodes.items()}
    kinds: dict[str, set[str]] = {}
    for available in has.values():
        for key, value in available.items():
            kinds.setdefault(key, set()).add(_kind(key, value))
    countable = frozenset(ours(key) for key, kind in kinds.items() if kind == {"amount"})
    arrays = frozenset(key for key, kind in kinds.items() if "array" in kind)
    flags = frozenset(key for key, kind in kinds.items() if kind == {"flag"})
    machine = Machine({}, countable, arrays, flags)
    vnodes = {name: _vnode(name, value, has[name], machine, faults) for name, value in nodes.items()}
    return Machine(vnodes, countable, arrays, flags)


def _available(attributes: object) -> Mapping[str, object]:
    found = attributes.get("resources_available", {}) if isinstance(attributes, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def _kind(key: str, value: object) -> str:
    if isinstance(value, bool) or str(value).lower() in ("true", "false"):
        return "flag"
    if key not in _NO_AMOUNTS and is_amount(value):
        return "amount"
    return "array" if "," in str(value) else "text"


def _vnode(name: str, value: object, has: Mapping[str, object], machine: Machine, faults: list[Fault]) -> Vnode:
    attributes = value if isinstance(value, Mapping) else {}
    words = [word.strip() for word in str(attributes.get("state", "")).split(",")]
    unknown = [word for word in words if word not in NODE_STATES]
    if unknown:
        expected = f"Expected states of nodes that PBS has, got {' '.join(map(printable, unknown)) or 'none'}"
        faults.append(Fault(f"nodes.{printable(name)}", expected))
    assigned = attributes.get("resources_assigned", {})
    return Vnode(
        name=name,
        host=str(has.get("host", name)),
        amounts=Amounts({ours(key): amount(key, one) for key, one in has.items() if ours(key) in machine.countable}),
        properties=FrozenMap(dict(_properties(has, machine))),
        state=NodeState.DOWN if unknown else max((NODE_STATES[word] for word in words), key=_ORDER.index),
        sharing=str(attributes.get("sharing", "default_shared")),
        assigned={
            ours(key): amount(key, one)
            for key, one in (assigned.items() if isinstance(assigned, Mapping) else ())
            if ours(key) in machine.countable and is_amount(one)
        },
        jobs=tuple(dict.fromkeys(one.partition("/")[0] for one in _listed(attributes.get("jobs")))),
        reservations=_listed(attributes.get("resv")),
        queue=str(attributes.get("queue") or ""),
    )


def _listed(value: object) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else str(value or "").split(",")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def _properties(has: Mapping[str, object], machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield what chunks can ask for of a vnode that is not counted."""
    yield from ((key, "False") for key in machine.flags if key not in has)
    for key, value in has.items():
        if ours(key) not in machine.countable:
            yield from properties_of(key, str(value), machine)


def properties_of(key: str, value: str, machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield the properties that a value stands for: of several values one for each."""
    if key in machine.arrays:
        yield from ((f"{key}.{one.strip()}", YES) for one in value.split(","))
    else:
        yield key, value.capitalize() if key in machine.flags else value


def ours(key: str) -> str:
    """Return our name of a resource."""
    return _NAMES.get(key, key)


def is_amount(value: object) -> bool:
    """Tell whether a value is a number or a size."""
    return not isinstance(value, bool) and (isinstance(value, int) or _SIZE.fullmatch(str(value)) is not None)


def amount(key: str, value: object, *, up: bool = False) -> int:
    """Return an amount: numbers as they are, sizes in MiB, rounded down for what a node has, up for requests.

    Raises `ValueError` if it is none.
    """
    if isinstance(value, int):
        value = str(value)
    match = _SIZE.fullmatch(str(value))
    if match is None:
        raise ValueError(f"Expected an amount of {key}, got {value!r}")
    unit = (match[2] or ("b" if key == "mem" else "")).lower()
    if not unit:
        return int(match[1])
    size = int(match[1]) * _BYTES.get(unit[0], 1) * (_WORD if unit.endswith("w") else 1)
    return -(-size // _BYTES["m"]) if up else size // _BYTES["m"]
