"""Jobs that change, in words and in the chart: their steps, and on which share of their cores they run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.domain import (
    Amounts,
    Chunk,
    Instance,
    Job,
    Malleability,
    Placement,
    Plan,
    PlannedJob,
    Request,
    Segment,
    Step,
)
from cpsched.report import change_description, gantt_html
from tests.report.report_plans import a_plan
from tests.report.test_gantt import embedded


def _on(cores: int, *nodes: str) -> tuple[Placement, ...]:
    return tuple(Placement(node=node, resources=Amounts({"cores": cores})) for node in nodes)


def _step(walltime: int, count: int, cores: int = 4) -> Step:
    chunk = Chunk(count=count, resources=Amounts({"cores": cores}))
    return Step(walltime=walltime, request=Request(chunks=(chunk,)))


def changing(name: str = "e") -> tuple[Instance, Plan]:
    """Return a plan of an evolving job on one, two and one nodes, and of a malleable one at 50 % and 100 %."""
    instance, plan = a_plan(("a", "b"), epoch=False)
    nodes = instance.cluster.node_names
    evolving = Job(id=name, submit=0, steps=(_step(600, 1), _step(300, 2), _step(60, 1)), expand_limit=None)
    malleable = Job(id="m", submit=0, steps=(_step(600, 1, 8),), malleability=Malleability(shares=(0.5,)))
    steps = (
        Segment(start=0, end=690, allocation=_on(4, nodes[2])),
        Segment(start=690, end=990, allocation=_on(4, nodes[2], nodes[3])),
        Segment(start=990, end=1050, allocation=_on(4, nodes[2])),
    )
    shares = (
        Segment(start=0, end=600, allocation=_on(4, nodes[3])),
        Segment(start=600, end=900, allocation=_on(8, nodes[3])),
    )
    planned = (
        PlannedJob(id=name, start=0, end=1050, segments=steps),
        PlannedJob(id="m", start=0, end=900, segments=shares),
    )
    return replace(instance, jobs=(*instance.jobs, evolving, malleable)), replace(plan, jobs=(*plan.jobs, *planned))


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("a", ""),
        ("e", "3 steps, held 1 min 30 s longer than asked for"),
        ("m", "runs at 50 % until now + 10 min, then at 100 %"),
    ],
)
def test_changes_in_words(job: str, words: str) -> None:
    """A rigid job has no changes; the others tell their steps, or the shares of their cores and until when."""
    instance, plan = changing()
    entry = next(one for one in instance.jobs if one.id == job)
    planned = next(one for one in plan.jobs if one.id == job)
    assert change_description(instance, entry, planned) == words


def test_all_cores_all_the_time_are_no_change() -> None:
    """A malleable job that is not shrunk runs like any other; one that is so until its end says nothing of later."""
    instance, plan = changing()
    entry, planned = instance.jobs[-1], plan.jobs[-1]
    assert change_description(instance, entry, replace(planned, segments=planned.segments[1:])) == ""
    assert (
        change_description(instance, entry, replace(planned, end=600, segments=planned.segments[:1])) == "runs at 50 %"
    )


def test_segments_in_the_page() -> None:
    """Every step is a box of the same job with its number, and a share of the cores says which one."""
    data = embedded(gantt_html(*changing()))
    texts = data["texts"]
    evolving, malleable = data["jobs"][-2:]
    boxes = [(start, end, runs[:2], texts[part], shrunk) for start, end, runs, part, shrunk in evolving[-1]]
    assert boxes == [
        (0, 690, [2, 1], "step 1 of 3", 0),
        (690, 990, [2, 2], "step 2 of 3", 0),
        (990, 1050, [2, 1], "step 3 of 3", 0),
    ]
    shrunk, full = malleable[-1]
    assert (texts[shrunk[3]], shrunk[4], len(full)) == ("50 %", 1, 3)


def test_the_alternative_that_was_chosen_is_shown() -> None:
    """The page has the request and the walltime of the alternative, which is named in the box and in words."""
    instance, plan = changing()
    nodes = instance.cluster.node_names
    choice = Job(id="c", submit=0, steps=(_step(600, 2),), alternatives=(_step(1100, 1), _step(300, 4)))
    planned = PlannedJob(
        id="c",
        start=0,
        end=1100,
        segments=(Segment(start=0, end=1100, allocation=_on(4, nodes[2])),),
        alternative=1,
    )
    instance, plan = replace(instance, jobs=(*instance.jobs, choice)), replace(plan, jobs=(*plan.jobs, planned))
    words = change_description(instance, choice, planned)
    assert words.startswith("alternative 1 of 2")
    assert change_description(instance, choice, replace(planned, alternative=0)) == ""
    row = (data := embedded(gantt_html(instance, plan)))["jobs"][-1]
    assert 1100 in row
    assert words in [data["texts"][place] for place in row if isinstance(place, int) and place < len(data["texts"])]
    assert data["texts"][row[-1][0][3]] == "alternative 1 of 2"


def test_a_run_that_was_cut_short_is_shown() -> None:
    """Its box says so, and the job that runs again has it in words."""
    instance, plan = changing()
    entry, planned = instance.jobs[-1], plan.jobs[-1]
    cut = replace(planned, end=30, segments=(replace(planned.segments[0], end=30),))
    words = change_description(instance, entry, planned, [cut])
    assert len(words) > len(change_description(instance, entry, planned)) > 0
    row = (data := embedded(gantt_html(instance, replace(plan, attempts=(cut,)))))["jobs"][-1]
    assert words in [data["texts"][place] for place in row if isinstance(place, int) and place < len(data["texts"])]
    assert [box[:2] for box in row[-1]] == [[one.start, one.end] for one in (*cut.segments, *planned.segments)]
