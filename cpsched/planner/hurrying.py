"""Jobs that start within some time of others (``max_delay``): where one would be too late, the other starts later."""

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np

from cpsched.booking import Ledger
from cpsched.rusv import NOWHERE, Links, behind, raise_earliest, relaxed

#: How often jobs are planned anew until all start within their ``max_delay``, and how many in all.
_MOST_ROUNDS, _MOST_PLANNED = 100, 100_000


def plan_hurried(ledger: Ledger, order: Sequence[str], had: Collection[str] | None = None) -> None:
    """Plan jobs anew if one that follows another within some time has no place: the other one starts later then.

    Jobs that are still too late have no place afterwards, nor have those that wait for them.

    `ledger`: all jobs of the window are planned. `order`: the ids of these in the order in which they are planned.
    `had`: of these, those that had places before: others start later only for them, and only those that are linked with
    them; None: all are planned anew, for any of them.
    """
    table = ledger.table
    lost = np.flatnonzero((table.starts == NOWHERE) & (np.diff(table.links.soon_of) > 0)).tolist()
    lost = [row for row in lost if had is None or ledger.jobs[row].id in had]
    if not lost:
        return
    tied = {ledger.jobs[row].id for row in _tied(table.links, lost)}
    names = [name for name in order if had is None or name in tied]
    own, links, is_late = table.jobs[:, 1].copy(), table.links, True
    table.link(relaxed(links))
    for _ in range(max(1, min(_MOST_ROUNDS, _MOST_PLANNED // len(names)))):
        _plan_anew(ledger, names)
        is_late = raise_earliest(links, table.starts, table.jobs[:, 1])
        if not is_late:
            break
    table.link(links)
    table.jobs[:, 1] = own
    if is_late:
        _plan_anew(ledger, names)


def _tied(links: Links, rows: Sequence[int]) -> set[int]:
    """Return jobs, all that follow them or that they follow within some time, and all that wait for these."""
    found, new = set[int](), set(rows)
    while new:
        found |= new
        near = (
            jobs[firsts[row] : firsts[row + 1], 0].tolist()
            for firsts, jobs in ((links.soon_of, links.soon), (links.hurries_of, links.hurries))
            for row in new
        )
        new = set(chain(behind(links, new), *near)) - found
    return found


def _plan_anew(ledger: Ledger, names: Sequence[str]) -> None:
    """Plan jobs, booked ones too."""
    for name in names:
        if ledger.is_booked(name):
            ledger.release(name)
            ledger.take_mode(name, 0)
    ledger.plan(names)
