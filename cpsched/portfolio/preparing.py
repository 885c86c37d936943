"""Compiling and loading what engines need, before the seconds of a budget count."""

from __future__ import annotations

from functools import cache

from cpsched import search
from cpsched.arguments import Workers, at_the_door
from cpsched.planner import warmup_evolving
from cpsched.portfolio.teams import first_of, team_of


@at_the_door
def prepare(
    engine: str = "portfolio",
    *,
    workers: Workers = 2,
    solver: str = "gecode",
    changing: bool = True,
    linked: bool = True,
) -> None:
    """Compile or load the kernels and programs of an engine now, so that its first plan need not do it.

    Parameters
    ----------
    engine, workers, solver
        As `solve` has them.
    changing
        Whether there will be evolving or malleable jobs, whose kernels take as long again.
    linked
        Whether there will be jobs that wait for others, for which the search has more kernels.

    Raises
    ------
    EngineError
        If there is no such engine, or if something that it needs is not installed.
    ValueError
        If an argument is not what its type says.
    """
    _prepare(engine, workers, solver)
    if changing:
        _prepare_changing()
    if linked and engine in ("portfolio", "search"):
        _prepare_linked()


@cache
def prepare_first(engine: str, *, changing: bool) -> None:
    """Compile or load what the first plan of an engine needs, once in a process."""
    first_of(engine).prepare()
    if changing:
        warmup_evolving()


@cache
def _prepare(engine: str, workers: int, solver: str) -> None:
    """Compile or load what an engine needs, once in a process."""
    team_of(engine, workers=workers, solver=solver).prepare()


@cache
def _prepare_changing() -> None:
    """Compile or load what evolving and malleable jobs need besides, once in a process."""
    warmup_evolving()
    search.warm_up_changing_search()


@cache
def _prepare_linked() -> None:
    """Compile or load what jobs that wait for each other need besides, once in a process."""
    search.warm_up_breeding()
