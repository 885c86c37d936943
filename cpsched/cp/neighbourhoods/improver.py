"""`Neighbourhoods`: CP-SAT as an improver of parts of a plan. Plans go to a worker, better ones come back."""

from collections.abc import Sequence

from cpsched.cp.decode import decode_tasks
from cpsched.cp.encoding import Encoding, encode
from cpsched.cp.improver import InWorker
from cpsched.cp.messages import Descend, Failed, Tried
from cpsched.cp.neighbourhoods.positions import positions_in
from cpsched.cp.process import COMMAND, Worker, failures_told
from cpsched.cp.solution import Placed
from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board, Offer
from cpsched.errors import EngineError
from cpsched.planner import hurried

#: Seconds between two looks at the board.
_LOOK = 0.05
#: Seconds between two offers, at least; and as a multiple of what an offer takes.
_PAUSE, _REST = 0.25, 20
#: Seconds before the end at which the worker stops, beside those for the last offer.
_MARGIN = 0.1


class Neighbourhoods(InWorker):
    """Improves parts of plans by CP-SAT, in a process of its own: some jobs anew, all others as they are.

    `most`: the number of neighbourhoods, for plans that do not depend on the clock; None: as many as there is time for.
    """

    name = "cp"

    def __init__(self, most: int | None = None, command: Sequence[str] = COMMAND) -> None:
        super().__init__(command)
        self._most = most

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that parts of plans cannot honour: longest delays too."""
        return (*super().unsupported(instance), *hurried(instance))

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Improve the best plan until the budget ends; another worker replaces one that fails after some work."""
        if all(job.running is not None for job in instance.jobs):
            return
        run = _Run(instance, board, by=self.name, seed=seed, most=self._most)
        before = -1
        while not (board.is_over or run.is_done) and run.tried > before:
            before = run.tried
            with failures_told(board, by=self.name), self.worker() as worker:
                run.work(worker, board.budget.seconds)
            board.account(by=self.name, what=run.description)


class _Run:
    """One run of large-neighbourhood search; mutable. It outlives a worker that ends.

    `instance`, `board`: the window and its plans. `by`: the name of the solver. `seed`: decides what is tried. `most`:
    the number of neighbourhoods, if the clock shall not decide.
    """

    def __init__(self, instance: Instance, board: Board, *, by: str, seed: int, most: int | None) -> None:
        self._instance, self._board, self._by, self._seed, self._most = instance, board, by, seed, most
        self._place = {job.id: number for number, job in enumerate(instance.elements())}
        #: How many neighbourhoods there were, were proven to have no better plan than the one that is kept, had one.
        self.tried = self.proven = self.improved = 0
        #: Whether the time or the number of neighbourhoods is used up.
        self.is_done = False
        self._number = 0
        self._encoding: Encoding | None = None
        self._base = board.best
        self._placed: dict[int, Placed] = {}
        self._has_news = False
        self._next_offer, self._took = 0.0, 0.0

    @property
    def description(self) -> str:
        """What was done, in words."""
        return (
            f"{self.tried} neighbourhoods, {self.improved} of them with a better plan, {self.proven} solved to the end"
        )

    def work(self, worker: Worker, until: float) -> None:
        """Improve the best plan in a worker until a second of the budget. Raises `EngineError` if the worker fails."""
        budget = self._board.budget
        self._begin(worker, until, is_new=True)
        while not (self._board.is_over or self.is_done) and budget.elapsed < until:
            reply = worker.receive(min(_LOOK, budget.remaining))
            if isinstance(reply, Failed):
                raise EngineError(reply.what)
            if isinstance(reply, Tried) and self._has_ended(reply):
                self._offer()
                self.is_done = self._most is not None
            if budget.elapsed >= self._next_offer:
                self._offer()
            if self._board.best.version != self._base.version:
                self._begin(worker, until, is_new=False)
        self._offer()

    def _begin(self, worker: Worker, until: float, *, is_new: bool) -> None:
        """Send the best plan."""
        best = self._board.best
        is_new = is_new or self._encoding is None or not self._has_same_facts(best)
        self._base, self._has_news = best, False
        if is_new or self._encoding is None:
            self._encoding = encode(self._instance, best.jobs, self._board.placeable - best.ids, by_class=True)
        positions = positions_in(self._encoding, {job.id: job for job in best.jobs})
        self._placed = {number: one for number, one in enumerate(positions.placed) if one is not None}
        self._number += 1
        worker.send(
            Descend(
                encoding=self._encoding if is_new else None,
                positions=positions,
                number=self._number,
                seed=self._seed + self._number,
                most=None if self._most is None else self._most - self.tried,
                seconds=until - self._board.budget.elapsed - _MARGIN - self._took,
            )
        )

    def _has_same_facts(self, best: Offer) -> bool:
        """Return whether a plan has the same jobs as that of the encoding, and those that stay in each plan stay."""
        assert self._encoding is not None  # noqa: S101 - there was one before
        moving = {task.job.id for task in self._encoding.tasks}
        before = {job.id: job for job in self._base.jobs}
        return best.ids == self._base.ids and all(job.id in moving or job == before[job.id] for job in best.jobs)

    def _has_ended(self, reply: Tried) -> bool:
        """Count what was tried, and keep what is better; return whether that was all."""
        self.tried += reply.tried
        self.proven += reply.proven
        self.improved += reply.improved
        if reply.number == self._number and reply.moved:
            self._placed.update(reply.moved)
            self._has_news = True
        return reply.is_last and reply.number == self._number

    def _offer(self) -> None:
        """Offer the worker's plan, if it has a new one."""
        if not self._has_news or self._encoding is None:
            return
        budget = self._board.budget
        began, self._has_news = budget.elapsed, False
        found: dict[str, PlannedJob] = {job.id: job for job in self._base.jobs}
        found |= decode_tasks(self._encoding, self._placed)
        jobs = sorted(found.values(), key=lambda job: self._place[job.id])
        self._board.offer(jobs, by=self._by)
        if self._board.best.jobs == tuple(jobs):
            self._base = self._board.best
        self._took = budget.elapsed - began
        self._next_offer = budget.elapsed + max(_PAUSE, _REST * self._took)
