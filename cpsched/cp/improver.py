"""`Cp`: CP-SAT as an improver; and what it has in common with others whose work is done in a process of their own."""

from collections.abc import Sequence
from dataclasses import replace

from cpsched.cp.decode import decode, placed_as_in
from cpsched.cp.encoding import encode, num_pairs
from cpsched.cp.messages import BetterPlan, Bounded, Counted, Done, Reply, Solve, Verdict
from cpsched.cp.process import COMMAND, Worker, available_memory, converse, failures_told, seconds_for
from cpsched.cp.solution import ModelParams
from cpsched.domain import Instance
from cpsched.engine import Board, Improver, Offer
from cpsched.planner import unsupported

#: The part of the available memory that a worker may use.
_MEMORY = 0.5
#: A window with more pairs of a part of a job and a node than this is not solved as a whole.
_MOST_PAIRS = 1500
#: The part of the budget that `Cp` may take; and where jobs wait for each other, which it can prove more about.
_SHARE, _LINKED_SHARE = 0.5, 0.9


class InWorker(Improver):
    """An improver with a worker process. `command`: how the worker is started; replaced in tests."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the model cannot honour: the same as the planner's, and alternatives
        of one job with several arrangements of chunks.
        """
        elsewhere: list[str] = []
        for job in instance.jobs:
            places = {replace(job.step_of(number).request.place, within=None) for number in range(len(job.choices))}
            if len(places) > 1:
                elsewhere.append(f"job {job.id}: alternatives with another place")
        return (*unsupported(instance), *elsewhere)

    def worker(self) -> Worker:
        """Start a worker, which may use a part of the memory that is available now.

        Raises `EngineError` if it cannot be started.
        """
        return Worker(int(_MEMORY * available_memory()), self._command)


#: The meaning of a solve that ended without a plan, although a plan is known.
_WORDS = {
    Verdict.INFEASIBLE: "CP-SAT says that there is no plan, though one is known",
    Verdict.UNKNOWN: "CP-SAT ended without a plan, though it was given one",
    Verdict.INVALID: "CP-SAT does not accept the model",
}


class Cp(InWorker):
    """Proves or improves plans of small windows by CP-SAT, in a process of its own.

    `workers`: of CP-SAT. `raises`: whether a single worker spends some of the time on a bound from below, where only
    the makespan counts. `deterministic_time`: the limit of a solve with one worker, for plans that do not depend on the
    clock; None: the budget is the limit.
    """

    name = "cp"
    makes_choices = True

    def __init__(
        self,
        workers: int = 1,
        *,
        raises: bool = True,
        deterministic_time: float | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        super().__init__(command)
        self._workers, self._raises, self._deterministic_time = workers, raises, deterministic_time

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Solve the window, if it is small enough and has something to plan."""
        best = board.best
        pairs = num_pairs(instance, best.jobs, _left_out(board, best))
        if pairs > _MOST_PAIRS:
            board.leave_out(
                f"{pairs:,} pairs of a part and a node, it solves windows of {_MOST_PAIRS:,} at most", by=self.name
            )
        if not 0 < pairs <= _MOST_PAIRS:
            return
        with failures_told(board, by=self.name), self.worker() as worker:
            self._solve(instance, board, worker, seed)

    def _solve(self, instance: Instance, board: Board, worker: Worker, seed: int) -> None:
        """Find plans and prove bounds in the worker process."""
        best = board.best
        planned = {job.id: job for job in best.jobs}
        encoding = encode(instance, best.jobs, _left_out(board, best))
        running = {job.id for job in instance.jobs if job.running is not None}
        order = [job.id for job in instance.elements()]
        request = Solve(
            encoding=encoding,
            params=ModelParams(),
            hint=placed_as_in(encoding, planned),
            seed=seed,
            workers=self._workers,
            seconds=seconds_for(board, _LINKED_SHARE if encoding.milestones else _SHARE),
            deterministic_time=self._deterministic_time,
            raises=self._raises,
        )

        size = f"{encoding.num_alternatives} alternatives" if encoding.machine is None else "on the number of nodes"

        def hear(reply: Reply) -> bool:
            match reply:
                case BetterPlan(placed):
                    found = {name: planned[name] for name in running} | decode(encoding, placed)
                    board.offer([found[name] for name in order if name in found], by=self.name)
                case Counted(most) if encoding.has_all_plans:
                    board.prove_most(most + len(running), by=self.name)
                case Bounded(least, number) if encoding.has_all_plans:
                    over = best.ids if number is None else number + len(running)
                    board.prove(encoding.costs.bound(least), over=over, how=f"CP-SAT, {size}", by=self.name)
                case Done(verdict):
                    is_over = verdict is Verdict.UNKNOWN and request.remaining < request.seconds / 10
                    if verdict in _WORDS and not is_over and (request.hint is not None or verdict is Verdict.INVALID):
                        board.report(_WORDS[verdict], by=self.name)
                    return True
            return False

        converse(worker, request, board, hear)


def _left_out(board: Board, best: Offer) -> frozenset[str]:
    """Return the jobs that a plan on the board leaves out, and a better one may have."""
    return board.placeable - best.ids if len(best.ids) < board.most else frozenset()
