"""The RUSV planner: conservative planning of a whole queue, backfilling, and the waiting room.

Begin with `planner.py`; `admission_result.py` has the refused features, the jobs that may be planned at all, and the
outcome of each, `costs.py` the costs of starts, `hurrying.py` keeps longest delays between jobs, `shrink.py` shrinks
malleable jobs, `live.py` keeps a plan up to date, `warm.py` begins from an earlier plan, `insertion.py` has the windows
of some jobs beside a plan of others, and starts there for jobs that an engine left out, `advance.py` advances a window
in time, `events.py` applies an event to it, `profile.py` changes the steps of a running job, `compiling.py` compiles
the kernels ahead of time.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.planner.admission_result import (
        AdmissionResult,
        changing,
        hurried,
        uncompiled,
        unsupported,
        within_groups,
    )
    from cpsched.planner.advance import advanced, with_slices
    from cpsched.planner.compiling import (
        compile_from_now_on,
        interprets,
        warmup,
        warmup_evolving,
        warmup_following,
        warmup_window,
    )
    from cpsched.planner.costs import FIRST_KINK, LEVEL, RATE, costs_at, end_price, start_costs
    from cpsched.planner.events import EXPECTED_STATES, Aftermath, after_event
    from cpsched.planner.insertion import Beside, elements_apart, inserted, most_tried, never_placed
    from cpsched.planner.live import Concern, LivePlanner, replanned
    from cpsched.planner.planner import Planner
    from cpsched.planner.planner_engine import PlannerEngine
    from cpsched.planner.profile import with_profile
    from cpsched.planner.rescue import latest_starts, placeable_beside
    from cpsched.planner.reservations import problem_of, slices_of, stated_outcome
    from cpsched.planner.shrink import Values, go_on_shrunk, place_cheaply
    from cpsched.planner.warm import with_promised_starts
    from cpsched.rusv import announced as compiling_announced
    from cpsched.rusv import own_interpretation as own_interpretation
    from cpsched.rusv import remove_temporary_kernels as remove_temporary_kernels

__getattr__ = opener(__name__)
