"""A plan that lives: it follows a window with its rules, and is made anew only where it cannot follow."""

from __future__ import annotations

from dataclasses import replace

from cpsched.domain import Instance, Plan
from cpsched.engine import Outcome
from cpsched.planner import LivePlanner
from cpsched.portfolio.classes import ByClass
from cpsched.portfolio.engine_window import EngineWindow
from cpsched.portfolio.warm_start import WarmStart

__all__ = ["LivePlan"]


class LivePlan:
    """The plan of a window, which is brought up to date whenever the window changes; mutable.

    Jobs keep their starts and nodes where these are still free and allowed; new jobs are planned beside them, jobs
    with limited starts first; and jobs move up into what has become free (`cpsched.planner.LivePlanner`).

    Parameters
    ----------
    window
        The first window.
    plan
        A plan of it, or of an earlier window.
    """

    def __init__(self, window: Instance, plan: Plan) -> None:
        #: The plan of the window before, of which only the jobs count, and the second that it was made for.
        self._plan = plan
        self._begin(window)

    @property
    def window(self) -> Instance:
        """The window of which it has the plan."""
        return self._window

    def follow(self, window: Instance) -> None:
        """Bring the plan up to date for another window: some time later, or with other jobs, nodes or rules.

        Parameters
        ----------
        window
            Jobs and rules that are the same objects as in the window before are known to be unchanged.

        Raises
        ------
        UnsupportedError
            If the window asks for something that the planner cannot honour.
        """
        if isinstance(self._live, LivePlanner) and not _has_rules(window):
            self._live.follow(window)
            self._window = window
        else:
            self._plan = self.plan()
            self._begin(window)

    def _begin(self, window: Instance) -> None:
        """Make the plan of a window out of the plan before."""
        self._window = window
        #: What follows the window; or the outcome of one that has rules.
        self._live: LivePlanner | Outcome
        if _has_rules(window):
            engines = EngineWindow.of(window)
            before = engines.held(self._plan)
            self._live = engines.outcome(ByClass(WarmStart(before)).plan(engines.instance, None))
        else:
            self._live = LivePlanner(window, self._plan.jobs, self._plan.now)

    def outcome(self) -> Outcome:
        """Return the plan of all jobs, in document order, and the waiting room."""
        return self._live if isinstance(self._live, Outcome) else self._live.outcome()

    def plan(self) -> Plan:
        """Return the jobs of the plan with the figures of the first one: for engines to begin from."""
        return replace(self._plan, jobs=self.outcome().jobs, now=self._window.now)


def _has_rules(window: Instance) -> bool:
    """Return whether engines plan a window that is not the one that documents state."""
    has_nodes = any(queue.nodes is not None for queue in window.queues.values())
    return bool(window.has_strict_priorities or window.limits or window.free_pools or window.reservations or has_nodes)
