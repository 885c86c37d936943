"""What the own priorities of the manager say of waiting jobs: weights, and how far plans may leave their order."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import NamedTuple

from cpsched.domain import Instance
from cpsched.site.bridge import JobFacts
from cpsched.site.daemon.state import Policy

#: Steps of a weight in which it doubles: as priorities change with every second, weights need not.
_STEPS = 4
#: A weight is between one of this and so many of those of a usual job.
_MOST = 100.0
#: The most bands of jobs that a plan keeps apart in each tier: each is planned by itself.
_MOST_BANDS = 16


class Standing(NamedTuple):
    """What a plan makes of the priority of a job."""

    #: Strict; higher first.
    priority: int
    weight: float


def standings(instance: Instance, facts: Mapping[str, JobFacts], policy: Policy) -> dict[str, Standing]:
    """Return the standing of each waiting job; none where priorities do not count, or are not known.

    Its weight is its priority in relation to that of the queue's median. Its class is that of its queue, and in it the
    band of its priority.
    """
    if not policy.counts_priorities:
        return {}
    waiting = {job.id: job for job in instance.jobs if job.running is None}
    own = {name: max(1, facts[name].own_priority) for name in waiting}
    if max(own.values(), default=1) == 1:
        return {}  # this manager says nothing of them
    middle = round(_STEPS * math.log2(median_low(own.values())))
    tiers = defaultdict[int, list[str]](list)
    for name, job in waiting.items():
        tiers[instance.priority(job)].append(name)
    found = {}
    for place, (_, names) in enumerate(sorted(tiers.items())):
        for name, band in bands(names, own, policy.influence, most=_MOST_BANDS).items():
            steps = round(_STEPS * math.log2(own[name])) - middle
            factor = min(_MOST, max(1 / _MOST, 2 ** (steps / _STEPS)))
            weight = float(f"{float(instance.own_weight(waiting[name])) * factor:.3g}")
            found[name] = Standing(priority=_MOST_BANDS * (place + 1) - band, weight=weight)
    return found


def bands(names: Iterable[str], own: Mapping[str, int], influence: float, *, most: int | None = None) -> dict[str, int]:
    """Return the band of each job, the highest priorities first.

    A band has the share `influence` of the jobs, and jobs of one priority are in one: in a band a plan may order jobs
    as it likes. `most`: the most bands.
    """
    in_order: Sequence[str] = sorted(names, key=lambda name: -own[name])
    count = len(in_order) if influence * len(in_order) <= 1 else math.ceil(1 / influence)
    count = min(count, len(in_order) if most is None else most)
    found: dict[str, int] = {}
    before = None
    for place, name in enumerate(in_order):
        is_same = before is not None and own[before] == own[name]
        found[name] = found[before] if is_same and before is not None else place * count // len(in_order)
        before = name
    return found
