"""What a change would do to a plan."""

from __future__ import annotations

import json

import pytest

from cpsched.answers import Comparison, WhatIf, changed_instance, what_if
from cpsched.domain import Instance, NodeState
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.verify import verify
from tests.answers.judged import planned
from tests.answers.test_explain import ALL, window


def asked(instance: Instance, request: WhatIf, budget: float = 0) -> Comparison:
    """Return the comparison with the planner's plan; the judge finds no fault with the new one."""
    comparison = what_if(instance, planned(instance), request, budget=budget)
    violations = verify(instance_to_document(comparison.instance), plan_to_document(comparison.plan))
    assert not violations, "\n".join(map(str, violations))
    return comparison


def starts(comparison: Comparison) -> dict[str, tuple[int | None, int | None]]:
    """Return the two starts of each job."""
    return {job.job: (job.before, job.after) for job in comparison.jobs}


def three_in_a_row() -> Instance:
    """Return a window with three jobs on all nodes, one after the other; the third waits for the first."""
    return window(
        {"id": "a", **ALL, "priority": 9},
        {"id": "b", **ALL, "priority": 8, "user": "bob"},
        {"id": "c", **ALL, "after": [{"job": "a", "type": "afterok"}]},
    )


def test_jobs_move_up_where_one_is_dropped() -> None:
    """Without the first of three jobs the others start 100 s earlier, though one had waited for it."""
    comparison = asked(three_in_a_row(), WhatIf(drop=("a",)))
    assert starts(comparison) == {"a": (0, None), "b": (100, 0), "c": (200, 100)}
    assert comparison.seconds(-1) == (2, 200)
    assert comparison.seconds(1) == (0, 0)
    assert comparison.value_after < comparison.value_before


def test_elements_of_an_array_are_dropped_one_by_one() -> None:
    """An array without one of its elements keeps the others."""
    instance = window({"id": "a", **ALL, "array": {"indices": "0-2"}})
    assert starts(asked(instance, WhatIf(drop=("a[1]",)))) == {"a[0]": (0, 0), "a[1]": (100, None), "a[2]": (200, 100)}


def test_a_shorter_walltime_lets_others_in() -> None:
    """If the first job takes 40 s, the others start 60 s earlier."""
    comparison = asked(three_in_a_row(), WhatIf(walltime={"a": 40}))
    assert starts(comparison) == {"a": (0, 0), "b": (100, 40), "c": (200, 140)}


def test_a_new_job_is_added_beside_the_others() -> None:
    """A job that is added finds its place behind those that have one, two of them have two names."""
    comparison = asked(three_in_a_row(), WhatIf(add=("4:ncpus=4,walltime=10", "4:ncpus=4,walltime=10")))
    assert starts(comparison) == {
        "a": (0, 0), "b": (100, 100), "c": (200, 200), "submitted": (None, 300), "submitted-2": (None, 310),
    }  # fmt: skip
    assert [job.job for job in comparison.jobs if job.is_new] == ["submitted", "submitted-2"]
    assert comparison.value_after == comparison.value_before


def test_drained_nodes_take_nothing_new() -> None:
    """With one of four nodes drained, jobs on all nodes lose their start; what is running there goes on."""
    running = {"start": 0, "allocation": [{"node": "n2", "resources": {"cores": 4}}]}
    instance = window(
        {"id": "r", "request": "ncpus=4", "running": running}, {"id": "a", **ALL}, {"id": "b", "request": "ncpus=4"}
    )
    comparison = asked(instance, WhatIf(drain=("n2",)))
    assert starts(comparison) == {"a": (100, None), "b": (0, 0)}
    assert [one.state for one in comparison.instance.cluster.classes] == [NodeState.UP, NodeState.DRAIN, NodeState.UP]


def test_a_limit_is_added() -> None:
    """With eight cores for each user, Ann's four jobs of four cores run two at a time."""
    instance = window(*({"id": name, "request": "ncpus=4", "priority": 9 - at} for at, name in enumerate("abcd")))
    limit = json.dumps({"consumer": {"each": "user"}, "resource": "cores", "items": "8"})
    assert starts(asked(instance, WhatIf(limit=(limit,)))) == {"a": (0, 0), "b": (0, 0), "c": (0, 100), "d": (0, 100)}


def test_a_budget_improves_the_new_plan() -> None:
    """With seconds to spare the new plan is improved: a short new job goes before a long one."""
    instance = window({"id": "long", **ALL, "walltime": 1000})
    comparison = asked(instance, WhatIf(add=('{"id": "short", "request": "4:ncpus=4", "walltime": 5}',)), budget=60)
    assert starts(comparison) == {"long": (0, 5), "short": (None, 0)}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (WhatIf(drop=("x",)), "drop: Expected a job"),
        (WhatIf(drain=("n9",)), "drain: Expected a node"),
        (WhatIf(walltime={"x": 1}), "walltime: Expected a job"),
        (WhatIf(walltime={"a": 0}), "walltime"),
        (WhatIf(limit=("new.json",)), "limit: Expected a JSON object, or a file with one, got 'new.json'"),
        (WhatIf(limit=("3",)), "limits"),
        (WhatIf(limit=('{"consumer": {"user": "ann"}}',)), "limits"),
    ],
)
def test_changes_that_are_none_are_refused(request_: WhatIf, words: str) -> None:
    """Names that the instance does not have, and entries that it could not have, are faults with their path."""
    with pytest.raises(DocumentError, match=words):
        changed_instance(three_in_a_row(), request_)


def test_a_step_has_no_other_walltime() -> None:
    """An evolving job has no walltime of its own that could be changed."""
    document = instance_to_document(window())
    steps = [{"walltime": 40, "request": "ncpus=1"}, {"walltime": 40, "request": "ncpus=2"}]
    document["jobs"] = [{"id": "e", "submit": 0, "steps": steps}]
    with pytest.raises(DocumentError, match="one step"):
        changed_instance(parse_instance(document), WhatIf(walltime={"e": 10}))
