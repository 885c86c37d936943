"""Whether a generator takes the parameters that a campaign gives it; schedulers are asked by making them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import get_type_hints

from cpsched.bench.fields import Fields
from cpsched.formats import shown

__all__ = ["refuse_generator_parameters"]

#: What a generator's parameters of these types are given as; all others are lists of texts.
_NUMBERS: dict[object, tuple[type[object], ...]] = {int: (int,), float: (int, float), bool: (bool,)}
_WORDS = {int: "an integer", float: "a number", bool: "true or false"}


def refuse_generator_parameters(
    fields: Fields, generator: Callable[..., object], parameters: Mapping[str, object]
) -> None:
    """Note what is wrong with the parameters of a generator; the seed is the campaign's."""
    inside = Fields(parameters, (*fields.location, "parameters"), fields.faults)
    signature = inspect.signature(generator).parameters
    takes = [name for name in signature if name != "seed"]
    hints = get_type_hints(generator)
    for name, value in parameters.items():
        if name not in takes:
            inside.refuse_unknown(name, "parameter", name, takes)
        elif not _fits(value, hints[name]):
            inside.refuse(name, f"Expected {_WORDS.get(hints[name], 'a list of texts')}, got {shown(value)}")
    for name in takes:
        if signature[name].default is inspect.Parameter.empty and name not in parameters:
            inside.refuse(name, "Expected this parameter, got nothing")


def _fits(value: object, hint: object) -> bool:
    """Tell whether a value of TOML is of an annotated type."""
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and (hint is bool or not isinstance(value, bool))
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
