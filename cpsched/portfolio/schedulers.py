"""All schedulers of simulations by their names: rules, and engines that plan one window after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from cpsched.policies import POLICIES, SCHEDULERS, VARIANTS, EvolvingOnline, scheduler_from
from cpsched.portfolio.online import make_engine_scheduler
from cpsched.portfolio.online_rule import make_online_portfolio
from cpsched.portfolio.teams import ENGINES
from cpsched.sim import QueueRule, Scheduler

__all__ = ["ALL_SCHEDULERS", "label_of", "make_any_scheduler", "parameter_text"]

#: The rules for windows that have no counterpart for streams of jobs.
_WSPT = "wspt_list"
#: The factory of each scheduler, with its parameters as keywords.
ALL_SCHEDULERS: dict[str, Callable[..., QueueRule | Scheduler]] = SCHEDULERS | {
    **{variant.name: partial(EvolvingOnline, variant) for variant in VARIANTS},
    **{
        engine: partial(make_engine_scheduler, engine)
        for engine in ENGINES
        if engine == _WSPT or engine not in POLICIES
    },
    "portfolio": make_online_portfolio,
}


def make_any_scheduler(name: str, parameters: Mapping[str, object]) -> QueueRule | Scheduler:
    """Make a scheduler.

    Raises
    ------
    DocumentError
        With all faults: an unknown name, and parameters that the scheduler does not have.
    """
    return scheduler_from(ALL_SCHEDULERS, name, parameters)


def label_of(name: str, parameters: Mapping[str, object]) -> str:
    """Return a scheduler's name with its parameters, in alphabetical order: ``sjf backfill=easy``.

    The same scheduler has the same label in every command, as a heading, a row of a table or a folder.
    """
    return " ".join([name, *(f"{key}={parameter_text(value)}" for key, value in sorted(parameters.items()))])


def parameter_text(value: object) -> str:
    """Write the value of a parameter as in TOML, but texts without quotes, and none as ``-``."""
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case Mapping():
            return "{" + ", ".join(f"{key}={parameter_text(inner)}" for key, inner in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(parameter_text, value)) + "]"
    return str(value)
