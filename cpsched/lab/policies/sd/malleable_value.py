"""Malleable jobs by their value for the mean slowdown, on-line: what SD-Policy can be when it reckons (SD-14).

The mechanism is that of `sd_policy.py`; the criterion is the sum of all predicted slowdowns. The queue is served by
Smith's rule (the slowdown that a second of waiting adds, per core-second of the job). A guest starts if it saves more
slowdown than its mates lose; its mates are those that lose least.
"""

from __future__ import annotations

import math

import numpy as np

from cpsched.lab.policies.future_map import FutureMap
from cpsched.lab.policies.sd.sd_policy import SdPolicy
from cpsched.lab.policies.sd.sharing import Sharing
from cpsched.lab.policies.sd.static_backfill import DEPTH
from cpsched.lab.sim import Site
from cpsched.rules import SdRule


class MalleableByValue(SdPolicy):
    """Lends cores where that makes the sum of the predicted slowdowns less.

    `depth`: the number of waiting jobs that are considered; None: all. Raises `ValueError` if the depth is less than 1.
    """

    def __init__(self, depth: int | None) -> None:
        super().__init__(SdRule(name="malleable_value", max_slowdown=math.inf), depth)

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        self._map = FutureMap(site)
        self._sharing = Sharing(site, self._map, self._rule, by_value=True)
        #: Smith's rule: a second costs 1 / walltime, and the job takes walltime * cores.
        self._keys = site.walltime.astype(np.float64) ** 2 * np.maximum(site.cores, 1)

    def _in_order(self, site: Site) -> list[int]:
        """Return the waiting jobs by Smith's rule."""
        queue = site.queue
        found: list[int] = queue[np.argsort(self._keys[queue], kind="stable")].tolist()
        return found


def malleable_value(depth: int | None = DEPTH) -> MalleableByValue:
    """Return the scheduler."""
    return MalleableByValue(depth)
