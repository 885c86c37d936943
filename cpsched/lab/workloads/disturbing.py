"""What goes wrong, drawn from distributions: nodes fail, and users do not know how long their jobs run."""

import math
import re
from dataclasses import dataclass, fields, replace
from random import Random

from cpsched.domain import Instance, Job, Outage

_NUMBER = r"(\d+(?:\.\d+)?)"
_FAILURES = re.compile(rf"mtbf={_NUMBER} mttr={_NUMBER}(?: shape={_NUMBER})?(?: group=(\d+))?")
#: The most failures that are drawn for one workload.
_MOST = 1_000_000
#: The round walltimes (min) that are popular in each of four logs (Tsafrir, Etsion and Feitelson, JSSPP 2005), and the
#: share of jobs that ask for the longest one allowed.
MODES = (5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080)
_LONGEST_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """How often nodes fail, and for how long. Raises `ValueError` if it makes no sense."""

    #: The mean seconds from a return to the next failure, and of a repair, which is exponential.
    mtbf: float
    mttr: float
    #: The shape of the Weibull distribution of the former; 1: exponential, below 1: failures come in bursts.
    shape: float = 1.0
    #: The number of nodes, neighbours in the document, that fail together.
    group: int = 1

    def __post_init__(self) -> None:
        for one in fields(self):
            value, least = getattr(self, one.name), 0.1 if one.name == "shape" else 1
            if not least <= value <= 1e9:
                raise ValueError(f"Expected {one.name} from {least} to 1e9, got {value:g}")

    @classmethod
    def of(cls, text: str) -> "Failures":
        """Read ``mtbf=2592000 mttr=3600 shape=0.7 group=4``; the last two may be left out."""
        match = _FAILURES.fullmatch(text)
        if match is None:
            raise ValueError(f"Expected mtbf=SECONDS mttr=SECONDS, then shape=NUMBER group=NODES or not, got {text!r}")
        mtbf, mttr, shape, group = (float(text or 1) for text in match.groups())
        return cls(mtbf=mtbf, mttr=mttr, shape=shape, group=int(group))


def with_failures(workload: Instance, seed: int, failures: Failures) -> Instance:
    """Return a workload whose nodes fail, new at `now`, up to the last submission and the longest walltime after that.

    Raises `ValueError` if there would be more than a million failures.
    """
    names = workload.cluster.node_names
    last = [(job.submit, job.walltime) for job in workload.jobs] or [(workload.now, 0)]
    until = max(submit for submit, _ in last) + max(walltime for _, walltime in last)
    if (until - workload.now) / failures.mtbf * len(names) / failures.group > _MOST:
        raise ValueError(f"Expected at most {_MOST} failures, got more: a larger mtbf is needed")
    draw = Random(f"failures {seed}")  # noqa: S311 - a workload, not a secret
    scale = failures.mtbf / math.gamma(1 + 1 / failures.shape)

    drawn = list(workload.outages)
    for first in range(0, len(names), failures.group):
        nodes, end = names[first : first + failures.group], workload.now
        while (start := end + max(1, round(draw.weibullvariate(scale, failures.shape)))) < until:
            end = start + max(1, round(draw.expovariate(1 / failures.mttr)))
            drawn.append(Outage(nodes=nodes, start=start, end=end))
    return replace(workload, outages=tuple(sorted(drawn, key=lambda outage: outage.start)))


def check_walltimes(model: str) -> float | None:
    """Return the factor of the model ``f=NUMBER``, None of ``accurate`` and ``modal``; `ValueError` of all others."""
    match = re.fullmatch(f"accurate|modal|f={_NUMBER}", model)
    if match is None:
        raise ValueError(f"Expected accurate, modal, or f=NUMBER, got {model!r}")
    return None if match[1] is None else float(match[1])


def with_walltimes(workload: Instance, seed: int, model: str) -> Instance:
    """Return a workload whose rigid jobs ask for other walltimes, and run for what they ran, none beyond its walltime.

    ``accurate``: for their runtimes. ``f=NUMBER``: for these times a number that is even between 1 and 1 + f (Feitelson
    and Mu'alem Weil, IPPS 1998). ``modal``: one of five for the longest walltime of the workload, which no model
    exceeds, the others for round ones no shorter than their runtimes: Tsafrir's `MODES`, all as popular.

    Raises `ValueError` if there is no such model.
    """
    factor, draw = check_walltimes(model), Random(f"walltimes {seed}")  # noqa: S311 - a workload, not a secret
    longest = max((job.walltime for job in workload.jobs), default=0)

    def changed(job: Job) -> Job:
        if job.runtime is None or job.changes or job.alternatives or job.running is not None:
            return job
        ran = min(job.runtime, job.walltime)
        asked = ran
        if factor is not None:
            asked = math.ceil(ran * (1 + factor * draw.random()))
        elif model == "modal":
            modes = [60 * minutes for minutes in MODES if ran <= 60 * minutes < longest] or [longest]
            asked = longest if draw.random() < _LONGEST_SHARE else draw.choice(modes)
        (step,) = job.steps
        return replace(job, steps=(replace(step, walltime=min(asked, longest)),), runtime=ran)

    return replace(workload, jobs=tuple(map(changed, workload.jobs)))
