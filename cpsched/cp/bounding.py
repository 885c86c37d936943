"""`LagrangianBound`: proves a bound beside the search."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.cp.in_worker import InWorker
from cpsched.cp.messages import Prove, Proven, Reply
from cpsched.cp.params import BoundParams
from cpsched.cp.process import COMMAND, converse, failures_told, seconds_for
from cpsched.domain import Instance
from cpsched.engine import Board

__all__ = ["LagrangianBound"]


class LagrangianBound(InWorker[BoundParams]):
    """Proves a lower bound (`lower_bound`) in a process of its own, in a share of the budget."""

    name = "bound"

    def __init__(self, params: BoundParams | None = None, command: Sequence[str] = COMMAND) -> None:
        super().__init__(params or BoundParams(), command)

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return nothing: what the bound cannot honour it leaves out, which keeps it a bound."""
        return ()

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Prove a bound, once, if the window is small enough and there is time."""
        running = {job.id for job in instance.jobs if job.running is not None}
        best = board.best
        jobs = tuple(job.id for job in best.jobs if job.id not in running)
        seconds, most_jobs = seconds_for(board, self.params.share), self.params.most_jobs
        if seconds < self.params.least_seconds or (most_jobs is not None and len(jobs) > most_jobs):
            return
        request = Prove(instance=instance, jobs=jobs, seconds=seconds, seed=seed)

        def hear(reply: Reply) -> bool:
            if isinstance(reply, Proven) and reply.value is not None:
                board.prove(reply.value, over=best.ids, how=reply.how, by=self.name)
            return True

        with failures_told(board, by=self.name), self.worker() as worker:
            converse(worker, request, board, hear)
