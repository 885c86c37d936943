"""Every bound against every plan: all engines plan a random window, and no bound may be above any plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cpsched.cp import lower_bound
from cpsched.domain import Instance, Plan, PlannedJob
from cpsched.engine import Board, Proof
from cpsched.errors import UnsupportedError
from cpsched.formats import parse_instance, plan_to_document
from cpsched.metrics import least_value, objective_value
from cpsched.mzn import MiniZinc
from cpsched.planner import PlannerEngine
from cpsched.portfolio import solve
from cpsched.rules import POLICIES
from cpsched.search import Search
from cpsched.verify import Judge
from tests.cp.cp_here import CpHere
from tests.judges.counterexample import plan_below
from tests.judges.windows import MANY, Document, features_of, random_window
from tests.portfolio.judged import board_for, faults_of

__all__ = ["Case", "judge_case"]

#: Steps of the search, evaluations of the dual function, and deterministic time of CP-SAT: small, and not seconds.
SEARCH_STEPS, EVALUATIONS, DETERMINISTIC_TIME = 40, 8, 0.05
#: Rules that plan each case.
RULES = 5
#: The engines that work in processes of their own plan one case in so many, with so many seconds.
SELDOM, SECONDS = 50, 1.0
#: Words of events that tell of a defect; others tell what an engine cannot do.
DEFECTS = ("false bound", "breaks rules", "gave up", "says that there is no plan", "its process", "does not accept")


@dataclass(slots=True)
class Case:
    """What came of one window; mutable."""

    features: set[str]
    #: Engines that planned it, and methods that proved a bound of it.
    engines: Counter[str] = field(default_factory=Counter)
    bounds: Counter[str] = field(default_factory=Counter)
    #: Bounds that were met by a plan: nothing could be proven better.
    tight: Counter[str] = field(default_factory=Counter)
    #: What went wrong, in words.
    failures: list[str] = field(default_factory=list)
    #: Whether some engine refuses the window, and why.
    refusals: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Known:
    """A plan of a window: all plans of the same jobs share their bounds."""

    value: float
    by: str


def judge_case(seed: int, *, has_processes: bool | None = None) -> Case:
    """Plan a random window with all engines, and compare.

    Parameters
    ----------
    seed
        Draws the window.
    has_processes
        Whether portfolio and MiniZinc plan it too; None: one case in `SELDOM`.
    """
    document = random_window(seed)
    case = Case(features=features_of(document))
    instance = parse_instance(document, source=f"case {seed}")
    refusals = PlannerEngine().unsupported(instance)
    if refusals:
        case.refusals["planner"] += 1
        return case
    judge = _Judge(instance, document, case, seed)
    judge.plan_by_rules()
    judge.plan_by_search()
    judge.plan_by_cp()
    if seed % SELDOM == 0 if has_processes is None else has_processes:
        judge.plan_by_processes()
    judge.compare()
    return case


class _Judge:
    """Collects plans and bounds by the set of jobs that they plan; mutable."""

    def __init__(self, instance: Instance, document: Document, case: Case, seed: int) -> None:
        self.instance, self.document, self.case, self.seed = instance, document, case, seed
        self.judge = Judge(document)
        self.plans: dict[frozenset[str], list[_Known]] = {}
        self.proofs: dict[frozenset[str], list[Proof]] = {}
        self.jobs: dict[frozenset[str], tuple[PlannedJob, ...]] = {}
        plan = self._planned("planner")
        #: The planner's plan without its bound, for the verifier to judge others of the same jobs.
        self.first = replace(plan, objective=replace(plan.objective, bound=None, gap=None, proof=None))

    def _planned(self, engine: str, budget: float = 0) -> Plan:
        """Plan the window with an engine as users do, on one core."""
        plan = solve(self.instance, engine=engine, budget=budget, seed=self.seed, workers=1, document=self.document)
        self._add(plan)
        return plan

    def _add(self, plan: Plan) -> None:
        """Take in a plan: its value, and its bound if it has one."""
        name = plan.engine.name
        self.case.engines[name] += 1
        for violation in self.judge.violations(plan_to_document(plan)):
            self.case.failures.append(f"{name}: the verifier refuses its plan: {violation}")
        for event in plan.events:
            if any(word in event.what for word in DEFECTS):
                self.case.failures.append(f"{name}: event of {event.by}: {event.what}")
        self._value(name, plan.jobs)
        score = plan.objective
        if score.bound is not None:
            ids = frozenset(job.id for job in plan.jobs)
            proof = Proof(value=score.bound, over=ids, how=score.proof or "", by=f"{name}: combined")
            self.proofs[ids].append(proof)
            self.case.bounds[f"{name}: combined"] += 1

    def _value(self, by: str, jobs: Sequence[PlannedJob]) -> None:
        """Take in a plan that a judge has passed."""
        ids = frozenset(job.id for job in jobs)
        self.plans.setdefault(ids, []).append(_Known(objective_value(self.instance, jobs), by))
        self.proofs.setdefault(ids, [])
        self.jobs.setdefault(ids, tuple(jobs))

    def plan_by_rules(self) -> None:
        """Plan the window with some of the rules, others in each case."""
        names = sorted(POLICIES)
        for name in (names[(RULES * self.seed + place) % len(names)] for place in range(RULES)):
            try:
                self._planned(name)
            except UnsupportedError:
                self.case.refusals[name] += 1

    def _board(self) -> Board:
        """Return a board with the planner's plan, on which nothing is proven, so that nobody stops early."""
        return board_for(self.instance, self.first, self.judge, seconds=600.0)

    def _close(self, name: str, board: Board) -> None:
        """Take in what an engine has found."""
        self.case.engines[name] += 1
        for event in board.events:
            self.case.failures.append(f"{name}: {event.what}")
        self._value(name, board.best.jobs)
        if board.proof is not None:
            self.proofs[frozenset(job.id for job in board.best.jobs)].append(board.proof)
            self.case.bounds[name] += 1

    def plan_by_search(self) -> None:
        """Run the search for some steps."""
        board = self._board()
        Search(max_steps=SEARCH_STEPS).improve(self.instance, board, seed=self.seed)
        self._close("search", board)

    def plan_by_cp(self) -> None:
        """Solve the window with CP-SAT, in this process."""
        board = self._board()
        CpHere(DETERMINISTIC_TIME).improve(self.instance, board, seed=self.seed)
        self._close("cp", board)

    def plan_by_processes(self) -> None:
        """Plan the window with portfolio and MiniZinc as users do, on one core."""
        engines = ["portfolio"]
        if not MiniZinc().unsupported(self.instance):
            engines.append("minizinc")
        for engine in engines:
            self._planned(engine, SECONDS)

    def compare(self) -> None:
        """Hold every bound against every plan of the same jobs, and look for a plan below them by trying all."""
        for ids, plans in self.plans.items():
            best = min(plans, key=lambda known: known.value)
            proofs = [*self.proofs[ids], *self._bounds(ids)]
            for proof in proofs:
                if proof.is_refuted_by(best.value):
                    self.case.failures.append(
                        f"false bound of {proof.by}: {proof.value:.12g} ({proof.how}), {best.by} has {best.value:.12g}"
                    )
                self.case.tight[proof.by] += proof.value >= best.value - 1e-9 * max(1.0, abs(best.value))
            self._search_below(ids, max(proofs, key=lambda proof: proof.value))

    def _bounds(self, ids: frozenset[str]) -> Iterator[Proof]:
        """Yield what is proven of some jobs without solving anything."""
        least = least_value(self.instance, self.jobs[ids])
        yield Proof(value=least, over=ids, how="", by="earliest starts")
        self.case.bounds["earliest starts"] += 1
        waiting = [job.id for job in self.instance.elements() if job.running is None and job.id in ids]
        found = lower_bound(self.instance, waiting, seconds=5.0, seed=self.seed, evaluations=EVALUATIONS)
        if found is not None:
            yield Proof(value=found.value, over=ids, how=found.how, by="Lagrangian")
            self.case.bounds["Lagrangian"] += 1

    def _search_below(self, ids: frozenset[str], proof: Proof) -> None:
        """Try everything for a plan below the best bound."""
        jobs = [job for job in self.instance.elements() if job.id in ids]
        if not 0 < len(jobs) < MANY or ids != frozenset(job.id for job in self.first.jobs):
            return
        answer = plan_below(self.instance, jobs, proof.value, faults_of(self.judge, self.instance, self.first))
        self.case.engines["trying everything" if answer.is_complete else "trying much"] += 1
        if answer.jobs is not None:
            value = objective_value(self.instance, answer.jobs)
            self.case.failures.append(
                f"false bound of {proof.by}: {proof.value:.12g} ({proof.how}), there is a plan worth {value:.12g}"
            )
