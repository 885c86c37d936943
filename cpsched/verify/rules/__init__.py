"""The rules: one function each, grouped by theme; `RULES` is the order in which a plan is held to them.

May import: `errors` and the judge's own modules. Begin with `presence.py`; each function opens with its rule in one
sentence.
"""

from collections.abc import Callable, Iterator

from cpsched.verify.case import Case, Violation
from cpsched.verify.rules import (
    allocation,
    capacity,
    growth,
    limits,
    objective,
    presence,
    record,
    reservations,
    timing,
    waiting_room,
)

RULES: tuple[Callable[[Case], Iterator[Violation]], ...] = (
    record.check_record,
    presence.check_presence,
    presence.check_running,
    timing.check_segments,
    timing.check_walltime,
    timing.check_queue,
    timing.check_earliest_start,
    timing.check_start_at,
    timing.check_deadline,
    timing.check_max_wait,
    timing.check_dependencies,
    allocation.check_allocations,
    capacity.check_capacity,
    capacity.check_closures,
    capacity.check_keep_free,
    capacity.check_exclusive,
    capacity.check_licenses,
    record.check_outages,
    record.check_attempts,
    growth.check_evolving,
    growth.check_malleable,
    reservations.check_slices,
    reservations.check_refused,
    reservations.check_guests,
    limits.check_limits,
    limits.check_free_pools,
    waiting_room.check_waiting_room,
    objective.check_objective,
)
