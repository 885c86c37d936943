"""An immutable, hashable mapping, for objects of a document whose keys are free; and changed copies of many objects."""

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class FrozenMap(Mapping[K, V], Generic[K, V]):
    """A mapping that cannot change, equal to any mapping with the same items, and hashable.

    Iteration keeps the order of the source. Values must be hashable where the map is hashed.
    """

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._items: dict[K, V] = dict(items)
        self._hash: int | None = None

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    # those of `Mapping` ask `__getitem__` for each key

    def __contains__(self, key: object) -> bool:
        return key in self._items

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: V | T | None = None) -> V | T | None:
        """Return the value of a key, or the default."""
        return self._items.get(key, default)

    def keys(self) -> KeysView[K]:
        """Return the keys in the order of the source."""
        return self._items.keys()

    def values(self) -> ValuesView[V]:
        """Return the values in the order of the source."""
        return self._items.values()

    def items(self) -> ItemsView[K, V]:
        """Return the pairs in the order of the source."""
        return self._items.items()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return self._items == other._items
        return isinstance(other, Mapping) and self._items == dict(other)

    def __reduce__(self) -> "tuple[type[FrozenMap[K, V]], tuple[dict[K, V]]]":
        # without the hash: that of a string is another one in another process
        return type(self), (self._items,)

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


#: Amounts of countable resources by name; the unit is the resource's own (``mem`` in MiB).
Amounts = FrozenMap[str, int]


def with_fields(one: T, values: Mapping[str, Any]) -> T:
    """Return a copy of an object, of a frozen dataclass with slots and several fields, in which some fields have other
    values: what `dataclasses.replace` returns, in half the time.
    """
    kind: Any = type(one)
    held, puts = _slots_of(kind)
    copy: T = object.__new__(kind)
    for put, value in zip(puts.values(), held(one), strict=True):
        put(copy, value)
    for name, value in values.items():
        puts[name](copy, value)
    return copy


@cache
def _slots_of(kind: Any) -> tuple[Callable[[Any], tuple[Any, ...]], dict[str, Callable[[Any, Any], None]]]:
    """Return a reader of all fields of a dataclass with slots, and a setter of each of them."""
    names = [one.name for one in fields(kind)]
    return attrgetter(*names), {name: getattr(kind, name).__set__ for name in names}
