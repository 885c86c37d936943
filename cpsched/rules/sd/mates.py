"""The choice of mates (D'Amico et al., eq. 1 to 3; SD-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from cpsched.rules.sd.rule import PiWeight, SdRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Mate:
    """A running job that could lend."""

    job_id: str
    #: The number of its nodes; it lends cores on all of them.
    nodes: int
    #: Its slowdown if it lends: (wait + increase + request) / request (eq. 4; SD-4).
    penalty: Fraction


def select_mates(mates: Sequence[Mate], nodes: int, rule: SdRule) -> tuple[Mate, ...] | None:
    """Return the mates with the least performance impact that have exactly `nodes` nodes together, or None.

    `mates`: each may be chosen; their penalties are below the cut-off. `nodes`: how many the guest asks for, at least
    1.

    Notes
    -----
    The paper enumerates all sets. How good a set can be completed depends on its size and its nodes only, so the best
    one of each size and number of nodes is enough. Of equal sets it is the one with fewer mates, then the one whose
    mates come first by penalty and id.
    """
    ranked = sorted(mates, key=lambda mate: (mate.penalty, mate.job_id))[: rule.truncation]
    best: dict[tuple[int, int], tuple[Fraction, tuple[int, ...]]] = {(0, 0): (Fraction(0), ())}
    for rank, mate in enumerate(ranked):
        impact = mate.penalty * (mate.nodes if rule.pi_weight is PiWeight.NODES else 1)
        for (count, covered), (total, chosen) in list(best.items()):
            key = count + 1, covered + mate.nodes
            if count < rule.most_mates and covered + mate.nodes <= nodes:
                found = total + impact, (*chosen, rank)
                best[key] = min(found, best.get(key, found))
    complete = [(total, count, chosen) for (count, covered), (total, chosen) in best.items() if covered == nodes]
    return tuple(ranked[rank] for rank in min(complete)[-1]) if complete else None
