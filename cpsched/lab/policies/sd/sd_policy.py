"""SD-Policy on-line: running malleable jobs lend cores, so that others start earlier (D'Amico et al.; SD-1 to SD-14).

Each of the first jobs of the queue is tried as in static backfilling and, if it has to wait and would end earlier as a
guest on the nodes of running mates, directly after that as a guest. A guest changes the reservations of others, so all
are made anew, and the pass begins again, until no job starts any more. Where no job
is malleable, this is `static_backfill`.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import numpy as np

from cpsched.lab.policies.sd.mates import PiWeight, SdRule
from cpsched.lab.policies.sd.sharing import Sharing
from cpsched.lab.policies.sd.static_backfill import DEPTH, FutureMap, checked_depth
from cpsched.lab.sim import Decision, News, Site


class SdPolicy:
    """SD-Policy with one setting.

    Raises `ValueError` if the depth is less than 1. `rule`: the parameters. `depth`: the number of waiting jobs that
    are considered; None: all. `by_value`: see `malleable_value`.
    """

    def __init__(self, rule: SdRule, depth: int | None, *, by_value: bool = False) -> None:
        self.name, self._rule, self._depth, self._by_value = rule.name, rule, checked_depth(depth), by_value

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        self._map = FutureMap(site)
        self._sharing = Sharing(site, self._map, self._rule, by_value=self._by_value)
        #: The order of the queue; Smith's rule: a second costs 1 / walltime, and the job takes walltime * cores.
        self._keys = site.walltime.astype(np.float64) ** 2 * np.maximum(site.cores, 1) * self._by_value

    @property
    def counters(self) -> dict[str, int]:
        """How many jobs were started as guests, and how many have lent to one (SD-12)."""
        return {"guests": len(self._sharing.guests), "mates": len(self._sharing.lenders)}

    def decide(self, site: Site, news: News) -> Decision:
        """Start jobs that can start, and return the cores of mates whose guests have ended."""
        self._map.follow(news.gone)
        self._sharing.follow(news.gone)
        queue = site.queue
        waiting: list[int] = queue[np.argsort(self._keys[queue], kind="stable")].tolist()
        while started := self._pass(site, waiting[: self._depth], news.now):
            waiting = [job for job in waiting if job not in started]
        return Decision(starts=self._sharing.starts, changes=self._sharing.changes, wake=self._map.next_start())

    def _pass(self, site: Site, first: list[int], now: int) -> set[int]:
        """Go through the first jobs of the queue until a guest changes the reservations; return the jobs that start.

        While amounts are set aside no job is a guest: its mates, which take longer, might run into these times.
        """
        self._map.reserve(first)
        cut_off, started, may_lend = self._sharing.cut_off(), set(), not site.has_asides
        for job in first:
            if self._map.start_of(job) == now:
                self._sharing.start(self._map.start(job))
                started.add(job)
            elif may_lend and self._sharing.borrow(job, cut_off):
                return {*started, job}
        return started


#: The weight of mates' penalties, see `PiWeight`.
Weight = Literal["plain", "nodes"]


def _setting(name: str, max_slowdown: float | None, says: str) -> Callable[..., SdPolicy]:
    """Return the maker of one of the limits that the paper tries, with other parameters where they are given."""

    def make(
        depth: int | None = DEPTH, sharing_factor: float = 0.5, most_mates: int = 2, pi_weight: Weight = "plain"
    ) -> SdPolicy:
        rule = SdRule(
            name=name,
            max_slowdown=max_slowdown,
            sharing_factor=Fraction(str(sharing_factor)),
            most_mates=most_mates,
            pi_weight=PiWeight(pi_weight),
        )
        return SdPolicy(rule, depth)

    make.__doc__, make.__name__ = f"Return SD-Policy with {says} (SD-5).", name
    return make


sd_5 = _setting("sd_5", 5, "MAX_SLOWDOWN 5")
sd_10 = _setting("sd_10", 10, "MAX_SLOWDOWN 10")
sd_50 = _setting("sd_50", 50, "MAX_SLOWDOWN 50")
sd_inf = _setting("sd_inf", math.inf, "no limit of slowdowns")
sd_dyn = _setting("sd_dyn", None, "DynAVGSD")


def malleable_value(depth: int | None = DEPTH) -> SdPolicy:
    """Return the policy that lends cores where that makes the sum of the predicted slowdowns less (SD-14).

    The queue is served by Smith's rule (the slowdown that a second of waiting adds, per core-second of the job). A
    guest starts if it saves more slowdown than its mates lose; its mates are those that lose least.

    `depth`: the number of waiting jobs that are considered; None: all. Raises `ValueError` if the depth is less than 1.
    """
    return SdPolicy(SdRule(name="malleable_value", max_slowdown=math.inf), depth, by_value=True)
