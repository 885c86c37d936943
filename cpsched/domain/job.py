"""Jobs: rigid, evolving, malleable, or with alternatives; waiting or running."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil, floor
from typing import Annotated

from cpsched.domain.annotations import (
    MAX_DURATION,
    Asks,
    Bounds,
    Count,
    Duration,
    Entries,
    Factor,
    Has,
    Key,
    Name,
    PlanTime,
    Price,
    Priority,
    Seconds,
    Time,
    Weight,
    Written,
)
from cpsched.domain.frozen import Amounts, FrozenMap
from cpsched.domain.preemption import Preemptible
from cpsched.domain.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The amounts that a job holds on one node during a segment."""

    node: Name
    #: None, and `count` too, where a running job does not say.
    chunk: Annotated[int | None, Bounds(0, below=10**6), Key("Their kind: index of the chunk in the request")] = None
    count: Annotated[Count | None, Key("How many of them")] = None
    resources: Annotated[Has, Key("What they take together")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A time ``[start, end)`` during which a job's allocation does not change."""

    start: PlanTime
    end: PlanTime
    allocation: Annotated[tuple[Placement, ...], Entries(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A job that has started: fixed, and never moved."""

    start: Annotated[Time, Key("When it started, not after now")]
    #: In order of time, without gaps; the last one ends when the job is expected to end, which is after ``now``.
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of an evolving job; a rigid job has exactly one."""

    walltime: Annotated[Duration, Key("Seconds")]
    request: Request
    #: Of an alternative: the seconds of waiting that the objective adds where a plan chooses it.
    cost: Seconds = 0


class RuntimeModel(StrEnum):
    """How the runtime of a shrunk job stretches (SD-3)."""

    IDEAL = "ideal"
    WORST = "worst"


@dataclass(frozen=True, slots=True, kw_only=True)
class Malleability:
    """The shares of its cores on which a job can run, and how much slower it is on them."""

    #: Descending.
    shares: Annotated[
        tuple[Annotated[float, Written("share")], ...], Entries(1), Key("Below 1; the full share is always possible")
    ]
    model: Annotated[RuntimeModel, Key("How the runtime stretches on a share")] = RuntimeModel.IDEAL
    stretch: Annotated[
        FrozenMap[Annotated[float, Written("share as a key")], Factor], Key("Runtime factor by share, over the model")
    ] = FrozenMap()


class DependencyType(StrEnum):
    """The event of another job that a dependency waits for."""

    AFTER = "after"
    AFTEROK = "afterok"
    AFTERANY = "afterany"
    AFTERNOTOK = "afternotok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """The job may start `delay` seconds, and must within `max_delay`, after a start (`after`) or end (all others)."""

    job: Annotated[Name, Key("Id of a job, an array, or one of its elements")]
    type: Annotated[DependencyType, Key("after: started; else: ended")]
    delay: Annotated[Seconds, Key("Least seconds in between")] = 0
    max_delay: Annotated[Seconds | None, Key("Most seconds in between")] = None

    def lag(self, walltime: int) -> int:
        """Return the least time (s) from the start of the awaited job, which takes `walltime`, to the job's own."""
        return self.delay + (0 if self.type is DependencyType.AFTER else walltime)

    def latest(self, start: int, end: int) -> int | None:
        """Return the last start (s on the instance's clock) after the run of the awaited job; None: any."""
        return None if self.max_delay is None else start + self.lag(end - start) - self.delay + self.max_delay


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisedStart:
    """The start that a job's user was told: a later start has a price."""

    start: Annotated[Time, Key("Only later starts cost")]
    price: Annotated[Price, Key("Added to the objective for each expected wait (s) of postponement")] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Resizable:
    """That a job with choices may change its number of chunks while it runs."""

    cost: Annotated[int, Bounds(0, MAX_DURATION, unit="seconds"), Key("Seconds without work after each change")] = 0
    interval: Annotated[Duration, Key("The least seconds from its start, or a change, to the next one")] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job: rigid, evolving (steps), malleable, or an array of like jobs."""

    id: Annotated[Name, Key("Unique")]
    user: Name | None = None
    group: Name | None = None
    queue: Annotated[Name | None, Key("One of the declared queues")] = None
    project: Name | None = None
    submit: Annotated[Time, Key("When it arrived; waiting is counted from here")]
    #: At least one; more than one makes the job evolving.
    steps: tuple[Step, ...]
    licenses: Annotated[Asks, Key("Held for the job's whole life")] = Amounts()
    priority: Annotated[Priority | None, Key("Higher first; default: the queue's")] = None
    weight: Annotated[Weight | None, Key("Multiplies what the job adds to the objective; default: the queue's")] = None
    not_before: Annotated[Time | None, Key("Earliest start")] = None
    start_at: Annotated[Time | None, Key("The only start allowed")] = None
    deadline: Annotated[Time | None, Key("Latest end")] = None
    after: Annotated[tuple[Dependency, ...], Key("What it waits for")] = ()
    #: Of an array: the promise to the user of each element. None for running jobs.
    told: Annotated[PromisedStart | None, Key("The start that its user was told")] = None
    #: Ascending; None for a single job; empty for an element that is planned by itself.
    array: Annotated[
        tuple[int, ...] | None,
        Written("indices"),
        Key("A list such as 0-9, 1,3,5-9 or 0-20:5", inside="indices", examples=("0-9999",)),
    ] = None
    malleability: Annotated[Malleability | None, Key(name="malleable")] = None
    #: Of a waiting job: a plan runs it in one of its `choices`, from its start to its end.
    alternatives: tuple[Step, ...] = ()
    resizable: Annotated[Resizable | None, Key("That its choices are sizes, which may change while it runs")] = None
    #: The licences of each of its choices; empty: all take those of the job.
    licenses_of_choices: tuple[Amounts, ...] = ()
    running: Running | None = None
    #: None where a plan chooses how long the job takes.
    expected: Annotated[Duration | None, Key("How long it is expected to run (s); default: walltime")] = None
    runtime: Annotated[Duration | None, Key("How long it really runs (s): for simulators only")] = None
    reservation: Annotated[Name | None, Key("Run inside that reservation")] = None
    preemptible: Annotated[Preemptible | None, Key("That it may be stopped for another job")] = None
    #: Of an evolving job.
    expand_limit: Annotated[
        Factor | None, Key("How many times its walltime a step may be held; null: no limit", is_nullable=True)
    ] = 1

    @property
    def walltime(self) -> int:
        """The requested duration in seconds, over all steps."""
        steps = self.steps
        return steps[0].walltime if len(steps) == 1 else sum(step.walltime for step in steps)

    @property
    def expected_runtime(self) -> int:
        """How long the job is expected to run, in seconds: its walltime where it says nothing else."""
        return self.walltime if self.expected is None else self.expected

    @property
    def request(self) -> Request:
        """The request of a job of one step; `ValueError` if the job is evolving: each of its steps has its own."""
        if len(self.steps) != 1:
            raise ValueError(f"job {self.id} has {len(self.steps)} steps, each with its own request")
        return self.steps[0].request

    def asks_for(self, resource: str) -> bool:
        """Tell whether a chunk asks for a resource."""
        return any(resource in chunk.resources for step in self.steps for chunk in step.request.chunks)

    @property
    def is_evolving(self) -> bool:
        """Whether the job has several steps."""
        return len(self.steps) > 1

    @property
    def changes(self) -> bool:
        """Whether the job may change what it holds while it runs: it evolves, or is malleable."""
        return self.is_evolving or self.malleability is not None

    @property
    def levels(self) -> frozenset[str]:
        """The levels of the topology that it asks for in any of its choices."""
        within = (step.request.place.within for step in (*self.steps, *self.alternatives))
        return frozenset(level for level in within if level is not None)

    @property
    def choices(self) -> "tuple[Job, ...]":
        """The rigid jobs of which a plan chooses one: the job as it asks itself, then by each of its alternatives. The
        runtime is that of its own request, and scales with the walltime, rounded up.
        """
        if not self.alternatives:
            return (self,)
        found = []
        for number, step in enumerate((*self.steps, *self.alternatives)):
            runtime = None if self.runtime is None else -(-self.runtime * step.walltime // self.walltime)
            found.append(
                replace(
                    self,
                    steps=(step,),
                    alternatives=(),
                    licenses=self.licenses_of(number),
                    licenses_of_choices=(),
                    resizable=None,
                    runtime=runtime,
                )
            )
        return tuple(found)

    def licenses_of(self, choice: int) -> Amounts:
        """Return what it takes of licences by one of its choices."""
        return self.licenses_of_choices[choice] if self.licenses_of_choices else self.licenses

    @property
    def own_walltime(self) -> int:
        """The walltime by its own request, which the objective compares with that of the alternative it runs by."""
        return self.walltime

    def step_of(self, choice: int) -> Step:
        """Return its only step by one of its choices, counted from its own request; without any, its first step."""
        return self.alternatives[choice - 1] if choice and self.alternatives else self.steps[0]

    @property
    def is_hurried(self) -> bool:
        """Whether it has to start within some time of another one."""
        return any(one.max_delay is not None for one in self.after)

    def starting_by(self, latest: int | None) -> "Job":
        """Return the job with a deadline that it keeps only by a start up to `latest` (s on the instance's clock; None:
        any); one that may take longer than its shortest choice has less time.
        """
        if latest is None:
            return self
        deadline = latest + self.shortest
        return replace(self, deadline=deadline if self.deadline is None else min(deadline, self.deadline))

    @property
    def shortest(self) -> int:
        """The least seconds that it takes in any of its choices."""
        return min((self.walltime, *(step.walltime for step in self.alternatives)))

    @property
    def longest(self) -> int:
        """The most seconds that it takes in any of its choices."""
        return max((self.walltime, *(step.walltime for step in self.alternatives)))

    @property
    def longest_steps(self) -> tuple[int | None, ...]:
        """For how many seconds each step may be held while the next one waits (EVO-6); None: without limit.

        The last one takes its walltime. The limit is exactly what its decimals say.
        """
        limit = None if self.expand_limit is None else Fraction(str(self.expand_limit))
        held = (None if limit is None else floor(limit * step.walltime) for step in self.steps[:-1])
        return (*held, self.steps[-1].walltime)

    @property
    def num_elements(self) -> int:
        """How many jobs it has in a plan: the elements of an array, or itself."""
        return len(self.array) if self.array else 1

    @property
    def element_ids(self) -> tuple[str, ...]:
        """The ids that the job has in a plan: its own, or one for each element of an array."""
        if not self.array:
            return (self.id,)
        return tuple(f"{self.id}[{index}]" for index in self.array)


#: How many times as fast a job is on so many chunks as on one; at least 1.
Speedup = Callable[[int], Fraction]


def amdahl(serial: Fraction) -> Speedup:
    """Return the speed-up of a job of which a part is serial (Amdahl 1967): 1 / (f + (1 - f) / n)."""
    return lambda count: 1 / (serial + (1 - serial) / count)


def downey(parallelism: Fraction, sigma: Fraction) -> Speedup:
    """Return the speed-up by the average parallelism A >= 1 and its variance >= 0 (Downey 1997, eq. 1 and 2)."""

    def low(count: int) -> Fraction:
        if count >= 2 * parallelism - 1:
            return parallelism
        if count >= parallelism:
            return parallelism * count / (sigma * (parallelism - Fraction(1, 2)) + count * (1 - sigma / 2))
        return parallelism * count / (parallelism + sigma / 2 * (count - 1))

    def high(count: int) -> Fraction:
        if count >= parallelism + parallelism * sigma - sigma:
            return parallelism
        return count * parallelism * (sigma + 1) / (sigma * (count + parallelism - 1) + parallelism)

    return lambda count: max(Fraction(1), low(count) if sigma <= 1 else high(count))


def resized(own: Step, count: int, speedup: Speedup) -> Step:
    """Return a step of one kind of chunks with another number of them, and as long as the speed-up says, rounded up."""
    (chunk,) = own.request.chunks
    seconds = ceil(own.walltime * speedup(chunk.count) / speedup(count))
    return Step(walltime=seconds, request=replace(own.request, chunks=(replace(chunk, count=count),)))
