"""What the numbers in the arrays of the kernels mean, and what kernels return."""

from collections import namedtuple
from typing import Any

import numpy as np


def numbered(name: str, fields: str, numbers: range | tuple[int, ...] = range(64)) -> Any:
    """Return a tuple whose fields have the numbers 0, 1, 2 and so on, or others: kernels take them as constants."""
    names = fields.split()
    kind: Any = namedtuple(name, names)  # type: ignore[misc]  # the names are not literals
    return kind._make(numbers[: len(names)])


#: Numbers of 32 and of 64 bits; what is computed with one of 64 has 64, too.
INT32: Any = np.int32
INT64: Any = np.int64
#: The end of an open interval: later than any time of a document, and small enough to add durations to it in 64 bits.
FOREVER = 1 << 60
#: The start of a job without a start.
NOWHERE = -1
#: Slots in a block, at the most.
BLOCK = 32
#: Nodes whose counts are added up in 32 bits; times the most chunks that a request may have, this stays below 2^31.
PART = 2048

# places in `TimelineState.head`, and rows of its blocks
H = numbered("H", "BLOCKS SPARE_ROWS SPARE_BLOCKS FREED")
LAZY, LOW, HIGH = 0, 1, 2

# columns of the demand tables, see timeline.Demands, and the flags of a demand
D = numbered("D", "KIND SYS LICENSE RANGE REACH FLAGS OTHERWISE SEGMENT SPREAD")
K = numbered("K", "NEED SEG BEHIND MOST")
S = numbered("S", "FIRST LENGTH TERM")
F = numbered("F", "EXCLUSIVE SCATTER JOINT WITHIN PARTED", (1, 2, 4, 8, 16))

# columns of the spans and of the gaps of `Nodes`
N = numbered("N", "FIRST COUNT ROOM")
G = numbered("G", "SOON LONGEST LAST IDLE")

#: What kernels return: that they are done, or which arrays are too small.
R = numbered("R", "DONE GROW_STATE GROW_POOL GROW_NODES")

# columns of costs of starts: cost per second of start, and cost at any start; then for each kink, in the order of time,
# more cost per second beyond it, and where it is
RATE, LEVEL, FIRST_KINK = 0, 1, 2
