"""All who can schedule a simulation, by their names: rules, and engines that plan one window after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from cpsched.policies import SCHEDULERS, scheduler_from
from cpsched.portfolio.online import make_engine_scheduler
from cpsched.portfolio.teams import ENGINES
from cpsched.sim import QueueRule, Scheduler

__all__ = ["ALL_SCHEDULERS", "make_any_scheduler"]

#: The rule for windows whose place no rule for streams takes.
_WSPT = "policy:wspt"
#: What makes each scheduler, with its parameters as keywords.
ALL_SCHEDULERS: dict[str, Callable[..., QueueRule | Scheduler]] = SCHEDULERS | {
    engine: partial(make_engine_scheduler, engine)
    for engine in ENGINES
    if engine == _WSPT or not engine.startswith("policy:")
}


def make_any_scheduler(name: str, parameters: Mapping[str, object]) -> QueueRule | Scheduler:
    """Make a scheduler.

    Raises
    ------
    DocumentError
        With everything that is wrong: a name that no scheduler has, and parameters that it does not take.
    """
    return scheduler_from(ALL_SCHEDULERS, name, parameters)
