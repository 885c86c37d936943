"""List scheduling of evolving applications (Klein and Pérez, algorithm 1; EVO-7), and its variants (EVO-11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from cpsched.problem import Application, Hold
from cpsched.rules.evolving.compact import compact
from cpsched.rules.evolving.fit import fit
from cpsched.rusv import FOREVER, Profile


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
