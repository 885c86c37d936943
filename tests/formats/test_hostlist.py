"""Host lists: order, padding, bounds, and ClusterShell as the twin."""

from __future__ import annotations

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from cpsched.errors import SyntaxFault
from cpsched.formats import expand_hostlist, fold_hostlist


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("b,a", ("b", "a")),
        ("cn[3,1-2]", ("cn3", "cn1", "cn2")),
        ("cn[08-11]", ("cn08", "cn09", "cn10", "cn11")),
        ("cn[9-11]", ("cn9", "cn10", "cn11")),
        ("cn[01-10/3]", ("cn01", "cn04", "cn07", "cn10")),
        ("r[2,1]n[1-2]-ib", ("r2n1-ib", "r2n2-ib", "r1n1-ib", "r1n2-ib")),
        ("[1-3]", ("1", "2", "3")),
    ],
)
def test_names_come_in_the_order_of_the_text(text: str, names: tuple[str, ...]) -> None:
    """A host list is expanded as it is written, with its padding, the last bracket fastest."""
    assert expand_hostlist(text) == names


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            ",",
            "a,,b",
            "a,",
            "cn[",
            "cn[1",
            "cn]",
            "cn[]",
            "cn[a-b]",
            "cn[3-1]",
            "cn[1-3/0]",
            "cn[1--2]",
            "cn[08-011]",
        ],
        *[
            "@all",
            "a!b",
            "a&b",
            "a^b",
            "cn*",
            "cn?",
            "a b",
            "cn[1-2]\n",
            "cn[0001-100]",
            "x" * 257,
            f"cn[{'0' * 300}1]",
        ],
    ],
)
def test_what_is_no_host_list_is_refused(text: str) -> None:
    """Operators, groups, wildcards, blanks, and broken brackets are faults, each with its place."""
    with pytest.raises(SyntaxFault) as caught:
        expand_hostlist(text)
    assert 0 <= caught.value.span[0] <= len(text)


@pytest.mark.parametrize("text", ["cn[1-10000000000]", "a[1-9999]b[1-9999]c[1-9999]", "cn[1-1000001]"])
def test_a_list_that_is_too_long_is_counted_not_expanded(text: str) -> None:
    """More than a million nodes are refused at once."""
    with pytest.raises(SyntaxFault, match=r"at most 1000000 nodes, got [19]"):
        expand_hostlist(text)


_PART = st.tuples(st.integers(0, 120), st.integers(0, 30), st.integers(1, 4), st.sampled_from([0, 4]))


@given(st.lists(st.tuples(st.sampled_from(["cn", "r1-n", "x"]), st.lists(_PART, min_size=1, max_size=3)), min_size=1))
def test_the_names_are_those_of_clustershell(terms: list[tuple[str, list[tuple[int, int, int, int]]]]) -> None:
    """ClusterShell finds the same names in a list, though in its own order."""
    text = ",".join(
        f"{prefix}[{','.join(f'{a:0{w}d}-{a + n:0{w}d}/{s}' for a, n, s, w in parts)}]" for prefix, parts in terms
    )
    assert set(expand_hostlist(text)) == set(NodeSet(text, resolver=RESOLVER_NOGROUP))


@given(st.lists(st.text(st.sampled_from("an-.0129"), min_size=1, max_size=5), min_size=1))
def test_a_folded_list_expands_to_the_same_names(names: list[str]) -> None:
    """Folding loses neither names nor their order."""
    assert expand_hostlist(fold_hostlist(names)) == tuple(names)


def test_neighbours_fold_into_ranges() -> None:
    """The 5,040 nodes of one class are one short text; padding that ends starts a new range."""
    assert fold_hostlist([f"cn{number:04d}" for number in range(1, 5041)]) == "cn[0001-5040]"
    assert fold_hostlist(["n1", "n2", "n4", "m7", "n09", "n10", "n99", "n100"]) == "n[1-2,4],m7,n[09-10,99-100]"
