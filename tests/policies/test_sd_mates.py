"""The choice of mates: the worked example to the number, and everything tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.lab.policies.sd.mates import Mate, PiWeight, SdRule, select_mates

PLAIN = SdRule(name="plain", max_slowdown=math.inf)
NODES = replace(PLAIN, pi_weight=PiWeight.NODES)

#: Those of SD-8 who end late enough: nodes and penalties by hand.
A = Mate(job_id="A", nodes=2, penalty=Fraction(3, 2))
B = Mate(job_id="B", nodes=2, penalty=Fraction(13, 8))
C = Mate(job_id="C", nodes=4, penalty=Fraction(7, 4))
D = Mate(job_id="D", nodes=4, penalty=Fraction(41, 10))


def test_worked_selection() -> None:
    """{C} 1.75 < {A, B} 3.125 < {D} 4.1; by nodes {A, B} 6.25 < {C} 7.0 < {D} 16.4 (SD-8)."""
    assert select_mates([D, C, B, A], 4, PLAIN) == (C,)
    assert select_mates([D, B, A], 4, PLAIN) == (A, B)
    assert select_mates([D, C, B, A], 4, NODES) == (A, B)
    assert select_mates([D, C, A], 4, NODES) == (C,)


def test_exact_cover() -> None:
    """Mates lend on all of their nodes, and have as many together as the guest asks for."""
    assert select_mates([A, C], 3, PLAIN) is None
    assert select_mates([A, C], 6, PLAIN) == (A, C)
    assert select_mates([], 1, PLAIN) is None


def test_number_of_mates() -> None:
    """No more mates than the rule allows, and as many as it does."""
    four = [replace(A, job_id=name) for name in "wxyz"]
    assert select_mates(four, 6, PLAIN) is None
    chosen = select_mates(four, 6, replace(PLAIN, most_mates=3))
    assert chosen is not None
    assert [mate.job_id for mate in chosen] == ["w", "x", "y"]


def test_ties() -> None:
    """Of equal sets it is the one with fewer mates, then the one that comes first by penalty and id."""
    halves = [Mate(job_id=name, nodes=1, penalty=Fraction(1)) for name in "zya"]
    whole = Mate(job_id="x", nodes=2, penalty=Fraction(2))
    assert select_mates([*halves, whole], 2, PLAIN) == (whole,)
    assert select_mates(halves, 2, PLAIN) == (halves[2], halves[1])


MATES = st.lists(st.tuples(st.integers(1, 4), st.integers(2, 9)), max_size=7)


@given(MATES, st.integers(1, 9), st.integers(1, 4), st.sampled_from(PiWeight))
def test_selection_is_the_best_of_all_sets(
    drawn: list[tuple[int, int]], nodes: int, most: int, weight: PiWeight
) -> None:
    """The set is the one that trying all of them finds (SD-6)."""
    mates = [Mate(job_id=str(n), nodes=size, penalty=Fraction(p, 2)) for n, (size, p) in enumerate(drawn)]
    rule = replace(PLAIN, most_mates=most, pi_weight=weight)
    assert select_mates(mates, nodes, rule) == tried(mates, nodes, rule)


def tried(mates: Sequence[Mate], nodes: int, rule: SdRule) -> tuple[Mate, ...] | None:
    """Try all sets of mates."""
    ranked = sorted(mates, key=lambda mate: (mate.penalty, mate.job_id))
    sets = [
        (sum(one.penalty * (one.nodes if rule.pi_weight == "nodes" else 1) for one in chosen), count, ranks)
        for count in range(1, rule.most_mates + 1)
        for ranks in combinations(range(len(ranked)), count)
        for chosen in [[ranked[rank] for rank in ranks]]
        if sum(one.nodes for one in chosen) == nodes
    ]
    return tuple(ranked[rank] for rank in min(sets)[2]) if sets else None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sharing_factor": Fraction(1)}, "Expected 0 < sharing_factor < 1, got 1"),
        ({"max_slowdown": 0}, "Expected max_slowdown > 0, got 0"),
        ({"most_mates": 0}, "Expected most_mates >= 1, got 0"),
    ],
)
def test_parameters_are_checked(wrong: dict[str, object], words: str) -> None:
    """A parameter out of its range is a programmer's mistake."""
    with pytest.raises(ValueError, match=words):
        replace(PLAIN, **wrong)  # type: ignore[arg-type]  # on purpose
