"""The engine that the daemon plans with, chosen once a day: a process beside it plays the store's past again."""

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cpsched.errors import CpschedError
from cpsched.site.bridge import Beside
from cpsched.site.daemon.logs import Log
from cpsched.site.daemon.metrics import Metrics
from cpsched.site.daemon.state import EngineChosen

#: Seconds between two choices, at least, and those that one may take.
_DAY = 86_400
_LONGEST = 6 * 3600
#: What the process prints.
_FORMAT = "cpsched-replay-choose/1"
#: Characters of an answer that cannot be that are told.
_LONGEST_SAID = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The engines of a site, and who tells which one is best."""

    #: The usual one first.
    engines: tuple[str, ...]
    command: tuple[str, ...]

    @staticmethod
    def of(engines: tuple[str, ...], site: Path) -> "Choices":
        """Return the choices of a site. `site`: its file."""
        options = ("--choose", "--json", "--quiet", "--", str(site.resolve()))
        return Choices(engines=engines, command=(sys.executable, "-P", "-m", "cpsched", "replay", *options))


class _Trial(msgspec.Struct):
    """As `cpsched replay --choose` prints it."""

    engine: str
    replicas: int
    wins: bool
    ratio: float
    slowdown: float
    longest: float

    def rounded(self) -> dict[str, Any]:
        """Return its fields but the engine, for people."""
        figures = {name: round(getattr(self, name), 3) for name in ("ratio", "slowdown", "longest")}
        return {"wins": self.wins, "replicas": self.replicas, **figures}


class _Answer(msgspec.Struct):
    format: str
    usual: str
    engine: str
    jobs: int
    begin: int
    end: int
    trials: list[_Trial]


def where_we_are() -> dict[str, str]:
    """Return the variable by which another process finds this very package."""
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


class Chooser:
    """Chooses engines for one daemon. Mutable. `log`, `metrics`: where it says what it does.

    Whatever fails leaves the engine as it is.
    """

    def __init__(self, log: Log, metrics: Metrics) -> None:
        self._log, self._metrics = log, metrics
        self._process: Beside | None = None
        #: The last choice, and when one was last begun; None: never.
        self.last: EngineChosen | None = None
        self._begun: int | None = None

    def begin(self, content: Mapping[str, Any] | None, at: int) -> None:
        """Take up the choice of the daemon before. `content`: of its record; None: there was none. `at`: its second."""
        if content is not None:
            try:
                self.last, self._begun = msgspec.convert(content, EngineChosen), at
            except msgspec.ValidationError as error:
                self._failed(error)

    def engine(self, choices: Choices) -> str:
        """Return the engine to plan with."""
        return choices.engines[0] if (held := self.held(choices)) is None else held.engine

    def held(self, choices: Choices) -> EngineChosen | None:
        """Return the choice that holds: the last one, if it was among these engines; None: there is none."""
        last = self.last
        usual, *others = choices.engines
        holds = last is not None and others and last.usual == usual and last.engine in choices.engines
        return last if holds else None

    def renew(self, choices: Choices, now: int) -> EngineChosen | None:
        """Return another choice if one has been made since the last call; begin one where a day is over."""
        try:
            if self._process is not None:
                return self._taken(choices, now)
            is_due = self._begun is None or abs(now - self._begun) >= _DAY  # a clock may go back
            if len(choices.engines) > 1 and is_due:
                self._begun = now
                self._process = Beside(choices.command, seconds=_LONGEST, environment=where_we_are())
                self._log.info("choosing an engine", engines=choices.engines)
        except Exception as error:  # whatever is wrong with a choice, the cluster is planned
            self._failed(error)
            self.end()
        return None

    def _taken(self, choices: Choices, now: int) -> EngineChosen | None:
        """Return the choice of the process, if it has ended."""
        said = None if self._process is None else self._process.poll()
        if said is None:
            return None
        self._process = None
        answer = msgspec.json.decode(said, type=_Answer)
        trials = {trial.engine: trial for trial in answer.trials}
        figures = [one for trial in answer.trials for one in (trial.ratio, trial.slowdown, trial.longest)]
        is_fine = (answer.format, answer.usual) == (_FORMAT, choices.engines[0]) and answer.jobs >= 0
        is_fine = is_fine and trials.keys() <= set(choices.engines[1:]) and all(0 <= one < math.inf for one in figures)
        if answer.engine != answer.usual:
            best = trials.get(answer.engine)
            is_fine = is_fine and best is not None and best.wins and best.ratio < 1
        if not is_fine:
            raise CpschedError(f"Expected a choice of {', '.join(choices.engines)}, got {str(answer)[:_LONGEST_SAID]}")
        if not trials:
            self._log.info("no choice of an engine yet: it needs a week and 100 ended jobs", jobs=answer.jobs)
            return None
        held = self.held(choices)
        since = now if held is None or held.engine != answer.engine else held.since
        self.last = EngineChosen(
            engine=answer.engine,
            usual=answer.usual,
            since=since,
            jobs=answer.jobs,
            trials={name: one.rounded() for name, one in trials.items()},
        )
        return self.last

    def _failed(self, error: Exception) -> None:
        self._metrics.failures.labels("choice").inc()
        self._log.error("no choice of an engine: it stays", error=str(error) or type(error).__name__)

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.end()
            self._process = None
