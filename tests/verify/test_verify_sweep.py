"""The event sweep agrees with a naive look at every second."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cpsched.verify import verify
from cpsched.verify.sweep import Overload, Use, holders, overloads
from tests.sizes import examples
from tests.verify.small_documents import NODE, at, instance, job, on, plan

HORIZON = 12

uses = st.lists(
    st.builds(
        lambda start, length, cores, mem: Use(start, start + length, {"cores": cores, "mem": mem}, object()),
        st.integers(0, 6),
        st.integers(1, 6),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=6,
)


@examples(200, deadline=None)
@given(uses, st.integers(0, 6))
def test_overloads_are_those_of_every_second(taken: list[Use[object]], cores: int) -> None:
    """Second by second, the sweep reports the same levels above the capacity; an unknown resource has capacity 0."""
    naive = {}
    for second in range(HORIZON):
        for name, capacity in (("cores", cores), ("mem", 0)):
            level = sum(use.amounts[name] for use in taken if use.start <= second < use.end)
            if level > capacity:
                naive[second, name] = level
    swept = {}
    for overload in overloads(taken, {"cores": cores}):
        for second in range(overload.start, overload.end):
            assert (second, overload.resource) not in swept
            swept[second, overload.resource] = overload.level
    assert swept == naive


def test_intervals_are_half_open() -> None:
    """Two uses that touch do not add up, two that overlap by a second do."""
    touching = [Use(0, 5, {"cores": 2}, "a"), Use(5, 9, {"cores": 2}, "b")]
    assert list(overloads(touching, {"cores": 3})) == []
    overlapping = [Use(0, 6, {"cores": 2}, "a"), Use(5, 9, {"cores": 2}, "b")]
    assert list(overloads(overlapping, {"cores": 3})) == [Overload(5, 6, "cores", 4)]
    assert holders(overlapping, "cores", 5) == ["a", "b"]


placed = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(1, 6),
        st.integers(1, 4),
        st.integers(0, 1),
        st.sampled_from(["n1", "n2"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


@examples(200, deadline=None)
@given(placed)
def test_plans_are_judged_as_second_by_second(rows: list[tuple[int, int, int, int, str, bool]]) -> None:
    """On random tiny plans `capacity` and `exclusive` speak up for exactly the nodes that a naive look finds."""
    jobs, entries = [], []
    for index, (start, length, cores, gpus, node, excl) in enumerate(rows):
        asked = {"cores": cores, **({"gpus": gpus} if gpus else {})}
        place = "free:excl" if excl else "free"
        jobs.append(job(f"j{index}", [{"count": 1, "resources": asked}], walltime=length, place=place))
        entries.append(at(f"j{index}", start, on(node, **asked), walltime=length))
    violations = verify(instance(*jobs), plan(entries))
    for node in ("n1", "n2"):
        over = shared = False
        for second in range(HORIZON):
            there = [row for row in rows if row[4] == node and row[0] <= second < row[0] + row[1]]
            over |= sum(row[2] for row in there) > NODE["cores"] or sum(row[3] for row in there) > NODE["gpus"]
            shared |= len(there) > 1 and any(row[5] for row in there)
        rules = {violation.rule for violation in violations if violation.subject == node}
        assert rules == {rule for rule, holds in (("capacity", over), ("exclusive", shared)) if holds}
