"""What an instance cannot say as Slurm does: licences named as resources, counts beyond bounds, others' licences."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from cpsched.domain import MAX_AMOUNT, Amounts, Instance, Job, Request
from cpsched.site.bridge.leaving import Inexpressible

#: Names of resources that every cluster has, and those that rules mean otherwise.
_TAKEN = frozenset({"cores", "mem", "gpus", "mics", "jobs", "arrayjobs", "*", "place"})


def fitted(instance: Instance) -> Instance:
    """Return an instance in which no licence has the name of a resource, and no amount is beyond the bounds.

    Such licences have another name; such a resource is counted in units of 1024, as often as needed.
    """
    most: dict[str, int] = {}
    for node_class in instance.cluster.classes:
        for name, amount in node_class.resources.items():
            most[name] = max(most.get(name, 0), amount)
    names = {name: f"licence {name}" for name in instance.cluster.licenses if name in most or name in _TAKEN}
    if names:
        instance = _renamed(instance, names)
    large = {name: _unit(amount) for name, amount in most.items() if amount > MAX_AMOUNT}
    return _in_units(instance, large) if large else instance


def without_others(instance: Instance, free: Mapping[str, int], left: dict[str, Inexpressible]) -> Instance:
    """Return an instance with the licences that its jobs have or nobody has; a job that asks for more is left.

    `free`: how many of them nobody has now, where Slurm says so.
    """
    has = dict(instance.cluster.licenses)
    held = Counter[str]()
    for job in instance.jobs:
        if job.licenses and job.running is not None:
            held.update(job.licenses)
    others = {name: total - free[name] - held[name] for name, total in has.items() if name in free}
    others = {name: amount for name, amount in others.items() if amount > 0}
    if not others:
        return instance
    jobs = []
    for job in instance.jobs:
        short = [name for name in others if has[name] - others[name] < job.licenses.get(name, 0) <= has[name]]
        if short and job.running is None:
            name = short[0]
            left[job.id] = Inexpressible(f"{others[name]} of {has[name]} licences {name} are in use elsewhere")
        else:
            jobs.append(job)
    licenses = Amounts({name: total - others.get(name, 0) for name, total in has.items()})
    return replace(instance, jobs=tuple(jobs), cluster=replace(instance.cluster, licenses=licenses))


def _renamed(instance: Instance, names: Mapping[str, str]) -> Instance:
    def renamed(amounts: Amounts) -> Amounts:
        return Amounts({names.get(name, name): amount for name, amount in amounts.items()})

    def mended(job: Job) -> Job:
        return job if names.keys().isdisjoint(job.licenses) else replace(job, licenses=renamed(job.licenses))

    pools = [
        replace(pool, resource=names[pool.resource]) if pool.resource in names and pool.nodes is None else pool
        for pool in instance.free_pools
    ]
    cluster = replace(instance.cluster, licenses=renamed(instance.cluster.licenses))
    return replace(instance, cluster=cluster, jobs=tuple(map(mended, instance.jobs)), free_pools=tuple(pools))


def _unit(amount: int) -> int:
    unit = 1
    while amount // unit > MAX_AMOUNT:
        unit *= 1024
    return unit


def _in_units(instance: Instance, units: Mapping[str, int]) -> Instance:
    """Return an instance in which some resources are counted in larger units: requests are rounded up."""

    def counted(amounts: Amounts, divide: Callable[[int, int], int]) -> Amounts:
        return Amounts({name: divide(amount, units.get(name, 1)) for name, amount in amounts.items()})

    def up(amount: int, unit: int) -> int:
        return -(-amount // unit)

    def request(asked: Request) -> Request:
        chunks = (replace(chunk, resources=counted(chunk.resources, up)) for chunk in asked.chunks)
        return Request(chunks=tuple(chunks), place=asked.place)

    def mended(job: Job) -> Job:
        steps, alternatives = (
            tuple(replace(step, request=request(step.request)) for step in part)
            for part in (job.steps, job.alternatives)
        )
        if job.running is None:
            return replace(job, steps=steps, alternatives=alternatives)
        segments = tuple(
            replace(
                segment,
                allocation=tuple(replace(one, resources=counted(one.resources, up)) for one in segment.allocation),
            )
            for segment in job.running.segments
        )
        return replace(job, steps=steps, running=replace(job.running, segments=segments))

    def asks(job: Job) -> bool:
        return any(not units.keys().isdisjoint(step.request.totals) for step in (*job.steps, *job.alternatives))

    classes = tuple(
        replace(one, resources=counted(one.resources, int.__floordiv__)) for one in instance.cluster.classes
    )
    jobs = tuple(mended(job) if asks(job) else job for job in instance.jobs)
    return replace(instance, cluster=replace(instance.cluster, classes=classes), jobs=jobs)
