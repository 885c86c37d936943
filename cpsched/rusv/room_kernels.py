"""Whether chunks may be on given nodes: a question to the tables alone, whatever is booked."""

from __future__ import annotations

import numpy as np

from cpsched.rusv.jit import kernel
from cpsched.rusv.kernels.constants import K, S


@kernel
def may_have(entries, count, free, t):
    """Tell whether each chunk is on a node that may hold its kind, and the nodes, with nothing booked, have what chunks
    of all kinds take of them together: an exclusive demand is booked as the whole of its nodes, whatever they have.

    `free`, int32 (W,), is scratch.
    """
    for is_counted in (False, True):
        for e in range(count):
            node, kind, chunks = entries[e, 0], entries[e, 1], entries[e, 2]
            segment, behind = t.kinds[kind, K.SEG], t.kinds[kind + 1, K.SEG]
            while segment < behind and not 0 <= node - t.segments[segment, S.FIRST] < t.segments[segment, S.LENGTH]:
                segment += 1
            if segment == behind:
                return False
            inside = node - t.segments[segment, S.FIRST]
            for k in range(t.segments[segment, S.TERM], t.segments[segment + 1, S.TERM]):
                column = t.terms[k, 0] + inside
                left = np.int64(t.capacity[column])
                if is_counted:
                    left = free[column] - chunks * t.terms[k, 1]
                if left < 0:
                    return False
                free[column] = left
    return True
