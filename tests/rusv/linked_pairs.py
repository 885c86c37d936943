"""Links between jobs, pair by pair."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cpsched.rusv import Links, links_of

__all__ = ["distances", "linked_pairs"]


def linked_pairs(count: int, links: Iterable[tuple[int, int, int]]) -> Links:
    """Make links (job, predecessor, seconds between their starts) of `count` jobs, each with a milestone of its own."""
    found = list(links)
    before = [(number, other, lag) for number, (_, other, lag) in enumerate(found)]
    after = [(number, job, 0) for number, (job, _, _) in enumerate(found)]
    of_milestones = (np.array(entries, dtype=np.int64).reshape(-1, 3) for entries in (before, after))
    return links_of(count, *of_milestones)


def distances(links: Links) -> list[tuple[int, int, int]]:
    """Spell out (job, predecessor, seconds between their starts) from both ends, which say the same."""
    found = [
        sorted(
            (job, other, seconds + delay) if is_ahead else (other, job, seconds + delay)
            for job in range(len(firsts) - 1)
            for milestone, delay in entries[firsts[job] : firsts[job + 1]].tolist()
            for other, seconds in others[others_of[milestone] : others_of[milestone + 1]].tolist()
        )
        for is_ahead, firsts, entries, others_of, others in (
            (True, links.waits_of, links.waits, links.before_of, links.before),
            (False, links.leads_of, links.leads, links.after_of, links.after),
        )
    ]
    assert found[0] == found[1]
    return found[0]
