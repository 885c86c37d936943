"""Checks of the parameters that a campaign gives to generators; those of schedulers are checked by making them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import get_type_hints

from cpsched.formats import Faults, Location, shown

#: The TOML values for a generator's parameters of these types; all other parameters are lists of texts.
_NUMBERS: dict[object, tuple[type[object], ...]] = {int: (int,), float: (int, float), bool: (bool,)}
_WORDS = {int: "an integer", float: "a number", bool: "true or false"}


def refuse_generator_parameters(
    faults: Faults, at: Location, generator: Callable[..., object], parameters: Mapping[str, object]
) -> None:
    """Record the faults of a generator's parameters, which are `at` a location; its seed is the campaign's."""
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
    """Return whether a value of TOML is of an annotated type."""
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and (hint is bool or not isinstance(value, bool))
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
