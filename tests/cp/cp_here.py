"""CP-SAT as an improver in this process, for deterministic time."""

from __future__ import annotations

from cpsched.cp.decode import decode, placed_as_in
from cpsched.cp.encoding import encode
from cpsched.cp.messages import BetterPlan, Bounded, Counted, Done, Reply, Solve, Verdict
from cpsched.cp.solution import ModelParams
from cpsched.cp.solver import solve as solve_model
from cpsched.domain import Instance
from cpsched.engine import Board

__all__ = ["CpHere"]

#: Seconds after which a solve ends although its deterministic time is not over.
ENOUGH = 30.0


class CpHere:
    """The model of a whole window, solved as `cpsched.cp.Cp` does.

    Parameters
    ----------
    deterministic_time
        That of each solve.
    """

    name = "cp"

    def __init__(self, deterministic_time: float) -> None:
        self.deterministic_time = deterministic_time

    def prepare(self) -> None:
        """Nothing is compiled."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return nothing: what the planner does not refuse, the model has."""
        return ()

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Solve the window."""
        best = board.best
        others = board.placeable - best.ids if len(best.ids) < board.most else frozenset()
        encoding = encode(instance, best.jobs, others)
        if not encoding.tasks and not others:
            return
        planned = {job.id: job for job in best.jobs}
        running = {job.id: planned[job.id] for job in instance.jobs if job.running is not None}
        replies: list[Reply] = []
        request = Solve(
            encoding=encoding,
            params=ModelParams(),
            hint=placed_as_in(encoding, planned),
            seed=seed,
            workers=1,
            seconds=ENOUGH,
            deterministic_time=self.deterministic_time,
        )
        solve_model(request, replies.append)
        for reply in replies:
            match reply:
                case BetterPlan(placed):
                    found = running | decode(encoding, placed)
                    board.offer([found[job.id] for job in instance.elements() if job.id in found], by=self.name)
                case Counted(most) if encoding.has_all_plans:
                    board.prove_most(most + len(running), by=self.name)
                case Bounded(least, number) if encoding.has_all_plans:
                    over = best.ids if number is None else number + len(running)
                    board.prove(encoding.costs.bound(least), over=over, how="CP-SAT", by=self.name)
                case Done((Verdict.INFEASIBLE | Verdict.INVALID) as verdict) if request.hint is not None:
                    board.report(f"says {verdict.value} though there is a plan", by=self.name)
