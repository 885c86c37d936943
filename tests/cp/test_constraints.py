"""Each constraint of the model: a plan just within it is allowed, one just beyond is refused; the verifier agrees."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from cpsched.cp import ModelParams
from cpsched.cp.encoding import encode
from cpsched.cp.model import build
from cpsched.domain import Instance
from cpsched.problem import compiled
from tests.cp.fixed_plans import NO_SYMMETRY, Places, Stand, broken_rules, instance_of, is_allowed, planned_jobs

FOUR = {"names": "n[1-2]", "resources": {"cores": 4}}
KEEPER = {
    "names": "k",
    "resources": {"cores": 4, "gpus": 1},
    "keep_free": [{"resource": "cores", "items": 2, "for": "gpus"}],
}


class Case(NamedTuple):
    """A window, a plan that is allowed, one that is not, and the rule that it breaks."""

    instance: Instance
    allowed: Places
    refused: Places
    rule: str


def job(name: str, request: str, **more: Any) -> dict[str, Any]:
    """Return a job's document."""
    return {"id": name, "request": request, **more}


def runs(name: str, request: str, node: str, cores: int, until: int, **more: Any) -> dict[str, Any]:
    """Return the document of a job that has run for a second, on one node."""
    running = {"start": -1, "allocation": [{"node": node, "resources": {"cores": cores}}]}
    return {"id": name, "request": request, "submit": -1, "walltime": until + 1, "running": running, **more}


ONE, TWO = Stand("n1"), Stand("n2")


def near(request: str) -> Instance:
    """Return a window of one job on two switches of two nodes."""
    nodes = [FOUR, {"names": "n[3-4]", "resources": {"cores": 4}}]
    topology = {"switch": {"s1": "n[1-2]", "s2": "n[3-4]"}}
    return compiled(instance_of(nodes, [job("a", request)], topology=topology)).instance


CASES = {
    "alternative": Case(
        instance_of([FOUR], [job("a", "3:ncpus=1")]),
        {"a": (0, [Stand("n1", 2), TWO])},
        {"a": (0, [ONE, TWO])},
        "request",
    ),
    "capacity of a node": Case(
        instance_of([FOUR], [job("a", "ncpus=3"), job("b", "ncpus=2")]),
        {"a": (0, [ONE]), "b": (10, [ONE])},
        {"a": (0, [ONE]), "b": (9, [ONE])},
        "capacity",
    ),
    "several chunks on a node": Case(
        instance_of([FOUR], [job("a", "2:ncpus=2"), job("b", "2:ncpus=1")]),
        {"a": (0, [Stand("n1", 1), TWO]), "b": (5, [Stand("n1", 2)])},
        {"a": (0, [Stand("n1", 2)]), "b": (5, [Stand("n1", 2)])},
        "capacity",
    ),
    "running": Case(
        instance_of([FOUR], [runs("r", "ncpus=3", "n1", 3, 5), job("a", "ncpus=2")]),
        {"a": (5, [ONE])},
        {"a": (4, [ONE])},
        "capacity",
    ),
    "kinds start together and share nodes": Case(
        instance_of([FOUR], [job("a", "ncpus=3+ncpus=2")]),
        {"a": (0, [ONE, Stand("n2", 1, 1)])},
        {"a": (0, [ONE, Stand("n1", 1, 1)])},
        "capacity",
    ),
    "properties": Case(
        instance_of(
            [FOUR, {"names": "m", "resources": {"cores": 4}, "properties": {"arch": "x"}}], [job("a", "ncpus=1:arch=x")]
        ),
        {"a": (0, [Stand("m")])},
        {"a": (0, [ONE])},
        "where",
    ),
    "guard": Case(
        instance_of(
            [FOUR, {"names": "m", "resources": {"cores": 8}, "admits": [{"min": {"cores": 5}}]}],
            [job("a", "ncpus=4"), job("b", "ncpus=5")],
        ),
        {"a": (0, [ONE]), "b": (0, [Stand("m")])},
        {"a": (10, [Stand("m")]), "b": (0, [Stand("m")])},
        "guard",
    ),
    "state": Case(
        instance_of([FOUR, {"names": "m", "resources": {"cores": 4}, "state": "drain"}], [job("a", "ncpus=1")]),
        {"a": (0, [ONE])},
        {"a": (0, [Stand("m")])},
        "state",
    ),
    "keep_free": Case(
        instance_of([KEEPER], [job("a", "ncpus=1"), job("b", "2:ncpus=1"), job("c", "ncpus=2:ngpus=1")]),
        {"a": (0, [Stand("k")]), "b": (10, [Stand("k", 2)]), "c": (5, [Stand("k")])},
        {"a": (0, [Stand("k")]), "b": (9, [Stand("k", 2)]), "c": (20, [Stand("k")])},
        "keep_free",
    ),
    "keep_free and exclusive": Case(
        instance_of([FOUR, KEEPER], [job("a", "ncpus=1,place=excl")]),
        {"a": (0, [ONE])},
        {"a": (0, [Stand("k")])},
        "keep_free",
    ),
    "pack": Case(
        instance_of([FOUR], [job("a", "2:ncpus=1+ncpus=2,place=pack")]),
        {"a": (0, [Stand("n1", 2), Stand("n1", 1, 1)])},
        {"a": (0, [Stand("n1", 2), Stand("n2", 1, 1)])},
        "place",
    ),
    "scatter": Case(
        instance_of([FOUR], [job("a", "2:ncpus=1,place=scatter")]),
        {"a": (0, [ONE, TWO])},
        {"a": (0, [Stand("n1", 2)])},
        "place",
    ),
    "scatter of several kinds": Case(
        instance_of([FOUR], [job("a", "ncpus=1+ncpus=2,place=scatter")]),
        {"a": (0, [ONE, Stand("n2", 1, 1)])},
        {"a": (0, [ONE, Stand("n1", 1, 1)])},
        "place",
    ),
    "within": Case(
        near("2:ncpus=3,place=free:within=switch"), {"a": (0, [ONE, TWO])}, {"a": (0, [TWO, Stand("n3")])}, "place"
    ),
    "segment": Case(
        near("4:ncpus=2,place=segment=2:within=switch"),
        {"a": (0, [ONE, TWO, Stand("n3", 2)])},
        {"a": (0, [ONE, Stand("n3"), Stand("n4", 2)])},
        "place",
    ),
    "spread": Case(
        near("2:ncpus=2,place=spread=1:within=switch"),
        {"a": (0, [ONE, Stand("n3")])},
        {"a": (0, [ONE, TWO])},
        "place",
    ),
    "exclusive": Case(
        instance_of([FOUR], [job("a", "ncpus=1,place=excl"), job("b", "ncpus=1")]),
        {"a": (0, [ONE]), "b": (0, [TWO])},
        {"a": (0, [ONE]), "b": (9, [ONE])},
        "exclusive",
    ),
    "kinds of an exclusive job": Case(
        instance_of([FOUR], [job("a", "2:ncpus=1+ncpus=3,place=excl")]),
        {"a": (0, [Stand("n1", 2), Stand("n2", 1, 1)])},
        {"a": (0, [Stand("n1", 2), Stand("n1", 1, 1)])},
        "capacity",
    ),
    "an exclusive job runs": Case(
        instance_of([FOUR], [runs("r", "ncpus=1,place=excl", "n1", 1, 5), job("a", "ncpus=1")]),
        {"a": (5, [ONE])},
        {"a": (4, [ONE])},
        "exclusive",
    ),
    "licenses": Case(
        instance_of([FOUR], [job("a", "ncpus=1,abaqus=2"), job("b", "ncpus=1,abaqus=2")], licenses={"abaqus": 3}),
        {"a": (0, [ONE]), "b": (10, [ONE])},
        {"a": (0, [ONE]), "b": (9, [ONE])},
        "licenses",
    ),
    "licenses of a running job": Case(
        instance_of(
            [FOUR], [runs("r", "ncpus=1,abaqus=2", "n1", 1, 5), job("a", "ncpus=1,abaqus=2")], licenses={"abaqus": 3}
        ),
        {"a": (5, [TWO])},
        {"a": (4, [TWO])},
        "licenses",
    ),
    "submit": Case(
        instance_of([FOUR], [job("a", "ncpus=1", submit=7)]), {"a": (7, [ONE])}, {"a": (6, [ONE])}, "earliest_start"
    ),
    "not_before": Case(
        instance_of([FOUR], [job("a", "ncpus=1", not_before=7)]), {"a": (7, [ONE])}, {"a": (6, [ONE])}, "earliest_start"
    ),
    "start_at": Case(
        instance_of([FOUR], [job("a", "ncpus=1", start_at=7)]), {"a": (7, [ONE])}, {"a": (8, [ONE])}, "start_at"
    ),
    "deadline": Case(
        instance_of([FOUR], [job("a", "ncpus=1", deadline=17)]), {"a": (7, [ONE])}, {"a": (8, [ONE])}, "deadline"
    ),
    "hard max_wait": Case(
        instance_of(
            [FOUR],
            [job("a", "ncpus=1", queue="q")],
            queues={"q": {"expected_wait": 9, "max_wait": {"seconds": 7, "hard": True}}},
        ),
        {"a": (7, [ONE])},
        {"a": (8, [ONE])},
        "max_wait",
    ),
    "after": Case(
        instance_of(
            [FOUR], [job("a", "ncpus=1"), job("b", "ncpus=1", after=[{"job": "a", "type": "after", "delay": 3}])]
        ),
        {"a": (1, [ONE]), "b": (4, [ONE])},
        {"a": (1, [ONE]), "b": (3, [ONE])},
        "dependency",
    ),
    "afterok of an array": Case(
        instance_of(
            [FOUR],
            [
                job("a", "ncpus=1", array={"indices": "0-1"}),
                job("b", "ncpus=1", after=[{"job": "a", "type": "afterok", "delay": 0}]),
            ],
        ),
        {"a[0]": (0, [ONE]), "a[1]": (2, [ONE]), "b": (12, [ONE])},
        {"a[0]": (0, [ONE]), "a[1]": (2, [ONE]), "b": (11, [ONE])},
        "dependency",
    ),
    "an array after an array": Case(
        instance_of(
            [FOUR],
            [
                job("a", "ncpus=1", array={"indices": "0-1"}),
                job("b", "ncpus=1", array={"indices": "0-2"}, after=[{"job": "a", "type": "afterok", "delay": 3}]),
            ],
        ),
        {"a[0]": (0, [ONE]), "a[1]": (2, [ONE]), "b[0]": (15, [ONE]), "b[1]": (15, [ONE]), "b[2]": (16, [ONE])},
        {"a[0]": (0, [ONE]), "a[1]": (2, [ONE]), "b[0]": (15, [ONE]), "b[1]": (14, [ONE]), "b[2]": (16, [ONE])},
        "dependency",
    ),
    "an array after the starts of an array": Case(
        instance_of(
            [FOUR],
            [
                job("a", "ncpus=1", array={"indices": "0-1"}),
                job("b", "ncpus=1", array={"indices": "0-1"}, after=[{"job": "a", "type": "after", "delay": 1}]),
            ],
        ),
        {"a[0]": (0, [ONE]), "a[1]": (2, [ONE]), "b[0]": (3, [ONE]), "b[1]": (4, [ONE])},
        {"a[0]": (0, [ONE]), "a[1]": (2, [ONE]), "b[0]": (3, [ONE]), "b[1]": (2, [ONE])},
        "dependency",
    ),
    "afterany of a running job": Case(
        instance_of(
            [FOUR],
            [
                runs("r", "ncpus=1", "n1", 1, 5),
                job("b", "ncpus=1", after=[{"job": "r", "type": "afterany", "delay": 2}]),
            ],
        ),
        {"b": (7, [TWO])},
        {"b": (6, [TWO])},
        "dependency",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_plan_within_is_allowed_and_the_plan_beyond_is_refused(case: Case) -> None:
    """The model has the first plan among its solutions and not the second, and the verifier says the same (BRIDI-7)."""
    assert broken_rules(case.instance, planned_jobs(case.instance, case.allowed)) == set()
    assert is_allowed(case.instance, case.allowed)
    assert case.rule in broken_rules(case.instance, planned_jobs(case.instance, case.refused))
    assert not is_allowed(case.instance, case.refused)


BARE = ModelParams(has_energy=False, has_dual_feasible=False, breaks_nodes=False, breaks_jobs=False)


@pytest.mark.parametrize(
    ("requests", "more", "is_wanted"),
    [
        (["ncpus=3", "ncpus=2"], {}, True),
        (["ncpus=2", "ncpus=2", "ncpus=1"], {}, False),
        (["ncpus=1", "ncpus=1"], {"place": "scatter:excl"}, True),
        (["ncpus=1", "ncpus=1"], {"licenses": {"abaqus": 2}}, True),
        (["ncpus=1", "ncpus=1"], {"licenses": {"abaqus": 1}}, False),
    ],
)
def test_where_no_two_uses_fit_they_do_not_overlap(requests: list[str], more: dict[str, Any], is_wanted: bool) -> None:
    """A pool of which one use leaves too little for any other is a no-overlap (BRIDI-5), every other one a count."""
    node = {"names": "n1", "resources": {"cores": 4}}
    jobs = [job(f"j{n}", request, **more) for n, request in enumerate(requests)]
    instance = instance_of([node], jobs, licenses={"abaqus": 3})
    places: Places = {f"j{n}": (10 * n, [ONE]) for n in range(len(requests))}
    model, _ = build(encode(instance, planned_jobs(instance, places)), NO_SYMMETRY)
    assert any(one.has_no_overlap() for one in model.proto.constraints) == is_wanted


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_model_without_redundant_constraints_says_the_same(case: Case) -> None:
    """What is refused is refused by the constraints that a plan must obey, not by those that only help the solver."""
    assert is_allowed(case.instance, case.allowed, BARE)
    assert not is_allowed(case.instance, case.refused, BARE)
