"""Jobs that Slurm has as one: the components of a heterogeneous job, and the tasks of an array with a throttle."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from cpsched.domain import Amounts, Arrangement, Job, Place, Request, Step
from cpsched.site.bridge.leaving import Inexpressible
from cpsched.site.bridge.slurm.limiting import Take
from cpsched.site.bridge.slurm.records import JobRecord


def join_components(
    views: Iterable[tuple[str, JobRecord]], jobs: dict[str, Job], left: dict[str, Inexpressible], *, is_planned: bool
) -> None:
    """Make one job of the components of each heterogeneous job that waits, with the id of the first of them.

    The others are left: they start with it. If one of them cannot be planned, or such jobs are not (`is_planned`), none
    is.
    """
    parts: dict[int, list[str]] = defaultdict(list)
    for key, view in views:
        if view.het is not None and not view.state.is_over and (key not in jobs or jobs[key].running is None):
            parts[view.het].append(key)
    for number, keys in parts.items():
        first = keys[0]
        components = [jobs[key] for key in keys if key in jobs]
        lost = [key for key in keys if key in left]
        if not is_planned:
            reason = f"it is a part of heterogeneous job {number}"
        elif lost:
            reason = f"component {lost[0]} of its heterogeneous job {number} is left out: {left[lost[0]]}"
        elif len({component.queue for component in components}) > 1:
            reason = f"the components of its heterogeneous job {number} are in several partitions"
        elif components:
            jobs[keys[0]] = _joined(components)
            reason = f"it starts with job {keys[0]}, of which it is a component"
            keys = keys[1:]
        for key in keys:
            jobs.pop(key, None)
            left.setdefault(key, Inexpressible(reason, is_for_manager=keys[0] == first))


def _joined(components: list[Job]) -> Job:
    """Return one job with the chunks of all components, for as long as the longest of them."""
    requests = [component.request for component in components]
    is_scattered = any(request.place.arrangement is Arrangement.SCATTER for request in requests)
    place = Place(
        arrangement=Arrangement.SCATTER if is_scattered else Arrangement.FREE,
        exclusive=any(request.place.exclusive for request in requests),
    )
    chunks = tuple(chunk for request in requests for chunk in request.chunks)
    licenses = Counter[str]()
    for component in components:
        licenses.update(component.licenses)
    walltime = max(component.walltime for component in components)
    step = Step(walltime=walltime, request=Request(chunks=chunks, place=place))
    return replace(components[0], steps=(step,), alternatives=(), licenses=Amounts(licenses))


def throttled(
    views: Iterable[tuple[str, JobRecord]], takes: Mapping[str, tuple[Take, ...]]
) -> Iterator[tuple[str, tuple[Take, ...]]]:
    """Yield what tasks take of limits, with that on the tasks of their array at a time."""
    tasks = [(key, view) for key, view in views if view.array is not None and not view.state.is_over]
    most = {view.array: view.throttle for _, view in tasks if view.throttle is not None}
    for key, view in tasks:
        bound = most.get(view.array)
        if bound is not None:
            yield key, (*takes.get(key, ()), Take(f"tasks of array {view.array} at a time", bound, 1))
