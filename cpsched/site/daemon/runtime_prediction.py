"""How long jobs are expected to run, learnt from those that have ended: users ask for several times what they need.

What a plan holds and promises is the walltime. The expected runtime counts where jobs are put in order by Smith's
rule. It is that of the simulator's ``expect=classes`` (`docs/simulator.md`), but for the class of jobs with as many
cores: the walltime times the share of it that jobs of the same classes took.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from cpsched.domain import Job
from cpsched.site.bridge import JobState

#: The states of ended jobs that say how long such jobs run.
LEARNT_FROM = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.TIMED_OUT})

#: What each ended job counts when the next one has ended: in the wide classes, of many users, and in the narrow ones.
_SLOW_DECAY, _DECAY = 0.995, 0.9
#: The number of wide classes.
_WIDE = 2
#: So many jobs of a class are taken to have had the share that the wider class expects.
_PRIOR = 4.0
#: Steps of an expected share from one power of 2 to the next.
_STEPS = 8


class Kind(NamedTuple):
    """The facts by which jobs are put into classes; the walltime is in seconds."""

    queue: str | None
    user: str | None
    walltime: int

    @classmethod
    def of(cls, job: Job) -> Kind | None:
        """Return the kind of a job; None where a plan says how long it takes."""
        return None if job.changes else cls(job.queue, job.user, job.walltime)

    def classes(self) -> Iterator[tuple[object, ...]]:
        """Yield the classes, from the widest to the narrowest."""
        power = int(math.log2(self.walltime))
        yield ()
        yield self.queue, power
        yield self.queue, power, self.user
        yield self.queue, self.walltime, self.user, "exactly"


class Expectations:
    """The runtimes learnt so far. Mutable."""

    def __init__(self) -> None:
        #: By class: the sum of the shares of the walltime that jobs took, and their number, both decayed.
        self._learnt: dict[tuple[object, ...], tuple[float, float]] = {}
        #: What was asked since the last one has ended: many jobs are alike.
        self._known: dict[Kind, int] = {}

    def learn(self, kind: Kind, runtime: int) -> None:
        """Note how long a job ran (s)."""
        self._known.clear()
        share = min(1.0, runtime / kind.walltime)
        for level, name in enumerate(kind.classes()):
            decay = _SLOW_DECAY if level < _WIDE else _DECAY
            total, count = self._learnt.get(name, (0.0, 0.0))
            self._learnt[name] = total * decay + share, count * decay + 1.0

    def runtime(self, kind: Kind) -> int:
        """Return how long a job is expected to run (s), at least 1 and at most its walltime.

        The share of the walltime is a power of the eighth root of 2: what a job that ends tells of others changes few.
        """
        known = self._known.get(kind)
        if known is None:
            share = 1.0
            for name in kind.classes():
                total, count = self._learnt.get(name, (0.0, 0.0))
                share = (total + _PRIOR * share) / (count + _PRIOR)
            share = 2.0 ** (math.ceil(_STEPS * math.log2(max(share, 1e-6))) / _STEPS)
            known = self._known[kind] = max(1, min(math.ceil(share * kind.walltime), kind.walltime))
        return known
