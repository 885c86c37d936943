"""Jobs that must start by some time, on tiny windows: no job is lost that can be placed, and that is proven."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import Ledger
from cpsched.domain import Instance
from cpsched.engine import Outcome, Progress
from cpsched.planner import AdmissionResult, PlannerEngine
from cpsched.portfolio import Team
from cpsched.search import Search
from tests.cp.cp_here import CpHere
from tests.judges.deadline_windows import deadline_window
from tests.judges.ruled_windows import features_of
from tests.judges.rules import ENOUGH, SEARCH_STEPS, SECONDS, Comparison, RulesCase
from tests.oracle.brute_force import TooLargeError, Window

__all__ = ["judge_deadlines"]

#: The deterministic time in which CP-SAT is to prove a window.
PROVES_IN = 20.0
#: The engines that are to plan as many jobs as the oracle, for the least value, and to prove both.
COMPLETE = ("cp", "cp after a poor plan", "portfolio")
#: The portfolio plans one window in so many: its solvers are processes of their own.
SELDOM = 50


def judge_deadlines(seed: int, *, has_processes: bool | None = None) -> RulesCase:
    """Draw a window, and compare what oracle and engines make of it.

    Parameters
    ----------
    seed
        Draws the window.
    has_processes
        Whether the portfolio plans it as users call it; None: one window in `SELDOM`.
    """
    document = deadline_window(seed)
    case = RulesCase(document=document, features=features_of(document))
    window = Window(document)
    try:
        comparison = Comparison(case, window, window.best(), seed, complete=COMPLETE, provers=COMPLETE)
    except TooLargeError:
        case.is_too_large = True
        return case
    comparison.plan("planner", 0.0)
    searching = ((Search(max_steps=SEARCH_STEPS),),)
    comparison.plan("search", ENOUGH, Team(first=PlannerEngine(), lanes=searching))
    solving = ((CpHere(PROVES_IN),),)
    comparison.plan("cp", ENOUGH, Team(first=PlannerEngine(), lanes=solving))
    comparison.plan("cp after a poor plan", ENOUGH, Team(first=_Poor(), lanes=solving))
    if seed % SELDOM == 0 if has_processes is None else has_processes:
        comparison.plan("portfolio", 10 * SECONDS)
    return case


class _Poor(PlannerEngine):
    """Plans jobs in the order of their ids, whatever their times are: many are too late."""

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan each job once."""
        admission = AdmissionResult.of(instance, engine=self.name)
        ledger = Ledger(instance, admission.admitted)
        names: Sequence[str] = sorted(job.id for job in admission.admitted)
        ledger.plan(names)
        ledger.plan([name for name in names if not ledger.is_booked(name)])
        return admission.outcome(ledger)
