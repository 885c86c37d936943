"""Slurm's records as a `Snapshot`: an instance, the jobs that stay Slurm's with a reason each, and the facts."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from cpsched.domain import (
    Amounts,
    Arrangement,
    Chunk,
    Cluster,
    Dependency,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    Place,
    Placement,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)
from cpsched.errors import Fault, SyntaxFault
from cpsched.formats import expand_hostlist, fold_hostlist
from cpsched.site.bridge.leaving import Inexpressible, without_awaited
from cpsched.site.bridge.protocol import JobFacts, JobState, LeftJob, Snapshot
from cpsched.site.bridge.slurm.dependencies import dependencies_of
from cpsched.site.bridge.slurm.fitting import fitted, without_others
from cpsched.site.bridge.slurm.groups import join_components, throttled
from cpsched.site.bridge.slurm.limiting import Take, limited, takes_of, with_licenses
from cpsched.site.bridge.slurm.limits import SlurmLimits, are_enforced
from cpsched.site.bridge.slurm.marker import Marker, is_sayable, prefix_of, user_view
from cpsched.site.bridge.slurm.records import (
    JobRecord,
    NodeRecord,
    PartitionRecord,
    ReservationRecord,
    Share,
    SlurmRecords,
)
from cpsched.site.bridge.slurm.requests import (
    HOST,
    YES,
    Site,
    alternatives,
    counter_of,
    feature_property,
    licenses_of,
    outside_property,
    step_of,
)
from cpsched.site.bridge.slurm.reservations import with_reservations
from cpsched.site.bridge.slurm.site import SiteChoices
from cpsched.site.bridge.slurm.states import CLOSED, NEVER
from cpsched.site.bridge.slurm.steering import Leaving, changes_at, job_facts, why_left
from cpsched.site.bridge.sound import Checker
from cpsched.text import printable

#: Second 0 of all instances of Slurm: its own clock.
_EPOCH = datetime.fromtimestamp(0, UTC)
#: The walltime (s) of a running job without a limit: a year.
_NO_LIMIT = 365 * 86400
_LONGEST_NAME = 256


class _Seen(NamedTuple):
    """One job, or one task of an array, with what was noted of it."""

    id: str
    #: As Slurm has it, and as its user asked for it.
    record: JobRecord
    view: JobRecord
    marker: Marker | None


@dataclass(frozen=True, slots=True)
class _Frame:
    """What jobs are read with; the same object as long as none of it changes."""

    #: Of which it was made, without jobs.
    records: SlurmRecords
    site: Site
    reservations: Mapping[str, ReservationRecord]
    queues: FrozenMap[str, Queue]
    partitions: Mapping[str, PartitionRecord]
    #: None: none are kept, or none are known.
    limits: SlurmLimits | None
    leaving: Leaving

    def is_of(self, records: SlurmRecords) -> bool:
        """Tell whether it is that of some records; the states of nodes may differ."""
        mine = self.records
        return (
            mine.partitions == records.partitions
            and mine.reservations == records.reservations
            and mine.config == records.config
            and mine.limits == records.limits
            and len(mine.nodes) == len(records.nodes)
            and all(
                old is new or replace(old, state=new.state) == new
                for old, new in zip(mine.nodes, records.nodes, strict=True)
            )
        )


class _Made(NamedTuple):
    """What was made of one job, of what, and for how long it is that, if Slurm says the same of the job."""

    one: _Seen
    frame: _Frame
    #: From this second on, and before that one.
    first: int
    until: float
    #: None: it is over.
    job: Job | Inexpressible | None
    facts: JobFacts
    #: Of the limits that hold for it.
    takes: tuple[Take, ...]

    def holds(self, frame: _Frame, now: int) -> bool:
        """Tell whether it is what would be made with a frame at a second, if Slurm says the same of the job."""
        return self.frame is frame and self.first <= now < self.until


class _Apart(NamedTuple):
    """A record, and the jobs or tasks that it stands for."""

    #: Its place among others.
    key: tuple[int, bool, int]
    record: JobRecord
    tasks: tuple[_Seen, ...]


class SnapshotMaker:
    """Makes one snapshot after the other; what is as before is the same object. Mutable.

    `choices`: what the site says besides: the expected waits of its queues. `name`: the name of the instances.
    `joins`: whether heterogeneous jobs are planned; no order can start one on certain nodes.
    """

    def __init__(self, choices: SiteChoices, *, name: str = "slurm", joins: bool = False) -> None:
        self._choices, self._name, self._joins = choices, name, joins
        self._frame: _Frame | None = None
        #: By the identity of the record; the record is kept, so that no other one has its identity.
        self._seen: Mapping[int, _Apart] = {}
        #: All records, and the jobs and tasks that they were told apart into.
        self._apart: tuple[tuple[JobRecord, ...], list[_Seen]] = (), []
        self._made: Mapping[str, _Made] = {}
        #: By id, jobs with their dependencies, and the same jobs without.
        self._linked: Mapping[str, tuple[Job, Job]] = {}
        #: By id, jobs with licences for limits, and the same jobs without.
        self._limited: Mapping[str, tuple[Job, Job]] = {}
        self._cluster: tuple[object, Cluster] | None = None
        self._checker = Checker()

    def make(self, records: SlurmRecords, now: int) -> Snapshot:
        """Make a snapshot of all records of one moment, which is given in Unix seconds."""
        if self._frame is None or not self._frame.is_of(records):
            self._frame = self._new_frame(records)
        frame = self._frame
        seen = self._tell_apart(records.jobs)
        before, made = self._made, dict[str, _Made]()
        jobs, left = dict[str, Job](), dict[str, Inexpressible]()
        facts, takes = dict[str, JobFacts](), dict[str, tuple[Take, ...]]()
        for one in seen:
            name, each = one.id, before.get(one.id)
            if each is None or each.one is not one or not each.holds(frame, now):
                each = _make_job(one, each, frame, now)
            made[name], facts[name], job = each, each.facts, each.job
            if isinstance(job, Job):
                jobs[name] = job
            elif job is not None:
                left[name] = job
            if each.takes:
                takes[name] = each.takes
        self._made = made
        pairs = [(one.id, one.view) for one in seen if one.view.array is not None or one.view.het is not None]
        join_components(pairs, jobs, left, is_planned=self._joins)
        takes |= throttled(pairs, takes)
        self._link(seen, jobs, left)
        limits = self._limit(jobs, takes)
        views = {one.id: one.view for one in seen if one.id in jobs}
        unions = _unions(jobs.values(), frame)
        instance = Instance(
            name=self._name,
            epoch=_EPOCH,
            now=now,
            cluster=self._make_cluster(records, tuple(views.values()), limits),
            queues=FrozenMap({**frame.queues, **unions}) if unions else frame.queues,
            jobs=tuple(jobs.values()),
        )
        instance = without_others(instance, records.free_licenses, left)
        sound = self._checker.check(fitted(with_reservations(instance, records.reservations, views, frame.site.nodes)))
        reasons = {key: (str(reason), reason.is_for_manager) for key, reason in left.items()}
        reasons |= {key: (reason, True) for key, reason in sound.left.items()}
        bad = (Fault(f"node {printable(node.name)}", node.fault) for node in records.nodes if node.fault)
        return Snapshot(
            instance=sound.instance,
            left=tuple(
                LeftJob(id=key, reason=printable(reason), is_for_manager=is_for_manager)
                for key, (reason, is_for_manager) in reasons.items()
            ),
            taken_at=now,
            jobs=facts,
            notes=(*records.notes, *bad, *sound.notes),
        )

    def _new_frame(self, records: SlurmRecords) -> _Frame:
        site = _site(records)
        reservations = {entry.name: entry for entry in records.reservations}
        queues = FrozenMap(_queues(records, site, self._choices))
        partitions = {entry.name: entry for entry in records.partitions}
        is_known = records.limits is not None and (not records.config or are_enforced(records.config))
        limits = records.limits if is_known else None
        leaving = Leaving.of(records, site.partitions, self._choices)
        return _Frame(replace(records, jobs=()), site, reservations, queues, partitions, limits, leaving)

    def _tell_apart(self, records: tuple[JobRecord, ...]) -> list[_Seen]:
        """Return jobs and tasks in the order of their numbers; what an array's other records name is not repeated."""
        if self._apart[0] is records:
            return self._apart[1]
        before = self._seen
        apart = [before.get(id(record)) or _apart(record) for record in records]
        apart.sort(key=attrgetter("key"))
        self._seen = {id(each.record): each for each in apart}
        found: dict[str, _Seen] = {}
        for each in apart:
            for one in each.tasks:
                found.setdefault(one.id, one)
        self._apart = records, list(found.values())
        return self._apart[1]

    def _link(self, seen: Sequence[_Seen], jobs: dict[str, Job], left: dict[str, Inexpressible]) -> None:
        """Give jobs their dependencies; a job that waits for one that is left is left too."""
        before, linked = self._linked, dict[str, tuple[Job, Job]]()
        if any(one.view.dependency for one in seen):
            for key, after in _dependencies(seen, jobs, left):
                bare = jobs[key]
                job, of = before.get(key, (None, None))
                jobs[key] = job if job is not None and of is bare and job.after == after else replace(bare, after=after)
                linked[key] = jobs[key], bare
        self._linked = linked
        for key in left:
            jobs.pop(key, None)
        left.update(without_awaited(jobs, linked))

    def _limit(self, jobs: dict[str, Job], takes: Mapping[str, tuple[Take, ...]]) -> Amounts:
        """Give jobs licences for the limits that they could exceed together, and return these."""
        found, binding = limited(jobs, takes)
        before, mine = self._limited, dict[str, tuple[Job, Job]]()
        for key, licenses in found.items():
            bare = jobs[key]
            new = with_licenses(bare, licenses)
            job, of = before.get(key, (None, None))
            jobs[key] = job if job is not None and of is bare and job.licenses == new.licenses else new
            mine[key] = jobs[key], bare
        self._limited = mine
        return binding

    def _make_cluster(self, records: SlurmRecords, views: Sequence[JobRecord], limits: Amounts) -> Cluster:
        """Make the nodes in classes; those that some job requires or excludes have properties that say so.

        Its licences are those of Slurm, and those that stand for limits.
        """
        hosts = frozenset(name for text in {view.required_nodes for view in views} for name in _hosts(text))
        texts = dict.fromkeys(view.excluded_nodes for view in views if view.excluded_nodes)
        either = frozenset(one for text in {view.features for view in views} for one in alternatives(text))
        licenses = Amounts({**records.licenses, **limits})
        counted = tuple(
            sorted((one.name, one.nodes, one.cpus_per_node) for one in records.partitions if one.cpus_per_node)
        )
        of = records.nodes, licenses, hosts, tuple(texts), either, counted
        if self._cluster is None or self._cluster[0] != of:
            excluded = {text: frozenset(_hosts(text)) for text in texts}
            counters = {(node, counter_of(name)): most for name, nodes, most in counted for node in _hosts(nodes)}
            self._cluster = of, _cluster(records.nodes, hosts, excluded, either, counters, licenses)
        return self._cluster[1]


def make_snapshot(records: SlurmRecords, now: int, choices: SiteChoices, *, name: str = "slurm") -> Snapshot:
    """Make a snapshot of what Slurm said.

    `records`: all records of one moment.
    `now`: that moment, in Unix seconds.
    `choices`: what the site says besides: the expected waits of its queues.
    """
    return SnapshotMaker(choices, name=name, joins=True).make(records, now)


def _apart(record: JobRecord) -> _Apart:
    """Tell a record apart."""
    return _Apart((record.array or record.number, record.task is None, record.number), record, tuple(_tasks(record)))


def _tasks(record: JobRecord) -> Iterator[_Seen]:
    """Yield a job, or the tasks that a record stands for."""
    view, marker = user_view(record)
    try:
        ids = record.ids
    except ValueError:
        ids = (str(record.number),)
        view = view.but(others=(*view.others, f"its array's tasks cannot be read ({record.tasks_text})"))
    for key in ids:
        yield _Seen(key, record, view, marker)


def _site(records: SlurmRecords) -> Site:
    config = records.config or {}
    nodes = {node.name: node for node in records.nodes}
    partitions: dict[str, Sequence[str]] = {}
    for partition in records.partitions:
        try:
            partitions[partition.name] = (
                tuple(dict.fromkeys(expand_hostlist(partition.nodes))) if partition.nodes else ()
            )
        except SyntaxFault:
            partitions[partition.name] = ()
    if not partitions:
        of_nodes: dict[str, list[str]] = defaultdict(list)
        for node in records.nodes:
            for partition_name in node.partitions:
                of_nodes[partition_name].append(node.name)
        partitions.update(of_nodes)
    selects = str(config.get("SelectTypeParameters", ""))
    return Site(
        nodes=nodes,
        partitions=partitions,
        described={partition.name: partition for partition in records.partitions},
        exclusive=frozenset(one.name for one in records.partitions if one.is_exclusive or one.is_of_one_user),
        max_nodes={one.name: one.max_nodes for one in records.partitions if one.max_nodes is not None},
        cpus_per_node={one.name: one.cpus_per_node for one in records.partitions if one.cpus_per_node is not None},
        counts_memory=not config or "MEMORY" in selects.upper(),
        gives_whole_nodes=config.get("SelectType") == "select/linear",
        is_configured=bool(config),
    )


def _make_job(one: _Seen, before: _Made | None, frame: _Frame, now: int) -> _Made:
    """Make a job that runs or waits, or the reason why it cannot be planned, and the facts of any job.

    What equals what was made before is the same object.
    """
    job: Job | Inexpressible | None = None
    takes: tuple[Take, ...] = ()
    left = None if one.view.state is not JobState.WAITING else why_left(one.record, one.marker, frame.leaving, now)
    is_plain = left is None and not (before is not None and isinstance(before.job, Inexpressible))
    if before is not None and before.holds(frame, now) and before.one.view == one.view and is_plain:
        # all that its user asked for is the same, and only the note is another one
        job, takes, revision = before.job, before.takes, before.facts.revision
    else:
        revision = revision_of(one.view)
        if not one.view.state.is_over:
            try:
                job = _job(one, frame.site, frame.reservations, now)
                if left is not None:
                    raise Inexpressible(left)
                if frame.limits is not None:
                    view = one.view
                    if job.queue is not None and len(view.partitions) > 1:
                        view = view.but(partitions=(job.queue.partition(",")[0],))
                    takes = takes_of(job, view, frame.site, frame.limits, frame.partitions)
            except Inexpressible as error:
                job = error
    facts = job_facts(one.record, one.view, one.marker, revision, now)
    if before is not None:
        job = before.job if job == before.job else job
        facts = before.facts if facts == before.facts else facts
    return _Made(one, frame, now, _until(one, job, now), job, facts, takes)


def _until(one: _Seen, job: Job | Inexpressible | None, now: int) -> float:
    """Return the second from which on a job may be another one than it is now, though Slurm says the same of it."""
    view = one.view
    if job is None:
        return math.inf
    if isinstance(job, Job) and job.running is not None:
        has_begun = view.start is not None and view.start <= now
        return job.running.segments[-1].end if has_begun and not view.is_completing else now + 1
    if view.submit > now:
        return now + 1
    coming = [*changes_at(one.record, one.marker)]
    if view.begin is not None:
        coming.append(view.begin)
    return min((at for at in coming if at > now), default=math.inf)


def _name(text: str) -> str | None:
    """Return a name as documents may have it: on one line, and not too long; None where there is none."""
    return printable(text)[:_LONGEST_NAME] or None


def _job(one: _Seen, site: Site, reservations: Mapping[str, ReservationRecord], now: int) -> Job:
    """Return one job that runs or waits.

    Raises `Inexpressible` if an instance cannot say it, or nobody may start it.
    """
    view = one.view
    make = partial(
        Job,
        id=one.id,
        user=_name(view.user),
        group=_name(view.group),
        project=_name(view.account),
        submit=min(view.submit, now),
    )
    if view.state is JobState.RUNNING:
        return _running(make, view, site, now)
    if view.state is JobState.HELD:
        raise Inexpressible(f"it is held ({view.reason})" if view.reason else "it is held", is_for_manager=False)
    if view.others:
        raise Inexpressible("; ".join(view.others))
    if (why := view.reason.partition(":")[0]) in NEVER and not (one.marker is not None and one.marker.ordered):
        raise Inexpressible(f"Slurm says that it cannot start ({why})", is_for_manager=False)
    if not is_sayable(prefix_of(one.record.admin_comment)):
        raise Inexpressible("its AdminComment has blanks, or signs that scontrol cannot be given")
    if view.reservation and view.reservation not in reservations:
        raise Inexpressible(f"its reservation {view.reservation} is not known")
    if view.array is not None and view.task is None and not view.tasks_text:
        raise Inexpressible("the tasks of its array are not known")
    begin = view.begin if view.begin is not None and view.begin > now else None
    queue, step, licenses = _asked(view, site)
    return make(
        queue=queue if queue in site.partitions else None,
        steps=(step,),
        licenses=licenses,
        not_before=begin,
        deadline=view.deadline,
        reservation=view.reservation or None,
    )


def _asked(view: JobRecord, site: Site) -> tuple[str, Step, Amounts]:
    """Return the queue in which a waiting job is planned, its request with its walltime, and its licences.

    Of several partitions it is the first that can run the job, or all of them as one. Raises `Inexpressible` if there
    is none.
    """
    reason: Inexpressible | None = None
    candidates = site.queues_of(view)
    for queue in candidates:
        partition = site.described.get(queue)
        walltime = view.time_limit
        try:
            if partition is not None and partition.state in CLOSED:
                raise Inexpressible(f"its partition {queue} is {partition.state}", is_for_manager=False)
            if walltime is None and not view.is_unlimited and partition is not None:
                walltime = partition.default_time or partition.max_time
            if walltime is None:
                raise Inexpressible("it has no time limit")
            step, licenses = step_of(view.but(partitions=(queue,)), walltime, site)
        except Inexpressible as error:
            reason = reason or error
            continue
        is_short = partition is None or partition.max_time is None or walltime <= partition.max_time
        if len(candidates) == 1 or (is_short and site.has_room(queue, step.request)):
            return queue, step, licenses
        reason = reason or Inexpressible(f"none of its partitions {','.join(view.partitions)} can run it")
    raise reason or Inexpressible("it has no partition")


def _unions(jobs: Iterable[Job], frame: _Frame) -> dict[str, Queue]:
    """Return the queues of jobs that may run in several partitions, which are alike."""
    found: dict[str, Queue] = {}
    for name in {job.queue for job in jobs if job.queue is not None} - frame.queues.keys():
        first = max((frame.queues[one] for one in name.split(",")), key=attrgetter("priority"))
        nodes = tuple(node for node in frame.site.partitions[name] if node in frame.site.nodes)
        found[name] = replace(first, nodes=nodes if len(nodes) < len(frame.site.nodes) else None)
    return found


def _running(make: Callable[..., Job], view: JobRecord, site: Site, now: int) -> Job:
    """Return a running job: the nodes that it holds are a fact."""
    if not view.shares:
        raise Inexpressible("it runs, and Slurm does not say where", is_for_manager=False)
    unknown = [share.node for share in view.shares if share.node not in site.nodes]
    if unknown:
        raise Inexpressible(f"it runs on nodes that are not known ({fold_hostlist(unknown)})", is_for_manager=False)
    start = min(now, view.start if view.start is not None else now)
    walltime = _NO_LIMIT if view.time_limit is None else max(1, view.time_limit)
    queue = view.partitions[0] if view.partitions else ""
    if view.is_completing:
        walltime = max(1, now + 1 - start)
    elif view.is_suspended and view.end is not None:
        walltime = max(walltime, view.end - start)
    amounts = [_held(share, queue, site) for share in view.shares]
    kinds = {held: index for index, held in enumerate(dict.fromkeys(amounts))}
    counts = Counter(amounts)
    allocation = tuple(
        Placement(node=share.node, resources=held, chunk=kinds[held], count=1)
        for share, held in zip(view.shares, amounts, strict=True)
    )
    chunks = tuple(Chunk(count=counts[held], resources=held) for held in kinds)
    place = Place(arrangement=Arrangement.SCATTER, exclusive=view.exclusive != "" or queue in site.exclusive)
    segment = Segment(start=start, end=max(start + walltime, now + 1), allocation=allocation)
    return make(
        queue=queue if queue in site.partitions else None,
        steps=(Step(walltime=walltime, request=Request(chunks=chunks, place=place)),),
        licenses=licenses_of(view),
        running=Running(start=start, segments=(segment,)),
    )


def _held(share: Share, queue: str, site: Site) -> Amounts:
    amounts = {"cores": share.cpus, "mem": share.memory if site.counts_memory else 0, **share.gres}
    if queue in site.cpus_per_node:
        amounts[counter_of(queue)] = share.cpus
    return Amounts({name: amount for name, amount in amounts.items() if amount} or {"cores": 1})


def _dependencies(
    seen: Sequence[_Seen], jobs: Mapping[str, Job], left: dict[str, Inexpressible]
) -> Iterator[tuple[str, tuple[Dependency, ...]]]:
    """Yield waiting jobs with what they wait for; one whose dependency cannot be said is left."""
    alive = [one for one in seen if not one.record.state.is_over]
    pending: dict[int, list[str]] = defaultdict(list)
    by_name: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in alive:
        for number in {one.record.number, one.record.array or one.record.number}:
            pending[number].append(one.id)
        same = by_name[one.record.user, one.record.name]
        if one.view.dependency and one.id in jobs and jobs[one.id].running is None:
            try:
                yield one.id, dependencies_of(one.view, one.id, pending, tuple(same))
            except Inexpressible as error:
                left[one.id] = error
        same.append(one.id)


def _cluster(
    nodes: Sequence[NodeRecord],
    hosts: Collection[str],
    excluded: Mapping[str, Collection[str]],
    either: Collection[str],
    counters: Mapping[tuple[str, str], int],
    licenses: Amounts,
) -> Cluster:
    """Return the nodes in classes.

    Those in `hosts`, those outside of excluded ones and those with one of several features (`either`, ``a|b``) have
    properties that say so. `counters`: resources of nodes that are limits.
    """
    limits: dict[str, dict[str, int]] = defaultdict(dict)
    for (node_name, counter), most in counters.items():
        limits[node_name][counter] = most

    def kind(node: NodeRecord) -> tuple[object, ...]:
        properties = {feature_property(feature): YES for feature in node.features}
        if node.name in hosts:
            properties[HOST] = node.name
        properties |= {outside_property(text): YES for text, names in excluded.items() if node.name not in names}
        properties |= {
            feature_property(text): YES for text in either if not frozenset(text.split("|")).isdisjoint(node.features)
        }
        amounts = Amounts({"cores": node.cpus, "mem": node.memory, **node.gres, **limits.get(node.name, {})})
        return amounts, FrozenMap(properties), node.weight, node.state

    classes = []
    for (amounts, properties, weight, state), group in groupby(nodes, kind):
        names = tuple(node.name for node in group)
        classes.append(NodeClass(names=names, resources=amounts, properties=properties, priority=weight, state=state))  # type: ignore[arg-type]  # parts of a key
    return Cluster(classes=tuple(classes), licenses=licenses)


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return expand_hostlist(text) if text else ()
    except SyntaxFault:
        return ()


def _queues(records: SlurmRecords, site: Site, choices: SiteChoices) -> dict[str, Queue]:
    described = {partition.name: partition for partition in records.partitions}
    queues = {}
    for name, names in site.partitions.items():
        known = tuple(one for one in names if one in site.nodes)
        partition = described.get(name)
        chosen = choices.queue(name)
        queues[name] = replace(
            chosen,
            priority=0 if partition is None else partition.tier,
            max_walltime=None if partition is None else partition.max_time,
            nodes=known if known and len(known) < len(site.nodes) else None,
        )
    return queues


def revision_of(job: JobRecord) -> str:
    """Return a short text that changes when what a plan of the job rests on does; of a job as its user asked for it."""
    return _digest(
        job.partitions,
        job.time_limit,
        (job.nodes, job.max_nodes, job.cpus, job.tasks, job.tasks_per_node, job.cpus_per_node, job.exclusive),
        (job.required_nodes, job.excluded_nodes, job.features, job.licenses, job.reservation),
        (job.memory_per_cpu, job.memory_per_node),
        (job.tres_per_job, job.tres_per_node, job.tres_per_socket, job.tres_per_task),
        job.restarts,
    )


@lru_cache(maxsize=2**14)  # many jobs ask alike
def _digest(
    partitions: tuple[str, ...],
    time_limit: int | None,
    shape: tuple[object, ...],
    where: tuple[str, ...],
    memory: tuple[int | None, ...],
    tres: tuple[str, ...],
    restarts: int,
) -> str:
    texts = [text.replace("gres/", "gres:").replace("=", ":") for text in tres]
    asked = (partitions, time_limit, shape, where, memory, texts, restarts)
    return hashlib.blake2b(repr(asked).encode(), digest_size=8).hexdigest()
