"""All on-line schedulers by name, and what makes one of a name and parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from inspect import Parameter
from types import NoneType, UnionType
from typing import Literal, get_args, get_origin

from cpsched.errors import DocumentError, Fault
from cpsched.policies.conservative import Conservative, ConservativeOnNodes
from cpsched.policies.maui import maui
from cpsched.policies.pbs_fifo_starve import pbs_fifo_starve
from cpsched.policies.queue_rules import QUEUE_RULES
from cpsched.policies.sd import malleable_value, sd_5, sd_10, sd_50, sd_dyn, sd_inf, static_backfill
from cpsched.policies.slurm import slurm
from cpsched.sim import QueueRule, Scheduler

__all__ = ["SCHEDULERS", "make_scheduler", "scheduler_from", "unknown_scheduler"]

#: The factory of each scheduler, with its parameters as keywords; a wrong one is refused with a `ValueError`.
SCHEDULERS: dict[str, Callable[..., QueueRule | Scheduler]] = {
    **QUEUE_RULES,
    "conservative": Conservative,
    "conservative_on_nodes": ConservativeOnNodes,
    "maui": maui,
    "pbs_fifo_starve": pbs_fifo_starve,
    "slurm": slurm,
    "static_backfill": static_backfill,
    "sd_5": sd_5,
    "sd_10": sd_10,
    "sd_50": sd_50,
    "sd_inf": sd_inf,
    "sd_dyn": sd_dyn,
    "malleable_value": malleable_value,
}

#: The kinds of parameters that are given by name.
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

_WORDS: dict[object, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a text",
    NoneType: "none",
}


def make_scheduler(name: str, **parameters: object) -> QueueRule | Scheduler:
    """Make a scheduler.

    Parameters
    ----------
    name
        A key of `SCHEDULERS`.
    **parameters
        What the scheduler takes; each has a default.

    Raises
    ------
    DocumentError
        With everything that is wrong: a name that no scheduler has, and parameters that it does not take.
    """
    if name not in SCHEDULERS:
        raise unknown_scheduler(name, SCHEDULERS)
    return scheduler_from(SCHEDULERS[name], name, parameters)


def unknown_scheduler(name: str, known: Iterable[str]) -> DocumentError:
    """Return the error that no scheduler has a name, with a known one that is near."""
    return DocumentError("scheduler", [Fault("", f"Expected a scheduler, got {name!r}{_hint(name, known)}")])


def scheduler_from(
    factory: Callable[..., QueueRule | Scheduler], name: str, parameters: Mapping[str, object]
) -> QueueRule | Scheduler:
    """Make a scheduler by a function, whose annotations say what its parameters may be.

    Raises
    ------
    DocumentError
        With everything that is wrong.
    """
    known = _parameters_of(factory)
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in known.values())
    named = {key: parameter for key, parameter in known.items() if parameter.kind in _NAMED}
    faults = []
    for key, value in parameters.items():
        if key not in named and not takes_any:
            takes = ", ".join(named) or "none"
            faults.append(Fault(key, f"unknown parameter{_hint(key, named)} (known: {takes})"))
        elif key in named and not _fits(value, named[key].annotation):
            faults.append(Fault(key, f"Expected {_in_words(named[key].annotation)}, got {value!r}"))
    missing = [key for key in named if named[key].default is Parameter.empty and key not in parameters]
    faults += [Fault(key, "Expected a value, got none: this parameter has no default") for key in missing]
    if not faults:
        try:
            return factory(**parameters)
        except ValueError as error:
            faults.append(Fault("", str(error)))
    raise DocumentError(f"scheduler {name}", faults)


def _parameters_of(factory: Callable[..., object]) -> Mapping[str, Parameter]:
    """Return the parameters of a function or class; of one from outside, annotations that cannot be read stay texts."""
    try:
        return inspect.signature(factory, eval_str=True).parameters
    except (NameError, TypeError, SyntaxError, AttributeError):
        return inspect.signature(factory).parameters


def _hint(word: str, known: Iterable[str]) -> str:
    """Return ``, did you mean X?``, or nothing where no known word is near."""
    near = get_close_matches(word, list(known), n=1)
    return f", did you mean {near[0]}?" if near else ""


def _choices(hint: object) -> tuple[object, ...]:
    """Return the types or values, one of which a parameter has to be."""
    return get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Literal else (hint,)


def _fits(value: object, hint: object) -> bool:
    """Return whether a value is what a parameter's annotation says."""
    choices = _choices(hint)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if hint is Parameter.empty or isinstance(hint, str):
        return True  # what is not annotated, or by what cannot be read, is for the scheduler to check
    is_nested = any(isinstance(value, kind) for kind in map(get_origin, choices) if isinstance(kind, type))
    return is_nested or value in choices or type(value) in choices or (is_number and float in choices)


def _in_words(hint: object) -> str:
    """Return an annotation in words."""
    return " or ".join(_WORDS.get(choice, str(choice)) for choice in _choices(hint))
