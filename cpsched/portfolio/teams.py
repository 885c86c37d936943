"""The team of each engine: one engine that makes the first plan, and lanes of solvers that improve it; what they
need is compiled and loaded before the seconds of a budget count.
"""

from dataclasses import dataclass
from functools import cache

from cpsched import cp, mzn, rules, search
from cpsched.arguments import Workers, at_the_door
from cpsched.domain import Instance
from cpsched.engine import Engine, Improver
from cpsched.errors import EngineError, UnsupportedError
from cpsched.planner import PlannerEngine, warmup_evolving
from cpsched.portfolio.bandit import ByMerit, Member
from cpsched.portfolio.outside import ENGINE_GROUP, announced, outside_engine
from cpsched.rules import POLICIES

#: The engines that begin with the planner's plan.
PLANNER_FIRST = ("portfolio", "planner", "search", "cp", "minizinc")

#: The shares of the time in which a first bound is proven: on a core of many, and on the only one.
_QUICK, _QUICK_ALONE = 0.1, 0.03
#: The share in which a worker proves a better one on a core of many. It needs a second of a core before it begins, and
#: three seconds on a busy machine: shorter shares go to the search.
_BETTER, _LEAST_ANEW = 0.16, 3.0


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

        Raises `UnsupportedError` with the features of the instance that are not supported, each with its path.
        """
        features = self.first.unsupported(instance)
        if not features and self.lanes and not any(self.able(instance)):
            features = self.lanes[0][-1].unsupported(instance)
        if features:
            raise UnsupportedError(engine, features)

    def able(self, instance: Instance) -> tuple[tuple[Improver, ...], ...]:
        """Return the lanes without solvers that cannot honour the instance."""
        return tuple(tuple(one for one in lane if not one.unsupported(instance)) for lane in self.lanes)


def engine_names() -> tuple[str, ...]:
    """Return the names of all engines: ours, and those that other distributions announce."""
    ours = (*PLANNER_FIRST, *rules.POLICIES)
    return (*ours, *(name for name in announced(ENGINE_GROUP) if name not in ours))


def first_of(engine: str) -> Engine:
    """Return what makes the first plan of an engine; solvers and rules that it does not need are not loaded.

    `engine`: as `team_of` has it. Raises `EngineError` if there is no such engine. Raises `DocumentError` if one from
    outside cannot be loaded, or is no engine.
    """
    if engine in PLANNER_FIRST:
        return PlannerEngine()
    if engine in rules.POLICIES:
        return rules.POLICIES[engine]
    outside = outside_engine(engine)
    if outside is None:
        raise EngineError(f"Expected an engine out of {', '.join(engine_names())}, or MODULE:NAME, got {engine!r}")
    return outside


def team_of(engine: str, *, workers: int = 2, solver: str = "gecode", steps: int | None = None) -> Team:
    """Return the team of an engine.

    Raises `EngineError` if there is no such engine. Raises `DocumentError` if one from outside cannot be loaded.

    `engine`: one of `ENGINES`, the name of one that another distribution announces, or ``module:name``. `workers`: the
    number of CPU cores to use. `solver`: the solver for MiniZinc. `steps`: those after which the search ends, on one
    core; None: only the budget ends it.
    """
    return Team(first=first_of(engine), lanes=_lanes_of(engine, workers, solver, steps))


def _lanes_of(engine: str, workers: int, solver: str, steps: int | None) -> tuple[tuple[Improver, ...], ...]:
    match engine:
        case "search" if steps is not None:
            return ((search.Search(steps),),)
        case "search":
            return ((search.ChoiceSearch(), search.Search()),) * workers
        case "cp":
            whole = cp.Cp(workers)
            # lists alone, without steps from one plan to the next
            lists = search.Search(max_steps=0)
            return ((lists, cp.QuickBound(_QUICK_ALONE), whole, _small_bound(), cp.Neighbourhoods()),)
        case "minizinc":
            return ((mzn.MiniZinc(solver),),)
        case "portfolio":
            # a single core proves small windows, if there is time; in larger ones plans are worth more than proofs
            quick = cp.QuickBound(_QUICK)
            bound = cp.LagrangianBound(_BETTER, least_anew=_LEAST_ANEW)
            if workers == 1:
                quick, bound = cp.QuickBound(_QUICK_ALONE), _small_bound()
            last: tuple[Improver, ...] = (quick, cp.Cp(), bound, _rest(is_alone=workers == 1))
            # a search ends before its time where the lists of a project end alike: their length may be proven
            searching = search.ChoiceSearch(), search.Search(), cp.Cp(raises=False)
            return (searching,) * (workers - 1) + (last,)
    return ()


def _small_bound() -> cp.LagrangianBound:
    """Return the bound where only windows of few jobs are worth the time: such plans are found soon."""
    return cp.LagrangianBound(most_jobs=50, least_seconds=0.8)


def _rest(*, is_alone: bool) -> ByMerit:
    """Return the solvers of the lane that has no solver of its own, with their first shares.

    In plain windows the search gains more than CP does, and most in one long turn, in which it cools once: turns for CP
    cost 1 % of the value there. On a single core it is the only search.
    """
    shares = (0.4, 0.2) if is_alone else (0.3, 0.3)
    return ByMerit(
        (Member(search.Search(), plain=1.0, tight=shares[0]), Member(cp.Neighbourhoods(), plain=0.0, tight=shares[1]))
    )


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
        Whether there will be jobs that wait for others, or whose last end counts: the search has more kernels for them.

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


#: Those that begin with the planner's plan, and the rules for windows.
ENGINES = (*PLANNER_FIRST, *POLICIES)
