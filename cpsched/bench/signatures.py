"""Whether a generator takes the parameters that a campaign gives it; schedulers are asked by making them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import get_type_hints

from cpsched.formats import Faults, Location, shown

__all__ = ["refuse_generator_parameters"]

#: What a generator's parameters of these types are given as; all others are lists of texts.
_NUMBERS: dict[object, tuple[type[object], ...]] = {int: (int,), float: (int, float), bool: (bool,)}
_WORDS = {int: "an integer", float: "a number", bool: "true or false"}


def refuse_generator_parameters(
    faults: Faults, at: Location, generator: Callable[..., object], parameters: Mapping[str, object]
) -> None:
    """Note what is wrong with the parameters `at` a location, which are a generator's; its seed is the campaign's."""
    signature = inspect.signature(generator).parameters
    takes = [name for name in signature if name != "seed"]
    hints = get_type_hints(generator)
    for name, value in parameters.items():
        if name not in takes:
            faults.add_unknown((*at, name), "parameter", name, takes)
        elif not _fits(value, hints[name]):
            expected = _WORDS.get(hints[name], "a list of texts")
            faults.add((*at, name), f"Expected {expected}, got {shown(value)}")
    for name in takes:
        if signature[name].default is inspect.Parameter.empty and name not in parameters:
            faults.add((*at, name), "Expected this parameter, got nothing")


def _fits(value: object, hint: object) -> bool:
    """Tell whether a value of TOML is of an annotated type."""
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and (hint is bool or not isinstance(value, bool))
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
