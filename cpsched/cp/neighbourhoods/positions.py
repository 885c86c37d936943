"""From a plan to what large-neighbourhood search begins from: the place of each task, and jobs that have to stay."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cpsched.cp.decode import place_of
from cpsched.cp.encoding import Encoding, Task
from cpsched.cp.running import coming
from cpsched.cp.solution import Placed
from cpsched.domain import PlannedJob
from cpsched.problem import Column


class Use(NamedTuple):
    """Amounts that are taken in ``[start, end)``, in seconds from now."""

    start: int
    end: int
    takes: Mapping[Column, int]


class Alien(NamedTuple):
    """A job that is planned as the model cannot have it: it stays where it is."""

    start: int
    end: int
    #: By site.
    uses: Mapping[int, tuple[Use, ...]]


@dataclass(frozen=True, slots=True)
class Positions:
    """The tasks of a plan."""

    #: By task; None: it has no start, or it is an alien.
    placed: tuple[Placed | None, ...]
    aliens: Mapping[int, Alien]


def positions_in(encoding: Encoding, planned: Mapping[str, PlannedJob]) -> Positions:
    """Return the tasks as a plan has them."""
    site_of = {site.name: number for number, site in enumerate(encoding.sites)}
    placed: list[Placed | None] = []
    aliens = {}
    for number, task in enumerate(encoding.tasks):
        job = planned.get(task.job.id)
        one = None if job is None else place_of(encoding, task, job, site_of)
        if job is not None and one is None:
            aliens[number] = _alien(encoding, task, job, site_of)
        placed.append(one)
    return Positions(tuple(placed), aliens)


def _alien(encoding: Encoding, task: Task, job: PlannedJob, site_of: Mapping[str, int]) -> Alien:
    """Return the amounts that a job takes that is planned as the model cannot have it."""
    uses: dict[int, list[Use]] = {}
    for segment in coming(job, encoding.now):
        for held in segment.allocation:
            if held.node not in site_of:
                continue
            pools = encoding.sites[site_of[held.node]].pools
            takes: dict[Column, int] = {
                (name, kept_for): pool.capacity if task.is_exclusive else held.resources.get(name, 0)
                for (name, kept_for), pool in pools.items()
                if task.is_exclusive or kept_for not in held.resources
            }
            use = Use(segment.start - encoding.now, segment.end - encoding.now, takes)
            uses.setdefault(site_of[held.node], []).append(use)
    times = max(0, job.start - encoding.now), job.end - encoding.now
    return Alien(*times, {site: tuple(of_site) for site, of_site in uses.items()})
