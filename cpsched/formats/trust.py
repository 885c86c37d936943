"""Which instances need no check, since a reader or a converter of this room made them."""

from __future__ import annotations

from weakref import WeakValueDictionary

from cpsched.domain import Instance

#: By the ids of the objects.
_TRUSTED: WeakValueDictionary[int, Instance] = WeakValueDictionary()


def trusted(instance: Instance) -> Instance:
    """Return an instance, and note that it is in order."""
    _TRUSTED[id(instance)] = instance
    return instance


def is_trusted(instance: Instance) -> bool:
    """Tell whether an instance is known to be in order."""
    return _TRUSTED.get(id(instance)) is instance
