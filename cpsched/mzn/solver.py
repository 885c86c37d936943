"""The border to MiniZinc: its package, its program, its solvers, and its statuses, which become ours here."""

import asyncio
import contextlib
import os
import shutil
import signal
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from cpsched.errors import EngineError
from cpsched.text import how_to_install

#: Seconds between two checks whether the work is over.
_LOOK = 0.02
#: Seconds that MiniZinc has to end its solver and to clean up before all its processes are killed.
_GRACE = 0.15
#: Seconds after the budget at which MiniZinc ends by itself, in case this process is gone.
_ORPHANED = 5.0


class Verdict(Enum):
    """The final verdict of a solver."""

    #: The last solution is optimal.
    OPTIMAL = "optimal"
    #: There may be better solutions than those found, if any were.
    OPEN = "open"
    #: There is no solution.
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Answer:
    """How a solver ended, and the cost of its last solution (None where it found none)."""

    verdict: Verdict
    cost: int | None


#: The meaning of MiniZinc's statuses for a model that minimises; ERROR has a message and is raised with it.
_VERDICTS = {
    "OPTIMAL_SOLUTION": Verdict.OPTIMAL,
    "ALL_SOLUTIONS": Verdict.OPTIMAL,
    "SATISFIED": Verdict.OPEN,
    "UNKNOWN": Verdict.OPEN,
    "UNSATISFIABLE": Verdict.IMPOSSIBLE,
}


def verdict_of(status: str) -> Verdict:
    """Return the verdict for a status of MiniZinc.

    Raises `EngineError` if the status is not expected here, as ``UNBOUNDED`` (the cost is bounded) and ``ERROR``.
    """
    if status not in _VERDICTS:
        raise EngineError(f"MiniZinc: expected a status out of {', '.join(_VERDICTS)}, got {status}")
    return _VERDICTS[status]


def model_path(name: str) -> Path:
    """Return the path of a model, here or at the root of a checkout. Raises `EngineError` if there is none."""
    here = Path(__file__).resolve().parent
    for folder in (here / "models", here.parents[1] / "models"):
        path = folder / f"{name}.mzn"
        if path.is_file():
            return path
    raise EngineError(f"Expected a model {name}.mzn beside {here}, found none")


def find_solver(name: str) -> tuple[Any, Any]:
    """Return MiniZinc's driver and a solver by name, id or tag. Raises `EngineError` if one is missing."""
    minizinc = _package()
    if shutil.which("minizinc") is None:
        raise EngineError(
            "MiniZinc is not installed: no program minizinc is on the PATH. "
            "Debian: apt-get install minizinc; others: https://www.minizinc.org"
        )
    try:
        driver = minizinc.Driver.find()
        return driver, minizinc.Solver.lookup(name, driver)
    except LookupError as error:
        known = sorted({solver.name for solvers in driver.available_solvers().values() for solver in solvers})
        message = (
            f"Expected a solver that MiniZinc knows ({', '.join(known)}; minizinc --solvers lists them), got {name!r}"
        )
        raise EngineError(message) from error
    except minizinc.error.ConfigurationError as error:
        raise EngineError(f"MiniZinc cannot be used: {error}") from error


def solutions(
    solver: str,
    model: str,
    data: Mapping[str, Any],
    *,
    seconds: float,
    seed: int,
    is_over: Callable[[], bool],
    on_solution: Callable[[Any], None],
) -> Answer:
    """Solve a model, and call `on_solution` with each solution.

    `model`: its name (`model_path`). `data`: its parameters, by name. `seconds`: the time limit. `is_over`: called
    repeatedly; once it returns true, MiniZinc and all processes that it has started are ended. Raises `EngineError` if
    something is missing, or MiniZinc or the solver fails.
    """
    driver, found = find_solver(solver)
    minizinc = _package()
    # It warns of library files that Gecode's package replaces in an outdated way; that does not concern users.
    warnings.filterwarnings("ignore", category=minizinc.error.MiniZincWarning)
    problem = minizinc.Instance(found, minizinc.Model(model_path(model)), driver)
    for name, value in data.items():
        problem[name] = value
    options: dict[str, Any] = {"time_limit": timedelta(seconds=min(seconds, 1e6) + _ORPHANED)}
    if {"-a", "-i"} & set(found.stdFlags):
        options["intermediate_solutions"] = True
    if "-r" in found.stdFlags:
        options["random_seed"] = seed

    async def follow() -> Answer:
        status, cost = "UNKNOWN", None
        async for result in problem.solutions(**options):
            status = result.status.name
            if result.solution is not None:
                cost = result.solution.objective
                on_solution(result.solution)
        return Answer(verdict_of(status), cost)

    loop = _Loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        try:
            answer = runner.run(_until(is_over, follow(), loop))
        except minizinc.MiniZincError as error:
            raise EngineError(f"MiniZinc ({solver}): {error}") from error
    return answer or Answer(Verdict.OPEN, None)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that starts each program in a session of its own, by which all its children are found."""

    def __init__(self) -> None:
        super().__init__()
        self._sessions: list[int] = []

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        """Start a program; where nobody waits for it any more before it has begun, it is ended again."""
        begun = self.create_task(super().subprocess_exec(*args, **options, start_new_session=True))
        try:
            return await asyncio.shield(begun)
        except asyncio.CancelledError:
            transport, _ = await begun
            transport.close()
            while transport.get_returncode() is None:
                await asyncio.sleep(_LOOK)
            raise
        finally:
            transport, _ = await begun
            self._sessions.append(transport.get_pid())

    def kill_all(self) -> None:
        """End all programs and their child processes."""
        for process in _processes_of(self._sessions):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


async def _until(is_over: Callable[[], bool], work: Coroutine[Any, Any, Answer], loop: _Loop) -> Answer | None:
    """Return the result of `work`, or None if the work was over before."""
    task = asyncio.create_task(work)
    while not task.done() and not is_over():
        await asyncio.wait([task], timeout=_LOOK)
    if task.done():
        return task.result()
    task.cancel()  # which ends MiniZinc politely
    await asyncio.wait([task], timeout=_GRACE)
    loop.kill_all()
    await asyncio.wait([task])
    return None


def _processes_of(sessions: list[int]) -> Iterator[int]:
    """Yield the processes of some sessions (from ``/proc``: the session is the fourth field after the name)."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) in sessions:
                yield int(folder.name)


@cache
def _package() -> Any:
    """Return the `minizinc` package. Raises `EngineError` if it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on import it looks for the program, and warns of versions
            import minizinc
            import minizinc.error
    except ImportError as error:
        raise EngineError(f"The Python package minizinc is not installed; {how_to_install('minizinc')}") from error
    return minizinc
