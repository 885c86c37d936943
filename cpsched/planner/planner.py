"""The RUSV planner: planning, mapping, booking, backfilling and replanning of rigid jobs (OpenCCS, Keller 2017)."""

from collections.abc import Callable
from functools import cache, partial

from cpsched.booking import Ledger, Mapping, Mark
from cpsched.domain import Instance
from cpsched.engine import Outcome, Progress
from cpsched.planner.admission_result import AdmissionResult
from cpsched.planner.hurrying import plan_hurried
from cpsched.planner.rescue import rescue
from cpsched.planner.shrink import Values, begin_shrunk, go_on_shrunk, lenders
from cpsched.problem import planning_order
from cpsched.rusv import FOREVER, NOWHERE

#: The planner's name for users.
NAME = "planner"

#: With more jobs than this that may be held, they are not planned a second time without it.
_MOST_HELD = 300
#: What an alternative is charged for the jobs behind it (`Values.choices`): the more, the fuller the machine is. With
#: more jobs than this the first is tried alone.
_CHARGES, _MANY = (5.0, 1.0), 500


class Planner:
    """Plans the waiting jobs of one instance, each as early as possible without moving anyone before it; mutable.

    Raises `UnsupportedError` if the instance asks for something that cannot be honoured yet.
    """

    def __init__(self, instance: Instance, mapping: Mapping | None = None) -> None:
        self.instance = instance
        self._admission = AdmissionResult.of(instance, engine=NAME)
        admitted = self._admission.admitted
        self._order = [job.id for job in planning_order(instance, admitted)]
        self.ledger = Ledger(instance, admitted, mapping)

    def plan(self, progress: Progress | None = None) -> None:
        """Plan all waiting jobs in order, or another if one is too late; then hold and shrink if that is better."""
        ledger = self.ledger
        is_bound = ledger.table.jobs[:, 2] < FOREVER  # it must start by some time
        held = sum(job.is_evolving and job.expand_limit != 1 for job in ledger.jobs)
        has_modes = any(len(modes) > 1 for modes in ledger.modes)
        # for planning all anew; and for asking whether a job that is too late is so in every plan: what is set aside
        # takes time to book anew
        is_asked = self.instance.set_aside and is_bound.any()
        bare = ledger.marked() if held or has_modes or ledger.running.changeable or is_asked else None
        ledger.plan(self._order, progress)
        plan_hurried(ledger, self._order)
        is_late = bool((is_bound & (ledger.table.starts == NOWHERE)).any())
        if is_late and not self.instance.has_strict_priorities:
            values = cache(lambda: Values(self.instance, ledger))
            self._order = rescue(ledger, self._order, lambda: values().of_plan(), bare)
        order = self._order
        if bare is not None and 0 < held <= _MOST_HELD:
            self._improved_by(Values(self.instance, ledger), bare, lambda: ledger.plan(order, is_held=False))
        if bare is not None and (ledger.running.changeable or has_modes):
            self._shrink(bare)
        # other jobs may have moved to earlier ends since they were planned
        ledger.plan([name for name in order if not ledger.is_booked(name)])

    def _shrink(self, bare: Mark) -> None:
        """Shrink waiting and running jobs where that improves the plan."""
        ledger, order = self.ledger, self._order
        values = Values(self.instance, ledger)
        has_alternatives = any(job.alternatives for job in ledger.jobs)
        charges = _CHARGES[: 1 if len(order) > _MANY or not has_alternatives else None]
        better = [
            self._improved_by(values, bare, partial(begin_shrunk, ledger, order, values, charge)) for charge in charges
        ]
        if not any(better):
            begin_shrunk(ledger, [name for name in order if not ledger.is_booked(name)], values)
        go_on_shrunk(ledger, order, values, names=lenders(ledger, order))

    def _improved_by(self, values: Values, bare: Mark, replan: Callable[[], None]) -> bool:
        """Plan all jobs anew from `bare` on, in another way; return whether that is better. Else all is as before."""
        worth, mark, booked = values.of_plan(), self.ledger.marked(), self._booked()
        self.ledger.back_to(bare)
        replan()
        found = self._booked()
        if found > booked or (found == booked and values.of_plan() < worth):
            return True
        self.ledger.back_to(mark)
        return False

    def _booked(self) -> set[str]:
        """Return the waiting jobs that have a place."""
        return {name for name in self._order if self.ledger.is_booked(name)}

    def backfill(self) -> int:
        """Move jobs to earlier starts until no job can move (OCCS-34); return how many moves there were."""
        moves = 0
        while moved := self.ledger.backfill(self._order):
            moves += moved
        return moves

    def cancel(self, job_id: str) -> int:
        """Remove a waiting job from the plan, and move the others up; return the number of moves.

        Jobs that wait for it, directly or not, lose their places, whatever the type of the dependency: what
        their user wants without it is unknown. They stay in the waiting room.
        """
        for name in self.ledger.behind(job_id):
            if self.ledger.is_booked(name):
                self.ledger.release(name)
        self._order.remove(job_id)
        self._admission = self._admission.without(job_id)
        moves, running = self.backfill(), self.ledger.running
        if running.changed:
            values = Values(self.instance, self.ledger)
            go_on_shrunk(self.ledger, self._order, values, names=tuple(running.changed))
        return moves

    def outcome(self) -> Outcome:
        """Return the current outcome of all jobs, in document order (OCCS-37)."""
        return self._admission.outcome(self.ledger)
