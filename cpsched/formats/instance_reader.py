"""The instance document: from JSON to a checked `Instance`, or all of its faults at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from pydantic import ValidationError

from cpsched.domain import FrozenMap, Instance, Objective, ObjectiveTerm
from cpsched.errors import Fault, SyntaxFault
from cpsched.formats import instance_model
from cpsched.formats.faults import Faults, Location, refuse_other_kind
from cpsched.formats.fields import FaultsLeft, keys_of_models, schema_of
from cpsched.formats.instance_checks import check_instance, check_outages
from cpsched.formats.instance_model import InstanceModel, TermName
from cpsched.formats.job_reader import read_job
from cpsched.formats.notations import parse_epoch
from cpsched.formats.reading import Reading
from cpsched.formats.rules_reader import (
    read_cluster,
    read_free_pool,
    read_limit,
    read_outage,
    read_queue,
    read_reservation,
    read_usage,
)
from cpsched.formats.trusted import trusted

__all__ = ["COUNTABLE", "instance_schema", "parse_instance"]

#: Countable in every cluster; the names in the nodes' resources come on top.
COUNTABLE = ("cores", "mem", "gpus", "mics")

_LISTS = ("jobs", "limits", "free_pools", "reservations", "usage", "outages")
_KEYS = keys_of_models(vars(instance_model))


def instance_schema() -> dict[str, Any]:
    """Return the JSON Schema of the instance document: its keys and types, not what lies between its parts."""
    return schema_of(InstanceModel)


def parse_instance(
    document: object, *, source: str = "<memory>", on_warning: Callable[[Fault], None] | None = None
) -> Instance:
    """Check an instance document and return what it says.

    Parameters
    ----------
    document
        Decoded JSON.
    source
        Where it is from, for messages.
    on_warning
        Called for what is accepted though it is odd, since what runs is a fact: a running job that should have ended
        (BRIDI-11), started before it was submitted, has less than it asks for or is on a node that is down, and running
        jobs that together take more than there is.

    Raises
    ------
    DocumentError
        With all faults, in document order: those of shape, and those between the parts whose shape is right.
    """
    refuse_other_kind(document, source, "instance")
    faults = Faults(document)
    warnings: list[Fault] = []
    try:
        model = InstanceModel.model_validate(document, context=FaultsLeft())
        positions = {section: list(range(len(getattr(model, section)))) for section in _LISTS}
        positions["nodes"] = list(range(len(model.cluster.nodes)))
        incomplete: frozenset[str] = frozenset()
    except ValidationError as error:
        sound = _sound_part(document, faults.add_shape(error, _KEYS))
        if sound is None:
            faults.refuse(source)
        model, positions, incomplete = sound
    epoch = _read_epoch(faults, model.epoch)
    _check_time_zone(faults, model.time_zone, has_epoch=model.epoch is not None or "epoch" in incomplete)
    reading = Reading(
        faults=faults,
        on_warning=warnings.append,
        now=model.now,
        incomplete=incomplete,
        positions=positions,
        countable=_countable(document),
        licenses=model.cluster.licenses,
        has_epoch=model.epoch is not None or "epoch" in incomplete,
        segmented=frozenset(
            ("jobs", positions["jobs"][index])
            for index, job in enumerate(model.jobs)
            if job.running is not None and job.running.segments is not None
        ),
    )
    instance = _read_parts(reading, model, epoch)
    faults.raise_if_any(source)
    for warning in warnings:
        if on_warning is not None:
            on_warning(warning)
    return trusted(instance)


def _read_parts(reading: Reading, model: InstanceModel, epoch: datetime | None) -> Instance:
    """Read all parts and check them against each other; what comes back counts only if no fault was noted."""
    cluster = read_cluster(reading, model.cluster)
    queues = FrozenMap(
        {name: read_queue(reading, ("queues", name), queue, cluster) for name, queue in model.queues.items()}
    )
    jobs = []
    for index, job in enumerate(model.jobs):
        location = reading.location("jobs", index)
        jobs.append((location, read_job(reading, location, job)))
    reservations = []
    for index, reservation in enumerate(model.reservations):
        location = reading.location("reservations", index)
        reservations.append((location, read_reservation(reading, location, reservation, cluster)))
    limits = [read_limit(reading, reading.location("limits", i), limit) for i, limit in enumerate(model.limits)]
    free_pools = [
        read_free_pool(reading, reading.location("free_pools", i), pool, cluster)
        for i, pool in enumerate(model.free_pools)
    ]
    usage = [read_usage(reading, reading.location("usage", i), used) for i, used in enumerate(model.usage)]
    outages = []
    for index, outage in enumerate(model.outages):
        location = reading.location("outages", index)
        outages.append((location, read_outage(reading, location, outage, cluster)))
    sound_jobs = [(location, job) for location, job in jobs if job is not None]
    sound_reservations = [(location, reservation) for location, reservation in reservations if reservation is not None]
    lost = {"jobs"} if len(sound_jobs) < len(jobs) else set()
    lost |= {"reservations"} if len(sound_reservations) < len(reservations) else set()
    lost |= {"nodes"} if reading.faults and not all(node_class.names for node_class in cluster.classes) else set()
    reading.incomplete = frozenset(reading.incomplete) | lost
    check_instance(reading, cluster, queues, sound_jobs, sound_reservations)
    check_outages(reading, sound_jobs, outages)
    return Instance(
        name=model.name,
        epoch=epoch,
        time_zone=model.time_zone,
        now=model.now,
        cluster=cluster,
        queues=queues,
        jobs=tuple(job for _, job in sound_jobs),
        limits=tuple(limits),
        free_pools=tuple(free_pools),
        reservations=tuple(reservation for _, reservation in sound_reservations),
        usage=tuple(usage),
        objective=_read_objective(model.objective),
        has_strict_priorities=model.priorities == "strict",
        outages=tuple(outage for _, outage in outages),
    )


def _sound_part(
    document: object, refused: Iterable[Location]
) -> tuple[InstanceModel, dict[str, list[int]], frozenset[str]] | None:
    """Leave out every entry with a fault of shape.

    Returns
    -------
    tuple or None
        The valid rest, the locations of its entries, and the incomplete sections; None if too little is left.
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
    positions: dict[str, list[int]] = {}
    left = {key: value for key, value in document.items() if (key,) not in gone}
    left |= {"format": "cpsched-instance/1", "name": left.get("name", "refused")}
    cluster = {key: value for key, value in document["cluster"].items() if ("cluster", key) not in gone}
    for section, entries, owner in [
        ("nodes", cluster.get("nodes"), cluster),
        *((s, left.get(s), left) for s in _LISTS),
    ]:
        if isinstance(entries, list):
            positions[section] = [index for index in range(len(entries)) if (section, index) not in gone]
            owner[section] = [entries[index] for index in positions[section]]
        else:
            positions[section] = []
    if isinstance(left.get("queues"), dict):
        left["queues"] = {name: queue for name, queue in left["queues"].items() if ("queues", name) not in gone}
    left["cluster"] = cluster
    try:
        return InstanceModel.model_validate(left, context=FaultsLeft()), positions, frozenset(incomplete)
    except ValidationError:
        return None


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


def _read_epoch(faults: Faults, text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_epoch(text)
    except SyntaxFault as error:
        faults.add_syntax(("epoch",), error)
        return None


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


def _read_objective(written: TermName | Mapping[TermName, float]) -> Objective:
    weights: Mapping[TermName, float] = {written: 1.0} if isinstance(written, str) else written
    return Objective(weights=FrozenMap({ObjectiveTerm(name): weight for name, weight in weights.items()}))
