"""The schedulers of a simulation by their names, and their parameters from the command line."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cpsched.sim import QueueRule, Scheduler

__all__ = ["Contender", "contenders", "echo_schedulers", "read_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A scheduler with the parameters that it was given."""

    name: str
    parameters: Mapping[str, Any]
    scheduler: QueueRule | Scheduler

    @property
    def words(self) -> str:
        """The name and the parameters: ``maui depth=4``."""
        return " ".join([self.name, *(f"{key}={value!r}" for key, value in sorted(self.parameters.items()))])


def read_settings(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, Any]:
    """Return ``key=value`` pairs as parameters; values are written as in TOML, texts also without quotes."""
    settings: dict[str, Any] = {}
    for text in values:
        key, is_pair, value = text.partition("=")
        if not (is_pair and key.isidentifier()):
            raise click.BadParameter(f"Expected KEY=VALUE, got {text!r}.", ctx, param)
        if key in settings:
            raise click.BadParameter(f"Expected each key once, got {key!r} twice.", ctx, param)
        settings[key] = _value(value)
    return settings


def _value(text: str) -> object:
    """Return what a value means in TOML; what means nothing there is a text."""
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if len(found) == 1 else text


def contenders(names: Sequence[str], settings: Mapping[str, Any]) -> tuple[Contender, ...]:
    """Make the schedulers; a parameter goes to all that take it.

    Raises
    ------
    DocumentError
        If a scheduler does not exist, or refuses its parameters.
    UsageError
        If a name stands twice, or nobody takes a parameter.
    """
    from cpsched.portfolio import ALL_SCHEDULERS, make_any_scheduler

    if len(set(names)) < len(names):
        raise click.UsageError(f"Expected each policy once, got {', '.join(names)}.")
    if len(names) == 1:  # then the scheduler itself says what is wrong with a parameter
        return (Contender(name=names[0], parameters=settings, scheduler=make_any_scheduler(names[0], settings)),)
    made = []
    for name in names:
        takes = _parameters(ALL_SCHEDULERS[name]) if name in ALL_SCHEDULERS else {}
        chosen = {key: value for key, value in settings.items() if key in takes}
        made.append(Contender(name=name, parameters=chosen, scheduler=make_any_scheduler(name, chosen)))
    unused = [key for key in settings if not any(key in contender.parameters for contender in made)]
    if unused:
        raise click.UsageError(f"None of {', '.join(names)} takes {', '.join(unused)}.")
    return tuple(made)


def _parameters(factory: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(factory).parameters


def echo_schedulers() -> None:
    """Print the names of all schedulers, each with its parameters and their defaults."""
    from cpsched.portfolio import ALL_SCHEDULERS

    width = max(map(len, ALL_SCHEDULERS))
    for name, factory in ALL_SCHEDULERS.items():
        defaults = [f"{key}={_said(parameter.default)}" for key, parameter in _parameters(factory).items()]
        click.echo(f"{name:<{width}}  {' '.join(defaults)}".rstrip())


def _said(value: object) -> str:
    """Write a value as ``--set`` reads it, and none as ``-``."""
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
