"""Compacting: the same completion with a later start, so that less is wasted (Klein and Pérez; EVO-9)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cpsched.rules.evolving.fit import fit
from cpsched.rusv import Profile


def compact(
    steps: Sequence[tuple[int, int]],
    starts: Sequence[int],
    busy: Profile,
    capacity: int,
    *,
    longest: Sequence[int],
) -> tuple[int, ...]:
    """Return the starts of all steps in a schedule that begins as late as any with the same completion.

    The last step stays where it is; the others move as late as they can, from right to left. This is what `fit` does on
    the profile seen backwards from the completion. If the first step cannot begin later, nothing changes. The waste
    need not be the least: a step of many nodes may be held for a step of few. `steps`, `busy`, `capacity`, `longest`:
    as `fit` has them. `starts`: what `fit` found.
    """
    end = starts[-1] + steps[-1][0]
    backwards = steps[::-1]
    found = fit(backwards, busy.mirrored(end), capacity, longest=longest[::-1])
    # seen backwards a step is held until the next begins, so seen forwards it begins where that one does
    borders = (*found, found[-1] + backwards[-1][0])
    compacted = tuple(end - border for _, border in pairwise(borders))[::-1]
    return compacted if compacted[0] > starts[0] else tuple(starts)
