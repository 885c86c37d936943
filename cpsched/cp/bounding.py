"""`QuickBound` and `LagrangianBound`: prove a bound beside the search, a first one soon and a better one later; and
`Orders`: proves or finds the best plan of a few jobs at once, in this process.
"""

import time
from collections.abc import Collection, Sequence

from cpsched.booking import Ledger
from cpsched.cp.bounds import Bound, least_seconds, lower_bound
from cpsched.cp.bounds.orders import MOST_JOBS, best_order
from cpsched.cp.improver import InWorker
from cpsched.cp.messages import Prove, Proven, Reply
from cpsched.cp.process import COMMAND, converse, failures_told, seconds_for
from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board, Improver
from cpsched.planner import AdmissionResult, unsupported, warmup_window

#: Seconds of the clock on the wall that count as one of a core, where others take the cores.
_CROWDED = 6.0
#: Evaluations of the bound that loads what others need.
_FEW = 20
#: Seconds in which no worker is loaded.
_LEAST = 0.1


class QuickBound(Improver):
    """Proves a first bound in this process, within seconds of a core and not of the clock on the wall: so it is there
    on a busy machine too, where a worker would be loading still.

    `share`: of the time that is left, the part that it gets of a core.
    """

    name = "bound"
    makes_choices = True

    def __init__(self, share: float) -> None:
        self.share = share

    def prepare(self) -> None:
        """Load all that a bound needs, by proving one: a fifth of a second, which a short share would not outlast."""
        window = warmup_window()
        waiting = [job.id for job in window.jobs if job.running is None]
        lower_bound(window, waiting, seconds=1.0, evaluations=_FEW, clock=lambda: 0.0)

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Prove a bound, once, if there is time; what it cannot honour it leaves out, which keeps it a bound."""
        best, seconds = board.best, self.share * board.budget.remaining
        running = {job.id for job in instance.jobs if job.running is not None}
        jobs = [job.id for job in best.jobs if job.id not in running]
        if seconds < (least := least_seconds(len(jobs))):
            board.leave_out(f"its first share of {seconds:.2f} s of a core is less than {least:.2f} s", by=self.name)
            return
        since = time.monotonic(), time.thread_time()

        def clock() -> float:
            return max(time.thread_time() - since[1], (time.monotonic() - since[0]) / _CROWDED)

        found = lower_bound(instance, jobs, seconds=seconds, seed=seed, clock=clock)
        if found is not None:
            _prove(board, found, over=best.ids, by=self.name)


class LagrangianBound(InWorker):
    """Proves a lower bound (`lower_bound`) in a process of its own.

    `share`: the part of the budget that it may take. `most_jobs`: a window with more waiting jobs is left alone; None:
    none is. `least_seconds`: of its share, below which it does not begin: loading what the worker needs takes half a
    second. `least_anew`: the same where a first bound is proven: the worker begins anew, and in less time hardly gets
    beyond it.
    """

    name = "bound"
    makes_choices = True

    def __init__(
        self,
        share: float = 0.2,
        *,
        most_jobs: int | None = None,
        least_seconds: float = _LEAST,
        least_anew: float = 0.0,
        command: Sequence[str] = COMMAND,
    ) -> None:
        super().__init__(command)
        self._share, self._least_anew = share, least_anew
        self.most_jobs, self.least_seconds = most_jobs, least_seconds

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return nothing: what the bound cannot honour it leaves out, which keeps it a bound."""
        return ()

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Prove a bound, once, if the window is small enough and there is time."""
        running = {job.id for job in instance.jobs if job.running is not None}
        best = board.best
        jobs = tuple(job.id for job in best.jobs if job.id not in running)
        seconds, most_jobs = seconds_for(board, self._share), self.most_jobs
        if most_jobs is not None and len(jobs) > most_jobs:
            board.leave_out(f"{len(jobs):,} jobs, beside plans it takes windows of {most_jobs:,} at most", by=self.name)
            return
        if seconds < self.least_seconds:
            board.leave_out(f"{max(0.0, seconds):.1f} s are too short", by=self.name)
            return
        if seconds < self._least_anew and board.proof is not None and board.proof.by == self.name:
            return
        request = Prove(instance=instance, jobs=jobs, seconds=seconds, seed=seed, enough=best.value)

        def hear(reply: Reply) -> bool:
            if isinstance(reply, Proven) and reply.value is not None:
                _prove(board, Bound(reply.value, reply.how), over=best.ids, by=self.name)
            return True

        with failures_told(board, by=self.name), self.worker() as worker:
            converse(worker, request, board, hear)


def _prove(board: Board, found: Bound, *, over: Collection[str], by: str) -> None:
    """State a bound; the words of the solver's work are those of its best one."""
    board.prove(found.value, over=over, how=found.how, by=by)
    if board.proof is not None and board.proof.how == found.how:
        board.account(by=by, what=found.how)


class Orders(Improver):
    """Tries the orders in which a few rigid jobs can start, on aggregated resources; the planner plans the best one.

    It takes milliseconds, where a solver takes half a second to be loaded. Nothing in it depends on clock or seed.
    """

    name = "orders"

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the planner cannot honour."""
        return unsupported(instance)

    def is_for(self, jobs: Sequence[PlannedJob], instance: Instance) -> bool:
        """Return whether a plan has so few waiting jobs that their orders are tried, and nothing that lists cannot
        honour.
        """
        waiting = len(jobs) - sum(job.running is not None for job in instance.jobs)
        return 0 < waiting <= MOST_JOBS and not self.unsupported(instance)

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Prove a bound of the jobs of the best plan, and offer a plan of the order that has this value."""
        best = board.best
        waiting = [job.id for job in instance.elements() if job.running is None and job.id in best.ids]
        found = best_order(instance, waiting)
        if found is None:
            return
        board.prove(found.bound.value, over=best.ids, how=found.bound.how, by=self.name)
        if board.is_optimal:
            return
        admission = AdmissionResult.of(instance, engine=self.name)
        ledger = Ledger(instance, admission.admitted)
        ledger.plan(found.jobs)
        board.offer(admission.outcome(ledger).jobs, by=self.name)
