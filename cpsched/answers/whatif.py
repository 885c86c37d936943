"""What if? The plan of a changed instance beside the old one, job by job: which jobs gain, and which pay."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from cpsched.answers.machine_changes import with_nodes
from cpsched.answers.submission import parse_submission, under_free_id
from cpsched.arguments import Seconds, Seed, at_the_door, plain_argument
from cpsched.domain import Instance, NodeClass, NodeState, Plan
from cpsched.errors import DocumentError, Fault
from cpsched.formats import instance_to_document, parse_instance
from cpsched.metrics import objective_value
from cpsched.portfolio import replan, solve

#: The source of faults in a change.
SOURCE = "the change"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The change that is asked about; each part may be empty."""

    #: New jobs, as `parse_submission` reads them.
    add: tuple[str, ...] = ()
    #: Ids of jobs, of arrays or of elements of arrays; what waits for them waits no more.
    drop: tuple[str, ...] = ()
    #: Nodes on which nothing new starts.
    drain: tuple[str, ...] = ()
    #: Other walltimes (s), by the ids of entries.
    walltime: Mapping[str, int] | None = None
    #: Further limits, each as JSON as in ``limits`` of an instance.
    limit: tuple[str, ...] = ()
    #: Other nodes: ``add 20 nodes with gpus=4``, ``remove node[1-4]``.
    nodes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take a single text as a tuple of it, as a list of texts too."""
        for name in ("add", "drop", "drain", "limit", "nodes"):
            given = getattr(self, name)
            listed = plain_argument([given] if isinstance(given, str) else given, Sequence[str], name=name)
            object.__setattr__(self, name, tuple(listed))
        plain_argument(self.walltime, Mapping[str, object] | None, name="walltime")

    @property
    def is_empty(self) -> bool:
        """Whether nothing is different."""
        return not (self.add or self.drop or self.drain or self.walltime or self.limit or self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChange:
    """One waiting job in both plans."""

    job: str
    user: str | None
    #: Its starts; None: it has none in that plan.
    before: int | None
    after: int | None
    #: Whether the instance has it, before and after the change.
    is_new: bool = False
    is_gone: bool = False

    @property
    def seconds(self) -> int | None:
        """By how much it starts later; less than 0: earlier; None: it has no start in one of the plans."""
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison:
    """A plan before a change, and the plan after it."""

    instance: Instance
    plan: Plan
    #: All waiting jobs of either instance, those that lose most first.
    jobs: tuple[JobChange, ...]
    #: The objective over the jobs that have a start in both plans.
    value_before: float
    value_after: float

    @property
    def moved(self) -> tuple[JobChange, ...]:
        """The jobs that start at another time, or have a start in one of the plans only."""
        return tuple(job for job in self.jobs if job.before != job.after)

    def __repr__(self) -> str:
        later, earlier = self.seconds(1)[0], self.seconds(-1)[0]
        return f"<Comparison of {len(self.jobs)} jobs: {later} start later, {earlier} earlier>"

    def seconds(self, sign: int) -> tuple[int, int]:
        """Return how many jobs start later (1) or earlier (-1), and by how many seconds together."""
        shifts = [job.seconds * sign for job in self.jobs if job.seconds is not None and job.seconds * sign > 0]
        return len(shifts), sum(shifts)

    def as_document(self, jobs: Sequence[JobChange]) -> dict[str, Any]:
        """Return the comparison as values of JSON, with some of its jobs."""
        later, earlier = (dict(zip(("jobs", "seconds"), self.seconds(sign), strict=True)) for sign in (1, -1))
        return {
            "objective": self.plan.objective.name,
            "value_before": self.value_before,
            "value_after": self.value_after,
            "later": later,
            "earlier": earlier,
            "jobs": [asdict(job) | {"seconds": job.seconds} for job in jobs],
        }


@at_the_door
def what_if(instance: Instance, plan: Plan, request: WhatIf, *, budget: Seconds = 0.0, seed: Seed = 0) -> Comparison:
    """Change an instance, plan it again, and compare.

    Each job keeps its place where it still can, and moves up where resources became free (`replan`); with a budget the
    new plan is then improved, so that further jobs may move.

    Parameters
    ----------
    instance, plan
        The two documents.
    request
        What is different.
    budget
        Seconds for improving the new plan.
    seed
        Of the improvement.

    Raises
    ------
    DocumentError
        If the change is none, or the plan is none of the instance.
    EngineError
        If the changed instance asks for something that cannot be honoured.
    """
    changed = changed_instance(instance, request)
    ids = {job.id for job in changed.elements()}
    kept = replace(
        plan,
        jobs=tuple(job for job in plan.jobs if job.id in ids),
        waiting_room=tuple(job for job in plan.waiting_room if job.id in ids),
    )
    _, new = replan(changed, kept)
    if budget > 0:
        new = solve(changed, budget=budget, seed=seed, warm=new)
    return compared(instance, plan, changed, new)


def changed_instance(instance: Instance, request: WhatIf) -> Instance:
    """Return an instance with a change, checked as a document. Raises `DocumentError` with all faults of the change."""
    faults = list(_unknown(instance, request))
    if faults:
        raise DocumentError(SOURCE, faults)
    changed = _without(instance, frozenset(request.drop)) if request.drop else instance
    if request.drain:
        classes = tuple(part for one in instance.cluster.classes for part in _drained(one, frozenset(request.drain)))
        changed = replace(changed, cluster=replace(instance.cluster, classes=classes))
    for text in request.nodes:
        try:
            changed = with_nodes(changed, text)
        except ValueError as error:
            raise DocumentError(SOURCE, [Fault("nodes", f"{error} ({text})")]) from None
    for text in request.add:
        job = under_free_id(parse_submission(text, changed, source=SOURCE), changed.members())
        changed = replace(changed, jobs=(*changed.jobs, job))
    document = instance_to_document(changed)
    for entry in document.get("jobs", []):
        if entry["id"] in (request.walltime or {}):
            entry["walltime"] = (request.walltime or {})[entry["id"]]
    document["limits"] = [*document.get("limits", []), *map(_limit, request.limit)]
    return parse_instance(document, source=SOURCE)


def _unknown(instance: Instance, request: WhatIf) -> Iterator[Fault]:
    """Yield a fault for each name that the instance does not have, and for each walltime that a job cannot have."""
    members, entries = instance.members(), {job.id: job for job in instance.jobs}
    nodes = set(instance.cluster.node_names)
    for name in request.drop:
        if name not in members:
            yield Fault("drop", f"Expected a job of the instance, got {name!r}")
    for name in request.drain:
        if name not in nodes:
            yield Fault("drain", f"Expected a node of the cluster, got {name!r}")
    for name in request.walltime or {}:
        if name not in entries:
            yield Fault("walltime", f"Expected a job of the instance, or a whole array, got {name!r}")
        elif entries[name].is_evolving:
            yield Fault("walltime", f"Expected a job of one step, got {name!r}, which has {len(entries[name].steps)}")


def _without(instance: Instance, dropped: Collection[str]) -> Instance:
    """Return an instance without some jobs; what waited for them does not."""
    jobs = []
    for job in instance.jobs:
        if job.id in dropped:
            continue
        if job.array is not None:
            elements = zip(job.array, job.element_ids, strict=True)
            left = tuple(index for index, name in elements if name not in dropped)
            if not left:
                continue
            job = replace(job, array=left)
        jobs.append(job)
    left_ids = {name for job in jobs for name in (job.id, *job.element_ids)}
    return replace(
        instance, jobs=tuple(replace(job, after=tuple(one for one in job.after if one.job in left_ids)) for job in jobs)
    )


def _drained(node_class: NodeClass, nodes: Collection[str]) -> Iterator[NodeClass]:
    """Yield a class in parts, some of whose nodes are drained; what is down stays down."""
    for is_drained, names in groupby(node_class.names, key=lambda name: name in nodes):
        is_changed = is_drained and node_class.state is NodeState.UP
        yield replace(node_class, names=tuple(names), state=NodeState.DRAIN if is_changed else node_class.state)


def _limit(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"Expected a JSON object, or a file with one, got {text[:100]!r}: {error}"
        raise DocumentError(SOURCE, [Fault("limit", message)]) from None


def compared(instance: Instance, plan: Plan, changed: Instance, new: Plan) -> Comparison:
    """Return two plans side by side."""
    before, after = ({job.id: job for job in one.jobs} for one in (plan, new))
    jobs = {job.id: job for job in instance.elements()}
    others = {job.id: job for job in changed.elements()}
    waiting = [job for job in {**others, **jobs}.values() if job.running is None]
    changes = [
        JobChange(
            job=job.id,
            user=job.user,
            before=before[job.id].start if job.id in before else None,
            after=after[job.id].start if job.id in after else None,
            is_new=job.id not in jobs,
            is_gone=job.id not in others,
        )
        for job in waiting
    ]
    both = before.keys() & after.keys() & jobs.keys() & others.keys()
    values = (
        objective_value(one, [job for job in of_plan.jobs if job.id in both])
        for one, of_plan in ((instance, plan), (changed, new))
    )
    value_before, value_after = values
    return Comparison(
        instance=changed,
        plan=new,
        jobs=tuple(sorted(changes, key=_loss)),
        value_before=value_before,
        value_after=value_after,
    )


def _loss(change: JobChange) -> tuple[int, int, str]:
    """Order jobs: those that lose their start, then by loss, then those that gain one, that are new, and that go."""
    if change.is_gone:
        return 4, 0, change.job
    if change.is_new:
        return 3, 0, change.job
    if change.seconds is not None:
        return 1, -change.seconds, change.job
    return (0 if change.after is None and change.before is not None else 2), 0, change.job
