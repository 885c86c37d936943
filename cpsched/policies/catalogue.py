"""All on-line schedulers by name, and what makes one of a name and parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from inspect import Parameter
from types import UnionType
from typing import get_args

from cpsched.arguments import plain_argument
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

#: Values that TOML lacks, or that Python writes in another way.
_TEXTS = {"none": None, "true": True, "false": False}


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
    known = tuple(known)
    hint = _hint(name, known) or f" (known: {', '.join(known)})"
    return DocumentError("scheduler", [Fault("", f"Expected a scheduler, got {name!r}{hint}")])


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
    faults, taken = list[Fault](), dict[str, object]()
    for key, value in parameters.items():
        if key not in named and not takes_any:
            takes = ", ".join(named) or "none"
            faults.append(Fault(key, f"unknown parameter{_hint(key, named)} (known: {takes})"))
            continue
        taken[key] = value
        if key in named:
            try:
                taken[key] = _value_of(value, named[key].annotation)
            except ValueError as error:
                faults.append(Fault(key, str(error)))
    missing = [key for key in named if named[key].default is Parameter.empty and key not in parameters]
    faults += [Fault(key, "Expected a value, got none: this parameter has no default") for key in missing]
    if not faults:
        try:
            return factory(**taken)
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
