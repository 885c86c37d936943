"""What goes wrong: nodes that fail, and users who do not know how long their jobs run, both drawn from distributions.

What is drawn is part of the workload, as if the document had it: outages, and walltimes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from random import Random

from cpsched.domain import Instance, Job, Outage

#: The most failures that are drawn for one workload.
_MOST = 1_000_000
#: The round walltimes (min) that are popular in each of four logs (Tsafrir, Etsion and Feitelson, JSSPP 2005), and the
#: share of jobs that ask for the longest one allowed.
MODES = (5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080)
_LONGEST_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """How often nodes fail, and for how long.

    Raises `ValueError` if it makes no sense.
    """

    #: The mean seconds from a return to the next failure, and of a repair.
    mtbf: float
    mttr: float
    #: The shape of the Weibull distribution of the former; 1: exponential, below 1: failures come in bursts. Repairs
    #: are exponential.
    shape: float = 1.0
    #: The number of nodes, neighbours in the document, that fail together.
    group: int = 1

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not 0 < value < math.inf:
                raise ValueError(f"Expected {one.name} > 0, got {value:g}")

    @classmethod
    def of(cls, text: str) -> Failures:
        """Read ``mtbf=2592000 mttr=3600 shape=0.7 group=4``; the last two may be left out."""
        kinds = {"mtbf": float, "mttr": float, "shape": float, "group": int}
        given = [part.partition("=")[::2] for part in text.split()]
        try:
            values = {name: kinds[name](value) for name, value in given}
            if len(values) < len(given) or not {"mtbf", "mttr"} <= set(values):
                raise ValueError
        except (KeyError, ValueError):
            raise ValueError(
                f"Expected mtbf=SECONDS mttr=SECONDS, and shape=NUMBER and group=NODES or not, got {text!r}"
            ) from None
        return cls(**values)  # type: ignore[arg-type] # group is the one that is an int


def with_failures(workload: Instance, seed: int, failures: Failures) -> Instance:
    """Return a workload whose nodes fail, up to its last submission and the longest walltime after that.

    All nodes are new at `now`. Raises `ValueError` if there would be more than a million failures.
    """
    names, jobs = workload.cluster.node_names, workload.jobs
    until = max((job.submit for job in jobs), default=0) + max((job.walltime for job in jobs), default=0)
    expected = (until - workload.now) / failures.mtbf * len(names) / failures.group
    if expected > _MOST:
        raise ValueError(f"Expected at most {_MOST} failures, got about {expected:.0f}")
    draw = Random(f"failures {seed}")  # noqa: S311 - a workload, not a secret
    scale = failures.mtbf / math.gamma(1 + 1 / failures.shape)

    def outages() -> Iterator[Outage]:
        for first in range(0, len(names), failures.group):
            nodes, end = names[first : first + failures.group], workload.now
            while (start := end + max(1, round(draw.weibullvariate(scale, failures.shape)))) < until:
                end = start + max(1, round(draw.expovariate(1 / failures.mttr)))
                yield Outage(nodes=nodes, start=start, end=end)

    drawn = sorted(outages(), key=lambda outage: outage.start)
    return replace(workload, outages=(*workload.outages, *drawn))


def check_walltimes(model: str) -> float | None:
    """Return the factor of the model ``f=NUMBER``, None of ``accurate`` and ``modal``.

    Raises `ValueError` if it is none of these.
    """
    if model in ("accurate", "modal"):
        return None
    name, _, text = model.partition("=")
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if name != "f" or not 0 <= factor < math.inf:
        raise ValueError(f"Expected accurate, modal, or f=NUMBER with a number >= 0, got {model!r}")
    return factor


def with_walltimes(workload: Instance, seed: int, model: str) -> Instance:
    """Return a workload whose rigid jobs ask for other walltimes, and run for what they ran, none beyond its walltime.

    ``accurate``: for their runtimes. ``f=NUMBER``: for these times a number that is even between 1 and 1 + f (Feitelson
    and Mu'alem Weil, IPPS 1998). ``modal``: one job of five for the longest walltime of the workload, the others for
    round ones that are no shorter than their runtimes: Tsafrir's `MODES`, all as popular. No walltime is longer than
    the longest of the workload.

    Raises `ValueError` if there is no such model.
    """
    factor = check_walltimes(model)
    draw = Random(f"walltimes {seed}")  # noqa: S311 - a workload, not a secret
    longest = max((job.walltime for job in workload.jobs), default=0)

    def changed(job: Job) -> Job:
        if job.runtime is None or job.changes or job.alternatives or job.running is not None:
            return job
        ran = min(job.runtime, job.walltime)
        asked = ran
        if factor is not None:
            asked = math.ceil(ran * (1 + factor * draw.random()))
        elif model == "modal":
            modes = [60 * minutes for minutes in MODES if ran <= 60 * minutes < longest]
            is_longest = draw.random() < _LONGEST_SHARE or not modes
            asked = longest if is_longest else draw.choice(modes)
        (step,) = job.steps
        return replace(job, steps=(replace(step, walltime=min(asked, longest)),), runtime=ran)

    return replace(workload, jobs=tuple(map(changed, workload.jobs)))
