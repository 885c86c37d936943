"""List scheduling of evolving applications (Klein and Pérez, algorithm 1; EVO-7), and its variants (EVO-11)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from cpsched import problem
from cpsched.domain import Instance, Job, PlannedJob, Step, WaitingJob, repeated
from cpsched.engine import Engine, Outcome, Progress
from cpsched.errors import UnsupportedError
from cpsched.planner import uncompiled
from cpsched.problem import Application, Hold, Machine
from cpsched.rusv import FOREVER, Profile


def fit(
    steps: Sequence[tuple[int, int]], busy: Profile, capacity: int, *, longest: Sequence[int], earliest: int = 0
) -> tuple[int, ...]:
    """Return the starts of all steps of an application in a schedule that completes as early as any (EVO-2, EVO-5).

    Each step but the last may be held until the next one begins; to hold the first one is to delay it. Raises
    `ValueError` if a step asks for more than there is.

    `steps`: ``(duration, amount)`` of each, at least one; durations are positive. `busy`: the amounts that others hold,
    never more than `capacity`. `longest`: the most seconds that each step may be held, not less than its duration;
    `FOREVER`: no limit. `earliest`: the earliest begin of the first step.

    Notes
    -----
    The paper's recursion as a loop, with its misprints repaired (the previous step counts from the second step on, in
    both places; a failure returns the earliest start that is left to the previous step). Whether a step fails depends
    on its own start alone, so a start that was given up is never tried again: this keeps the work polynomial, and
    changes no result.
    """
    if any(amount > capacity for _, amount in steps):
        raise ValueError(f"Expected steps of at most {capacity}, got {max(amount for _, amount in steps)}")
    tried = [earliest] * len(steps)
    starts: list[int] = []
    while (place := len(starts)) < len(steps):
        duration, amount = steps[place]
        start = tried[place]
        while capacity - busy.max(start, start + duration) < amount:
            start = busy.loc(start, start + duration)
        tried[place] = start
        retry = _retry_of_previous(steps, busy, capacity, longest, starts, start) if place else None
        if retry is not None:
            starts.pop()
            tried[place - 1] = retry
            continue
        starts.append(start)
        if place + 1 < len(steps):
            tried[place + 1] = max(tried[place + 1], start + duration)
    if len(steps) > 1:
        starts[0] = starts[1] - steps[0][0]
    return tuple(starts)


def _retry_of_previous(
    steps: Sequence[tuple[int, int]],
    busy: Profile,
    capacity: int,
    longest: Sequence[int],
    starts: Sequence[int],
    start: int,
) -> int | None:
    """Return the earliest start that is left to the previous step if it cannot be held until `start`, else None."""
    previous = len(starts) - 1
    duration, amount = steps[previous]
    if starts[-1] + longest[previous] < start:
        return start - longest[previous]
    end = starts[-1] + duration
    if capacity - busy.max(end, start) < amount:
        return busy.loc(end, start)
    return None


def compact(
    steps: Sequence[tuple[int, int]], starts: Sequence[int], busy: Profile, capacity: int, *, longest: Sequence[int]
) -> tuple[int, ...]:
    """Return the starts of all steps in a schedule that begins as late as any with the same completion.

    The last step stays where it is; the others move as late as they can, from right to left. This is what `fit` does on
    the profile seen backwards from the completion. If the first step cannot begin later, nothing changes. The waste
    need not be the least: a step of many nodes may be held for a step of few. `steps`, `busy`, `capacity`, `longest`:
    as `fit` has them. `starts`: what `fit` found.
    """
    end = starts[-1] + steps[-1][0]
    backwards = steps[::-1]
    found = fit(backwards, busy.mirrored(end), capacity, longest=longest[::-1])
    # seen backwards a step is held until the next begins, so seen forwards it begins where that one does
    borders = (*found, found[-1] + backwards[-1][0])
    compacted = tuple(end - border for _, border in pairwise(borders))[::-1]
    return compacted if compacted[0] > starts[0] else tuple(starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One of the published variants."""

    #: In a few letters, without spaces.
    name: str
    #: The most time that a step may be held, as a multiple of its duration; None: no limit (EVO-6).
    limit: int | None = 1
    #: Whether schedules are moved together before their completion.
    is_compacted: bool = False
    #: Whether an application holds its widest step's nodes all the time, for the sum of its durations.
    is_rigid: bool = False


#: In the order of the paper. `ep_rigid` is conservative backfilling: a fit of one step.
VARIANTS = (
    Variant(name="ep_rigid", is_rigid=True),
    Variant(name="ep_nox"),
    Variant(name="ep_2x", limit=2),
    Variant(name="ep_2xc", limit=2, is_compacted=True),
    Variant(name="ep_infx", limit=None),
    Variant(name="ep_infxc", limit=None, is_compacted=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Where an application was scheduled."""

    #: The times of its steps, each until the next one begins.
    steps: tuple[Hold, ...]
    #: The reserved nodes: its steps, or its largest step for its whole time if it counts as rigid.
    holds: tuple[Hold, ...]

    @property
    def profile(self) -> Profile:
        """The reserved nodes from 0 on (the scheduled EP)."""
        kept = tuple((hold.end - hold.start, hold.amount) for hold in self.holds)
        return Profile(kept).delay(self.holds[0].start)


def schedule(applications: Sequence[Application], variant: Variant, *, busy: Profile, capacity: int) -> Iterator[Track]:
    """Yield where each application is scheduled, in the order given: none is moved again, so none starves (EVO-10).

    `applications`: in queue order; no step asks for more than there is. `variant`: how they are fitted. `busy`: what is
    held already. `capacity`: how much there is.
    """
    for application in applications:
        track = _track(application, variant, busy, capacity)
        busy = busy + track.profile
        yield track


def _track(application: Application, variant: Variant, busy: Profile, capacity: int) -> Track:
    """Schedule one application beside what is busy."""
    steps, earliest = application.steps, application.earliest
    if variant.is_rigid:
        (start,) = fit([_widest(steps)], busy, capacity, longest=[FOREVER], earliest=earliest)
        starts = tuple(accumulate((duration for duration, _ in steps[:-1]), initial=start))
        tracked = _holds(steps, starts)
        return Track(steps=tracked, holds=_holds([_widest(steps)], (start,)))
    longest = application.longest(variant.limit)
    starts = fit(steps, busy, capacity, longest=longest, earliest=earliest)
    if variant.is_compacted:
        starts = compact(steps, starts, busy, capacity, longest=longest)
    holds = _holds(steps, starts)
    return Track(steps=holds, holds=holds)


def _widest(steps: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the single step of a rigid application that has room for all steps."""
    return sum(duration for duration, _ in steps), max(amount for _, amount in steps)


def _holds(steps: Sequence[tuple[int, int]], starts: Sequence[int]) -> tuple[Hold, ...]:
    """Return the steps in time, each until the next one begins."""
    borders = pairwise((*starts, starts[-1] + steps[-1][0]))
    return tuple(Hold(start, end, amount) for (start, end), (_, amount) in zip(borders, steps, strict=True))


class EvolvingEngine(Engine):
    """Plans jobs that evolve over whole nodes as a variant of Klein and Pérez does, in queue order. Deterministic.

    A step is held no longer than both the variant and the job's own ``expand_limit`` allow. Taken as rigid, a job has
    its widest step's nodes to itself all the time; its plan shows those of them that each step asks for.
    """

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.name = variant.name

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance other than whole nodes of one kind."""
        return (*uncompiled(instance), *problem.beyond_whole_nodes(instance))

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs by the variant. Raises `UnsupportedError` if it cannot honour something."""
        if features := self.unsupported(instance):
            raise UnsupportedError(self.name, features)
        jobs = instance.elements()
        refused = {job.id: found for job in jobs if job.running is None and (found := _refusal(instance, job))}
        queue = problem.planning_order(instance, [job for job in jobs if job.running is None and job.id not in refused])
        machine = Machine.of(instance)
        tracks: list[Track] = []
        for track in schedule(
            [problem.application_of(instance, job) for job in queue],
            self.variant,
            busy=_busy(machine.free_from),
            capacity=len(machine.names),
        ):
            tracks.append(track)
            if progress is not None:
                progress(len(tracks), len(queue))
        nodes = problem.map_to_nodes([track.holds for track in tracks], machine.free_from)
        planned = {
            job.id: _planned(instance, job, machine, track, held)
            for job, track, held in zip(queue, tracks, nodes, strict=True)
        }
        return Outcome(
            jobs=tuple(
                planned[job.id] if job.running is None else repeated(job) for job in jobs if job.id not in refused
            ),
            waiting_room=tuple(refused[job.id] for job in jobs if job.id in refused),
        )


def _refusal(instance: Instance, job: Job) -> WaitingJob | None:
    """Return why a waiting job can never start, None if it can: what holds its widest step holds the others too."""
    widest = max((step.request for step in job.steps), key=lambda request: request.chunks[0].count)
    found = problem.refusal(instance, replace(job, steps=(Step(walltime=job.walltime, request=widest),)))
    return None if found is None else WaitingJob(id=job.id, reason=found[0], detail=found[1])


def _busy(free_from: Iterable[int]) -> Profile:
    """Return the number of nodes that running jobs hold, from now on."""
    ends = Counter(free_from)
    busy, last = ends.total(), 0
    steps = []
    for end in sorted(ends):
        steps.append((end - last, busy))
        busy, last = busy - ends[end], end
    return Profile(tuple(steps))


def _planned(instance: Instance, job: Job, machine: Machine, track: Track, nodes: list[tuple[int, ...]]) -> PlannedJob:
    """Return a planned job; `nodes` are its nodes in each of the track's holds."""
    of_steps = nodes if len(nodes) == len(track.steps) else nodes * len(track.steps)
    return problem.planned_on_nodes(instance, job, machine, track.steps, of_steps)
