"""Every rule of a site on tiny windows: an oracle that tries everything, the verifier and the engines side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from cpsched.engine import Board, Budget
from cpsched.errors import UnsupportedError
from cpsched.formats import parse_instance, plan_to_document
from cpsched.metrics import least_value, objective_value
from cpsched.planner import PlannerEngine, placeable_beside, problem_of
from cpsched.portfolio import Team, solve
from cpsched.rules import POLICIES
from cpsched.search import Search
from cpsched.verify import Judge
from tests.cp.cp_here import CpHere
from tests.judges.bounds import DEFECTS
from tests.judges.ruled_windows import Document, features_of, grouped_window, ruled_window
from tests.oracle.brute_force import Best, TooLargeError, Window
from tests.oracle.literal_rules import Booked
from tests.verify.openings import strictly_verified

__all__ = ["Comparison", "RulesCase", "judge_proofs", "judge_rules", "mutants", "plan_document", "read_plan"]

#: Plans that each window is asked about, each a change of the best one.
MUTANTS = 12
#: Steps of the search, deterministic time of CP-SAT, and rules that plan each window.
SEARCH_STEPS, DETERMINISTIC_TIME, RULES = 40, 0.1, 3
#: The deterministic time in which CP-SAT is to prove what it finds.
PROVES_IN = 5.0
#: The engines that work in processes of their own plan one window in so many, with so many seconds.
SELDOM, SECONDS = 50, 1.0
#: Seconds that an engine in this process may take at most; it ends by itself long before.
ENOUGH = 30.0
#: The engines that are to plan as many jobs as the oracle.
COMPLETE = ("planner", "search", "cp", "portfolio", "minizinc")
NEAR = 1e-9


@dataclass(slots=True)
class RulesCase:
    """What came of one window; mutable."""

    document: Document
    features: set[str]
    #: Engines that planned it, those that refused it, and those that planned fewer jobs than the oracle.
    engines: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    fewer: Counter[str] = field(default_factory=Counter)
    #: Plans of the engines that have the least value, and those that are said to have it.
    best: Counter[str] = field(default_factory=Counter)
    proven: Counter[str] = field(default_factory=Counter)
    #: What CP-SAT proved of the engines' window, beside brute force: whether it has all plans, and what came of it.
    proofs: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Changed plans by the first rule that they break, or "none".
    verdicts: Counter[str] = field(default_factory=Counter)
    #: Whether the oracle had too much to try.
    is_too_large: bool = False
    #: What went wrong, in words.
    failures: list[str] = field(default_factory=list)


def judge_rules(seed: int, *, engines: bool = True, has_processes: bool | None = None) -> RulesCase:
    """Draw a window, and compare what oracle, verifier and engines make of it.

    Parameters
    ----------
    seed
        Draws the window.
    engines
        Whether the engines plan it, too.
    has_processes
        Whether portfolio and MiniZinc plan it as well; None: one window in `SELDOM`.
    """
    return judge_document(
        ruled_window(seed),
        seed,
        engines=engines,
        has_processes=seed % SELDOM == 0 if has_processes is None else has_processes,
    )


def judge_topology(seed: int, *, engines: bool = True) -> RulesCase:
    """Draw a window with a topology, and compare what oracle, verifier and engines make of it."""
    return judge_document(grouped_window(seed), seed, engines=engines)


def judge_proofs(seed: int) -> RulesCase:
    """Draw a window, and compare what CP-SAT proves of it with brute force; no other engine plans it."""
    document = ruled_window(seed)
    case = RulesCase(document=document, features=features_of(document))
    window = Window(document)
    try:
        Comparison(case, window, window.best(), seed).prove()
    except TooLargeError:
        case.is_too_large = True
    return case


def judge_document(document: Document, seed: int, *, engines: bool = True, has_processes: bool = False) -> RulesCase:
    """Compare what oracle, verifier and engines make of a window; see `judge_rules`."""
    case = RulesCase(document=document, features=features_of(document))
    window = Window(document)
    try:
        best = window.best()
        _judge_plans(case, window, best, seed)
        if engines:
            Comparison(case, window, best, seed).plan_all(has_processes=has_processes)
    except TooLargeError:
        case.is_too_large = True
    return case


def _judge_plans(case: RulesCase, window: Window, best: Best, seed: int) -> None:
    """Ask oracle and verifier about the best plan, and about changes of it."""
    judge = Judge(case.document)
    case.failures += [f"best plan, oracle: {fault}" for fault in window.faults(best.slices, best.jobs)]
    said = judge.violations(plan_document(window, best.slices, best.jobs))
    case.failures += [f"best plan, verifier: {one}" for one in said]
    for slices, jobs in mutants(window, best.slices, best.jobs, Random(seed)):
        faults = [*window.faults(slices, jobs), *(f"{name} could be had" for name in window.forgotten(slices))]
        violations = judge.violations(plan_document(window, slices, jobs), claims=False)
        case.verdicts[violations[0].rule if violations else "none"] += 1
        if bool(faults) != bool(violations):
            plan = ", ".join(f"{one.id} at {one.start} on {one.chunks}" for one in (*slices, *jobs))
            verifier = [*map(str, violations)]
            case.failures.append(f"plan {plan}: oracle {faults or 'allows it'}, verifier {verifier or 'allows it'}")


class Comparison:
    """Plans a window with the engines, and compares with the oracle; mutable.

    Parameters
    ----------
    case, window, best, seed
        The window and its best plan; what comes of it is noted in the case.
    complete, provers
        The engines that are to plan as many jobs as the oracle, and those that are to prove their plans optimal.
    """

    def __init__(
        self,
        case: RulesCase,
        window: Window,
        best: Best,
        seed: int,
        *,
        complete: Collection[str] = COMPLETE,
        provers: Collection[str] = (),
    ) -> None:
        self.case, self.window, self.best, self.seed = case, window, best, seed
        self._complete, self._provers = complete, provers
        self.instance = parse_instance(case.document, source=f"case {seed}")
        self.least = {best.ids: best.value}

    def plan_all(self, *, has_processes: bool) -> None:
        """Plan the window with the engines, with others of the rules in each window."""
        first = PlannerEngine()
        self.plan("planner", 0.0)
        self.plan("search", ENOUGH, Team(first=first, lanes=((Search(max_steps=SEARCH_STEPS),),)))
        self.plan("cp", ENOUGH, Team(first=first, lanes=((CpHere(DETERMINISTIC_TIME),),)))
        names = sorted(POLICIES)
        for place in range(RULES):
            self.plan(names[(RULES * self.seed + place) % len(names)], 0.0)
        for name in ("portfolio", "minizinc") if has_processes else ():
            self.plan(name, SECONDS)
        self.prove()

    def prove(self) -> None:
        """Let CP-SAT prove the engines' window, whether or not it has all plans that the rules allow, and compare with
        the best plan beside the same nodes of reservations.
        """
        problem = problem_of(self.instance)
        slices, window = problem.slices, problem.instance
        first = PlannerEngine().plan(window, None).jobs
        has_all = problem.has_all_plans and problem.is_whole_for(first)
        kind = "has all plans" if has_all else "some plans are lost"
        board = Board(
            first,
            by="planner",
            budget=Budget(ENOUGH),
            value_of=partial(objective_value, window),
            judge=lambda _: (),
            placeable=placeable_beside(window, {job.id for job in first}),
            least_of=partial(least_value, window),
        )
        CpHere(PROVES_IN).improve(window, board, seed=self.seed)
        if not board.is_optimal:
            self.case.proofs[kind, "not proven"] += 1
            return
        had = [one for one in slices if one.reason is None]
        booked = [
            self.window.slice_of(one.id, [(held.node, held.chunk or 0, held.count or 0) for held in one.allocation])
            for one in had
        ]
        least, number = self._best_within_soft_limits(booked), len(board.best.ids) - len(self.window.running)
        found, best = (-number, board.best.value), (-len(least.jobs), least.value)
        is_equal = found[0] == best[0] and abs(found[1] - best[1]) <= NEAR * max(1.0, abs(best[1]))
        self.case.proofs[kind, "as brute force" if is_equal else "brute force finds better"] += 1
        if not is_equal and (kind == "has all plans" or found < best):
            self.case.failures.append(f"cp: proves {number} jobs and {found[1]:.12g}, the oracle has {best}")

    def plan(self, name: str, budget: float, team: Team | None = None) -> None:
        """Plan the window with an engine, on one core."""
        engine = name if team is None else "portfolio"
        document = self.case.document
        try:
            plan = solve(
                self.instance, engine=engine, budget=budget, seed=self.seed, workers=1, team=team, document=document
            )
        except UnsupportedError:
            self.case.refusals[name] += 1
            return
        except Exception as error:
            self.case.failures.append(f"{name}: crash: {type(error).__name__}: {error}")
            return
        self.case.engines[name] += 1
        for event in plan.events:
            if any(word in event.what for word in (*DEFECTS, "infeasible")):
                self.case.failures.append(f"{name}: event of {event.by}: {event.what}")
        self._compare(name, plan_to_document(plan))

    def _compare(self, name: str, plan: Document) -> None:
        """Compare the plan of an engine with the best one."""
        window, best, say = self.window, self.best, self.case.failures
        slices, jobs = read_plan(window, plan)
        said = strictly_verified(self.case.document, plan)
        say += [f"{name}: the verifier, or the oracle of openings, refuses its plan: {one}" for one in said]
        say += [f"{name}: the oracle refuses its plan: {fault}" for fault in window.faults(slices, jobs)]
        if len(slices) < len(best.slices):
            say.append(f"{name}: has {len(slices)} reservations, {len(best.slices)} can be had")
        if (len(slices), len(jobs)) > (len(best.slices), len(best.jobs)):
            say.append(f"{name}: plans {len(jobs)} jobs, the oracle {len(best.jobs)}")
        self.case.fewer[name] += len(jobs) < len(best.jobs)
        # the nodes of reservations are chosen before jobs are planned: beside these, no job is lost
        most = window.best_beside(slices) if slices or window.reservations else best
        if len(jobs) < len(most.jobs) and name in self._complete:
            # a soft limit is exceeded only where nobody else starts later for it: as if it were a hard one
            kept = self._best_within_soft_limits(slices)
            missing = sorted(kept.ids - {one.id for one in jobs})
            if len(jobs) < len(kept.jobs):
                say.append(f"{name}: loses a job: plans {len(jobs)}, the oracle {len(kept.jobs)} (with {missing})")
        score = plan["objective"]
        least = self._least(frozenset(one.id for one in jobs))
        if _is_below(score["value"], least):
            say.append(f"{name}: its value {score['value']:.12g} is below the least, {least:.12g}")
        if score["bound"] is not None and _is_below(least, score["bound"]):
            say.append(
                f"{name}: its bound {score['bound']:.12g} ({score.get('proof')}) is above the least, {least:.12g}"
            )
        self.case.best[name] += not _is_below(least, score["value"])
        if name in self._provers and plan["engine"]["stopped"] != "optimal":
            say.append(f"{name}: is not proven: {plan['engine']['stopped']}, {score['value']}, {score['bound']}")
        if plan["engine"]["stopped"] == "optimal":
            self.case.proven[name] += 1
            if len(jobs) == len(best.jobs) and _is_below(best.value, score["value"]) and not slices:
                say.append(f"{name}: is said to be optimal; other jobs have the value {best.value:.12g}")
            if len(jobs) < len(most.jobs):
                say.append(f"{name}: is said to be optimal with {len(jobs)} jobs")
            if _is_below(least, score["value"]):
                say.append(f"{name}: its value {score['value']:.12g} is said to be optimal, the least is {least:.12g}")

    def _best_within_soft_limits(self, slices: Sequence[Booked]) -> Best:
        """Return the best plan beside given slices if soft limits were hard ones."""
        document = self.case.document
        if not any(one.get("soft") for one in document.get("limits", [])):
            return self.window.best_beside(slices) if slices or self.window.reservations else self.best
        limits = [{key: value for key, value in one.items() if key != "soft"} for one in document["limits"]]
        return Window({**document, "limits": limits}).best_beside(slices)

    def _least(self, ids: frozenset[str]) -> float:
        """Return the least value of plans of some jobs."""
        if ids not in self.least:
            self.least[ids] = self.window.least(ids)
        return self.least[ids]


def _is_below(value: float, other: float) -> bool:
    return value < other - NEAR * max(1.0, abs(other))


def read_plan(window: Window, plan: Document) -> tuple[list[Booked], list[Booked]]:
    """Read slices and waiting jobs of a plan."""

    def chunks(allocation: Sequence[Document]) -> list[tuple[str, int, int]]:
        return [(one["node"], one["chunk"], one["count"]) for one in allocation]

    had = [one for one in plan.get("reservations", []) if "allocation" in one]
    slices = [window.slice_of(one["id"], chunks(one["allocation"])) for one in had]
    waiting = [one for one in plan["jobs"] if one["id"] in window.waiting]
    return slices, [window.booked(one["id"], one["start"], chunks(one["segments"][0]["allocation"])) for one in waiting]


def plan_document(window: Window, slices: Sequence[Booked], jobs: Sequence[Booked]) -> Document:
    """Write a plan; what the waiting room says of its jobs is true if no other one can be planned beside it."""
    planned = {one.id for one in (*window.running, *jobs)}
    value, terms = window.value(jobs), window.weights
    had = {one.id for one in slices}
    refused = [
        {"id": name, "start": one["start"], "end": one["end"], "reason": "in words"}
        for name, one in window.reservations.items()
        if name not in had
    ]
    return {
        "format": "cpsched-plan/1",
        "instance": window.document["name"],
        "now": window.now,
        "objective": {
            "name": next(iter(terms)) if [*terms.values()] == [1.0] else "sum",
            "value": value,
            "bound": None,
            "gap": None,
            "planner": value,
            "suffered": window.suffered(jobs),
        },
        "engine": {"name": "oracle", "version": "1", "budget": 0, "elapsed": 0, "stopped": "done"},
        "jobs": [entry_of(one) for one in (*window.running, *jobs)],
        "waiting_room": [
            {"id": name, "reason": _reason(window, name, planned), "detail": "in words"}
            for name in window.waiting
            if name not in planned
        ],
        "reservations": [
            *({"id": one.id, "start": one.start, "end": one.end, "allocation": _allocation(one)} for one in slices),
            *refused,
        ],
    }


def _reason(window: Window, name: str, planned: set[str]) -> str:
    job = window.jobs[name]
    if window.is_too_long(job):
        return "walltime"
    awaited = {one for wait in job.get("after", []) for one in window.members[wait["job"]]}
    return "not_mapped" if awaited <= planned else "dependency"


def entry_of(booked: Booked) -> Document:
    """Return the entry of a job in a plan."""
    allocation = booked.job["running"]["allocation"] if booked.is_running else _allocation(booked)
    segment = {"start": booked.start, "end": booked.end, "allocation": allocation}
    return {"id": booked.id, "start": booked.start, "end": booked.end, "segments": [segment]}


def _allocation(booked: Booked) -> list[Document]:
    chunks = booked.job["request"]
    return [
        {
            "node": node,
            "chunk": kind,
            "count": count,
            "resources": {name: count * amount for name, amount in chunks[kind]["resources"].items()},
        }
        for node, kind, count in booked.chunks
    ]


Plan = tuple[list[Booked], list[Booked]]


def mutants(window: Window, slices: Sequence[Booked], jobs: Sequence[Booked], random: Random) -> Iterator[Plan]:
    """Yield plans that differ from a given one in a few starts, nodes and jobs."""
    for _ in range(MUTANTS):
        changed: Plan = (list(slices), list(jobs))
        for _ in range(random.choice([1, 1, 2])):
            random.choice([_move, _move, _shift, _add, _add, _drop, _lay_anew, _move_slice])(window, *changed, random)
        yield changed


def _starts(window: Window, others: Sequence[Booked], job: Document) -> list[int]:
    """List seconds at which something happens, and their neighbours."""
    walltime = job["walltime"]
    known = {window.earliest(job), *window.borders, *(time for one in others for time in (one.start, one.end))}
    near = [time for time in known if time <= window.horizon - walltime]
    return sorted({max(time, window.now) for one in near for time in (one - 1, one, one + 1, one - walltime)})


def _move(window: Window, slices: list[Booked], jobs: list[Booked], random: Random) -> None:
    """Give a job another start."""
    for place in random.sample(range(len(jobs)), min(1, len(jobs))):
        one = jobs[place]
        start = random.choice(_starts(window, [*window.running, *slices, *jobs], one.job))
        jobs[place] = replace(one, start=start, end=start + one.job["walltime"])


def _shift(window: Window, slices: list[Booked], jobs: list[Booked], random: Random) -> None:
    """Start all jobs a little later or earlier."""
    seconds = random.choice([-1, 1, -300, 300, 2])
    jobs[:] = [replace(one, start=one.start + seconds, end=one.end + seconds) for one in jobs]


def _add(window: Window, slices: list[Booked], jobs: list[Booked], random: Random) -> None:
    """Plan another job."""
    left = [name for name in window.waiting if all(name != one.id for one in jobs)]
    for name in random.sample(left, min(1, len(left))):
        job = window.jobs[name]
        start = random.choice(_starts(window, [*window.running, *slices, *jobs], job))
        jobs.append(window.booked(name, start, random.choice(window.layouts(job))))


def _drop(window: Window, slices: list[Booked], jobs: list[Booked], random: Random) -> None:
    """Let a job wait."""
    if jobs:
        jobs.pop(random.randrange(len(jobs)))


def _lay_anew(window: Window, slices: list[Booked], jobs: list[Booked], random: Random) -> None:
    """Give a job other nodes."""
    for place in random.sample(range(len(jobs)), min(1, len(jobs))):
        layout = random.choice(window.layouts(jobs[place].job))
        jobs[place] = window.booked(jobs[place].id, jobs[place].start, layout)


def _move_slice(window: Window, slices: list[Booked], jobs: list[Booked], random: Random) -> None:
    """Give a reservation other nodes, or none."""
    for place in random.sample(range(len(slices)), min(1, len(slices))):
        if random.random() < 0.2:
            slices.pop(place)
            return
        layout = random.choice(window.layouts(slices[place].job))
        slices[place] = window.slice_of(slices[place].id, layout)
