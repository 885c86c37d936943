"""Topologies as graphs of links: what the reader, the judge and all pairs of nodes make of them."""

from __future__ import annotations

from itertools import combinations, pairwise, product
from typing import Any

import networkx as nx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpsched import Model
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.verify import Judge, verify
from cpsched.verify.instance import read_instance
from tests.sizes import examples
from tests.verify.small_documents import Document, instance, job

#: Of each level, the nodes of each group.
Levels = dict[str, dict[str, list[str]]]


def linked(number: int, topology: Document, *jobs: Document, **keys: Any) -> Document:
    """Return an instance of so many nodes n1, n2, … with a topology."""
    nodes = [{"names": f"n[1-{number}]", "resources": {"cores": 2}}]
    return instance(*jobs, cluster={"nodes": nodes, "topology": topology, **keys})


def link(ends: str, others: str, **length: int) -> Document:
    """Return an entry of links."""
    return {"from": ends, "to": others, **length}


def levels_of(document: Document) -> Levels:
    """Return the levels as they are read, of which the judge has the same groups, and which are written as levels."""
    read = parse_instance(document)
    assert parse_instance(instance_to_document(read)) == read
    judged = read_instance(document, "instance").topology
    assert groups_of(judged) == {
        level: {frozenset(nodes) for nodes in groups.values()} for level, groups in read.cluster.topology.items()
    }
    return {level: {name: [*nodes] for name, nodes in of.items()} for level, of in read.cluster.topology.items()}


def groups_of(levels: Any) -> dict[str, set[frozenset[str]]]:
    """Return the groups of each level, of which each node has the name."""
    return {
        level: {frozenset(node for node in of if of[node] == name) for name in of.values()}
        for level, of in levels.items()
    }


LEAVES = [link(f"n[{2 * leaf - 1}-{2 * leaf}]", f"s{leaf}") for leaf in range(1, 5)]
ALL = {f"s{leaf}": [f"n{2 * leaf - 1}", f"n{2 * leaf}"] for leaf in range(1, 5)}
EIGHT = [f"n{number}" for number in range(1, 9)]


@pytest.mark.parametrize(
    ("switches", "links", "expected"),
    [
        ("s[1-4],a1,a2,c", [*LEAVES, link("s[1-2]", "a1"), link("s[3-4]", "a2"), link("a[1-2]", "c")],
         {"6": {"c": EIGHT}, "4": {"a1": EIGHT[:4], "a2": EIGHT[4:]}, "2": ALL}),
        ("s[1-4],p[1-2]", [*LEAVES, link("s[1-4]", "p[1-2]")], {"4": {"p1": EIGHT}, "2": ALL}),
        ("s[1-4],a[1-4],c[1-2]",
         [*LEAVES, link("s[1-2]", "a[1-2]"), link("s[3-4]", "a[3-4]"), link("a1,a3", "c1"), link("a2,a4", "c2")],
         {"6": {"c1": EIGHT}, "4": {"a1": EIGHT[:4], "a3": EIGHT[4:]}, "2": ALL}),
        ("s[1-4]",
         [*LEAVES, link("s1", "s2"), link("s3", "s4"), link("s1", "s3", length=5), link("s2", "s4", length=5)],
         {"7": {"s1": EIGHT}, "3": {"s1": EIGHT[:4], "s3": EIGHT[4:]}, "2": ALL}),
        ("s[1-4]", [*LEAVES, link("s1", "s2,s4"), link("s3", "s2,s4")], {"3": {"s1": EIGHT}, "2": ALL}),
        ("s[1-4]", LEAVES, {"2": ALL}),
        ("s", [link("n[1-2]", "s"), link("n2", "n3", length=9)],
         {"9": {"s": EIGHT[:3]}, "2": {"s": EIGHT[:2], "n3": ["n3"]}}),
        ("s[1-2]", [link("n1", "s1"), link("n2", "s2"), link("s1", "s2", length=7), link("s2", "s1", length=2)],
         {"4": {"s1": EIGHT[:2]}}),
    ],
    ids=["tree", "leaf-spine", "fat tree", "dragonfly", "ring", "not connected", "nodes linked", "twice linked"],
)  # fmt: skip
def test_a_graph_is_reduced_to_levels(switches: str, links: list[Document], expected: Levels) -> None:
    """Groups are called like their highest switch, levels like their distance; the widest level is the first one."""
    found = levels_of(linked(8, {"switches": switches, "links": links}))
    assert (found, list(found)) == (expected, list(expected))


def test_a_mesh_is_one_group() -> None:
    """Each node is next to another one, so that a chain of single links joins them all."""
    links = [link(f"n{3 * row + column}", f"n{3 * row + column + 1}") for row, column in product(range(3), (1, 2))]
    links += [link(f"n{number}", f"n{number + 3}") for number in range(1, 7)]
    assert levels_of(linked(9, {"links": links})) == {"1": {"n1": [*EIGHT, "n9"]}}


@st.composite
def graphs(draw: st.DrawFn) -> Document:
    """Draw links between up to six nodes and four switches, with few lengths, so that many distances are equal."""
    vertices = [*EIGHT[:6], "s1", "s2", "s3", "s4"]
    pairs = st.sampled_from(list(combinations(vertices, 2)))
    drawn = draw(st.lists(st.tuples(pairs, st.sampled_from([1, 1, 2, 3])), min_size=1, max_size=14))
    levels = draw(st.none() | st.just({"near": 2, "far": 5, "none": 1}))
    topology = {
        "switches": "s[1-4]",
        "links": [link(one, other, length=length) for (one, other), length in drawn],
    }
    return topology if levels is None else topology | {"levels": levels}


@given(topology=graphs())
@examples(400)
def test_levels_are_those_of_all_distances(topology: Document) -> None:
    """Groups are the components of the graph of all nodes that are no farther from each other than the level says."""
    graph = nx.Graph()
    for one in topology["links"]:
        pair, length = (one["from"], one["to"]), one["length"]
        graph.add_edge(*pair, length=min(length, graph.get_edge_data(*pair, {"length": length})["length"]))
    nodes = [node for node in EIGHT[:6] if node in graph]
    assume(nodes)
    away = dict(nx.all_pairs_dijkstra_path_length(graph, weight="length"))
    distances = {away[one][other] for one, other in combinations(nodes, 2) if other in away[one]}

    def groups_at(most: int) -> set[frozenset[str]]:
        near = nx.Graph()
        near.add_nodes_from(nodes)
        near.add_edges_from(pair for pair in combinations(nodes, 2) if away[pair[0]].get(pair[1], most + 1) <= most)
        return {frozenset(group) for group in nx.connected_components(near)}

    steps = [most for before, most in pairwise([0, *sorted(distances)]) if groups_at(before) != groups_at(most)]
    found = levels_of(linked(6, topology))
    assert {level: {frozenset(nodes) for nodes in groups.values()} for level, groups in found.items()} == {
        level: groups_at(most) for level, most in topology.get("levels", {str(most): most for most in steps}).items()
    }


@pytest.mark.parametrize(
    ("topology", "path"),
    [
        ({"links": [link("n1", "s1")]}, "links[0].to"),
        ({"links": [link("n1", "n[1-2]")]}, "links[0]"),
        ({"links": [link("n1", "n2,n2")]}, "links[0].to"),
        ({"links": [link("n1", "n2", length=-1)]}, "links[0].length"),
        ({"links": [link("n1", "n2", length=0)]}, "links[0].length"),
        ({"links": [{"from": "n1"}]}, "links[0].to"),
        ({"links": []}, "links"),
        ({"switches": "s[1-2]", "links": [link("s1", "s2")], "levels": {"near": 2}}, "links"),
        ({"links": [link("n1", "n2")], "rack": {"r1": "n1"}}, "rack"),
        ({"links": [link("n1", "n2")], "levels": {}}, "levels"),
        ({"links": [link("n1", "n2")], "levels": {"near": 0}}, "levels.near"),
        ({"links": [link(f"n{one}", f"n{one + 1}", length=one) for one in range(1, 23)]}, "levels"),
        ({"switches": "s1,s1", "links": [link("n1", "s1")]}, "switches"),
        ({"switches": "s1,n1", "links": [link("n2", "s1")]}, "switches"),
    ],
)
def test_bad_links_are_refused(topology: Document, path: str) -> None:
    """A vertex that nobody declares, a loop, a length that is none, both links and levels: both readers refuse it."""
    document = linked(23, topology)
    with pytest.raises(DocumentError) as refused:
        parse_instance(document)
    assert [fault.path for fault in refused.value.faults] == [f"cluster.topology.{path}"]
    with pytest.raises(DocumentError, match="topology"):
        Judge(document)


def test_more_links_than_anybody_has_are_refused() -> None:
    """A short text says more than a million of them: neither reader tries."""
    document = linked(2, {"switches": "s[1-2001]", "links": [link("n1", "n2"), link("s[1-1000]", "s[1001-2001]")]})
    with pytest.raises(DocumentError, match=r"links\[1\]"):
        parse_instance(document)
    with pytest.raises(DocumentError, match=r"links\[1\]"):
        Judge(document)


@pytest.mark.parametrize(
    ("topology", "path", "levels"),
    [
        ({"links": [link("n1", "n2")]}, "cluster.topology.links", {"1": {"n1": ["n1", "n2"]}}),
        ({"rack": {"a": "n[1-2]"}}, "cluster.topology.rack", {"rack": {"a": ["n1", "n2"]}}),
    ],
)
def test_a_node_in_no_group_is_said(topology: Document, path: str, levels: Levels) -> None:
    """Without links, or where no group has it: no job within a level runs there."""
    said, document = list[str](), linked(3, topology)
    parse_instance(document, on_warning=lambda fault: said.append(f"{fault.path}: {fault.message}"))
    assert len(said) == 1
    assert said[0].startswith(path)
    assert "n3" in said[0]
    assert levels_of(document) == levels


def test_a_model_takes_a_graph() -> None:
    """A graph of networkx says what the document does; its plan keeps to levels that the judge reads from the links."""
    graph = nx.Graph([("n1", "s1"), ("n2", "s1"), ("n3", "s2"), ("n4", "s2"), ("n5", "s2")])
    graph.add_edge("s1", "s2", length=3)
    model = Model("w")
    model.add_nodes("n[1-5]", cores=2)
    model.add_links(graph, ["s1", "s2"], levels={"switch": 2, "all": 5}, slowdown={"switch": 20})
    model.add_job("3:ncpus=2", 100, id="a", submit=0, place="scatter:within=switch")
    links = [link("n[1-2]", "s1"), link("n[3-5]", "s2"), link("s1", "s2", length=3)]
    asked = job("a", "3:ncpus=2,place=scatter:within=switch")
    topology = {"switches": "s[1-2]", "links": links, "levels": {"switch": 2, "all": 5}}
    document = linked(5, topology, asked, slowdown={"switch": 20}) | {"name": "w"}
    assert model.instance() == parse_instance(document)
    plan = model.solve(engine="planner")
    assert plan["a"].nodes == ("n3", "n4", "n5")
    assert verify(document, plan_to_document(plan)) == ()
    moved = plan_to_document(plan)
    moved["jobs"][0]["segments"][0]["allocation"][0]["node"] = "n2"
    assert {broken.rule for broken in verify(document, moved)} == {"place"}
