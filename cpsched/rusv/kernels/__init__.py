"""The timeline's kernels: plain functions on arrays, compiled by numba. `timeline.py` owns shapes, units and checks.

`arrays.py` has the arrays, `constants.py` what is in them, `axis.py` the time axis and bookings, `mapping.py` chunks on
nodes, `windows.py` the search for a window, `nodes.py` the same for nodes with steps of their own, `queues.py` whole
jobs, and what their starts cost.

The structure ("blocked dense"): one time axis for all nodes and for the system. A *slot* is the time from one
breakpoint to the next; the last one has no end. Each slot has a row: what is free of every node column (one column
for each node and resource) and of every system column (sums over nodes, licenses, a consumer's own view). Consecutive
slots form *blocks* of at most `BLOCK` slots. A block carries, for each column, an amount that is still to be added to
all its rows (lazy) and the smallest value over its rows, so that a booking of k columns over b blocks costs k*b, and
a search reads one row for a whole block.

The free amount of column c in slot r of block b is ``rows[r, c] + blk[b, LAZY, c]``; the lazy part is folded into the
rows of a column whenever a booking covers the block only in part, so that both parts stay within the capacity.

The kernels take their arrays in named tuples, which are passed last: the `TimelineState`, the steps of the `Nodes`,
the `Tables` of what can be asked for, a `Scratch`, and the `Jobs` of a table.
"""

from cpsched.rusv.kernels.arrays import (
    Array,
    Bookings,
    Choices,
    Jobs,
    Links,
    Nodes,
    Scratch,
    Tables,
    Taken,
    TimelineState,
)
from cpsched.rusv.kernels.axis import (
    add_break,
    copy,
    drop_break,
    following,
    last_until,
    locate,
    shift,
    summarise_system,
)
from cpsched.rusv.kernels.constants import BLOCK, FIRST_KINK, HIGH, LAZY, LEVEL, LOW, RATE, D, F, H, K, R, S
from cpsched.rusv.kernels.mapping import count_kind, may_have, placement_columns
from cpsched.rusv.kernels.nodes import book_all
from cpsched.rusv.kernels.queues import cost_of, earliest_after, keep_entries, latest_before, latest_for, take_placement
from cpsched.rusv.kernels.windows import (
    earliest_fit,
    first_window,
    is_good,
    lower_by_two,
    remember_start,
    remembered_start,
)
