"""How long jobs run, learnt from those that have ended: users ask for several times what they need.

A job's runtime is a distribution. It is the walltime times the shares of their walltimes that jobs like it took: those
of each of its classes, the last ones counting most, and, for what a class does not know yet, those of the wider one.
"""

import math
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Job

#: What each ended job counts when the next one has ended: in the wide classes, of many users, and in the narrow ones.
_SLOW_DECAY, _DECAY = 0.995, 0.9
#: The number of wide classes.
_WIDE = 2
#: So many jobs of a class are taken to have had the share that the wider class expects.
_PRIOR = 4.0
#: Steps of an expected share from one power of 2 to the next.
_STEPS = 8
#: The jobs that ended last, of which a wide class, and a narrow one, keeps the shares.
_MOST_WIDE, _MOST = 400, 40
#: The level of what is enough: 95 % of the jobs end within it for which it is less than the walltime.
_ENOUGH = np.array([0.98])

Floats = NDArray[np.float64]


class Kind(NamedTuple):
    """The facts by which jobs are put into classes; the walltime is in seconds."""

    queue: str | None
    user: str | None
    walltime: int

    @classmethod
    def of(cls, job: Job) -> "Kind | None":
        """Return the kind of a job; None where a plan says how long it takes."""
        return None if job.changes else cls(job.queue, job.user, job.walltime)

    def classes(self) -> Iterator[tuple[object, ...]]:
        """Yield the classes, from the widest to the narrowest."""
        power = int(math.log2(self.walltime))
        yield ()
        yield self.queue, power
        yield self.queue, power, self.user
        yield self.queue, self.walltime, self.user, "exactly"


class Shares(NamedTuple):
    """The distribution of the share of its walltime that a job takes: ascending shares, and their cumulated chances."""

    values: Floats
    chances: Floats

    def at(self, levels: Floats, *, beyond: float = 0.0) -> Floats:
        """Return quantiles, if the share is known to be more than `beyond`; 1 where no known share is."""
        first = int(np.searchsorted(self.values, beyond, side="right")) if beyond > 0.0 else 0
        before = float(self.chances[first - 1]) if first else 0.0
        wanted = before + levels * (1.0 - before)
        places = np.searchsorted(self.chances, wanted, side="left")
        return self.values[np.clip(places, min(first, len(self.values) - 1), len(self.values) - 1)]


class _Class:
    """What is known of a class: decayed sums of the shares and of their number, and the last shares. Mutable."""

    __slots__ = ("count", "decay", "shares", "total")

    def __init__(self, level: int) -> None:
        self.total = self.count = 0.0
        self.decay = _SLOW_DECAY if level < _WIDE else _DECAY
        self.shares: deque[float] = deque(maxlen=_MOST_WIDE if level < _WIDE else _MOST)

    def add(self, share: float) -> None:
        """Add a job that has ended."""
        self.total, self.count = self.total * self.decay + share, self.count * self.decay + 1.0
        self.shares.append(share)


class RuntimeLearner:
    """The runtimes learnt so far. Mutable."""

    def __init__(self) -> None:
        self._classes: dict[tuple[object, ...], _Class] = {}
        #: What was asked since the last one has ended: many jobs are alike.
        self._known: dict[Kind, int] = {}
        self._shares: dict[Kind, Shares] = {}

    def learn(self, kind: Kind, runtime: int) -> None:
        """Note how long a job ran (s)."""
        self._known.clear()
        self._shares.clear()
        share = min(1.0, runtime / kind.walltime)
        for level, name in enumerate(kind.classes()):
            known = self._classes.get(name)
            if known is None:
                known = self._classes[name] = _Class(level)
            known.add(share)

    def expected(self, kind: Kind) -> int:
        """Return how long a job is expected to run (s), at least 1 and at most its walltime.

        The share of the walltime is a power of the eighth root of 2: what a job that ends tells of others changes few.
        """
        known = self._known.get(kind)
        if known is None:
            share = 1.0
            for name in kind.classes():
                of_class = self._classes.get(name)
                if of_class is not None:
                    share = (of_class.total + _PRIOR * share) / (of_class.count + _PRIOR)
            share = 2.0 ** (math.ceil(_STEPS * math.log2(max(share, 1e-6))) / _STEPS)
            known = self._known[kind] = max(1, min(math.ceil(share * kind.walltime), kind.walltime))
        return known

    def shares(self, kind: Kind) -> Shares:
        """Return the distribution of the share of its walltime that a job takes.

        Each class has its last jobs, each of which counts its decay to the power of those that ended after it, and four
        that are those of the wider class. The widest one has four that took their walltime.
        """
        known = self._shares.get(kind)
        if known is None:
            values, weights = [np.ones(1)], [np.ones(1)]
            for name in kind.classes():
                of_class = self._classes.get(name)
                if of_class is None:
                    continue
                own = of_class.decay ** np.arange(len(of_class.shares) - 1, -1, -1, dtype=np.float64)
                count = float(own.sum())
                weights = [each * (_PRIOR / (count + _PRIOR)) for each in weights]
                values.append(np.array(of_class.shares, dtype=np.float64))
                weights.append(own / (count + _PRIOR))
            all_values, all_weights = np.concatenate(values), np.concatenate(weights)
            order = np.argsort(all_values, kind="stable")
            chances = np.cumsum(all_weights[order])
            known = self._shares[kind] = Shares(all_values[order], chances / chances[-1])
        return known

    def quantiles(self, kind: Kind, levels: Floats, *, ran: int = 0) -> NDArray[np.int64]:
        """Return quantiles of the runtime of a job that has run for some seconds: between these and its walltime."""
        shares = self.shares(kind).at(np.asarray(levels, dtype=np.float64), beyond=ran / kind.walltime)
        found = np.minimum(np.rint(shares * kind.walltime), kind.walltime).astype(np.int64)
        return np.maximum(found, ran + 1)

    def enough(self, kind: Kind) -> int | None:
        """Return within how many seconds, in whole minutes, 95 % of like jobs end; None: not before the walltime."""
        found = math.ceil(self.quantiles(kind, _ENOUGH)[0] / 60) * 60
        return found if found < kind.walltime else None
