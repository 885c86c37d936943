"""The experiment of Klein and Pérez: who plans, what a plan of evolving jobs is worth, and the tables of all that.

The paper's ten figures (five for the system, EVO-12; five for users, EVO-13) are known by its discussion only: their
definitions are lost, and ours stand at `Figures`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from cpsched.domain import FrozenMap, Instance, Job, Objective, ObjectiveTerm, Plan, PlannedJob
from cpsched.engine import Engine
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.metrics import mean_interval
from cpsched.portfolio import plan_of, solve
from cpsched.rules import POLICIES
from cpsched.verify import verify
from tests.workloads.changing import made_rigid

__all__ = [
    "BASE",
    "RULES",
    "Case",
    "Contender",
    "Figures",
    "findings",
    "play",
    "ratios_of_both",
    "search",
    "table_of_all",
    "table_of_ratios",
]

#: A few of all applications.
_FEW = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Somebody who plans the cases."""

    name: str
    plan: Callable[[Instance], Plan]
    #: Whether the jobs are made rigid first: each has its widest step's nodes all the time.
    is_rigid: bool = False
    #: What is asked for; None: the sum of the completion times, as the cases say, which rules take no notice of.
    objective: Objective | None = None

    def asked(self, case: Instance) -> Instance:
        """Return a case as this contender gets it."""
        made = made_rigid(case) if self.is_rigid else case
        return made if self.objective is None else replace(made, objective=self.objective)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one plan is worth: node-seconds, seconds and counts, of the waiting jobs."""

    #: Allocated, and asked for, as shares of all nodes' time until the last end.
    utilisation: float
    effective: float
    #: Allocated beyond what was asked for, as a share of what is allocated.
    waste: float
    makespan: int
    #: Processor time that planning took.
    seconds: float
    #: Means of (end - submit) and (start - submit).
    completion: float
    wait: float
    #: What each application has allocated beyond its request, in node-seconds, and relative to it.
    wastes: tuple[int, ...]
    relative_wastes: tuple[float, ...]
    #: How many applications take longer than they asked for, and how many times as long the worst of them does.
    expanded: int
    stretch: float


#: The figures of all contenders on one case, by name.
Case = Mapping[str, Figures]


def _by(engine: Engine) -> Callable[[Instance], Plan]:
    """Return how an engine that needs no budget plans."""

    def plan(instance: Instance) -> Plan:
        return plan_of(instance, engine.name, engine.plan(instance, None), budget=0, elapsed=0)

    return plan


#: The published rules in the order of the tables; all are compared with the first two.
RULES = (
    Contender(name="rigid", plan=_by(POLICIES["ep_rigid"]), is_rigid=True),
    Contender(name="noX", plan=_by(POLICIES["ep_nox"])),
    Contender(name="2X", plan=_by(POLICIES["ep_2x"])),
    Contender(name="2X+c", plan=_by(POLICIES["ep_2xc"])),
    Contender(name="infX", plan=_by(POLICIES["ep_infx"])),
    Contender(name="infX+c", plan=_by(POLICIES["ep_infxc"])),
)
#: The rules with which the others, and ours, are compared.
RIGID, BASE = (rule.name for rule in RULES[:2])

#: What our search is asked for: early completions, an early end of all, and no waste, of which a core-second is worth
#: one of completion.
_OBJECTIVE = Objective(
    weights=FrozenMap({ObjectiveTerm.COMPLETION: 1.0, ObjectiveTerm.MAKESPAN: 6.0, ObjectiveTerm.WASTE: 1.0})
)


def search(budget: float) -> Contender:
    """Return our search with so many seconds on one core."""

    def plan(instance: Instance) -> Plan:
        return solve(instance, engine="search", budget=budget, workers=1)

    return Contender(name=f"search, {budget:g} s", plan=plan, objective=_OBJECTIVE)


def play(case: Instance, contenders: Sequence[Contender]) -> Case:
    """Plan a case with all contenders; every plan is verified.

    Raises
    ------
    ValueError
        If a plan breaks a rule, or leaves a job out.
    """
    figures = {}
    for contender in contenders:
        instance = contender.asked(case)
        begin = time.process_time()
        plan = contender.plan(instance)
        seconds = time.process_time() - begin
        violations = verify(instance_to_document(instance), plan_to_document(plan))
        if violations or plan.waiting_room:
            raise ValueError(f"Expected a plan of all jobs of {case.name} by {contender.name}, got {violations}")
        figures[contender.name] = _figures_of(case, plan, seconds)
    return figures


def _figures_of(asked: Instance, plan: Plan, seconds: float) -> Figures:
    """Return what a plan is worth to those who asked for evolving jobs, rigid or not as it has them."""
    planned = {job.id: job for job in plan.jobs}
    pairs = [(job, planned[job.id]) for job in asked.jobs if job.running is None]
    requested = [_requested(job) for job, _ in pairs]
    allocated = [_allocated(found) for _, found in pairs]
    wastes = tuple(has - wants for has, wants in zip(allocated, requested, strict=True))
    stretches = [(found.end - found.start) / job.walltime for job, found in pairs]
    makespan = max(found.end for _, found in pairs) - asked.now
    there_is = len(asked.cluster.node_names) * makespan
    return Figures(
        utilisation=sum(allocated) / there_is,
        effective=sum(requested) / there_is,
        waste=sum(wastes) / sum(allocated),
        makespan=makespan,
        seconds=seconds,
        completion=fmean(found.end - job.submit for job, found in pairs),
        wait=fmean(found.start - job.submit for job, found in pairs),
        wastes=wastes,
        relative_wastes=tuple(more / wants for more, wants in zip(wastes, requested, strict=True)),
        expanded=sum(stretch > 1 for stretch in stretches),
        stretch=max(stretches),
    )


def _requested(job: Job) -> int:
    """Return the node-seconds that a job asks for: each of its chunks is a node."""
    return sum(step.walltime * chunk.count for step in job.steps for chunk in step.request.chunks)


def _allocated(found: PlannedJob) -> int:
    """Return the node-seconds that a job has."""
    return sum((segment.end - segment.start) * len(segment.allocation) for segment in found.segments)


# ---- tables ----

Table = tuple[Sequence[str], list[Sequence[str]]]


def table_of_all(cases: Sequence[Case]) -> Table:
    """Return header and rows of all figures, those in seconds relative to those of rigid jobs."""
    header = ("variant", "utilisation", "effective", "waste / allocated", f"makespan / {RIGID} (worst)",
              f"completion / {RIGID}", f"wait / {RIGID}", "waste of an application (worst)", "expanded",
              "largest expansion (worst)", "planned in, ms")  # fmt: skip
    rows = []
    for name in cases[0]:
        found = [case[name] for case in cases]
        makespans = _ratios(cases, name, RIGID, lambda figures: figures.makespan)
        rows.append(
            (
                name,
                _mean(figures.utilisation for figures in found),
                _mean(figures.effective for figures in found),
                _mean(figures.waste for figures in found),
                f"{_mean(makespans)} ({max(makespans):.2f})",
                _mean(_ratios(cases, name, RIGID, lambda figures: figures.completion)),
                _mean(_ratios(cases, name, RIGID, lambda figures: figures.wait)),
                f"{_mean(fmean(figures.relative_wastes) for figures in found)}"
                f" ({max(max(figures.relative_wastes) for figures in found):.2f})",
                _mean((figures.expanded for figures in found), digits=2),
                f"{_mean((figures.stretch for figures in found), digits=2)}"
                f" ({max(figures.stretch for figures in found):.2f})",
                _mean((1000 * figures.seconds for figures in found), digits=1),
            )
        )
    return header, rows


def table_of_ratios(cases: Sequence[Case]) -> Table:
    """Return header and rows of completion, wait and makespan relative to the rule that expands nothing."""
    header = ["variant"]
    rows = [[name] for name in cases[0]]
    of: dict[str, Callable[[Figures], float]] = {
        "completion": lambda figures: figures.completion,
        "wait": lambda figures: figures.wait,
        "makespan": lambda figures: figures.makespan,
    }
    for name, value in of.items():
        header += [f"{name} / {BASE} (worst)", "better / worse"]
        for row in rows:
            ratios = _ratios(cases, row[0], BASE, value)
            row.append(f"{_mean(ratios)} ({max(ratios):.2f})")
            row.append(f"{sum(ratio < 1 for ratio in ratios)} / {sum(ratio > 1 for ratio in ratios)}")
    return header, list(rows)


def ratios_of_both(cases: Sequence[Case], name: str) -> list[tuple[float, float]]:
    """Return completion and makespan of one contender relative to the rule that expands nothing, case by case."""
    completions = _ratios(cases, name, BASE, lambda figures: figures.completion)
    return list(zip(completions, _ratios(cases, name, BASE, lambda figures: figures.makespan), strict=True))


#: What the paper found of every variant against rigid (EVO-15, EVO-16).
_FINDINGS: Mapping[str, Callable[[Figures, Figures], bool]] = {
    "the makespan is shorter": lambda mine, rigid: mine.makespan < rigid.makespan,
    "the effective utilisation is higher": lambda mine, rigid: mine.effective > rigid.effective,
    "less is wasted": lambda mine, rigid: sum(mine.wastes) < sum(rigid.wastes),
    "the mean completion is earlier": lambda mine, rigid: mine.completion < rigid.completion,
    "less is allocated, so that nodes can be off": lambda mine, rigid: mine.utilisation < rigid.utilisation,
    "the mean wait is shorter": lambda mine, rigid: mine.wait < rigid.wait,
}


def findings(cases: Sequence[Case]) -> Table:
    """Return header and rows of what the paper found: of how many cases it is true here, and who bears the waste."""
    names = [name for name in cases[0] if name != RIGID]
    rows: list[Sequence[str]] = [
        (finding, *(str(sum(holds(case[name], case[RIGID]) for case in cases)) for name in names))
        for finding, holds in _FINDINGS.items()
    ]
    shares = []
    for name in names:
        wastes = sorted((waste for case in cases for waste in case[name].wastes), reverse=True)
        few = sum(wastes[: math.ceil(_FEW * len(wastes))])
        shares.append(f"{few / sum(wastes):.0%}" if few else "-")
    return ("finding", *names), [*rows, (f"waste borne by the worst {_FEW:.0%} of applications", *shares)]


def _ratios(cases: Sequence[Case], name: str, base: str, value: Callable[[Figures], float]) -> list[float]:
    """Return a figure of one contender relative to another one's, case by case; equal ones have a ratio of 1."""
    pairs = [(value(case[name]), value(case[base])) for case in cases]
    return [1.0 if mine == theirs else mine / theirs if theirs else math.inf for mine, theirs in pairs]


def _mean(values: Iterable[float], digits: int = 3) -> str:
    """Return the mean with the half width of its confidence interval (Student's t, 95 %)."""
    interval = mean_interval(list(values))
    half_width = f" ± {interval.half_width:.{digits}f}" if interval.half_width else ""
    return f"{interval.mean:.{digits}f}{half_width}"
