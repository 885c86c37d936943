"""`SolveParams`: all that decides how a window is solved, apart from the window."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, get_type_hints

from cpsched.arguments import Seconds, Seed, Steps, Workers, plain_argument
from cpsched.domain.annotations import Key, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveParams:
    """How `solve` was called. With the same figures it makes the same plan if no clock decides: with no budget, or with
    `steps` that are done before the budget ends.

    Raises `ValueError` if a figure is not what its type says, or out of its limits; or there are `steps` of another
    engine than search.
    """

    engine: Annotated[Name, Key("One of the engines", is_always=True)] = "portfolio"
    budget: Annotated[Seconds, Key("Seconds, without those that check and compile", is_always=True)] = 10.0
    seed: Annotated[Seed, Key(is_always=True)] = 0
    workers: Annotated[Workers, Key("The number of CPU cores to use", is_always=True)] = 2
    bound: Annotated[Seconds, Key("Seconds, after the budget, for proving a bound", is_always=True)] = 0.0
    solver: Annotated[Name, Key("The MiniZinc solver, of the engine minizinc only", is_always=True)] = "gecode"

    steps: Annotated[Steps | None, Key("Steps after which the engine search ends, on one core")] = None

    def __post_init__(self) -> None:
        """Check the figures."""
        hints = get_type_hints(type(self), include_extras=True)
        for one in fields(self):
            object.__setattr__(self, one.name, plain_argument(getattr(self, one.name), hints[one.name], name=one.name))
        if self.steps is not None and self.engine != "search":
            raise ValueError(f"steps: Expected the engine 'search' beside a number of steps, got {self.engine!r}")
