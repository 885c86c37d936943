"""The machine of ``oarnodes -J``: resources, each the smallest part of a node that a job can have, by their numbers."""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Set
from functools import lru_cache

from cpsched.domain import Amounts, Cluster, FrozenMap, NodeClass, NodeState
from cpsched.site.bridge.answers import Answer
from cpsched.site.bridge.leaving import Inexpressible

NODE = "network_address"
RESOURCE_STATES = ("Alive", "Absent", "Suspected", "Dead")
YES = "yes"
#: What an expression may do: read the table, and compare.
_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
_MOST_STEPS = 10**7


class Machine:
    """The resources of a site; mutable: it collects which sets of nodes are asked for.

    `rows`: by number, those of the type ``default``.
    `usable`: the numbers of those on which a job can start, now or later.
    `held`: the numbers of those that running jobs have.
    """

    def __init__(self, rows: Mapping[int, Answer], usable: Set[int], held: Set[int]) -> None:
        self.rows, self.usable, self._held = rows, usable, held
        self.of_node: dict[str, set[int]] = {}
        for number, row in rows.items():
            self.of_node.setdefault(str(row[NODE]), set()).add(number)
        self._sets: dict[frozenset[str], str] = {}
        self._table = sqlite3.connect(":memory:")
        self._table.execute("PRAGMA case_sensitive_like = 1")
        names = list(dict.fromkeys(name for row in rows.values() for name in row))
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        self._table.execute(f"CREATE TABLE resources ({columns})")
        fields = ", ".join("?" * len(names))
        self._table.executemany(
            f"INSERT INTO resources VALUES ({fields})",  # noqa: S608 - question marks only
            [[row.get(name) for name in names] for row in rows.values()],
        )
        self._table.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
        self._table.set_progress_handler(lambda: 1, _MOST_STEPS)
        self.suiting = lru_cache(maxsize=None)(self._suiting)

    def _suiting(self, condition: str) -> dict[str, set[int]]:
        """Return the usable resources for which a condition of OAR, an expression of SQL, is true, by node.

        Raises `Inexpressible` if it cannot be read, or is true of parts of nodes only.
        """
        try:
            found = self._table.execute(f"SELECT resource_id FROM resources WHERE {condition}")  # noqa: S608 - may only read
            numbers = {int(number) for (number,) in found}
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise Inexpressible(f"its properties cannot be read ({condition}: {error})") from None
        nodes = {name: mine & self.usable for name, mine in self.of_node.items() if mine & self.usable & numbers}
        if any(not mine <= numbers for mine in nodes.values()):
            raise Inexpressible(f"its properties are those of parts of nodes ({condition})")
        return nodes

    def where(self, nodes: Set[str]) -> FrozenMap[str, str]:
        """Return the property by which chunks ask for some nodes; none where these are all that are usable."""
        if all(name in nodes or not mine & self.usable for name, mine in self.of_node.items()):
            return FrozenMap()
        return FrozenMap({self._sets.setdefault(frozenset(nodes), f"set{len(self._sets) + 1}"): YES})

    def is_node(self, level: str) -> bool:
        """Tell whether a property names nodes, one each.

        Raises `Inexpressible` if it names groups of nodes, or nothing.
        """
        values = {name: {self.rows[one].get(level) for one in mine} for name, mine in self.of_node.items()}
        times = Counter(value for mine in values.values() for value in mine)
        if None in times:
            raise Inexpressible(f"it asks for parts of its own ({level})")
        if any(len(mine) > 1 for mine in values.values()):
            return False
        if any(count > 1 for count in times.values()):
            raise Inexpressible(f"it asks for nodes that are near each other ({level})")
        return level in (NODE, "host") or any(len(mine) > 1 for mine in self.of_node.values())

    def cluster(self) -> Cluster:
        """Return the nodes, with the properties by which jobs ask for them."""
        classes = []
        for name, mine in self.of_node.items():
            present = mine & (self.usable | self._held)
            state = NodeState.UP if mine & self.usable else NodeState.DRAIN if present else NodeState.DOWN
            properties = {key: YES for nodes, key in self._sets.items() if name in nodes}
            amounts = Amounts({"cores": len(present or mine)})
            classes.append(NodeClass(names=(name,), resources=amounts, properties=FrozenMap(properties), state=state))
        return Cluster(classes=tuple(classes))


def is_usable(row: Answer, now: int) -> bool:
    """Tell whether a resource is alive, or sleeps and can be woken; `ValueError` if its state is none of OAR's."""
    if row.get("state") not in RESOURCE_STATES:
        raise ValueError(f"Expected a state of resources that OAR has, got {row.get('state')!r}")
    return row["state"] == "Alive" or (row["state"] == "Absent" and int(row.get("available_upto") or 0) >= now)
