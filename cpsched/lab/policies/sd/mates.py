"""The parameters of SD-Policy, and the choice of mates (D'Amico et al., eq. 1 to 3; SD-6, SD-8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class PiWeight(StrEnum):
    """The terms of the performance impact of a set of mates (SD-6, C-13)."""

    #: Their penalties, as in the paper.
    PLAIN = "plain"
    #: Their penalties times their nodes, as in the authors' code.
    NODES = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class SdRule:
    """One setting of SD-Policy; defaults are those of the paper. Raises `ValueError` if a parameter is out of range."""

    #: In a few letters, without spaces.
    name: str
    #: Mates have a penalty below this (MAX_SLOWDOWN, SD-5); None: below the mean predicted slowdown (DynAVGSD).
    max_slowdown: float | None
    #: The share of its nodes' cores that a guest gets; its mates keep the rest (SD-9).
    sharing_factor: Fraction = Fraction(1, 2)
    #: The most mates of a guest (m of SD-6).
    most_mates: int = 2
    pi_weight: PiWeight = PiWeight.PLAIN

    def __post_init__(self) -> None:
        if not 0 < self.sharing_factor < 1:
            raise ValueError(f"Expected 0 < sharing_factor < 1, got {self.sharing_factor}")
        if self.max_slowdown is not None and not self.max_slowdown > 0:
            raise ValueError(f"Expected max_slowdown > 0, got {self.max_slowdown}")
        if self.most_mates < 1:
            raise ValueError(f"Expected most_mates >= 1, got {self.most_mates}")

    @property
    def guest_share(self) -> float:
        """The share on which a guest runs."""
        return float(self.sharing_factor)

    @property
    def mate_share(self) -> float:
        """The share on which a mate runs while its guest is there."""
        return float(1 - self.sharing_factor)


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

    `mates`: each may be chosen; their penalties are below the cut-off. `nodes`: of the guest, at least 1.

    Notes
    -----
    The paper enumerates all sets. How good a set can be completed depends on its size and its nodes only, so the best
    one of each size and number of nodes is enough. Of equal sets it is the one with fewer mates, then the one whose
    mates come first by penalty and id.
    """
    ranked = sorted(mates, key=lambda mate: (mate.penalty, mate.job_id))
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
