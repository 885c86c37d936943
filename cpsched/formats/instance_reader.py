"""The instance document: from JSON to a checked `Instance`, or all of its faults at once, and back."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal
from weakref import WeakValueDictionary
from zoneinfo import ZoneInfo, available_timezones

import cpsched.formats.rules_reader  # noqa: F401  # the forms of what an instance is made of
from cpsched.domain import Instance, Job, Name, Outage, Reservation, Text
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import Faults, Location, refuse_other_kind
from cpsched.formats.instance_checks import check_instance, check_outages, check_preemption
from cpsched.formats.job_reader import Requests
from cpsched.formats.kinds import FORMS, NOTATIONS, Choice, Form, Object, Spelt, kind_of, schema_of
from cpsched.formats.notations import parse_epoch
from cpsched.formats.reading import Reading

#: By the ids of the objects.
_TRUSTED: WeakValueDictionary[int, Instance] = WeakValueDictionary()


def trusted(instance: Instance) -> Instance:
    """Return an instance, and note that it is in order."""
    _TRUSTED[id(instance)] = instance
    return instance


def is_trusted(instance: Instance) -> bool:
    """Tell whether an instance is known to be in order."""
    return _TRUSTED.get(id(instance)) is instance


#: Countable in every cluster; the names in the nodes' resources come on top.
COUNTABLE = ("cores", "mem", "gpus", "mics")

_LISTS = ("jobs", "limits", "free_pools", "reservations", "usage", "outages")

FORMS[Instance] = Form(
    instead={"name": {"format": Literal["cpsched-instance/1"], "name": Name}},
    without=("set_aside",),
    read=lambda reading, at, keys, said: _read_instance(reading, at, keys, said),
    write=lambda instance, writing: {"format": "cpsched-instance/1", "name": instance.name},
)
NOTATIONS[datetime] = lambda: Spelt(kind_of(Text), None, lambda epoch, writing: epoch.isoformat())
NOTATIONS["strict"] = lambda: Choice({"strict": True})


def instance_schema() -> dict[str, Any]:
    """Return the JSON Schema of the instance document: its keys and types, not what lies between its parts."""
    return schema_of(kind_of(Instance))


def parse_instance(
    document: object, *, source: str = "<memory>", on_warning: Callable[[Fault], None] | None = None
) -> Instance:
    """Check an instance document and return what it says.

    Raises `DocumentError` with all faults, in document order: those of shape, and those between parts of right shape.

    `document`: decoded JSON.
    `source`: where it is from, for messages.
    `on_warning`: called for what is accepted though it is odd, since what runs is a fact: a running job that should
      have ended (BRIDI-11), started before it was submitted, has less than it asks for or is on a node that is down,
      and running jobs that together take more than there is.
    """
    refuse_other_kind(document, source, "instance")
    kind: Object = kind_of(Instance)
    faults, warnings = Faults(document, kind.all_keys), list[Fault]()
    sound, places, incomplete = document, dict[Location, list[int]](), frozenset[str]()
    if not kind.accepts(document):
        kind.explain(document, (), faults)
        left = _sound_part(document, faults.locations())
        if left is None:
            faults.refuse(source)
        sound, places, incomplete = left
    keys: Mapping[str, Any] = kind.ordered(sound)
    reading = Reading(
        faults=faults,
        on_warning=warnings.append,
        now=keys.get("now", 0),
        incomplete=incomplete,
        places=places,
        countable=_countable(document),
        licenses=keys["cluster"].get("licenses", {}),
        has_epoch="epoch" in keys or "epoch" in incomplete,
    )
    instance: Instance = kind.read(keys, (), reading)
    faults.raise_if_any(source)
    for warning in warnings:
        if on_warning is not None:
            on_warning(warning)
    return trusted(instance)


def parse_part(document: Mapping[str, Any], path: str, *, called: str = "", source: str = "<memory>") -> Instance:
    """Return an instance of which one part, at a path, is what somebody wrote.

    Raises `DocumentError` with the faults of that part: their paths are seen from it, or from what it is `called`.
    """
    try:
        return parse_instance(document, source=source)
    except DocumentError as error:
        paths = [fault.path.removeprefix(path).lstrip(".") for fault in error.faults]
        paths = [f"{called}{'.' if called and inside else ''}{inside}" for inside in paths]
        faults = [Fault(inside, fault.message) for inside, fault in zip(paths, error.faults, strict=True)]
        raise DocumentError(source, faults) from None


def _read_instance(reading: Reading, at: Location, keys: Mapping[str, Any], said: dict[str, Any]) -> Instance:
    """Check all parts against each other; the instance counts only if no fault was noted."""
    if "epoch" in keys:
        said["epoch"] = reading.faults.parsed(("epoch",), parse_epoch, keys["epoch"], None)
    _check_time_zone(reading.faults, keys.get("time_zone"), has_epoch=reading.has_epoch)
    cluster = said["cluster"]
    jobs: list[tuple[Location, Job]] = _left(reading, "jobs", said)
    reservations: list[tuple[Location, Reservation]] = _left(reading, "reservations", said)
    outages: list[tuple[Location, Outage]] = _left(reading, "outages", said)
    lost = {"nodes"} if reading.faults and not all(node_class.names for node_class in cluster.classes) else set()
    for section, left in (("jobs", jobs), ("reservations", reservations)):
        lost |= {section} if len(left) < len(said.get(section, ())) else set()
        said[section] = tuple(one for _, one in left)
    reading.incomplete = frozenset(reading.incomplete) | lost
    check_instance(reading, cluster, said.get("queues", {}), jobs, reservations)
    check_outages(reading, jobs, outages)
    if said.get("preemption") is not None:
        check_preemption(reading, said.get("queues", {}), said["preemption"])
    return Instance(name=keys["name"], **said)


def _left(reading: Reading, section: str, said: Mapping[str, Any]) -> list[tuple[Location, Any]]:
    """Return the entries of a section that faults have left, with their places in the document."""
    found = said.get(section, ())
    return [(reading.location((section,), index), one) for index, one in enumerate(found) if one is not None]


def _sound_part(
    document: object, refused: Iterable[Location]
) -> tuple[dict[str, Any], dict[Location, list[int]], frozenset[str]] | None:
    """Leave out every entry with a fault of shape.

    Returns the valid rest, the locations of its entries, and the incomplete sections; None if too little is left.
    """
    if not isinstance(document, dict) or not isinstance(document.get("cluster"), dict):
        return None
    gone: set[Location] = set()
    incomplete: set[str] = set()
    for location in refused:
        match location:
            case () | ("now", *_):
                # Without its clock nothing about an instance can be checked.
                return None
            case ("cluster", "nodes", int(index), *_):
                gone.add(("nodes", index))
                incomplete.add("nodes")
            case ("cluster", str(key), *_):
                gone.add(("cluster", key))
                incomplete |= {"nodes", "licenses"}
            case (str(section), (str() | int()) as key, *_) if section in (*_LISTS, "queues"):
                gone.add((section, key))
                incomplete.add(section)
            case (section, *_):
                gone.add((section,))
                incomplete.add(str(section))
    places: dict[Location, list[int]] = {}
    left = {key: value for key, value in document.items() if (key,) not in gone}
    left |= {"format": "cpsched-instance/1", "name": left.get("name", "refused")}
    cluster = {key: value for key, value in document["cluster"].items() if ("cluster", key) not in gone}
    for section, owner in [("nodes", cluster), *((section, left) for section in _LISTS)]:
        entries = owner.get(section)
        if isinstance(entries, list):
            kept = [index for index in range(len(entries)) if (section, index) not in gone]
            places[("cluster", section) if section == "nodes" else (section,)] = kept
            owner[section] = [entries[index] for index in kept]
    if isinstance(left.get("queues"), dict):
        left["queues"] = {name: queue for name, queue in left["queues"].items() if ("queues", name) not in gone}
    left["cluster"] = cluster
    return (left, places, frozenset(incomplete)) if kind_of(Instance).accepts(left) else None


def _countable(document: object) -> Collection[str]:
    """Return the names of all countable resources, also of nodes that have faults elsewhere."""
    names = dict.fromkeys(COUNTABLE)
    nodes = document["cluster"]["nodes"] if isinstance(document, Mapping) else []
    for entry in nodes if isinstance(nodes, list) else []:
        resources = entry.get("resources") if isinstance(entry, dict) else None
        names |= (
            dict.fromkeys(name for name in resources if isinstance(name, str)) if isinstance(resources, dict) else {}
        )
    return names.keys()


def _check_time_zone(faults: Faults, name: str | None, *, has_epoch: bool) -> None:
    """Note a fault unless the time zone, where there is one, is known and has an epoch to start from."""
    if name is None:
        return
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        faults.add_unknown(("time_zone",), "time zone", name, sorted(available_timezones()))
    if not has_epoch:
        faults.add(("time_zone",), "Expected the instance to have an epoch, which a time zone needs; got none")


def instance_to_document(instance: Instance) -> dict[str, Any]:
    """Return the canonical instance document; reading it gives `instance` again."""
    document: dict[str, Any] = kind_of(Instance).write(instance, Requests({*COUNTABLE, *instance.cluster.totals}))
    return document
