"""Which nodes admit a job, and why a job cannot be planned at all (BRIDI-10): the checks that do not depend on time.

A node may have a chunk if it has the chunk's resources and properties, its guard admits the chunk (OCCS-41), and the
amount that it keeps free for others (OCCS-40) leaves room for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from cpsched.domain import Chunk, Cluster, Instance, Job, NodeClass, Request, WaitingJob, WaitingReason, modes
from cpsched.problem.precedences import awaited_ends, left_without
from cpsched.problem.rule import Part, Rule, is_optional, level_rule, without_rules

#: Why a job can never start, and the same in words.
Refusal = tuple[WaitingReason, str]
#: The reasons, those first that are soonest over.
_HOPES = (WaitingReason.TOO_LATE, WaitingReason.UNAVAILABLE, WaitingReason.WALLTIME, WaitingReason.UNSATISFIABLE)


def capacity_for(node_class: NodeClass, chunk: Chunk) -> Mapping[str, int]:
    """Return the amounts that an empty node offers to such a chunk: all, less the amounts kept free for others."""
    if not node_class.keep_free:
        return node_class.resources
    offered = dict(node_class.resources)
    for rule in node_class.keep_free:
        if rule.beneficiary not in chunk.resources and rule.resource in offered:
            left = node_class.resources[rule.resource] - rule.items
            offered[rule.resource] = max(0, min(offered[rule.resource], left))
    return offered


def chunks_on_empty_node(
    node_class: NodeClass, chunk: Chunk, walltime: int, *, exclusive: bool, asked: Chunk | None = None
) -> int:
    """Return how many such chunks an empty node of this class holds, 0 if it admits none (P of BRIDI-6).

    The node's state does not count. Its guard looks at what is `asked` for: of a job on a share of its cores that on
    all of them; None: the chunk itself.
    """
    if any(node_class.properties.get(name) != value for name, value in chunk.where.items()):
        return 0
    if not node_class.is_admitted((asked or chunk).resources, walltime):
        return 0
    if exclusive and any(rule.beneficiary not in chunk.resources for rule in node_class.keep_free):
        return 0
    offered = capacity_for(node_class, chunk)
    needed = chunk.resources.items()
    return min(offered.get(name, 0) // amount for name, amount in needed if name in offered or not is_optional(name))


def refusals(instance: Instance, jobs: Iterable[Job] | None = None, *, is_shrunk: bool = True) -> dict[str, Refusal]:
    """Return why waiting jobs can never start, dependencies ignored, by id; asked once for all jobs that ask for the
    same, and nodes once for all that ask for the same of them.

    `jobs`: those that are asked about, arrays by their elements; None: all. `is_shrunk`: whether a malleable job may
    start on a share of its cores, for which no other job waits.
    """
    awaited = cache(lambda: awaited_ends(instance))
    known: dict[object, Refusal | None] = {}
    of_nodes: dict[object, Refusal | None] = {}
    has_guards = any(node_class.admits for node_class in instance.cluster.classes)

    def verdict_of(job: Job) -> Refusal | None:
        is_bounded = job.start_at is not None or job.deadline is not None or instance.must_start_by(job) is not None
        times = (job.submit, job.not_before, job.start_at, job.deadline) if is_bounded else None
        shares = job.malleability if is_shrunk else None
        shares = None if shares is None or job.id in awaited() else shares
        key = (job.steps, job.licenses, job.queue, times, shares)
        if key not in known:
            known[key] = _of_amounts(instance, job)
            if known[key] is None:
                # nodes know walltimes by their guards only
                asked = job.steps if has_guards else tuple(step.request for step in job.steps), shares
                if asked not in of_nodes:
                    of_nodes[asked] = _of_modes(instance.cluster, job, is_shrunk=shares is not None)
                known[key] = of_nodes[asked] or _late(instance, job)
        return known[key]

    found = {}
    for job in (one for one in instance.elements() if one.running is None) if jobs is None else jobs:
        verdict = verdict_of(job)
        if verdict is not None and job.alternatives:
            verdict = _of_choices([verdict_of(one) for one in job.choices])
        if verdict is not None:
            found[job.id] = verdict
    return found


def placeable(instance: Instance) -> frozenset[str]:
    """Return the ids of all jobs that a plan could have, running ones included: no plan has another one.

    Refused jobs are left out (`refusal`), and those that wait for one of them, directly or not.
    """
    return left_without(instance, refusals(instance))


def waits(
    instance: Instance, job: Job, missing: Callable[[str], str | None], detail: str, name: str | None = None
) -> WaitingJob:
    """Return why a job has no start beside those that have one: it waits for one that is `missing` from them
    (`missing_from`), or else none was found for it (`detail`), which makes a job too late that has a latest one, of its
    own or after another job.

    `name`: the element of an array that `job` is the entry of.
    """
    for dependency in job.after:
        if (awaited := missing(dependency.job)) is not None:
            detail = f"waits for {awaited} ({dependency.type}), which has no start"
            return WaitingJob(id=name or job.id, reason=WaitingReason.DEPENDENCY, detail=detail)
    is_bound = job.is_hurried or instance.latest_start(job) is not None
    reason = WaitingReason.TOO_LATE if is_bound else WaitingReason.NOT_MAPPED
    return WaitingJob(id=name or job.id, reason=reason, detail=detail)


def refusal(instance: Instance, job: Job, *, is_shrunk: bool = True) -> Refusal | None:
    """Return why a waiting job can have no start even if nothing else ran, in words; None if nothing is found.

    Faults that need a search (several kinds of chunks that do not fit beside each other, chunks that find no node
    for several steps) are not found here. `is_shrunk`, and jobs with alternatives, are as `refusals` has them.
    """
    return refusals(instance, [job], is_shrunk=is_shrunk).get(job.id)


def _of_choices(verdicts: Sequence[Refusal | None]) -> Refusal | None:
    """Return why no choice of a job can start, by those that are nearest to a start; None if one can."""
    refused = [verdict for verdict in verdicts if verdict is not None]
    if len(refused) < len(verdicts):
        return None
    nearest = min((reason for reason, _ in refused), key=_HOPES.index)
    found = [
        f"alternative {number}: {words}" if number else words
        for number, (reason, words) in enumerate(refused)
        if reason is nearest
    ]
    return nearest, "; ".join(found if len(found) <= 3 else (*found[:2], f"and {len(found) - 2} more"))


def _of_modes(cluster: Cluster, job: Job, *, is_shrunk: bool) -> Refusal | None:
    """Return why the empty nodes have no room for a job on all its cores, nor on a share of them, or None."""
    found = _of_nodes(cluster, job)
    if found is None or not is_shrunk:
        return found
    smaller = (replace(job, steps=(replace(job.steps[0], request=mode.request),)) for mode in modes(job)[1:])
    return None if any(_of_nodes(cluster, one) is None for one in smaller) else found


def _of_amounts(instance: Instance, job: Job) -> Refusal | None:
    """Return whether a job is too long for its queue, or asks for too many licences."""
    queue = instance.queues.get(job.queue) if job.queue is not None else None
    if queue is not None and queue.max_walltime is not None and job.walltime > queue.max_walltime:
        return WaitingReason.WALLTIME, (
            f"asks for {job.walltime} s; the queue {job.queue} accepts {queue.max_walltime} s at the most"
        )
    for name, amount in job.licenses.items():
        total = instance.cluster.licenses.get(name, 0)
        if amount > total and isinstance(name, Rule):
            return WaitingReason.UNSATISFIABLE, f"{name} ({name.path})"
        if amount > total:
            has = f"its reservation has {total}" if isinstance(name, Part) else f"there are {total}"
            return WaitingReason.UNSATISFIABLE, f"asks for {amount} {name} licenses; {has}"
    return None


def _of_nodes(cluster: Cluster, job: Job) -> Refusal | None:
    """Return whether the empty nodes of a cluster have no room for a step of a job."""
    reasons = [(False, WaitingReason.UNSATISFIABLE), (True, WaitingReason.UNAVAILABLE)]
    if all(node_class.is_up for node_class in cluster.classes):
        reasons.pop()  # it would be asked again
    for only_up, reason in reasons:
        for number, step in enumerate(job.steps):
            lacking = _lacking(cluster, step.request, job.walltime, only_up=only_up)
            if lacking is not None:
                where = ["with the nodes that are up now"] * only_up + [f"step {number}"] * job.is_evolving
                return reason, ": ".join([*where, lacking])
    return None


def _late(instance: Instance, job: Job) -> Refusal | None:
    """Return whether the job's own times leave no start."""
    earliest = instance.earliest_start(job)
    if job.start_at is not None and job.start_at < earliest:
        return WaitingReason.TOO_LATE, f"may start only at {job.start_at}, which is before {earliest}"
    start = earliest if job.start_at is None else job.start_at
    if job.deadline is not None and start + job.walltime > job.deadline:
        return (
            WaitingReason.TOO_LATE,
            f"starts at {start} at the earliest and takes {job.walltime} s; its deadline is {job.deadline}",
        )
    limit = instance.must_start_by(job)
    if limit is not None and start > limit:
        return (
            WaitingReason.TOO_LATE,
            f"starts at {start} at the earliest; by the max_wait of its queue {job.queue} it has to by {limit}",
        )
    return None


def _lacking(cluster: Cluster, request: Request, walltime: int, *, only_up: bool) -> str | None:
    """Name the resource that the empty cluster lacks for a request; None if each of its kinds fits alone."""
    classes = [c for c in cluster.classes if not only_up or c.is_up]
    level = request.place.within
    if level is None or not any(level_rule(level) in c.properties for c in classes):
        return _lacking_among(classes, request, walltime)
    groups: dict[str, list[NodeClass]] = {}
    for node_class in classes:
        if (group := node_class.properties.get(level_rule(level))) is not None:
            groups.setdefault(group, []).append(node_class)
    outside = sum(len(c.names) for c in classes if level_rule(level) not in c.properties)
    others = f"; {outside} nodes are in no {level}" if outside else ""
    if request.place.segment or request.place.spread:
        lacking = _lacking_in_groups([*groups.values()], request, walltime)
        return None if lacking is None else f"{lacking}{others}"
    ordered = sorted(groups, key=lambda group: -sum(len(c.names) for c in groups[group]))
    reasons = ((group, _lacking_among(groups[group], request, walltime)) for group in ordered)
    widest, first = next(reasons)
    if first is None or any(reason is None for _, reason in reasons):
        return None
    return f"within one {level}, of which {widest} is the largest: {first}{others}"


def _lacking_in_groups(groups: list[list[NodeClass]], request: Request, walltime: int) -> str | None:
    """Say how many chunks of a request fit into groups of empty nodes together; None if all do."""
    (chunk,), place = request.chunks, request.place
    held = sum(place.most_in_group(chunk.count, _held(of_group, chunk, request, walltime)) for of_group in groups)
    if held >= chunk.count:
        return None
    parts = f"in segments of {place.segment}" if place.segment else f"at most {place.spread} of them"
    return f"asks for {chunk.count} chunks, {parts} within one {place.within}; at most {held} fit so at a time"


def _held(classes: list[NodeClass], chunk: Chunk, request: Request, walltime: int) -> int:
    """Return how many chunks empty nodes of some classes hold, each kind alone."""
    return sum(
        len(c.names)
        * min(
            chunks_on_empty_node(c, chunk, walltime, exclusive=request.place.exclusive),
            1 if request.place.is_scattered else chunk.count,
        )
        for c in classes
    )


def _lacking_among(classes: list[NodeClass], request: Request, walltime: int) -> str | None:
    """Name what the empty nodes of some classes lack for a request; None if each of its kinds fits alone."""
    exclusive = request.place.exclusive
    if request.place.is_packed:
        return _lacking_node(classes, request, walltime)
    for chunk in request.chunks:
        held = _held(classes, chunk, request, walltime)
        if held < chunk.count:
            if held == 0:
                return _lacking_chunk(classes, chunk, walltime, exclusive=exclusive)
            return f"asks for {chunk.count} chunks of {_words(chunk)}; at most {held} fit at a time"
    if request.place.is_scattered and len(request.chunks) > 1:
        nodes = sum(
            len(c.names)
            for c in classes
            if any(chunks_on_empty_node(c, chunk, walltime, exclusive=exclusive) for chunk in request.chunks)
        )
        total = sum(chunk.count for chunk in request.chunks)
        if total > nodes:
            return f"asks for {total} chunks on as many nodes; {nodes} nodes can hold one"
    return None


def _lacking_node(classes: list[NodeClass], request: Request, walltime: int) -> str | None:
    """Return why no node can hold a whole request, or None if one can."""
    for chunk in request.chunks:
        if not any(
            chunks_on_empty_node(c, chunk, walltime, exclusive=request.place.exclusive) >= chunk.count for c in classes
        ):
            if not any(chunks_on_empty_node(c, chunk, walltime, exclusive=request.place.exclusive) for c in classes):
                return _lacking_chunk(classes, chunk, walltime, exclusive=request.place.exclusive)
            return f"asks for {chunk.count} chunks of {_words(chunk)} packed on one node; no node holds so many"
    if not any(packs(c, request, walltime) for c in classes):
        return "asks for all its chunks packed on one node; no node holds them together"
    return None


def packs(node_class: NodeClass, request: Request, walltime: int, asked: Request | None = None) -> bool:
    """Return whether an empty node of this class holds all chunks of a request; `asked` is what its guard looks at."""
    if not all(
        chunks_on_empty_node(node_class, chunk, walltime, exclusive=request.place.exclusive, asked=by_guard)
        for chunk, by_guard in zip(request.chunks, (asked or request).chunks, strict=True)
    ):
        return False
    has = node_class.resources
    if any(
        amount > has.get(name, 0) for name, amount in request.totals.items() if name in has or not is_optional(name)
    ):
        return False
    for rule in node_class.keep_free:
        others = sum(
            chunk.count * chunk.resources.get(rule.resource, 0)
            for chunk in request.chunks
            if rule.beneficiary not in chunk.resources
        )
        if others > max(0, node_class.resources.get(rule.resource, 0) - rule.items):
            return False
    return True


def _lacking_chunk(classes: list[NodeClass], chunk: Chunk, walltime: int, *, exclusive: bool) -> str:
    """Return why no node of these classes can hold one chunk."""
    amounts = {name: amount for name, amount in chunk.resources.items() if not is_optional(name)}
    for name, amount in amounts.items():
        most = max((c.resources.get(name, 0) for c in classes), default=0)
        if most < amount:
            asked = str(name) if isinstance(name, Rule) else f"{amount} {name} in one chunk"
            return f"asks for {asked}; the largest node has {most}"
    for name, value in chunk.where.items():
        if not any(c.properties.get(name) == value for c in classes):
            return f"asks for {name}={value}; no node has it"
    fitting = [
        c
        for c in classes
        if all(c.properties.get(name) == value for name, value in chunk.where.items())
        and all(c.resources.get(name, 0) >= amount for name, amount in amounts.items())
    ]
    if not fitting:
        return f"asks for {_words(chunk)} in one chunk; no node has all of it"
    if not any(c.is_admitted(chunk.resources, walltime) for c in fitting):
        return f"the guards of all nodes that could hold {_words(chunk)} keep it out"
    if exclusive:
        return f"asks for nodes of its own; those that could hold {_words(chunk)} keep resources free for others"
    return f"what the nodes keep free for others leaves no room for {_words(chunk)}"


def _words(chunk: Chunk) -> str:
    """Return a chunk as people write it."""
    parts = [f"{amount} {name}" for name, amount in without_rules(chunk.resources).items()]
    parts += [f"{name}={value}" for name, value in chunk.where.items()]
    return " + ".join(parts)
