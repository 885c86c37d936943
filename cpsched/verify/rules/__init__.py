"""The rules: one function each, grouped by theme; `RULES` is the order in which a plan is held to them.

May import: `errors` and the judge's own modules. Begin with `presence.py`; each function opens with its rule in one
sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cpsched.verify.case import Case, Violation
from cpsched.verify.rules.allocation import check_allocations
from cpsched.verify.rules.capacity import (
    check_capacity,
    check_closures,
    check_exclusive,
    check_keep_free,
    check_licenses,
)
from cpsched.verify.rules.growth import check_evolving, check_malleable
from cpsched.verify.rules.limits import check_free_pools, check_limits
from cpsched.verify.rules.objective import check_objective
from cpsched.verify.rules.presence import check_presence, check_running
from cpsched.verify.rules.record import check_attempts, check_outages, check_record
from cpsched.verify.rules.reservations import check_guests, check_refused, check_slices
from cpsched.verify.rules.timing import (
    check_deadline,
    check_dependencies,
    check_earliest_start,
    check_max_wait,
    check_queue,
    check_segments,
    check_start_at,
    check_walltime,
)
from cpsched.verify.rules.waiting_room import check_waiting_room

RULES: tuple[Callable[[Case], Iterator[Violation]], ...] = (
    check_record,
    check_presence,
    check_running,
    check_segments,
    check_walltime,
    check_queue,
    check_earliest_start,
    check_start_at,
    check_deadline,
    check_max_wait,
    check_dependencies,
    check_allocations,
    check_capacity,
    check_closures,
    check_keep_free,
    check_exclusive,
    check_licenses,
    check_outages,
    check_attempts,
    check_evolving,
    check_malleable,
    check_slices,
    check_refused,
    check_guests,
    check_limits,
    check_free_pools,
    check_waiting_room,
    check_objective,
)
