"""Jobs that may be stopped for others, and who may stop them."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from graphlib import TopologicalSorter
from typing import Annotated

from cpsched.domain.annotations import Count, Duration, Key, Name, Seconds
from cpsched.domain.frozen import FrozenMap


class StopKind(StrEnum):
    """What becomes of the work of a job that is stopped."""

    #: It is lost: the job begins anew.
    REQUEUE = "requeue"
    #: The job continues from its last checkpoint.
    CHECKPOINT = "checkpoint"
    #: The job keeps its nodes and all on them but its cores, and continues there.
    SUSPEND = "suspend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemptible:
    """That a job may be stopped, and what it keeps of its work then."""

    by: Annotated[
        StopKind,
        Key(
            "requeue: its work is lost; checkpoint: it continues from its last checkpoint; "
            "suspend: it lends its cores and continues"
        ),
    ]
    #: Both of a job with checkpoints only.
    cost: Annotated[Seconds, Key("Seconds that it takes to write a checkpoint, and to begin from one")] = 0
    interval: Annotated[Duration | None, Key("Seconds of a run from one checkpoint to the next")] = None

    def kept(self, seconds: int, notice: int) -> int:
        """Return by how many seconds the next run is shorter, after a run that is stopped after some seconds.

        `notice`: how long before it is told; where that is enough for a checkpoint it writes one.
        """
        if self.interval is None:
            return seconds if self.by is StopKind.SUSPEND else 0
        saved = seconds - seconds % self.interval
        if notice >= self.cost:
            saved = max(saved, seconds - self.cost)
        return max(0, saved - self.cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """Whose jobs may be stopped for whose."""

    queues: Annotated[
        FrozenMap[Name, tuple[Name, ...]],
        Key("The queues whose jobs the jobs of a queue may stop; default: those of lower priority"),
    ] = FrozenMap()
    stops: Annotated[Count | None, Key("How often a job may be stopped at most; default: any number of times")] = None
    notice: Annotated[Seconds, Key("Seconds from telling a job to its stop")] = 0
    exempt: Annotated[Seconds, Key("Seconds for which a job has run before it may be stopped")] = 0
    resume: Annotated[bool, Key("Whether a job with checkpoints that its walltime ends comes again and continues")] = (
        False
    )

    def among(self, names: Collection[str | None]) -> "Preemption | None":
        """Return the rules about some queues; None where there are none."""
        if not self.queues:
            return self
        named = {high: tuple(low for low in lows if low in names) for high, lows in self.queues.items()}
        named = {high: lows for high, lows in named.items() if lows and high in names}
        return replace(self, queues=FrozenMap(named)) if named else None

    def levels(self) -> dict[str, int]:
        """Return how far above others each queue is: 0 of those that may stop none."""
        levels: dict[str, int] = {}
        for name in TopologicalSorter(self.queues).static_order():
            levels[name] = 1 + max((levels[below] for below in self.queues.get(name, ())), default=-1)
        return levels
