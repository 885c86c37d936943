"""The loop of large-neighbourhood search: choose, restrict, solve, keep what is better; only in the worker."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Generic, TypeVar

from ortools.sat.python import cp_model

from cpsched.cp.messages import Descend, Reply, Tried
from cpsched.cp.model import build
from cpsched.cp.neighbourhoods.kinds import Choice, Size, kinds_for, lost
from cpsched.cp.neighbourhoods.occupation import Occupation
from cpsched.cp.neighbourhoods.restriction import Neighbourhood, restricted
from cpsched.cp.solution import ModelParams, Placed

Way = TypeVar("Way")

#: Of all choices, such a part is drawn without looking at gains.
_ANY = 0.2
#: Each time that a way is tried, what it did before counts so much less.
_FADING = 0.99


class Chooser(Generic[Way]):
    """Draws ways by their gain per second; mutable. `ways`: at least one."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self.ways = tuple(ways)
        self._gains = [0.0] * len(self.ways)
        self._seconds = [0.0] * len(self.ways)
        self._tried = [0.0] * len(self.ways)

    def draw(self, random: Random) -> int:
        """Return the number of a way: drawn by its gain per second, or any, the quick ones more often.

        Few of many tries gain anything: the way of the greatest gain so far is often one that was lucky.
        """
        untried = [number for number, seconds in enumerate(self._seconds) if not seconds]
        if untried:
            return random.choice(untried)
        numbers = range(len(self.ways))
        rates = [gain / seconds for gain, seconds in zip(self._gains, self._seconds, strict=True)]
        if random.random() < _ANY or not any(rates):
            means = [tried / seconds for tried, seconds in zip(self._tried, self._seconds, strict=True)]
            return random.choices(numbers, means)[0]
        return random.choices(numbers, rates)[0]

    def learn(self, number: int, gain: float, seconds: float) -> None:
        """Take in what a way gained in some seconds."""
        self._gains[number] = _FADING * self._gains[number] + gain
        self._tried[number] = _FADING * self._tried[number] + 1
        self._seconds[number] = _FADING * self._seconds[number] + max(seconds, 1e-6)


#: A small model is built and solved in milliseconds: what strengthens a large one costs it more than it gains.
_PLAIN = ModelParams(
    has_energy=False, has_dual_feasible=False, breaks_nodes=False, breaks_jobs=False, has_tight_starts=False
)
#: The limits of a sub-model whatever its conflicts: seconds, and CP-SAT's deterministic time.
_LONGEST, _MOST_EFFORT = 0.5, 0.1
#: Seconds that it takes as a rule to choose a neighbourhood, to build an alternative, and to solve for a unit of
#: deterministic time.
_CHOOSING, _BUILDING, _SOLVING = 0.002, 0.0001, 4.0
#: As long as jobs have no start, such a part of the neighbourhoods looks for one.
_RESCUING = 0.5
#: Seconds between two replies.
_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class Effort:
    """How large a neighbourhood is, and after how many conflicts it is left."""

    size: Size
    conflicts: int
    #: Whether the solver begins from the present places.
    hinted: bool = True


_EFFORTS = (
    Effort(Size(4, 4), 20),
    Effort(Size(6, 6), 40),
    Effort(Size(8, 6), 60),
    Effort(Size(10, 8), 60),
    Effort(Size(10, 8), 200),
    Effort(Size(10, 8), 500, hinted=False),
    Effort(Size(14, 10), 100),
    Effort(Size(14, 10), 400),
)


class End(Enum):
    """How a neighbourhood ended."""

    #: There was none of the kind, or bounds alone showed that it has no better plan.
    REJECTED = "rejected"
    #: It has no better plan, or the best one was found.
    PROVEN = "proven"
    #: The limit came first.
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The result of a neighbourhood."""

    kind: str
    end: End
    #: The tasks that got another place; empty if no better plan was found.
    moved: dict[int, Placed]
    gain: float
    #: The seconds that it takes as a rule: the same in each run.
    estimate: float


class Descent:
    """Large-neighbourhood search from a plan; mutable.

    `occupation`: the plan. `seed`: decides what is tried. `is_timed`: whether gains are compared with the time that
    they took on the clock; else with an estimate that every run repeats.
    """

    def __init__(self, occupation: Occupation, seed: int, *, is_timed: bool) -> None:
        self.occupation = occupation
        self._random, self._is_timed = Random(seed), is_timed  # noqa: S311 - no secrets
        self._kinds = Chooser(kinds_for(occupation.encoding))
        self._efforts = Chooser(_EFFORTS)

    def step(self) -> Step:
        """Try one neighbourhood."""
        if self.occupation.num_lost and self._random.random() < _RESCUING:
            effort = _EFFORTS[self._random.randrange(len(_EFFORTS))]
            return self._tried("lost", lost(self.occupation, effort.size, self._random), effort)
        began = time.thread_time()
        which, how = self._kinds.draw(self._random), self._efforts.draw(self._random)
        (name, kind), effort = self._kinds.ways[which], self._efforts.ways[how]
        step = self._tried(name, kind(self.occupation, effort.size, self._random), effort)
        took = time.thread_time() - began if self._is_timed else step.estimate
        self._kinds.learn(which, step.gain, took)
        self._efforts.learn(how, step.gain, took)
        return step

    def _tried(self, name: str, choice: Choice | None, effort: Effort) -> Step:
        """Restrict the window to a neighbourhood and solve it; keep a better plan."""
        part = None if choice is None else restricted(self.occupation, choice.tasks, choice.sites)
        if part is None:
            return Step(kind=name, end=End.REJECTED, moved={}, gain=0.0, estimate=_CHOOSING)
        end, found, effort_made = self._solved(part, effort)
        estimate = _CHOOSING + _BUILDING * part.encoding.num_alternatives + effort_made
        if found is None:
            return Step(kind=name, end=end, moved={}, gain=0.0, estimate=estimate)
        moved = part.to_whole(found)
        before = self.occupation.cost
        for number, one in moved.items():
            self.occupation.put(number, one)
        return Step(kind=name, end=end, moved=moved, gain=before - self.occupation.cost, estimate=estimate)

    def _solved(self, part: Neighbourhood, effort: Effort) -> tuple[End, tuple[Placed, ...] | None, float]:
        """Solve a neighbourhood; return the best plan that was found, and the seconds that this takes as a rule."""
        now = [self.occupation.placed[number] for number in part.tasks]
        hint = part.to_part([one for one in now if one is not None]) if effort.hinted and None not in now else None
        model, variables = build(part.encoding, _PLAIN, hint)
        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = 1
        parameters.random_seed = self._random.randrange(1 << 30)
        parameters.symmetry_level = 0
        parameters.cp_model_probing_level = 0
        parameters.linearization_level = 0
        parameters.cp_model_presolve = False
        # where delays are decided first, most of the conflicts are about delays that no plan has
        parameters.exploit_objective = False
        parameters.max_number_of_conflicts = effort.conflicts
        parameters.max_deterministic_time = _MOST_EFFORT
        if self._is_timed:
            parameters.max_time_in_seconds = _LONGEST
        status = solver.solve(model)
        took = _SOLVING * solver.response_proto.deterministic_time
        end = End.PROVEN if status in (cp_model.OPTIMAL, cp_model.INFEASIBLE) else End.LEFT
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return end, variables.placed(part.encoding, solver.value), took
        return end, None, took


#: The descent that the last request began: the only one of a process, which a later request continues.
_descents: list[Descent] = []


def descend(request: Descend, tell: Callable[[Reply], None], is_asked: Callable[[], bool]) -> None:
    """Try neighbourhoods until the request's time or number ends, or there is another request; tell what they came to.

    A request without an encoding continues the descent of the one before, from another plan.

    `is_asked`: whether there is another request.
    """
    if request.encoding is not None:
        occupation = Occupation(request.encoding, request.positions)
        _descents[:] = [Descent(occupation, request.seed, is_timed=request.most is None)]
        (descent,) = _descents
    else:
        (descent,) = _descents
        descent.occupation.begin(request.positions)
    steps, told_at, tried = list[Step](), time.monotonic(), 0
    while not is_asked() and request.remaining > 0 and (request.most is None or tried < request.most):
        steps.append(descent.step())
        tried += 1
        if time.monotonic() >= told_at + _PAUSE:
            tell(_results(steps, request.number, is_last=False))
            steps, told_at = [], time.monotonic()
    tell(_results(steps, request.number, is_last=True))


def _results(steps: Sequence[Step], number: int, *, is_last: bool) -> Tried:
    """Return the results of steps for a request."""
    proven = sum(step.end is not End.LEFT for step in steps)
    moved = {task: placed for step in steps for task, placed in step.moved.items()}
    return Tried(len(steps), proven, sum(bool(step.moved) for step in steps), number, is_last, moved)
