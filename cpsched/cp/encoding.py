"""From a window to integers: the nodes that admit each chunk, the amounts taken already, the allowed starts of each
job.

All times are seconds from ``now``. A *site* is a node on which new jobs may start. A *part* of a task is a number of
equal units, each of which is on one site: the chunks of one kind, or the whole of a packed request. A job that changes
while it runs has several segments, or several modes (`task_modes.py`): each part then belongs to one mode, and is on
its sites from one segment to another.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter

from cpsched import problem
from cpsched.cp.costs import TaskCosts, costs_of
from cpsched.cp.running import running_modes, totals_of
from cpsched.cp.sites import Pool, Site, licenses_of, machine_of, sites_of
from cpsched.cp.task_modes import TaskMode, waiting_modes
from cpsched.cp.tight_starts import Pieces, tight_starts
from cpsched.domain import ChunkLayer, Instance, Job, NodeClass, Place, Request, chunk_layers, modes
from cpsched.domain import PlannedJob as Planned


@dataclass(frozen=True, slots=True)
class Alternative:
    """A site for the units of a part."""

    site: int
    #: The number of units that an empty node holds, at most the number of the request (P of BRIDI-6).
    most: int
    #: The amount of each column that one unit takes, in each segment in which it is there.
    takes: tuple[Mapping[problem.Column, int], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Equal units of a task, which begin and end together."""

    #: In each segment in which they are there: (kind of chunk, how many chunks of it make a unit).
    units: tuple[tuple[tuple[int, int], ...], ...]
    need: int
    alternatives: tuple[Alternative, ...]
    #: The mode to which they belong, and the first and last of its segments in which they are there.
    mode: int = 0
    first: int = 0
    last: int = 0

    def is_there(self, mode: int, segment: int) -> bool:
        """Return whether the units are there in a segment of a mode."""
        return self.mode == mode and self.first <= segment <= self.last

    def runs(self, alternative: Alternative) -> Iterator[tuple[int, int, Mapping[problem.Column, int]]]:
        """Yield the segments through which a unit takes the same of a site: the first, the last, and what it takes."""
        first = self.first
        for segment, takes in enumerate(alternative.takes, start=self.first):
            if segment == self.last or alternative.takes[segment + 1 - self.first] != takes:
                yield first, segment, takes
                first = segment + 1


@dataclass(frozen=True, slots=True)
class Task:
    """A job that waits for a start and a place."""

    job: Job
    earliest: int
    latest: int
    #: The second by which it ends.
    end_by: int
    modes: tuple[TaskMode, ...]
    #: Empty in a window of whole nodes.
    parts: tuple[Part, ...]
    #: Whether a plan may leave it out.
    is_optional: bool = False

    @property
    def is_running(self) -> bool:
        """Whether it has started, and only its share is still to be chosen."""
        return self.job.running is not None

    @property
    def shortest(self) -> int:
        """Seconds that it runs at least."""
        return min(mode.least for mode in self.modes)

    @property
    def segments(self) -> Iterator[tuple[int, int]]:
        """All segments of all modes."""
        return ((number, segment) for number, mode in enumerate(self.modes) for segment in range(len(mode.spans)))

    @property
    def is_elastic(self) -> bool:
        """Whether it is an evolving job whose steps can be held."""
        return self.job.is_evolving and self.modes[0].least < self.modes[0].most

    @property
    def is_exclusive(self) -> bool:
        """Whether it takes its nodes whole."""
        return self.job.steps[0].request.place.exclusive

    @property
    def is_scattered(self) -> bool:
        """Whether a node may have at most one of its chunks."""
        return self.job.steps[0].request.place.is_scattered


@dataclass(frozen=True, slots=True)
class Encoding:
    """A window as whole numbers."""

    #: Second 0, on the instance's clock.
    now: int
    tasks: tuple[Task, ...]
    sites: tuple[Site, ...]
    licenses: Mapping[str, Pool]
    milestones: tuple[problem.Milestone, ...]
    longest_delays: tuple[problem.LongestDelay, ...]
    costs: TaskCosts
    #: By then some optimal plan has ended.
    horizon: int
    #: All nodes, where only the number of those that are taken matters; tasks have no parts then.
    machine: problem.Machine | None
    #: Whether each plan is one of the model, or no better than one: only then is its bound one of the window.
    has_all_plans: bool
    #: Of a part of a window: what other jobs take of its nodes, where only their number counts; the second by which the
    #: others have ended; and the most that a plan may cost, in whole numbers.
    held: tuple[problem.Hold, ...] = ()
    ended: int = 0
    ceiling: int | None = None
    #: Some optimal plan has all its starts among these seconds; None: that is not known of any but all.
    tight_starts: Pieces | None = None
    #: Whether plans of other jobs count, too: more jobs beat fewer, and of as many jobs the cost counts.
    has_other_jobs: bool = False
    #: What there is for tasks of each licence that does not come back.
    consumable: Mapping[str, int] = field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        """Whether some job changes while it runs, or could."""
        return any(len(task.modes) > 1 or len(task.modes[0].spans) > 1 for task in self.tasks)

    @property
    def has_choices(self) -> bool:
        """Whether some job can be held or shrunk."""
        return any(len(task.modes) > 1 or task.modes[0].least < task.modes[0].most for task in self.tasks)

    def group_of(self, number: int, place: int, site: int) -> tuple[str, str] | None:
        """Return the group of a site of the level in groups of which a part of a task is, with the level; None if it
        may be anywhere.
        """
        level = self.place_of(number, place).within
        group = None if level is None else self.sites[site].properties.get(problem.level_rule(level))
        return None if level is None or group is None else (level, group)

    def place_of(self, number: int, place: int) -> Place:
        """Return how the chunks of a part of a task may be placed."""
        task = self.tasks[number]
        return task.modes[task.parts[place].mode].requests[0].place

    def units_in_groups(self, number: int, place: int) -> tuple[int, int]:
        """Return how many units of a part are in a group of nodes for each time that its variable counts, and how often
        it can be counted: whether it has all, how many segments, or how many chunks that are to be spread.
        """
        need, of_part = self.tasks[number].parts[place].need, self.place_of(number, place)
        unit = of_part.segment or (1 if of_part.spread else need)
        return unit, of_part.most_in_group(need, need) // unit

    @property
    def num_alternatives(self) -> int:
        """How many pairs of a part and a site there are: the size of the model."""
        return sum(len(part.alternatives) for task in self.tasks for part in task.parts)


def encode(
    instance: Instance, plan: Sequence[Planned], others: Collection[str] = (), *, by_class: bool = False
) -> Encoding:
    """Encode a window, in which all jobs of a plan are planned anew but those that run; of these the malleable ones may
    change their share.

    `plan`: all jobs that run or are planned. `others`: the ids of further jobs that may be planned, with all those for
    which they wait. Then jobs can also lose their places (`_optional`). `by_class`: whether a waiting job has only one
    site of each class of nodes as an alternative, which represents all of them.
    """
    now = instance.now
    entries = {job.id: problem.opened(job) for job in instance.elements()}
    jobs = [entries[planned.id] for planned in plan if entries[planned.id].running is None]
    running = {planned.id: planned for planned in plan if entries[planned.id].running is not None}
    awaited = problem.awaited_ends(instance)
    continuing = {
        name: of_job
        for name, planned in running.items()
        if name not in awaited and (of_job := running_modes(instance, entries[name], planned))
    }
    facts = [planned for name, planned in running.items() if name not in continuing]
    further = [job for name, job in entries.items() if name in others]
    optional = _optional(instance, jobs) if further else frozenset()
    jobs = [*jobs, *_startable(instance, jobs, further)]
    precedences = problem.Precedences(instance, jobs)
    earliest = [precedences.earliest(job) or 0 for job in jobs]
    horizon = instance.last_end(*_horizon(plan, now, jobs, earliest, awaited))
    horizon = max([horizon, *(mode.most for of_job in continuing.values() for mode in of_job)])
    sites, licenses = sites_of(instance, facts, horizon), licenses_of(instance, facts, horizon)
    plans = {planned.id: planned for planned in plan}
    modes = [
        waiting_modes(job, is_awaited=job.id in awaited, longest=horizon, known=_known_shares(job, plans.get(job.id)))
        for job in jobs
    ]
    machine = machine_of(instance) if any(job.is_evolving for job in jobs) else None
    choices = {site.group: (number, site) for number, site in reversed([*enumerate(sites)])} if by_class else {}
    candidates = sorted(choices.values(), key=itemgetter(0)) if by_class else [*enumerate(sites)]
    tasks = [
        _task(instance, job, first, horizon, of_job, () if machine is not None else candidates)
        for job, first, of_job in zip(jobs, earliest, modes, strict=True)
    ]
    tasks = [
        replace(
            task,
            latest=task.latest if (last := precedences.latest(task.job)) is None else min(task.latest, last),
            is_optional=task.job.id in optional or task.job.id in others,
        )
        for task in tasks
    ]
    tasks += [_continuing_task(instance, entries[name], of_job, horizon, sites) for name, of_job in continuing.items()]
    is_rigid = not any(job.malleability is not None for job in instance.jobs)
    has_all_plans = is_rigid and all(_is_unrestricted(instance, task, machine) for task in tasks)
    costs = costs_of(instance, tasks, horizon=horizon)
    milestones, longest_delays = precedences.milestones(), precedences.longest_delays()
    known = [planned.start - now for planned in plan]
    tight = None
    if not by_class and not longest_delays:
        tight = tight_starts(tasks, sites, licenses, milestones, costs, horizon=horizon, known=known)
    return Encoding(
        now,
        tuple(tasks),
        sites,
        licenses,
        milestones,
        longest_delays,
        costs,
        horizon,
        machine,
        has_all_plans,
        has_other_jobs=bool(further),
        consumable=problem.consumable(instance),
        tight_starts=tight,
    )


def _startable(instance: Instance, jobs: Sequence[Job], further: Sequence[Job]) -> list[Job]:
    """Return further jobs without those whose own times leave no start after the running ones for which they wait, and
    without those that wait for such a job.
    """
    left = list(further)
    while True:
        precedences = problem.Precedences(instance, (*jobs, *left))
        found = [
            job
            for job in left
            if (earliest := precedences.earliest(job)) is not None
            and ((last := instance.latest_start(job)) is None or instance.now + earliest <= last)
            and ((last := precedences.latest(job)) is None or earliest <= last)
        ]
        if len(found) == len(left):
            return found
        left = found


def _optional(instance: Instance, jobs: Sequence[Job]) -> frozenset[str]:
    """Return those jobs of a plan that a best plan may leave out, by id.

    *Proof* that it has all others. Neither such a job nor any job for which it waits must start by some time or soon
    after another, and nothing is set aside. A plan without it has room for it, and for those for which it waits, when
    all else has ended; so a plan with it has more jobs.
    """
    found = {job.id for job in jobs if instance.set_aside or instance.latest_start(job) is not None or job.is_hurried}
    left = problem.left_without(instance, found)
    return frozenset(job.id for job in jobs if job.id not in left)


def _known_shares(job: Job, planned: Planned | None) -> list[list[int]]:
    """Return the sequence of shares on which a plan runs a waiting job, if it does and the job is malleable."""
    if planned is None or job.malleability is None or job.is_evolving:
        return []
    held = [Counter(mode.request.totals) for mode in modes(job)]
    has = [totals_of(segment.allocation) for segment in planned.segments]
    return [[held.index(one) for one in has]] if all(one in held for one in has) else []


def _horizon(
    plan: Sequence[Planned], now: int, jobs: Sequence[Job], earliest: Sequence[int], awaited: Collection[str]
) -> tuple[int, int]:
    """Return a second up to which an optimal plan may be idle, and how long it takes at most from then on, where
    nothing is set aside.

    It is idle only until a running job ends, or for a delay: the jobs fit one after another.
    """
    of_jobs = [waiting_modes(job, is_awaited=job.id in awaited, longest=0) for job in jobs]
    slowest = [max(mode.least if mode.work is None else mode.most for mode in modes) for modes in of_jobs]
    longest = sum(slowest) + sum(max(0, dependency.delay) for job in jobs for dependency in job.after)
    return max([*(planned.end - now for planned in plan), *earliest], default=0), longest


def num_pairs(instance: Instance, plan: Sequence[Planned], others: Collection[str] = ()) -> int:
    """Return how many pairs of a part and a node a plan's window has, without encoding it; with `others` as `encode`
    has them.

    Where only numbers of nodes count, that is the number of segments.
    """
    planned = {job.id for job in plan}.union(others)
    jobs = [problem.opened(job) for job in instance.elements() if job.running is None and job.id in planned]
    if any(job.is_evolving for job in jobs) and machine_of(instance) is not None:
        return sum(len(job.steps) for job in jobs)
    awaited = problem.awaited_ends(instance)
    of_jobs = (len(waiting_modes(job, is_awaited=job.id in awaited, longest=0)) for job in jobs)
    parts = sum(
        sum(len(chunk_layers(one)) for one in job.choices) * (1 if job.alternatives else of_job)
        for job, of_job in zip(jobs, of_jobs, strict=True)
    )
    return parts * len(instance.cluster.node_names)


def _is_unrestricted(instance: Instance, task: Task, machine: problem.Machine | None) -> bool:
    """Return whether the model has all that a job can do.

    A malleable job could change its share while it runs, and an evolving one could have chunks that are no layers
    (which changes nothing where all nodes are alike).
    """
    if task.job.malleability is not None:
        return False
    return not task.job.is_evolving or machine is not None or has_layers_only(instance.cluster.classes, task.job)


def _task(
    instance: Instance,
    job: Job,
    earliest: int,
    horizon: int,
    modes: tuple[TaskMode, ...],
    sites: Sequence[tuple[int, Site]],
) -> Task:
    end_by = horizon if job.deadline is None else min(job.deadline - instance.now, horizon)
    shortest = min(mode.least for mode in modes)
    last = instance.latest_start(job)
    latest = horizon - shortest if last is None else min(last - instance.now, horizon - shortest)
    choices = job.choices if job.alternatives else (job,) * len(modes)
    parts = (
        _part(instance, one, layer, number, mode, sites)
        for number, (mode, one) in enumerate(zip(modes, choices, strict=True))
        for layer in chunk_layers(one)
    )
    return Task(job, earliest, latest, end_by, modes, tuple(parts) if sites else ())


def _continuing_task(
    instance: Instance, job: Job, modes: tuple[TaskMode, ...], horizon: int, sites: Sequence[Site]
) -> Task:
    """Return a running job as a task that begins now, on the nodes that it has."""
    site_of = {site.name: number for number, site in enumerate(sites)}
    columns = {name: problem.columns_of(node_class) for name, node_class in instance.cluster.class_of.items()}
    parts = []
    for number, mode in enumerate(modes):
        for node in dict.fromkeys(held.node for held in mode.allocations[0]):
            held = [[one.resources for one in allocation if one.node == node] for allocation in mode.allocations]
            takes: tuple[dict[problem.Column, int], ...] = tuple(
                {(name, None): amount for name, _ in columns[node] if (amount := sum(one.get(name, 0) for one in of))}
                for of in held
            )
            alternative = Alternative(site_of[node], 1, takes)
            parts.append(Part(((),) * len(takes), 1, (alternative,), number, 0, len(takes) - 1))
    end_by = horizon
    if job.deadline is not None and job.running is not None:
        end_by = max(job.deadline, job.running.segments[-1].end) - instance.now
    return Task(job, 0, 0, end_by, modes, tuple(parts))


def _part(
    instance: Instance, job: Job, layer: ChunkLayer, number: int, mode: TaskMode, sites: Sequence[tuple[int, Site]]
) -> Part:
    """Return the units of a layer as they are when the job runs in such a mode."""
    classes = instance.cluster.classes
    segments = range(layer.first, layer.last + 1) if job.is_evolving else range(len(mode.spans))
    # segments of a flexible mode can take no time: in those that do not, the capacity of the node is enough
    fewest = min if mode.work is None else max
    fitting = [
        fewest(_fitting(node_class, job, layer, mode, segment) for segment in segments) for node_class in classes
    ]
    most = None if job.queue is None else instance.queues[job.queue].max_walltime
    if most is not None and job.walltime > most:  # an alternative that no plan may choose
        fitting = [0] * len(fitting)
    units = tuple(_unit(layer, mode.requests[segment]) for segment in segments)
    takes = [
        tuple(_takes(node_class, mode.requests[segment], unit) for segment, unit in zip(segments, units, strict=True))
        for node_class in classes
    ]
    alternatives = (
        Alternative(place, fitting[site.group], takes[site.group]) for place, site in sites if fitting[site.group]
    )
    return Part(units, layer.count, tuple(alternatives), number, segments[0], segments[-1])


def _unit(layer: ChunkLayer, request: Request) -> tuple[tuple[int, int], ...]:
    """Return the chunks of a unit: (kind, how many)."""
    if layer.kind is not None:
        return ((layer.kind, 1),)
    return tuple((kind, chunk.count) for kind, chunk in enumerate(request.chunks))


def _fitting(node_class: NodeClass, job: Job, layer: ChunkLayer, mode: TaskMode, segment: int) -> int:
    """Return the number of units of a layer that an empty node of a class holds in a segment, at most all of them.

    Guards look at what a malleable job asks for, not at the share that it runs on.
    """
    request = mode.requests[segment]
    asked, place = request if job.malleability is None else job.request, request.place
    if place.within is not None and problem.level_rule(place.within) not in node_class.properties:
        return 0
    if layer.kind is None:
        return int(problem.packs(node_class, request, job.walltime, asked))
    chunk, by_guard = request.chunks[layer.kind], asked.chunks[layer.kind]
    fit = problem.chunks_on_empty_node(node_class, chunk, job.walltime, exclusive=place.exclusive, asked=by_guard)
    return min(1 if place.is_scattered else layer.count, fit)


def _takes(node_class: NodeClass, request: Request, unit: Sequence[tuple[int, int]]) -> dict[problem.Column, int]:
    """Return the amount of each column of a node that the chunks of a unit take together."""
    chunks = [(request.chunks[kind], count) for kind, count in unit]
    return {
        column: amount for column in problem.columns_of(node_class) if (amount := problem.amount_of(column, chunks))
    }


def has_layers_only(classes: Sequence[NodeClass], job: Job) -> bool:
    """Return whether every plan of an evolving job has it in layers, which give back first what came last.

    A packed job is one unit on one node: a step that takes more keeps the node, one that takes less takes no other.
    Otherwise let the job have one kind of chunks, of which a node holds at most one. The nodes of a step then contain
    those of the next one, or are contained in them, as their numbers say (EVO-4b). If the numbers never fall after they
    have risen, the nodes of the smallest step are those of all steps; each node that is given back before was there
    from the first step on, and each that is taken later stays to the last: these are the layers. Where the numbers fall
    after a rise, other nodes than those that came last could be given back.
    """
    requests = [step.request for step in job.steps]
    if requests[0].place.is_packed:
        return True
    if any(len(request.chunks) != 1 for request in requests):
        return False
    counts = [request.chunks[0].count for request in requests]
    has_risen = False
    for before, after in pairwise(counts):
        if has_risen and after < before:
            return False
        has_risen = has_risen or after > before
    return all(_is_one_on_each_node(classes, request) for request in requests)


def _is_one_on_each_node(classes: Sequence[NodeClass], request: Request) -> bool:
    """Return whether no node holds two chunks of a request of one kind."""
    (chunk,) = request.chunks
    return (
        chunk.count == 1
        or request.place.is_scattered
        or all(
            any(2 * amount > node_class.resources.get(name, 0) for name, amount in chunk.resources.items())
            for node_class in classes
        )
    )
