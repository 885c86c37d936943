"""The team of each engine: one engine that makes the first plan, and lanes of solvers that improve it."""

from __future__ import annotations

from dataclasses import dataclass

from cpsched.cp import BoundParams, Cp, CpParams, LagrangianBound, Neighbourhoods
from cpsched.domain import Instance
from cpsched.engine import Engine, Improver
from cpsched.errors import EngineError, UnsupportedError
from cpsched.mzn import MiniZinc, MiniZincParams
from cpsched.planner import PlannerEngine
from cpsched.policies import POLICIES
from cpsched.portfolio.merit import ByMerit, Member
from cpsched.portfolio.outside import ENGINE_GROUP, announced, outside_engine
from cpsched.search import Search, SearchParams

__all__ = ["ENGINES", "Team", "engine_names", "team_of"]

#: The engines as users name them.
ENGINES = ("portfolio", "planner", "search", "cp", "minizinc", *POLICIES)

#: The most jobs of a window for which a single core, or engine cp, spends some of its time on this bound: such plans
#: are found soon.
_SMALL = BoundParams(most_jobs=50, least_seconds=0.8)
#: The solvers of the lane that has no solver of its own, with their first shares: on a single core, and beside the
#: search on others. In plain windows the search gains more than CP does, and most in one long turn, in which it cools
#: once: turns for CP cost 1 % of the value there.
_ALONE = (Member(Search(), plain=1.0, tight=0.4), Member(Neighbourhoods(), plain=0.0, tight=0.2))
_BESIDE = (Member(Search(), plain=1.0, tight=0.3), Member(Neighbourhoods(), plain=0.0, tight=0.3))
#: Lists alone, without steps from one plan to the next.
_LISTS = SearchParams(max_steps=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """The engine that makes the first plan, and the solvers that improve it."""

    first: Engine
    #: One lane for each core; the solvers of a lane work one after the other, the lanes in parallel.
    lanes: tuple[tuple[Improver, ...], ...] = ()

    def prepare(self) -> None:
        """Compile or load the needs of all members, so that no budget pays for it."""
        self.first.prepare()
        for lane in self.lanes:
            for improver in lane:
                improver.prepare()

    def check(self, instance: Instance, engine: str) -> None:
        """Refuse an instance that the first engine, or every solver that could improve its plan, cannot honour.

        Raises
        ------
        UnsupportedError
            With the features of the instance that are not supported, each with its path.
        """
        features = self.first.unsupported(instance)
        if not features and self.lanes and not any(self.able(instance)):
            features = self.lanes[0][0].unsupported(instance)
        if features:
            raise UnsupportedError(engine, features)

    def able(self, instance: Instance) -> tuple[tuple[Improver, ...], ...]:
        """Return the lanes without solvers that cannot honour the instance."""
        return tuple(tuple(one for one in lane if not one.unsupported(instance)) for lane in self.lanes)


def engine_names() -> tuple[str, ...]:
    """Return the names of all engines: ours, and those that other distributions announce."""
    return (*ENGINES, *(name for name in announced(ENGINE_GROUP) if name not in ENGINES))


def team_of(engine: str, *, workers: int = 2, solver: str = "gecode") -> Team:
    """Return the team of an engine.

    Parameters
    ----------
    engine
        One of `ENGINES`, the name of one that another distribution announces, or ``module:name``.
    workers
        The number of CPU cores to use.
    solver
        The solver for MiniZinc.

    Raises
    ------
    EngineError
        If there is no such engine.
    DocumentError
        If one from outside cannot be loaded, or is no engine.
    """
    if engine in POLICIES:
        return Team(first=POLICIES[engine])
    search: tuple[Improver, ...] = (Search(),)
    # a single core proves small windows, if there is time; in larger ones plans are worth more than proofs
    bound = LagrangianBound() if workers > 1 else LagrangianBound(_SMALL)
    last: tuple[Improver, ...] = (Cp(), bound, ByMerit(_ALONE if workers == 1 else _BESIDE))
    lanes: dict[str, tuple[tuple[Improver, ...], ...]] = {
        "planner": (),
        "search": (search,) * workers,
        "cp": ((Search(_LISTS), Cp(CpParams(workers=workers)), LagrangianBound(_SMALL), Neighbourhoods()),),
        "minizinc": ((MiniZinc(MiniZincParams(solver=solver)),),),
        "portfolio": (search,) * (workers - 1) + (last,),
    }
    if engine in lanes:
        return Team(first=PlannerEngine(), lanes=lanes[engine])
    outside = outside_engine(engine)
    if outside is None:
        raise EngineError(f"Expected an engine out of {', '.join(engine_names())}, or MODULE:NAME, got {engine!r}")
    return Team(first=outside)
