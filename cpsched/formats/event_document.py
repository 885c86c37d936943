"""The documents of events: one JSON object, or a list of them, each with its ``event``."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

from cpsched.domain import (
    AllocationFailed,
    Amounts,
    CapacityChanged,
    Duration,
    Entries,
    FrozenMap,
    Has,
    Instance,
    JobAltered,
    JobCancelled,
    JobEnded,
    JobExtended,
    Key,
    Name,
    NodesChanged,
    NodeState,
    Place,
    ProfileChange,
    ReservationDropped,
    ReservationMade,
    Text,
    WindowEvent,
)
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import Faults, Location, shown
from cpsched.formats.hostlist import MAX_NODES, expand_hostlist
from cpsched.formats.instance_reader import COUNTABLE, instance_to_document, parse_part
from cpsched.formats.kinds import Form, object_of

_Entry = Mapping[str, Any]

#: The keys of a job that no alteration changes.
_FIXED = frozenset({"id", "submit", "array", "running", "runtime", "told"})
#: The fields of `Job` that the keys of a document say, where the names differ or a key says more than one.
_FIELDS = {
    "walltime": ("steps", "expand_limit"),
    "request": ("steps", "expand_limit", "licenses"),
    "steps": ("steps", "expand_limit", "licenses", "malleability"),
    "place": ("steps",),
    "malleable": ("malleability",),
}


def _rule_of_capacity(event: Mapping[str, Any]) -> str | None:
    if ("nodes" in event) != bool(event.get("resources")):
        return "Expected nodes and resources together, or neither"
    if "nodes" not in event and not event.get("licenses"):
        return "Expected nodes and resources, or licenses, got neither"
    return None


def parse_events(document: object, instance: Instance, *, source: str = "<memory>") -> tuple[WindowEvent, ...]:
    """Check one event, or a list of them, and return what they say.

    Whether a job waits or runs is no question of the document: it is asked when the event happens.

    Raises `DocumentError` with all faults, in document order.

    `document`: decoded JSON. `instance`: the window whose nodes, jobs and reservations the events name. `source`: where
    the document is from, for messages.
    """
    faults = Faults(document)
    reader = _Reader(faults, instance)
    entries = document if isinstance(document, list) else [document]
    found = []
    for index, entry in enumerate(entries):
        found.append(reader.event((index,) if isinstance(document, list) else (), entry))
    faults.raise_if_any(source)
    return tuple(event for event in found if event is not None)


class _Reader:
    """Reads the events of one document; notes what is wrong with them."""

    def __init__(self, faults: Faults, instance: Instance) -> None:
        self._faults, self._instance = faults, instance
        self._jobs = {**{job.id: job for job in instance.jobs}, **{job.id: job for job in instance.elements()}}

    def event(self, at: Location, entry: object) -> WindowEvent | None:
        """Return an event, or None if it has a fault."""
        if not isinstance(entry, dict):
            self._faults.add(at, f"Expected an event, an object, got {shown(entry)}")
            return None
        name = entry.get("event")
        if name not in _KINDS or not isinstance(name, str):
            text = name if isinstance(name, str) else shown(name)
            self._faults.add_unknown((*at, "event"), "event", text, list(_KINDS))
            return None
        keys, read = _KINDS[name]
        kind = object_of(name, "An event.", {"event": Name, **keys}, _FORMS.get(name))
        if not kind.accepts(entry):
            self._faults.keys = ("event", *keys)
            kind.explain(entry, at, self._faults)
            return None
        if "job" in keys and name != "altered" and entry["job"] not in self._jobs:
            self._faults.add_unknown((*at, "job"), "job", entry["job"], self._jobs)
            self.nodes(at, entry.get("nodes"))  # of which faults are told too
            return None
        try:
            return read(self, at, entry)
        except DocumentError as error:  # of a part that was read by itself
            for fault in error.faults:
                self._faults.add((*at, fault.path) if fault.path else at, fault.message)
            return None

    def nodes(self, at: Location, text: str | None) -> tuple[str, ...]:
        """Return the nodes of a host list."""
        expand = partial(expand_hostlist, limit=MAX_NODES)
        names = () if text is None else self._faults.parsed((*at, "nodes"), expand, text, ())
        known = self._instance.cluster.class_of
        for name in names:
            if name not in known:
                self._faults.add_unknown((*at, "nodes"), "node", name, known)
        return tuple(dict.fromkeys(names))

    def capacity(self, at: Location, entry: _Entry) -> WindowEvent:
        cluster = self._instance.cluster
        for name in entry.get("resources", ()):
            if name not in (known := {*COUNTABLE, *cluster.totals}):
                self._faults.add_unknown((*at, "resources", name), "resource", name, known)
        for name in entry.get("licenses", ()):
            if name not in cluster.licenses:
                self._faults.add_unknown((*at, "licenses", name), "licence", name, cluster.licenses)
        nodes = self.nodes(at, entry.get("nodes"))
        return CapacityChanged(
            nodes=nodes, resources=Amounts(entry.get("resources", {})), licenses=Amounts(entry.get("licenses", {}))
        )

    def made(self, at: Location, entry: _Entry) -> WindowEvent | None:
        """Read a reservation as the only one of an instance with the same nodes."""
        cluster = instance_to_document(self._instance)["cluster"]
        document = {"format": "cpsched-instance/1", "name": "event", "cluster": cluster}
        read = parse_part({**document, "reservations": [entry["reservation"]]}, "reservations[0]", called="reservation")
        return ReservationMade(reservation=read.reservations[0])

    def profile(self, at: Location, entry: _Entry) -> WindowEvent:
        """Read steps; place and licences are the job's, and need not be said."""
        job = self._jobs[entry["job"]]
        document = {
            "format": "cpsched-instance/1",
            "name": "steps",
            "cluster": instance_to_document(self._instance)["cluster"],
            "jobs": [{"id": job.id, "submit": 0, "steps": entry["steps"]}],
        }
        (read,) = parse_part(document, "jobs[0]").jobs
        place = job.steps[0].request.place
        if read.steps[0].request.place not in (Place(), place) or read.licenses not in (Amounts(), job.licenses):
            raise DocumentError("steps", [Fault("steps", "Expected the place and the licences of the job, or none")])
        steps = tuple(replace(one, request=replace(one.request, place=place)) for one in read.steps)
        return ProfileChange(job=job.id, steps=steps)

    def altered(self, at: Location, entry: _Entry) -> WindowEvent | None:
        """Read the job with its changes in its window: so they are checked as those of any job."""
        name, changes = entry["job"], entry["changes"]
        places = [place for place, job in enumerate(self._instance.jobs) if job.id == name]
        if not places:
            known = [job.id for job in self._instance.jobs]
            self._faults.add_unknown((*at, "job"), "job, or array", name, known)
            return None
        for key in changes:
            if key in _FIXED:
                self._faults.add((*at, "changes", key), "Expected a key that can be altered")
        if _FIXED & changes.keys():
            return None
        document = instance_to_document(self._instance)
        written = {key: value for key, value in document["jobs"][places[0]].items() if key not in _replaced(changes)}
        written = {key: value for key, value in {**written, **changes}.items() if value is not None}
        document["jobs"][places[0]] = written
        read = parse_part(document, f"jobs[{places[0]}]", called="changes")
        fields = dict.fromkeys(field for key in changes for field in _FIELDS.get(key, (key,)))
        job = read.jobs[places[0]]
        return JobAltered(job=name, changes=FrozenMap({field: getattr(job, field) for field in fields}))


def _replaced(changes: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys of a job that changes replace besides their own."""
    keys = {"running"}
    if "steps" in changes:
        keys |= {"walltime", "request", "malleable"}
    if changes.keys() & {"walltime", "request"}:
        keys |= {"steps", "expand_limit"}
    request = changes.get("request")
    if isinstance(request, str) and ",place=" in request:
        keys.add("place")
    return frozenset(keys)


_Read = Callable[[_Reader, Location, _Entry], WindowEvent | None]


def _state(state: NodeState) -> _Read:
    return lambda reader, at, entry: NodesChanged(nodes=reader.nodes(at, entry["nodes"]), state=state)


_NODES = {"nodes": Annotated[Text, Key("A host list", examples=("n[1-3]",))]}
#: The keys of each event besides its own, and how it is read.
_KINDS: dict[str, tuple[dict[str, Any], _Read]] = {
    "ended": (
        {"job": Name, "outcome": Literal["completed", "failed"] | None},
        lambda reader, at, entry: JobEnded(
            job=entry["job"], is_success=entry["outcome"] == "completed" if "outcome" in entry else None
        ),
    ),
    "cancelled": ({"job": Name}, lambda reader, at, entry: JobCancelled(job=entry["job"])),
    "altered": ({"job": Name, "changes": Annotated[FrozenMap[Name, Any], Entries(1)]}, _Reader.altered),
    "extended": (
        {"job": Name, "seconds": Duration},
        lambda reader, at, entry: JobExtended(job=entry["job"], seconds=entry["seconds"]),
    ),
    "allocation_failed": (
        {"job": Name, "nodes": Text | None},
        lambda reader, at, entry: AllocationFailed(job=entry["job"], nodes=reader.nodes(at, entry.get("nodes"))),
    ),
    "node_up": (_NODES, _state(NodeState.UP)),
    "node_drained": (_NODES, _state(NodeState.DRAIN)),
    "node_down": (_NODES, _state(NodeState.DOWN)),
    "capacity": ({"nodes": Text | None, "resources": Has | None, "licenses": Has | None}, _Reader.capacity),
    "reservation_made": ({"reservation": FrozenMap[Name, Any]}, _Reader.made),
    "reservation_dropped": (
        {"reservation": Name},
        lambda reader, at, entry: ReservationDropped(reservation=entry["reservation"]),
    ),
    "profile": ({"job": Name, "steps": Annotated[tuple[Any, ...], Entries(1)]}, _Reader.profile),
}
_FORMS = {"capacity": Form(rule=_rule_of_capacity)}
