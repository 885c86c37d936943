"""Slurm's records as a `Snapshot`: an instance, the jobs that stay Slurm's with a reason each, and the facts."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from cpsched.domain import Amounts, Cluster, Dependency, FrozenMap, Instance, Job, Queue
from cpsched.errors import Fault, SyntaxFault
from cpsched.formats import trusted
from cpsched.site.bridge.leaving import Inexpressible, without_awaited
from cpsched.site.bridge.protocol import JobFacts, JobState, Snapshot
from cpsched.site.bridge.slurm.dependencies import dependencies_of
from cpsched.site.bridge.slurm.features import alternatives
from cpsched.site.bridge.slurm.fitting import fitted, without_others
from cpsched.site.bridge.slurm.jobs import Seen, anywhere_from, job_of, join_components, revision_of, throttled
from cpsched.site.bridge.slurm.limiting import Take, kept, limited, with_licenses
from cpsched.site.bridge.slurm.limits import SlurmLimits, are_enforced
from cpsched.site.bridge.slurm.machine import cluster_of, queues_of, site_of, unions_of
from cpsched.site.bridge.slurm.marker import user_view
from cpsched.site.bridge.slurm.records import JobRecord, ReservationRecord, SlurmRecords, hosts_of
from cpsched.site.bridge.slurm.requests import Site, counter_of, outside_property, partition_property
from cpsched.site.bridge.slurm.reservations import with_reservations
from cpsched.site.bridge.slurm.site import SlurmModel
from cpsched.site.bridge.slurm.steering import Leaving, changes_at, job_facts, why_left
from cpsched.site.bridge.sound import Checker
from cpsched.text import printable

#: Second 0 of all instances of Slurm: its own clock.
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What jobs are read with; the same object as long as none of it changes."""

    #: Of which it was made, without jobs.
    records: SlurmRecords
    site: Site
    reservations: Mapping[str, ReservationRecord]
    queues: FrozenMap[str, Queue]
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
            and mine.topology == records.topology
            and len(mine.nodes) == len(records.nodes)
            and all(
                old is new or replace(old, state=new.state) == new
                for old, new in zip(mine.nodes, records.nodes, strict=True)
            )
        )


class _Made(NamedTuple):
    """What was made of one job, of what, and for how long it is that, if Slurm says the same of the job."""

    one: Seen
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


class _Last(NamedTuple):
    """The last snapshot, the records that it was made of, and the second before which it is that of the same ones."""

    snapshot: Snapshot
    records: SlurmRecords
    until: float

    def holds(self, records: SlurmRecords, now: int) -> bool:
        """Tell whether other records say the same, and nothing has become another one by time alone."""
        mine = self.records
        return (
            self.snapshot.taken_at <= now < self.until
            and mine.jobs is records.jobs
            and mine.nodes is records.nodes
            and not (mine.reservations or records.reservations)
            and replace(mine, jobs=(), nodes=()) == replace(records, jobs=(), nodes=())
        )


class _Apart(NamedTuple):
    """A record, and the jobs or tasks that it stands for."""

    #: Its place among others.
    key: tuple[int, bool, int]
    record: JobRecord
    tasks: tuple[Seen, ...]


class SnapshotMaker:
    """Makes one snapshot after the other; what is as before is the same object. Mutable.

    `choices`: what the site says besides: the expected waits of its queues. `name`: the name of the instances.
    `only_ranks`: whether no order names nodes, or holds a job: heterogeneous jobs, of which none can be started on
    certain nodes, are planned, and jobs that may preempt others.
    """

    def __init__(self, choices: SlurmModel | None = None, *, name: str = "slurm", only_ranks: bool = False) -> None:
        self._choices, self._name, self._only_ranks = choices or SlurmModel(kind="slurm"), name, only_ranks
        self._frame: _Frame | None = None
        #: By the identity of the record; the record is kept, so that no other one has its identity.
        self._seen: Mapping[int, _Apart] = {}
        #: All records, and the jobs and tasks that they were told apart into.
        self._apart: tuple[tuple[JobRecord, ...], list[Seen]] = (), []
        self._made: Mapping[str, _Made] = {}
        #: By id, jobs with their dependencies, and the same jobs without.
        self._linked: Mapping[str, tuple[Job, Job]] = {}
        #: By id, jobs with licences for limits, and the same jobs without.
        self._limited: Mapping[str, tuple[Job, Job]] = {}
        self._cluster: tuple[object, Cluster] | None = None
        self._checker = Checker()
        self._last: _Last | None = None

    def make(self, records: SlurmRecords, now: int) -> Snapshot:
        """Make a snapshot of all records of one moment, which is given in Unix seconds."""
        if self._last is not None and self._last.holds(records, now):
            before = self._last.snapshot
            return replace(before, instance=trusted(replace(before.instance, now=now)), taken_at=now)
        snapshot = self._make(records, now)
        self._last = _Last(snapshot, records, min((each.until for each in self._made.values()), default=math.inf))
        return snapshot

    def _make(self, records: SlurmRecords, now: int) -> Snapshot:
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
        join_components(pairs, jobs, left, is_planned=self._only_ranks)
        takes |= throttled(pairs, takes)
        self._link(seen, jobs, left)
        limits = self._limit(jobs, takes)
        views = {one.id: one.view for one in seen if one.id in jobs}
        unions = unions_of(jobs.values(), frame.queues, frame.site)
        choosing = {name for job in jobs.values() if job.alternatives for name in (job.queue or "").split(",")}
        members = {
            partition_property(name): frozenset(frame.site.partitions[name])
            for queue in unions
            for name in choosing.intersection(queue.split(","))
        }
        instance = Instance(
            name=self._name,
            epoch=_EPOCH,
            now=now,
            cluster=self._make_cluster(records, tuple(views.values()), members, limits),
            queues=FrozenMap({**frame.queues, **unions}) if unions else frame.queues,
            jobs=tuple(jobs.values()),
            preemption=frame.leaving.preemption,
        )
        instance = without_others(instance, records.free_licenses, left)
        instance = fitted(with_reservations(instance, records.reservations, views, frame.site.nodes))
        bad = (Fault(f"node {printable(node.name)}", node.fault) for node in records.nodes if node.fault)
        return self._checker.snapshot(instance, left, (*records.notes, *records.topology.notes, *bad), facts)

    def _new_frame(self, records: SlurmRecords) -> _Frame:
        site = site_of(records)
        reservations = {entry.name: entry for entry in records.reservations}
        queues = FrozenMap(queues_of(site, self._choices))
        is_known = records.limits is not None and (not records.config or are_enforced(records.config))
        limits = records.limits if is_known else None
        leaving = Leaving.of(records, site.partitions, self._choices, only_ranks=self._only_ranks)
        return _Frame(replace(records, jobs=()), site, reservations, queues, limits, leaving)

    def _tell_apart(self, records: tuple[JobRecord, ...]) -> list[Seen]:
        """Return jobs and tasks in the order of their numbers; what an array's other records name is not repeated."""
        if self._apart[0] is records:
            return self._apart[1]
        before = self._seen
        apart = [before.get(id(record)) or _apart(record) for record in records]
        apart.sort(key=attrgetter("key"))
        self._seen = {id(each.record): each for each in apart}
        found: dict[str, Seen] = {}
        for each in apart:
            for one in each.tasks:
                found.setdefault(one.id, one)
        self._apart = records, list(found.values())
        return self._apart[1]

    def _link(self, seen: Sequence[Seen], jobs: dict[str, Job], left: dict[str, Inexpressible]) -> None:
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

    def _make_cluster(
        self, records: SlurmRecords, views: Sequence[JobRecord], members: Mapping[str, Collection[str]], limits: Amounts
    ) -> Cluster:
        """Make the nodes in classes; those that some job requires or excludes have properties that say so, and so have
        those of partitions (`members`).

        Its licences are those of Slurm, and those that stand for limits.
        """
        hosts = frozenset(name for text in {view.required_nodes for view in views} for name in hosts_of(text))
        texts = dict.fromkeys(view.excluded_nodes for view in views if view.excluded_nodes)
        either = frozenset(one for text in {view.features for view in views} for one in alternatives(text))
        licenses = Amounts({**records.licenses, **limits})
        counted = tuple(
            sorted((one.name, one.nodes, one.cpus_per_node) for one in records.partitions if one.cpus_per_node)
        )
        of = records.nodes, licenses, hosts, tuple(texts), members, either, counted, records.topology
        if self._cluster is None or self._cluster[0] != of:
            every = frozenset(node.name for node in records.nodes)
            marked = {**{outside_property(text): every.difference(hosts_of(text)) for text in texts}, **members}
            counters = {(node, counter_of(name)): most for name, nodes, most in counted for node in hosts_of(nodes)}
            cluster = cluster_of(records.nodes, hosts, marked, either, counters, licenses)
            self._cluster = of, replace(cluster, topology=records.topology.levels).of(cluster.classes, licenses)
        return self._cluster[1]


def make_snapshot(
    records: SlurmRecords, now: int, choices: SlurmModel | None = None, *, name: str = "slurm"
) -> Snapshot:
    """Make a snapshot of what Slurm said.

    `records`: all records of one moment.
    `now`: that moment, in Unix seconds.
    `choices`: what the site says besides: the expected waits of its queues.
    """
    return SnapshotMaker(choices, name=name, only_ranks=True).make(records, now)


def _apart(record: JobRecord) -> _Apart:
    return _Apart((record.array or record.number, record.task is None, record.number), record, tuple(_tasks(record)))


def _tasks(record: JobRecord) -> Iterator[Seen]:
    view, marker = user_view(record)
    try:
        ids = record.ids
    except SyntaxFault:
        ids = (str(record.number),)
        view = view.but(others=(*view.others, f"its array's tasks cannot be read ({record.tasks_text})"))
    for key in ids:
        yield Seen(key, record, view, marker)


def _make_job(one: Seen, before: _Made | None, frame: _Frame, now: int) -> _Made:
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
                job = job_of(one, frame.site, frame.reservations, now)
                if left is not None:
                    raise Inexpressible(left)
                job = frame.leaving.placed(job, one.view)
                if frame.limits is not None:
                    job, takes = kept(job, one.view, frame.site, frame.limits)
            except Inexpressible as error:
                job = error
    facts = job_facts(one.record, one.view, one.marker, revision, now)
    if before is not None:
        job = before.job if job == before.job else job
        facts = before.facts if facts == before.facts else facts
    return _Made(one, frame, now, _until(one, job, now), job, facts, takes)


def _until(one: Seen, job: Job | Inexpressible | None, now: int) -> float:
    """Return the second from which on a job may be another one than it is now, though Slurm says the same of it."""
    view = one.view
    if job is None:
        return math.inf
    if isinstance(job, Job) and job.running is not None:
        has_begun = view.start is not None and view.start <= now
        return job.running.segments[-1].end if has_begun and not view.is_completing else now + 1
    if view.submit > now:
        return now + 1
    coming: list[float] = [*changes_at(one.record, one.marker), anywhere_from(view)]
    if view.begin is not None:
        coming.append(view.begin)
    return min((at for at in coming if at > now), default=math.inf)


def _dependencies(
    seen: Sequence[Seen], jobs: Mapping[str, Job], left: dict[str, Inexpressible]
) -> Iterator[tuple[str, tuple[Dependency, ...]]]:
    """Yield waiting jobs with what they wait for; one whose dependency cannot be said is left."""
    alive = [one for one in seen if not one.record.state.is_over]
    pending: dict[int, list[str]] = defaultdict(list)
    by_name: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in alive:
        for number in {one.record.number, one.record.array or one.record.number}:
            pending[number].append(one.id)
    for one in alive:  # a job may wait for one with a higher number
        same = by_name[one.record.user, one.record.name]
        if one.view.dependency and one.id in jobs and jobs[one.id].running is None:
            try:
                yield one.id, dependencies_of(one.view, one.id, pending, tuple(same))
            except Inexpressible as error:
                left[one.id] = error
        same.append(one.id)
