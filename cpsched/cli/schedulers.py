"""The schedulers of a simulation by their names, and their parameters from the command line."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.lab.sim import QueueRule, Scheduler


#: A scheduler's name, and the parameters that it alone is given.
Asked = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A scheduler with the parameters that it was given."""

    name: str
    parameters: Mapping[str, Any]
    scheduler: QueueRule | Scheduler

    @property
    def label(self) -> str:
        """The name and the parameters: ``maui depth=4``."""
        from cpsched.lab.policies import label_of

        return label_of(self.name, self.parameters)


def read_policies(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> list[Asked]:
    """Read ``NAME``, or ``NAME KEY=VALUE ...`` with parameters of this policy alone."""
    asked = []
    for text in values:
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise click.BadParameter(f"Expected NAME [KEY=VALUE ...], got {text!r}: {error}.", ctx, param) from None
        if not words:
            raise click.BadParameter(f"Expected NAME [KEY=VALUE ...], got {text!r}.", ctx, param)
        name, *pairs = words
        asked.append((name, read_settings(ctx, param, pairs)))
    return asked


def read_settings(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, Any]:
    """Return ``key=value`` pairs as parameters; values are written as in TOML, texts also without quotes."""
    settings: dict[str, Any] = {}
    for text in values:
        key, is_pair, value = text.partition("=")
        if not (is_pair and key.isidentifier()):
            raise click.BadParameter(f"Expected KEY=VALUE, got {text!r}.", ctx, param)
        if key in settings:
            raise click.BadParameter(f"Expected each key once, got {key!r} twice.", ctx, param)
        settings[key] = _value(key, value)
    return settings


def _value(key: str, text: str) -> object:
    """Return a value parsed as TOML; a text if it is not valid TOML."""
    import tomllib  # most policies have no parameters

    from cpsched.formats import parse_toml

    try:
        found = parse_toml(f"value = {text}", printable(key))
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if len(found) == 1 else text


def contenders(asked: Sequence[Asked]) -> tuple[Contender, ...]:
    """Make the schedulers.

    Raises `DocumentError` if a scheduler does not exist, or refuses its parameters; `UsageError` if two are the same.
    """
    from cpsched.lab.policies import make_scheduler

    made = tuple(Contender(name=name, parameters=own, scheduler=make_scheduler(name, own)) for name, own in asked)
    labels = [contender.label for contender in made]
    if len(set(labels)) < len(labels):
        raise click.UsageError(f"Expected each policy once, got {', '.join(labels)}.")
    return made


def echo_schedulers() -> None:
    """Print the names of all schedulers, each with its parameters and their defaults."""
    from cpsched.errors import DocumentError
    from cpsched.lab.policies import factory_of, scheduler_names

    names = scheduler_names()
    width = max(map(len, names))
    for name in names:
        try:
            factory = factory_of(name)
            parameters = {} if factory is None else inspect.signature(factory).parameters
            words = " ".join(map(_in_words, parameters.values()))
        except DocumentError as error:  # one of another distribution
            words = printable(f"({error.faults[0].message})")
        click.echo(f"{printable(name):<{width}}  {words}".rstrip())


def _in_words(parameter: inspect.Parameter) -> str:
    from cpsched.lab.policies import parameter_text

    has_default = parameter.default is not inspect.Parameter.empty
    return printable(f"{parameter.name}={parameter_text(parameter.default)}" if has_default else parameter.name)
