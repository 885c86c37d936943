"""All schedulers of simulations by their names: rules, and engines that plan one window after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from cpsched.arguments import at_the_door
from cpsched.domain import FrozenMap
from cpsched.errors import DocumentError, Fault
from cpsched.policies import POLICIES, SCHEDULERS, VARIANTS, EvolvingOnline, scheduler_from, unknown_scheduler
from cpsched.portfolio.online import make_engine_scheduler
from cpsched.portfolio.online_rule import make_online_portfolio
from cpsched.portfolio.outside import ENGINE_GROUP, POLICY_GROUP, announced, is_engine, load_outside
from cpsched.portfolio.teams import PLANNER_FIRST
from cpsched.sim import QueueRule, Scheduler

__all__ = ["ENGINES", "factory_of", "label_of", "make_any_scheduler", "parameter_text", "scheduler_names"]

#: The engines as users name them.
ENGINES = (*PLANNER_FIRST, *POLICIES)

#: The rules for windows that have no counterpart for streams of jobs.
_WSPT = "wspt_list"
#: The factory of each of our schedulers, with its parameters as keywords.
_SCHEDULERS: dict[str, Callable[..., QueueRule | Scheduler]] = SCHEDULERS | {
    **{variant.name: partial(EvolvingOnline, variant) for variant in VARIANTS},
    **{
        engine: partial(make_engine_scheduler, engine)
        for engine in ENGINES
        if engine == _WSPT or engine not in POLICIES
    },
    "portfolio": make_online_portfolio,
}


def scheduler_names() -> tuple[str, ...]:
    """Return the names of all schedulers: ours, and those that other distributions announce, engines too."""
    others = (*announced(POLICY_GROUP), *announced(ENGINE_GROUP))
    return tuple(dict.fromkeys((*_SCHEDULERS, *others)))


def factory_of(name: str) -> Callable[..., QueueRule | Scheduler] | None:
    """Return the function that makes a scheduler, with its parameters as keywords; None where there is none.

    Parameters
    ----------
    name
        One of `scheduler_names`, or ``module:name``: of a class or a function that makes a scheduler, of a `QueueRule`,
        or of an engine, which then plans one window after the other.

    Raises
    ------
    DocumentError
        If one from outside cannot be loaded, or is nothing of this.
    """
    if name in _SCHEDULERS:
        return _SCHEDULERS[name]
    found = load_outside(name, POLICY_GROUP, ENGINE_GROUP)
    if isinstance(found, QueueRule):
        return partial(_itself, found)
    if is_engine(found):
        return partial(make_engine_scheduler, name)
    if found is not None and not callable(found):
        message = "Expected a QueueRule, or a class or function that makes a scheduler"
        raise DocumentError(f"scheduler {name}", [Fault("", f"{message}, got {type(found).__name__}")])
    return found


def _itself(rule: QueueRule) -> QueueRule:
    """Return a rule that needs no parameters."""
    return rule


@at_the_door
def make_any_scheduler(name: str, parameters: Mapping[str, object] = FrozenMap()) -> QueueRule | Scheduler:
    """Make a scheduler by its name, see `factory_of`, with these parameters, and defaults for all others.

    Raises
    ------
    DocumentError
        With all faults: an unknown name, parameters that the scheduler does not have, and what is no scheduler.
    """
    factory = factory_of(name)
    if factory is None:
        raise unknown_scheduler(name, scheduler_names())
    made = scheduler_from(factory, name, parameters)
    if not isinstance(made, QueueRule) and not _decides(made):
        message = "Expected it to make a QueueRule, or a scheduler with a name and the methods begin and decide"
        raise DocumentError(f"scheduler {name}", [Fault("", f"{message}, got {type(made).__name__}")])
    return made


def _decides(made: object) -> bool:
    """Tell whether an object is a scheduler that can be asked."""
    methods = (getattr(made, "begin", None), getattr(made, "decide", None))
    return isinstance(getattr(made, "name", None), str) and all(map(callable, methods))


def label_of(name: str, parameters: Mapping[str, object]) -> str:
    """Return a scheduler's name with its parameters, in alphabetical order: ``sjf backfill=easy``.

    The same scheduler has the same label in every command, as a heading, a row of a table or a folder.
    """
    return " ".join([name, *(f"{key}={parameter_text(value)}" for key, value in sorted(parameters.items()))])


def parameter_text(value: object) -> str:
    """Write the value of a parameter as in TOML, but texts without quotes, and none as ``none``."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case Mapping():
            return "{" + ", ".join(f"{key}={parameter_text(inner)}" for key, inner in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(parameter_text, value)) + "]"
    return str(value)
