"""Options of policies: those that pages and ``--list-policies`` name work as they name them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import click
import pytest

from cpsched.cli.schedulers import contenders, read_policies
from cpsched.cli.simulate import command
from cpsched.errors import DocumentError
from cpsched.lab.policies import factory_of, parameter_text, scheduler_names
from cpsched.lab.sim import Order

DOCS = Path(__file__).parents[2] / "docs"
PARAMETER = next(option for option in command.params if option.name == "policies")


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a policy."""
    factory = factory_of(name)
    assert factory is not None
    return dict(inspect.signature(factory, eval_str=True).parameters)


def made(text: str) -> Any:
    """Return the policy that ``--policy TEXT`` makes."""
    asked = read_policies(click.Context(command), PARAMETER, [text])
    (contender,) = contenders(asked)
    return contender


def choices(hint: Any) -> Iterator[str]:
    """Yield the values that an annotation names: those of a `Literal`, and none."""
    if get_origin(hint) is Literal:
        yield from map(str, get_args(hint))
    elif NoneType in get_args(hint):
        yield "none"


NAMED = [
    f"{name} {key}={text}"
    for name in scheduler_names()
    for key, one in parameters_of(name).items()
    for text in dict.fromkeys((parameter_text(one.default), *choices(one.annotation)))
]


@pytest.mark.parametrize("text", NAMED)
def test_a_named_value_is_taken(text: str) -> None:
    """A default is taken as ``--list-policies`` prints it, and each value that a parameter names; the label has it."""
    contender = made(text)
    assert contender.label == text


def documented() -> Iterator[tuple[str, str]]:
    """Yield a page, and an option of a policy that it names in backticks."""
    known = {key for name in scheduler_names() for key in parameters_of(name)}
    for page in sorted(DOCS.rglob("*.md")):
        if page.name in ("daemon.md", "slurm.md", "benchmarks.md"):  # those of other software
            continue
        for pair in re.findall(r"[`' ]([a-z_]+=[A-Za-z0-9_.]+)[`' ]", page.read_text(encoding="utf-8")):
            if pair.partition("=")[0] in known:
                yield page.name, pair


@pytest.mark.parametrize(("page", "pair"), sorted(set(documented())))
def test_an_option_of_a_page_is_taken(page: str, pair: str) -> None:
    """A policy takes the value that a page gives to its option; another one may have an option of the same name."""
    key = pair.partition("=")[0]
    faults = []
    for name in scheduler_names():
        if key in parameters_of(name):
            try:
                made(f"{name} {pair}")
            except DocumentError as error:
                faults.append(str(error))
            else:
                return
    pytest.fail(f"{page}: no policy takes {pair}: {faults}")


def test_pages_name_options() -> None:
    """Else the test above would test nothing."""
    pairs = {pair for _, pair in documented()}
    assert {"due_after=5", "gate=2", "backfill=easy", "depth=16"} <= pairs


def test_values_are_what_they_say() -> None:
    """None, true and false are no texts, as TOML or as Python writes them; where a text is expected they are texts."""
    assert made("smith due_after=none").scheduler.due_after is None
    assert made("smith gate=None").scheduler.gate is None
    assert made("pbs_fifo_starve sort_by=none").scheduler.order is Order.SUBMISSION
    for text in ("false", "False"):
        assert made(f"pbs_fifo_starve help_starving_jobs={text}").scheduler.max_starve is None
    with pytest.raises(DocumentError, match="due_after: Expected a number or None, got 'soon'"):
        made("smith due_after=soon")
