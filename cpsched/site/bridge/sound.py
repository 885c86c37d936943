"""One bad record costs that record: an instance made of a manager's answers, without what its reader would refuse."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from cpsched.domain import MAX_DURATION, Amounts, Cluster, FrozenMap, Instance, Job, NodeClass, Running
from cpsched.errors import DocumentError, Fault
from cpsched.formats import fold_hostlist, instance_to_document, parse_instance, path_of, trusted
from cpsched.site.bridge.leaving import Inexpressible
from cpsched.site.bridge.protocol import JobFacts, LeftJob, Snapshot
from cpsched.text import printable

_ENTRY = re.compile(r"(cluster\.nodes|jobs|reservations|free_pools)\[(\d+)\]")
_MOST_ROUNDS = 50
#: Within these the times and the id of a job are in order.
_LATEST, _LONGEST_ID = 10 * MAX_DURATION, 64
#: What a running job can do without: it holds its nodes nevertheless.
_BARE: Mapping[str, Any] = {
    "user": None,
    "group": None,
    "project": None,
    "queue": None,
    "reservation": None,
    "licenses": Amounts(),
}
_NOUNS = {
    "cluster.nodes": "nodes",
    "cluster.licenses": "licence",
    "queues": "queue",
    "reservations": "reservation",
    "free_pools": "reservation",
}


class Sound(NamedTuple):
    """An instance that is in order, and what was left out."""

    instance: Instance
    #: By id of the job.
    left: Mapping[str, str]
    notes: tuple[Fault, ...]


class Checker:
    """Checks one instance after the other; a job that was in order before is not checked again. Mutable."""

    def __init__(self) -> None:
        self._names: object = None
        self._jobs: dict[str, Job] = {}

    def check(self, instance: Instance) -> Sound:
        """Leave out, as often as needed, what the reader of documents refuses.

        Raises `DocumentError` if the instance as a whole is refused: nothing of it can be planned.
        """
        left: dict[str, str] = {}
        notes: dict[Fault, None] = {}
        jobs = {job.id: job for job in instance.jobs}
        for turn in range(_MOST_ROUNDS):
            names = _names(instance)
            known = self._jobs if names == self._names else {}
            new: Iterable[Job] = [job for key, job in jobs.items() if known.get(key) is not job]
            new = _unlike(new, instance) if turn == 0 else new
            part = replace(instance, jobs=tuple(_with_linked(new, jobs, is_all=bool(left))))
            try:
                parse_instance(instance_to_document(part), source="snapshot")
            except DocumentError as error:
                refused = error
            else:
                self._names, self._jobs = names, jobs
                if notes:
                    instance = replace(instance, cluster=_joined(instance.cluster))
                return Sound(trusted(replace(instance, jobs=tuple(jobs.values()))), left, tuple(notes))
            places: dict[tuple[str, int | str], Fault] = {}
            for fault in reversed(refused.faults):
                places |= dict.fromkeys(_place_of(fault, instance), fault)
            if not places:
                raise refused
            instance = _without(instance, places, notes)
            for (section, index), fault in places.items():
                if section == "jobs":
                    _drop(part.jobs[int(index)], fault, jobs, left, notes)
        raise refused

    def snapshot(
        self,
        instance: Instance,
        left: Mapping[str, Inexpressible],
        notes: Iterable[Fault],
        facts: Mapping[str, JobFacts] = FrozenMap(),
    ) -> Snapshot:
        """Return the snapshot of an instance, without what is not in order.

        `left`: why each waiting job that is not in it is left out. Raises `DocumentError` as `check` does.
        """
        sound = self.check(instance)
        reasons = {key: (str(reason), reason.is_for_manager) for key, reason in left.items()}
        reasons |= {key: (reason, True) for key, reason in sound.left.items()}
        return Snapshot(
            instance=sound.instance,
            left=tuple(
                LeftJob(id=key, reason=printable(reason), is_for_manager=is_for_manager)
                for key, (reason, is_for_manager) in reasons.items()
            ),
            taken_at=instance.now,
            jobs=facts,
            notes=(*notes, *sound.notes),
        )


def _place_of(fault: Fault, instance: Instance) -> Iterator[tuple[str, int | str]]:
    """Yield the section and the entry that a fault is of; nothing where it is of the whole."""
    if match := _ENTRY.match(fault.path):
        yield match[1], int(match[2])
    for section, names in (("queues", instance.queues), ("cluster.licenses", instance.cluster.licenses)):
        if fault.path.startswith(f"{section}."):
            paths = {name: path_of((*section.split("."), name)) for name in names}
            found = [name for name, path in paths.items() if f"{fault.path}.".startswith(f"{path}.")]
            yield from [(section, max(found, key=len))] if found else ()


def _without(instance: Instance, places: Mapping[tuple[str, int | str], Fault], notes: dict[Fault, None]) -> Instance:
    """Return an instance without some of its parts that are no jobs; what is said of them is noted."""
    many = {at for at, one in enumerate(instance.cluster.classes) if ("cluster.nodes", at) in places and one.names[1:]}
    if many:  # which of the nodes it is, the next round tells
        parts = [
            replace(one, names=names)
            for at, one in enumerate(instance.cluster.classes)
            for names in ([(name,) for name in one.names] if at in many else [one.names])
        ]
        return replace(instance, cluster=replace(instance.cluster, classes=tuple(parts)))
    cluster = instance.cluster
    lost = [one for at, one in enumerate(cluster.classes) if ("cluster.nodes", at) in places]
    kept_names = {
        name for at, one in enumerate(cluster.classes) if ("cluster.nodes", at) not in places for name in one.names
    }
    gone = {name for one in lost for name in one.names} - kept_names
    for (section, at), fault in places.items():
        if section != "jobs":
            what = str(at)
            if section == "cluster.nodes":
                what = fold_hostlist(cluster.classes[int(at)].names)
            elif section == "reservations":
                what = instance.reservations[int(at)].id
            notes[Fault(f"{_NOUNS[section]} {printable(what)}", f"left out: {fault.message}")] = None

    def kept(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return names if names is None or gone.isdisjoint(names) else tuple(one for one in names if one not in gone)

    def left(section: str, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        found = [one for at, one in enumerate(entries) if (section, at) not in places]
        return tuple(replace(one, nodes=kept(one.nodes)) for one in found if one.nodes is None or kept(one.nodes))

    classes = tuple(one for at, one in enumerate(cluster.classes) if ("cluster.nodes", at) not in places)
    licenses = {key: has for key, has in cluster.licenses.items() if ("cluster.licenses", key) not in places}
    queues = {key: one for key, one in instance.queues.items() if ("queues", key) not in places}
    return replace(
        instance,
        cluster=cluster.of(classes, Amounts(licenses)),
        queues=FrozenMap({key: replace(one, nodes=kept(one.nodes)) for key, one in queues.items()}),
        reservations=left("reservations", instance.reservations),
        free_pools=left("free_pools", instance.free_pools),
        preemption=instance.preemption and instance.preemption.among(queues),
    )


def _joined(cluster: Cluster) -> Cluster:
    """Return the cluster with neighbours that are alike in one class."""
    classes: list[NodeClass] = []
    for one in cluster.classes:
        if classes and replace(classes[-1], names=one.names) == one:
            classes[-1] = replace(one, names=(*classes[-1].names, *one.names))
        else:
            classes.append(one)
    return replace(cluster, classes=tuple(classes))


def _drop(job: Job, fault: Fault, jobs: dict[str, Job], left: dict[str, str], notes: dict[Fault, None]) -> None:
    """Leave a job out; of one that runs first all that it can do without, since its nodes are not free."""
    bare = replace(job, **_BARE) if job.running is not None else job
    if bare != job:
        jobs[job.id] = bare
        notes[Fault(f"job {printable(job.id)}", f"only its nodes count: {fault.message}")] = None
    else:
        jobs.pop(job.id)
        left[job.id] = fault.message


def _names(instance: Instance) -> object:
    """Return all that jobs can refer to."""
    cluster = instance.cluster
    resources = frozenset(name for one in cluster.classes for name in one.resources)
    reservations = tuple((one.id, one.kind) for one in instance.reservations)
    return cluster.node_names, resources, frozenset(cluster.licenses), frozenset(instance.queues), reservations


def _unlike(jobs: Iterable[Job], instance: Instance) -> Iterable[Job]:
    """Return one of the jobs that ask, or hold, alike: many do, and where one of them is in order all are."""
    found: dict[object, Job] = {}
    for job in jobs:
        times = (job.submit, job.not_before or 0, job.deadline or 0, 10 * job.walltime)
        held = () if job.running is None else _held(job.running, instance)
        if held is None or job.after or max(map(abs, times)) > _LATEST or len(job.id) > _LONGEST_ID:
            found[job.id] = job
        else:
            asked = (
                held,
                id(job.steps[0].request),
                tuple([id(one.request) for one in job.alternatives]) if job.alternatives else (),
                job.user,
                job.group,
                job.project,
                job.queue,
                job.licenses,
                job.reservation,
            )
            found.setdefault(asked, job)
    return found.values()


def _held(running: Running, instance: Instance) -> tuple[object, ...] | None:
    """Return what a job holds, but not where: on nodes of the cluster, on each once; None: that, or a time, is odd."""
    segment, now = running.segments[-1], instance.now
    nodes = {one.node for one in segment.allocation if one.node in instance.cluster.class_of}
    begins = -_LATEST < segment.start == running.start <= now < segment.end < _LATEST
    if len(running.segments) > 1 or not begins or not nodes or len(nodes) != len(segment.allocation):
        return None
    return tuple([(id(one.resources), one.chunk, one.count) for one in segment.allocation])


def _with_linked(new: Iterable[Job], jobs: Mapping[str, Job], *, is_all: bool) -> Iterable[Job]:
    """Return jobs, and where one of them waits for others, or all are meant, those that do so or are waited for."""
    found = {job.id: job for job in new}
    if is_all or any(job.after for job in found.values()):
        waiting = [job for job in jobs.values() if job.after]
        found |= {job.id: job for job in waiting}
        found |= {link.job: jobs[link.job] for job in waiting for link in job.after if link.job in jobs}
    return found.values()
