"""Running jobs that together take more of a node than there is: a fact, with which engines have to live."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from cpsched.domain import Amounts, Cluster, Instance, Job, Placement, PlannedJob, Running, Segment, repeated
from cpsched.problem.amounts import added

#: On a node during ``[start, end)``, the place of the job in the instance that is taken to hold all of the node.
_Blocked = tuple[int, int, int]


def fitted(instance: Instance) -> tuple[Instance, dict[str, tuple[PlannedJob, PlannedJob]]]:
    """Return an instance in which what runs fits on the nodes and within the licences, and the running jobs that differ
    in it, by id: as a plan of the given instance has them, and as one of the new instance does.

    While running jobs take more of a node than there is, one of them holds all of it in the new instance, and the
    others nothing on it: so nothing else can be planned there.
    """
    running = [(place, job) for place, job in enumerate(instance.jobs) if job.running is not None]
    blocked = _blocked(instance, running)
    licenses = _licenses_left(instance, running)
    jobs, found = list(instance.jobs), dict[str, tuple[PlannedJob, PlannedJob]]()
    for place, job in running:
        fit = _fit(instance.cluster, job, place, blocked)
        if place in licenses:
            fit = replace(fit, licenses=licenses[place])
        if fit is not job:
            jobs[place], found[job.id] = fit, (repeated(job), repeated(fit))
    return (replace(instance, jobs=tuple(jobs)) if found else instance), found


def is_overcommitted(instance: Instance) -> bool:
    """Tell whether running jobs together take more of a node or licence than there is."""
    return bool(fitted(instance)[1])


def _blocked(instance: Instance, running: Iterable[tuple[int, Job]]) -> dict[str, list[_Blocked]]:
    """Return the times from `now` on at which running jobs take more of a node than there is, by node."""
    uses: dict[str, list[tuple[int, int, int, Amounts]]] = {}
    for place, job in running:
        for segment in job.running.segments if job.running is not None else ():
            if segment.end > instance.now:
                for one in segment.allocation:
                    start = max(segment.start, instance.now)
                    uses.setdefault(one.node, []).append((start, segment.end, place, one.resources))
    found: dict[str, list[_Blocked]] = {}
    for node, of_node in uses.items():
        has = instance.cluster.class_of[node].resources
        if not _is_more((amounts for _, _, _, amounts in of_node), has):
            continue
        times = sorted({time for start, end, _, _ in of_node for time in (start, end)})
        for start, end in pairwise(times):
            active = [(place, amounts) for first, last, place, amounts in of_node if first <= start < last]
            if _is_more((amounts for _, amounts in active), has):
                found.setdefault(node, []).append((start, end, min(place for place, _ in active)))
    return found


def _is_more(taken: Iterable[Amounts], has: Amounts) -> bool:
    """Tell whether amounts together are more than there is."""
    return any(amount > has.get(name, 0) for name, amount in added(taken).items())


def _licenses_left(instance: Instance, running: Sequence[tuple[int, Job]]) -> dict[int, Amounts]:
    """Return the licences of those running jobs that have more than are left by the ones that end later."""
    left = dict(instance.cluster.licenses)
    changed: dict[int, Amounts] = {}
    by_end = sorted(running, key=lambda pair: (-pair[1].running.segments[-1].end if pair[1].running else 0, pair[0]))
    for place, job in by_end:
        mine = {name: min(amount, left.get(name, 0)) for name, amount in job.licenses.items()}
        for name, amount in mine.items():
            left[name] = left.get(name, 0) - amount
        if mine != job.licenses:
            changed[place] = Amounts({name: amount for name, amount in mine.items() if amount})
    return changed


def _fit(cluster: Cluster, job: Job, place: int, blocked: dict[str, list[_Blocked]]) -> Job:
    """Return a running job with all or nothing of the nodes that are blocked; such a job cannot change its share."""
    running = job.running
    if running is None or not blocked:
        return job
    if not any(one.node in blocked for segment in running.segments for one in segment.allocation):
        return job
    segments = []
    for segment in running.segments:
        blocks = [blocked[one.node] for one in segment.allocation if one.node in blocked]
        cuts = {time for of_node in blocks for start, end, _ in of_node for time in (start, end)}
        borders = [segment.start, *sorted(cut for cut in cuts if segment.start < cut < segment.end), segment.end]
        for start, end in pairwise(borders):
            allocation: list[Placement] = []
            whole: set[str] = set()
            for one in segment.allocation:
                active = [times for times in blocked.get(one.node, ()) if times[0] <= start < times[1]]
                if not active:
                    allocation.append(replace(one, chunk=None, count=None))
                elif active[0][2] == place and one.node not in whole:
                    whole.add(one.node)
                    allocation.append(_whole(cluster, one.node))
            segments.append(Segment(start=start, end=end, allocation=tuple(allocation)))
    return replace(job, malleability=None, running=Running(start=running.start, segments=tuple(segments)))


def _whole(cluster: Cluster, node: str) -> Placement:
    """Return all of a node as what a job holds."""
    has = cluster.class_of[node].resources
    return Placement(node=node, resources=Amounts({name: amount for name, amount in has.items() if amount}))
