"""All on-line schedulers by name, rules and engines, and what makes one of a name and parameters."""

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import partial
from inspect import Parameter
from types import UnionType
from typing import get_args

from cpsched.arguments import at_the_door, plain_argument
from cpsched.domain import FrozenMap
from cpsched.doors import later
from cpsched.errors import DocumentError, Fault
from cpsched.lab.policies.queue_rules import QUEUE_RULES, always
from cpsched.lab.sim import QueueRule, Scheduler
from cpsched.portfolio import ENGINE_GROUP, POLICY_GROUP, announced, is_engine, load_outside
from cpsched.text import did_you_mean

#: The modules of this room, and the factories there, of rules with schedulers of their own: a rule loads no other.
_OWN = {
    "conservative": ("conservative", "Conservative"),
    "conservative_on_nodes": ("conservative", "ConservativeOnNodes"),
    "maui": ("maui", "maui"),
    "pbs_fifo_starve": ("queue_rules", "pbs_fifo_starve"),
    "slurm": ("slurm", "Slurm"),
    "static_backfill": ("sd", "StaticBackfill"),
    **{name: ("sd", name) for name in ("sd_5", "sd_10", "sd_50", "sd_inf", "sd_dyn", "malleable_value")},
    **{f"malleable_{name}": ("resizing", f"malleable_{name}") for name in ("min", "pref", "keep", "avg")},
    "malleable_gain": ("resizing", "Gain"),
}
#: The names of our rules but those for evolving jobs.
SCHEDULERS = (*QUEUE_RULES, *_OWN)
#: Schedulers that are processes of others. They need more than a name, and are not in `scheduler_names`.
_OUTSIDE = {"batsim": ("batsim", "Batsim")}

#: The kinds of parameters that are given by name.
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

#: Values that TOML lacks, or that Python writes in another way.
_TEXTS = {"none": None, "true": True, "false": False}


def scheduler_names() -> tuple[str, ...]:
    """Return the names of all schedulers: ours, and those that other distributions announce, engines too."""
    from cpsched.rules import VARIANTS

    ours = (*SCHEDULERS, *(variant.name for variant in VARIANTS), *_engines())
    return tuple(dict.fromkeys((*ours, *announced(POLICY_GROUP), *announced(ENGINE_GROUP))))


def _engines() -> tuple[str, ...]:
    """Return the engines, and the rule for windows without an on-line form, which plan one window after the other."""
    from cpsched.portfolio import ENGINES
    from cpsched.rules import POLICIES

    return tuple(engine for engine in ENGINES if engine == "wspt_list" or engine not in POLICIES)


def factory_of(name: str) -> Callable[..., QueueRule | Scheduler] | None:
    """Return the function that makes a scheduler, with its parameters as keywords; None where there is none.

    `name`: one of `scheduler_names`, or ``module:name``: of a class or a function that makes a scheduler, of a
    `QueueRule`, or of an engine, which then plans one window after the other. Raises `DocumentError` if one from
    outside cannot be loaded, or is nothing of this.
    """
    if name in QUEUE_RULES:
        return QUEUE_RULES[name]
    if (own := (_OWN | _OUTSIDE).get(name)) is not None:
        made: Callable[..., QueueRule | Scheduler] = later(f"lab.policies.{own[0]}", own[1])
        return made
    # what these and engines need is not there for other rules
    from cpsched.lab.policies.engine_scheduler import make_engine_scheduler, make_online_portfolio
    from cpsched.lab.policies.evolving_online import EvolvingOnline
    from cpsched.rules import VARIANTS

    for variant in VARIANTS:
        if variant.name == name:
            return partial(EvolvingOnline, variant)
    if name in _engines():
        return make_online_portfolio if name == "portfolio" else partial(make_engine_scheduler, name)
    found = load_outside(name, POLICY_GROUP, ENGINE_GROUP)
    if isinstance(found, QueueRule):
        return always(found)
    if is_engine(found):
        return partial(make_engine_scheduler, name)
    if found is not None and not callable(found):
        message = "Expected a QueueRule, or a class or function that makes a scheduler"
        raise DocumentError(f"scheduler {name}", [Fault("", f"{message}, got {type(found).__name__}")])
    return found


@at_the_door
def make_scheduler(name: str, parameters: Mapping[str, object] = FrozenMap()) -> QueueRule | Scheduler:
    """Make a scheduler by its name, see `factory_of`, with these parameters, and defaults for all others.

    Raises
    ------
    DocumentError
        With all faults: an unknown name, parameters that the scheduler does not have, and what is no scheduler.
    """
    factory = factory_of(name)
    if factory is None:
        known = scheduler_names()
        hint = did_you_mean(name, known) or f" (known: {', '.join(known)})"
        raise DocumentError("scheduler", [Fault("", f"Expected a scheduler, got {name!r}{hint}")])
    made = _scheduler_from(factory, name, parameters)
    decides = all(callable(getattr(made, method, None)) for method in ("begin", "decide"))
    if not isinstance(made, QueueRule) and not (decides and isinstance(getattr(made, "name", None), str)):
        message = "Expected it to make a QueueRule, or a scheduler with a name and the methods begin and decide"
        raise DocumentError(f"scheduler {name}", [Fault("", f"{message}, got {type(made).__name__}")])
    return made


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


def _scheduler_from(
    factory: Callable[..., QueueRule | Scheduler], name: str, parameters: Mapping[str, object]
) -> QueueRule | Scheduler:
    """Make a scheduler by a function. Raises `DocumentError` with everything that is wrong."""
    taken, faults = checked_parameters(factory, parameters)
    if not faults:
        try:
            return factory(**taken)
        except ValueError as error:
            faults.append(Fault("", str(error)))
    raise DocumentError(f"scheduler {name}", faults)


def checked_parameters(
    factory: Callable[..., object], parameters: Mapping[str, object], *, given: Collection[str] = ()
) -> tuple[dict[str, object], list[Fault]]:
    """Return the parameters of a function, whose annotations say what they may be, and all that is wrong with them.

    `given`: what the function gets from elsewhere.
    """
    try:
        known = inspect.signature(factory, eval_str=True).parameters
    except (NameError, TypeError, SyntaxError, AttributeError):  # from outside: annotations that cannot be read
        known = inspect.signature(factory).parameters
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in known.values())
    named = {key: one for key, one in known.items() if one.kind in _NAMED and key not in given}
    faults, taken = list[Fault](), dict[str, object]()
    for key, value in parameters.items():
        if key not in named and not takes_any:
            takes = ", ".join(named) or "none"
            faults.append(Fault(key, f"unknown parameter{did_you_mean(key, named)} (known: {takes})"))
            continue
        taken[key] = value
        if key in named:
            try:
                taken[key] = _value_of(value, named[key].annotation)
            except ValueError as error:
                faults.append(Fault(key, str(error)))
    missing = [key for key in named if named[key].default is Parameter.empty and key not in parameters]
    faults += [Fault(key, "Expected a value, got none: this parameter has no default") for key in missing]
    return taken, faults


def _value_of(value: object, hint: object) -> object:
    """Return a parameter as its annotation says; ``none``, ``true`` and ``false`` where no text is expected, too.

    Raises `ValueError` if it is nothing of this.
    """
    if hint is Parameter.empty or isinstance(hint, str):
        return value  # what is not annotated, or by what cannot be read, is for the scheduler to check
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if isinstance(value, str) and value.lower() in _TEXTS and str not in kinds:
        meant = _TEXTS[value.lower()]
        value = meant if type(meant) in kinds else value
    return plain_argument(value, hint)
