"""Rules for windows: each plans one window as a rule-based scheduler would, all jobs known, walltimes as runtimes.

Begin with `window_rules.py`, the table of rules that work a queue off, also by numbers of nodes. `policy.py` says what
such a rule is, makes an engine of it, and serves a queue job by job, `event_loop.py` event by event. `evolving` has
rules for jobs that evolve. Their on-line forms are in `policies`. `easy_replay.py` tells from windows how long
jobs would have waited under EASY backfilling.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.rules.easy_replay import EasyReplay
    from cpsched.rules.evolving import VARIANTS, EvolvingEngine, Track, Variant, fit, schedule
    from cpsched.rules.policy import Policy, PolicyEngine, insert
    from cpsched.rules.window_rules import POLICIES, by_smith

__getattr__ = opener(__name__)
