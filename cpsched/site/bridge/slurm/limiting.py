"""Limits of QOS and associations in an instance: licences that only the jobs take of which the limit is.

A limit on what runs at a time becomes a licence with the limit's words as its name, and each job takes of it what it
asks for: exact for any account below any other, which the limits of an instance cannot say. Only those become licences
that the jobs could exceed together. A limit on a job alone is held against the job.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from cpsched.domain import Amounts, Job
from cpsched.site.bridge.leaving import Inexpressible
from cpsched.site.bridge.slurm.limits import Limits, SlurmLimits
from cpsched.site.bridge.slurm.records import JobRecord
from cpsched.site.bridge.slurm.requests import Site, partition_of

_JOBS = "jobs"
_SLURM = {"cores": "cpu", "gpus": "gres/gpu", "mics": "gres/mic", _JOBS: "jobs"}
_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Take:
    """What one job takes of one limit."""

    #: The limit in words.
    limit: str
    bound: int
    amount: int


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a limit is from: a QOS, or an association."""

    words: str
    limits: Limits
    is_qos: bool
    #: Whether it is the user's own association, the only one whose limits per user and job count.
    is_own: bool = True


def takes_of(job: Job, view: JobRecord, site: Site, limits: SlurmLimits) -> tuple[Take, ...]:
    """Return what a job takes of the limits that hold for it.

    Raises `Inexpressible` if a job that waits is beyond a limit by itself, or has one that cannot be said, or is not
    shown. `job`, `view`: the job as the instance has it, and as its user asked for it. `site`, `limits`:
    what Slurm said of the machine.
    """
    scopes = tuple(_scopes(view, site, limits))
    amounts = _amounts(job, view, site)
    if job.running is None:
        if view.qos and view.qos not in limits.qos:
            raise Inexpressible(f"its QOS {view.qos}, whose limits hold for it, is not shown")
        if all(scope.is_qos for scope in scopes):
            reason = f"the association of user {view.user} in account {view.account}, whose limits hold, is not shown"
            raise Inexpressible(reason)
        _check(job, amounts, scopes)
    found: list[Take] = []
    for take in _counted(view, amounts, scopes, runs=job.running is not None):
        if take.amount > take.bound and job.running is None:
            reason = f"it takes {take.amount}, and {take.limit} is {take.bound}"
            raise Inexpressible(reason, is_for_manager=False)
        found.append(take)
    return tuple(found)


def kept(job: Job, view: JobRecord, site: Site, limits: SlurmLimits) -> tuple[Job, tuple[Take, ...]]:
    """Return a job with those of its choices that keep the limits on a job alone, and the most that it takes of others.

    Raises `Inexpressible` if none does (`takes_of`).
    """
    choices, takes = list[Job](), dict[str, Take]()
    reason: Inexpressible | None = None
    for choice in job.choices:
        is_plain = len(view.partitions) < 2 or job.queue is None
        try:
            mine = takes_of(choice, view if is_plain else view.but(partitions=(partition_of(choice),)), site, limits)
        except Inexpressible as error:
            reason = reason or error
            continue
        choices.append(choice)
        for take in mine:
            takes[take.limit] = max(take, takes.get(take.limit, take), key=attrgetter("amount"))
    if not choices and reason is not None:
        raise reason
    if len(choices) <= len(job.alternatives):
        job = replace(job, steps=choices[0].steps, alternatives=tuple(one.steps[0] for one in choices[1:]))
    return job, tuple(takes.values())


def limited(
    jobs: Mapping[str, Job], takes: Mapping[str, tuple[Take, ...]]
) -> tuple[dict[str, tuple[tuple[str, int], ...]], Amounts]:
    """Return what each job takes of which licences, and how many there are of them.

    A limit that all jobs keep together has no licence. Where running jobs are beyond a limit already, what they take is
    the amount: no other job starts before one of them ends.
    """
    totals, running, bounds = Counter[str](), Counter[str](), dict[str, int]()
    takes = {key: mine for key, mine in takes.items() if key in jobs}
    for key, mine in takes.items():
        for take in mine:
            bounds[take.limit] = take.bound
            totals[take.limit] += take.amount
            if jobs[key].running is not None:
                running[take.limit] += take.amount
    binding = {
        name: max(bound, running[name])
        for name, bound in sorted(bounds.items())
        if totals[name] > bound and totals[name] > running[name]
    }
    found = {
        key: tuple((take.limit, take.amount) for take in mine if take.limit in binding) for key, mine in takes.items()
    }
    return {key: one for key, one in found.items() if one}, Amounts(binding)


def with_licenses(job: Job, more: Iterable[tuple[str, int]]) -> Job:
    """Return a job that takes licences besides its own."""
    return replace(job, licenses=Amounts({**job.licenses, **dict(more)}))


def _scopes(view: JobRecord, site: Site, limits: SlurmLimits) -> Iterator[_Scope]:
    """Yield where limits are from, what counts first first: the partition's QOS, the job's, its associations."""
    partition = view.partitions[0] if view.partitions else ""
    for name in dict.fromkeys((site.limits(partition).qos, view.qos)):
        if name in limits.qos:
            yield _Scope(f"QOS {name}", limits.qos[name], is_qos=True)
    for index, one in enumerate(limits.chain(view.account, view.user, partition)):
        words = f"user {one.user} in account {one.account}" if one.user else f"account {one.account}"
        if one.partition:
            words += f" and partition {one.partition}"
        yield _Scope(words, one.limits, is_qos=False, is_own=index == 0)


def _amounts(job: Job, view: JobRecord, site: Site) -> dict[str, int]:
    """Return what a job has, or the most that it can get, of all that limits can be on."""
    found = Counter({"node": 0, _JOBS: 1})
    found |= {f"license/{name}": amount for name, amount in job.licenses.items()}
    if job.running is not None:
        for place in job.running.segments[-1].allocation:
            found["node"] += 1
            found.update(place.resources)
        return found
    for chunk in job.request.chunks:
        found["node"] += chunk.count
        for name, amount in _of_chunk(chunk.resources, job, view, site).items():
            found[name] += amount * chunk.count
    return found


def _of_chunk(resources: Mapping[str, int], job: Job, view: JobRecord, site: Site) -> Mapping[str, int]:
    """Return what a chunk takes of its node: of one that it has for itself all, by the largest of its partition."""
    if not job.request.place.exclusive:
        return resources
    nodes = [site.nodes[name] for name in site.partitions[view.partitions[0]] if name in site.nodes]
    cpus = max((node.cpus for node in nodes), default=0)
    found = {name: max(node.gres.get(name, 0) for node in nodes) for node in nodes for name in node.gres}
    found["cores"] = cpus
    memory = max(resources.get("mem", 0), (view.memory_per_cpu or 0) * cpus)
    if memory or site.counts_memory:
        found["mem"] = memory or max((node.memory for node in nodes), default=0)
    return found


def _check(job: Job, amounts: Mapping[str, int], scopes: Iterable[_Scope]) -> None:
    """Hold a job that waits against the limits on a job alone.

    Raises `Inexpressible` if it is beyond one of them, or all of a limit has been used up, or one cannot be said.
    """
    minutes = -(-job.walltime // _MINUTE)
    per_node: dict[str, int] = {}
    for chunk in job.request.chunks:
        for name, amount in chunk.resources.items():
            per_node[name] = max(per_node.get(name, 0), amount)
    area = {name: amount * minutes for name, amount in amounts.items()}
    has_wall = False
    seen: set[tuple[str, str]] = set()
    for scope in scopes:
        limits = scope.limits
        for name in limits.used_up:
            words = f"GrpWall of {scope.words}" if name == "wall" else _words("GrpTRESMins", name, scope)
            raise Inexpressible(f"all of {words} is used up", is_for_manager=False)
        for name in limits.ahead:
            raise Inexpressible(f"{_words('GrpTRESRunMins', name, scope)} cannot be said")
        if not scope.is_own:
            kinds: tuple[tuple[str, Mapping[str, int], Mapping[str, int]], ...] = ()
        else:
            kinds = (
                ("MaxTRES", limits.job, amounts),
                ("MaxTRESPerNode", limits.node, per_node),
                ("MaxTRESMins", limits.area, area),
            )
            if limits.walltime is not None and not has_wall:
                has_wall = True
                if job.walltime > limits.walltime:
                    reason = f"it asks for {job.walltime} s, and MaxWall of {scope.words} is {limits.walltime} s"
                    raise Inexpressible(reason, is_for_manager=False)
        for kind, bounds, has in (*kinds, ("GrpTRESMins", limits.spent, area)):
            for name, bound in bounds.items():
                if (kind, name) not in seen and has.get(name, 0) > bound:
                    reason = f"it takes {has[name]}, and {_words(kind, name, scope)} is {bound}"
                    raise Inexpressible(reason, is_for_manager=False)
            seen |= {(kind, name) for name in bounds if scope.is_qos}
        for name, bound in limits.least.items():
            if amounts.get(name, 0) < bound:
                reason = f"it takes {amounts.get(name, 0)}, and {_words('MinTRES', name, scope)} is {bound}"
                raise Inexpressible(reason, is_for_manager=False)


def _counted(view: JobRecord, amounts: Mapping[str, int], scopes: Iterable[_Scope], *, runs: bool) -> Iterator[Take]:
    """Yield what a job takes of limits at a time; where a QOS has one, that of an association does not count."""
    seen: set[tuple[str, str]] = set()
    of_user, of_account = f" for user {view.user}", f" for account {view.account}"
    for scope in scopes:
        limits = scope.limits
        kinds = [("Grp", "GrpTRES", "", limits.group)]
        if scope.is_own:
            told, whose = ("MaxTRESPerUser", of_user) if scope.is_qos else ("MaxTRES", "")
            kinds.append(("user", told, whose, limits.user))
            kinds.append(("account", "MaxTRESPerAccount", of_account, limits.account))
        mine: set[tuple[str, str]] = set()
        for kind, told, whose, bounds in kinds:
            for name, bound in bounds.items():
                # MaxJobs of an association gives way to both kinds of a QOS
                others = {(kind, name)} if scope.is_qos or kind == "Grp" else {("user", name), ("account", name)}
                if not seen.isdisjoint(others):
                    continue
                mine.add((kind, name))
                words = _words(told.replace("TRES", "Jobs") if name == _JOBS else told, name, scope) + whose
                if not runs and name not in amounts and not _is_known(name):
                    raise Inexpressible(f"{words} cannot be said")
                if amounts.get(name, 0):
                    yield Take(words, bound, amounts[name])
        if scope.is_qos:
            seen |= mine


def _is_known(name: str) -> bool:
    """Tell whether what a job takes of a resource is known where it takes none."""
    return name not in ("billing", "energy", "vmem", "pages") and not name.startswith(("fs/", "bb/", "ic/"))


def _words(kind: str, name: str, scope: _Scope) -> str:
    of = (
        ""
        if name == _JOBS
        else f" {_SLURM.get(name, name).replace('gpus.', 'gres/gpu:').replace('mics.', 'gres/mic:')}"
    )
    return f"{kind}{of} of {scope.words}"
