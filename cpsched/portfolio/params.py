"""`SolveParams`: all that decides how a window is solved, apart from the window."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self, get_type_hints

from cpsched.arguments import Seconds, Seed, Workers, plain_argument
from cpsched.errors import DocumentError, Fault
from cpsched.formats import load_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveParams:
    """How a window is solved; each figure is checked.

    Raises
    ------
    ValueError
        If one is not what its type says, or out of its limits.
    """

    #: One of `ENGINES`.
    engine: str = "portfolio"
    #: Seconds, not counting those in which the instance is checked and kernels are compiled.
    budget: Seconds = 10.0
    #: The same instance, engine and seed give the same plan, as far as no clock decides.
    seed: Seed = 0
    #: The number of CPU cores to use.
    workers: Workers = 2
    #: Seconds, after the budget, for proving how far the plan can be from the optimum.
    bound: Seconds = 0.0
    #: The MiniZinc solver (engine ``minizinc`` only).
    solver: str = "gecode"

    def __post_init__(self) -> None:
        """Check the figures."""
        hints = get_type_hints(type(self), include_extras=True)
        for one in fields(self):
            plain = plain_argument(getattr(self, one.name), hints[one.name], name=one.name)
            object.__setattr__(self, one.name, plain)

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read the figures from a TOML file, one key each; those that are left out have their defaults.

        Raises
        ------
        DocumentError
            If the file cannot be read, or with everything that is wrong with it.
        """
        document, names = load_toml(path), {one.name for one in fields(cls)}
        faults = []
        for name, value in document.items():
            if name not in names:
                faults.append(Fault(name, f"Expected one of {', '.join(sorted(names))}"))
                continue
            try:
                cls(**{name: value})
            except ValueError as error:
                faults.append(Fault(name, str(error)))
        if faults:
            raise DocumentError(str(path), faults)
        return cls(**document)
