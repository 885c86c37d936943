"""What the numbers in the arrays of the kernels mean, and what kernels return."""

from collections import namedtuple
from typing import Any


def _numbered(name: str, fields: str, numbers: range | tuple[int, ...] = range(64)) -> Any:
    """Return a tuple whose fields have the numbers 0, 1, 2 and so on, or others: kernels take them as constants."""
    names = fields.split()
    return namedtuple(name, names)._make(numbers[: len(names)])


#: The end of an open interval: later than any time of a document, and small enough to add durations to it in 64 bits.
FOREVER = 1 << 60
#: The start of a job without a start.
NOWHERE = -1
#: Slots in a block, at the most.
BLOCK = 32
#: Nodes whose counts are added up in 32 bits; times the most chunks that a request may have, this stays below 2^31.
PART = 2048

# places in `TimelineState.head`, and rows of its blocks
H = _numbered("H", "BLOCKS SPARE_ROWS SPARE_BLOCKS FREED")
LAZY, LOW, HIGH = 0, 1, 2

# columns of the demand tables, see timeline.Demands, and the flags of a demand
D = _numbered("D", "KIND SYS LICENSE RANGE REACH FLAGS OTHERWISE SEGMENT SPREAD")
K = _numbered("K", "NEED SEG BEHIND MOST")
S = _numbered("S", "FIRST LENGTH TERM")
F = _numbered("F", "EXCLUSIVE SCATTER JOINT WITHIN PARTED", (1, 2, 4, 8, 16))

# columns of the spans and of the gaps of `Nodes`
N = _numbered("N", "FIRST COUNT ROOM")
G = _numbered("G", "SOON LONGEST LAST IDLE")

#: What kernels return: that they are done, or which arrays are too small.
R = _numbered("R", "DONE GROW_STATE GROW_POOL GROW_NODES")

# columns of costs of starts: cost per second of start, and cost at any start; then for each kink, in the order of time,
# more cost per second beyond it, and where it is
RATE, LEVEL, FIRST_KINK = 0, 1, 2
