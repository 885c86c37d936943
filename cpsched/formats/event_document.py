"""The documents of events: one JSON object, or a list of them, each with its ``event``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from cpsched.domain import (
    AllocationFailed,
    Amounts,
    CapacityChanged,
    FrozenMap,
    Instance,
    Job,
    JobAltered,
    JobCancelled,
    JobEnded,
    JobExtended,
    NodesChanged,
    NodeState,
    ProfileChange,
    ReservationDropped,
    ReservationMade,
    WindowEvent,
)
from cpsched.errors import DocumentError, SyntaxFault
from cpsched.formats.faults import Faults, Location, shown
from cpsched.formats.fields import AmountsField, DocumentModel, Duration, FaultsLeft, Name, Omittable, Text, refusal
from cpsched.formats.hostlist import MAX_NODES, expand_hostlist
from cpsched.formats.instance_reader import COUNTABLE, parse_instance
from cpsched.formats.instance_writer import instance_to_document
from cpsched.formats.steps import read_steps

__all__ = ["parse_events"]

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


class JobEventModel(DocumentModel):
    """An event of a job that says nothing else."""

    event: Name
    job: Name


class EndedModel(JobEventModel):
    """A running job has ended."""

    outcome: Omittable[Literal["completed", "failed"]] = Field(None, description="Left out: not known")


class AlteredModel(JobEventModel):
    """A waiting job asks for something else."""

    changes: dict[Name, Any] = Field(min_length=1, description="Keys of the job; null removes a key")


class ExtendedModel(JobEventModel):
    """A running job asks for a later end."""

    seconds: Duration = Field(description="How much later it may end")


class FailedModel(JobEventModel):
    """A job could not start."""

    nodes: Omittable[Text] = Field(None, description="A host list: nodes that are to blame, and go down")


class NodesEventModel(DocumentModel):
    """Nodes have another state."""

    event: Name
    nodes: Text = Field(description="A host list", examples=["n[1-3]"])


class CapacityModel(DocumentModel):
    """Nodes or the cluster have other amounts."""

    event: Name
    nodes: Omittable[Text] = None
    resources: AmountsField = Field({}, description="What each of the nodes has from now on; others stay")
    licenses: AmountsField = Field({}, description="What the cluster has from now on; others stay")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if (self.nodes is None) != (not self.resources):
            raise refusal("Expected nodes and resources together, or neither")
        if self.nodes is None and not self.licenses:
            raise refusal("Expected nodes and resources, or licenses, got neither")
        return self


class MadeModel(DocumentModel):
    """A reservation is made."""

    event: Name
    reservation: dict[Name, Any] = Field(description="As in an instance")


class DroppedModel(DocumentModel):
    """A reservation is dropped."""

    event: Name
    reservation: Name


class ProfileModel(JobEventModel):
    """A running evolving job has other steps."""

    steps: list[Any] = Field(min_length=1, description="From now on, the present one first")


def parse_events(document: object, instance: Instance, *, source: str = "<memory>") -> tuple[WindowEvent, ...]:
    """Check one event, or a list of them, and return what they say.

    Whether a job waits or runs is no question of the document: it is asked when the event happens.

    Parameters
    ----------
    document
        Decoded JSON.
    instance
        The window whose nodes, jobs and reservations the events name.
    source
        Where the document is from, for messages.

    Raises
    ------
    DocumentError
        With all faults, in document order.
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
        model_type, read = _KINDS[name]
        try:
            model = model_type.model_validate(entry, context=FaultsLeft())
        except ValidationError as error:
            self._faults.add_shape(error, list(model_type.model_fields), at=at)
            return None
        return read(self, at, model)

    def job(self, at: Location, name: str) -> Job | None:
        """Return a job that an event names."""
        if name not in self._jobs:
            self._faults.add_unknown((*at, "job"), "job", name, self._jobs)
        return self._jobs.get(name)

    def nodes(self, at: Location, text: str | None) -> tuple[str, ...]:
        """Return the nodes of a host list."""
        try:
            names = () if text is None else expand_hostlist(text, limit=MAX_NODES)
        except SyntaxFault as fault:
            self._faults.add_syntax((*at, "nodes"), fault)
            return ()
        known = self._instance.cluster.class_of
        for name in names:
            if name not in known:
                self._faults.add_unknown((*at, "nodes"), "node", name, known)
        return tuple(dict.fromkeys(names))

    def ended(self, at: Location, model: Any) -> WindowEvent | None:
        is_success = None if model.outcome is None else model.outcome == "completed"
        return JobEnded(job=model.job, is_success=is_success) if self.job(at, model.job) else None

    def cancelled(self, at: Location, model: Any) -> WindowEvent | None:
        return JobCancelled(job=model.job) if self.job(at, model.job) else None

    def extended(self, at: Location, model: Any) -> WindowEvent | None:
        return JobExtended(job=model.job, seconds=model.seconds) if self.job(at, model.job) else None

    def failed(self, at: Location, model: Any) -> WindowEvent | None:
        nodes = self.nodes(at, model.nodes)
        return AllocationFailed(job=model.job, nodes=nodes) if self.job(at, model.job) else None

    def capacity(self, at: Location, model: Any) -> WindowEvent:
        cluster = self._instance.cluster
        for name in model.resources:
            if name not in (known := {*COUNTABLE, *cluster.totals}):
                self._faults.add_unknown((*at, "resources", name), "resource", name, known)
        for name in model.licenses:
            if name not in cluster.licenses:
                self._faults.add_unknown((*at, "licenses", name), "licence", name, cluster.licenses)
        nodes = self.nodes(at, model.nodes)
        return CapacityChanged(nodes=nodes, resources=Amounts(model.resources), licenses=Amounts(model.licenses))

    def made(self, at: Location, model: Any) -> WindowEvent | None:
        """Read a reservation as the only one of an instance with the same nodes."""
        cluster = instance_to_document(self._instance)["cluster"]
        document = {"format": "cpsched-instance/1", "name": "event", "cluster": cluster}
        read = self._read({**document, "reservations": [model.reservation]}, "reservations[0]", (*at, "reservation"))
        return None if read is None else ReservationMade(reservation=read.reservations[0])

    def dropped(self, at: Location, model: Any) -> WindowEvent:
        return ReservationDropped(reservation=model.reservation)

    def profile(self, at: Location, model: Any) -> WindowEvent | None:
        job = self.job(at, model.job)
        if job is None:
            return None
        try:
            return ProfileChange(job=model.job, steps=read_steps(model.steps, self._instance, job))
        except DocumentError as error:
            self._add(error, "", at)
            return None

    def altered(self, at: Location, model: Any) -> WindowEvent | None:
        """Read the job with its changes in its window: so they are checked as those of any job."""
        name, changes = model.job, model.changes
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
        read = self._read(document, f"jobs[{places[0]}]", (*at, "changes"))
        if read is None:
            return None
        fields = dict.fromkeys(field for key in changes for field in _FIELDS.get(key, (key,)))
        job = read.jobs[places[0]]
        return JobAltered(job=name, changes=FrozenMap({field: getattr(job, field) for field in fields}))

    def _read(self, document: Mapping[str, Any], path: str, at: Location) -> Instance | None:
        """Read an instance of which one part is an event's; its faults are those of the event."""
        try:
            return parse_instance(document)
        except DocumentError as error:
            self._add(error, path, at)
            return None

    def _add(self, error: DocumentError, path: str, at: Location) -> None:
        """Note the faults of a part that was read by itself."""
        for fault in error.faults:
            inside = fault.path.removeprefix(path).lstrip(".")
            self._faults.add((*at, inside) if inside else at, fault.message)


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


_Read = Callable[[_Reader, Location, Any], WindowEvent | None]


def _state(state: NodeState) -> _Read:
    """Return the reader of an event that sets the state of nodes."""
    return lambda reader, at, model: NodesChanged(nodes=reader.nodes(at, model.nodes), state=state)


_KINDS: dict[str, tuple[type[DocumentModel], _Read]] = {
    "ended": (EndedModel, _Reader.ended),
    "cancelled": (JobEventModel, _Reader.cancelled),
    "altered": (AlteredModel, _Reader.altered),
    "extended": (ExtendedModel, _Reader.extended),
    "allocation_failed": (FailedModel, _Reader.failed),
    "node_up": (NodesEventModel, _state(NodeState.UP)),
    "node_drained": (NodesEventModel, _state(NodeState.DRAIN)),
    "node_down": (NodesEventModel, _state(NodeState.DOWN)),
    "capacity": (CapacityModel, _Reader.capacity),
    "reservation_made": (MadeModel, _Reader.made),
    "reservation_dropped": (DroppedModel, _Reader.dropped),
    "profile": (ProfileModel, _Reader.profile),
}
