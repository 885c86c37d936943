"""The compiled problem: keys that are rules, and plans that are translated."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from cpsched.domain import (
    Amounts,
    CountedJobs,
    CountingRule,
    Job,
    Placement,
    Segment,
    Validity,
    WaitingReason,
    repeated,
)
from cpsched.formats import parse_instance
from cpsched.planner import PlannerEngine, problem_of
from cpsched.problem import (
    Part,
    Rule,
    RuleOnNodes,
    compiled,
    in_segments,
    is_compiled,
    is_overcommitted,
    placements,
    stated_node,
    without_rules,
)
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.judges.ruled_windows import ruled_window
from tests.sizes import seeds

LIMIT = Rule("cores", "limits[0]", WaitingReason.LIMIT)
KEYS = (
    LIMIT,
    Rule("cores", "limits[1]", WaitingReason.LIMIT),
    RuleOnNodes("cores", "limits[0]", WaitingReason.LIMIT),
    Part("cores", "maintenance", 0),
    Part("cores", "maintenance", 10),
    "cores",
)


def test_no_two_keys_are_equal() -> None:
    """A rule, or a part of a node, is no name of a document although it reads like one, and no other rule."""
    assert len(dict.fromkeys(KEYS)) == len(KEYS)
    assert [one == other for one in KEYS for other in KEYS] == [one is other for one in KEYS for other in KEYS]
    assert [one != other for one in KEYS for other in KEYS] == [one is not other for one in KEYS for other in KEYS]
    assert {f"{key}" for key in KEYS} == {"cores"}


def test_keys_survive_a_process() -> None:
    """Workers find again what they were sent: the same rule, compiled twice or unpickled, is one key."""
    again = pickle.loads(pickle.dumps({key: number for number, key in enumerate(KEYS)}))  # noqa: S301
    assert again == {key: number for number, key in enumerate(KEYS)}
    (rule, *_) = again
    assert (rule.path, rule.reason, f"{rule}") == ("limits[0]", WaitingReason.LIMIT, "cores")


def test_documents_get_their_own_names() -> None:
    """Amounts lose what stands for rules, and a part of a node is the node."""
    assert without_rules(Amounts({"cores": 4, LIMIT: 1})) == {"cores": 4}
    assert type(stated_node(Part("n1", "maintenance", 0))) is str
    assert stated_node(Part("n1", "maintenance", 0)) == "n1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _FewWide(CountingRule):
    """One job of more than two cores at a time."""

    validity: Validity

    def counts(self, jobs: Sequence[Job], most: Any, up: Callable[[str], int]) -> Iterator[CountedJobs]:
        """Yield what wide jobs may have."""
        takes: Mapping[str, int] = most(jobs, "cores")
        yield CountedJobs(f"wide on {up('cores')} cores", {name: 1 for name, amount in takes.items() if amount > 2}, 1)


@pytest.mark.parametrize(("validity", "closed"), [(Validity(), []), (Validity(until=7), [(0, 7, 1)])])
def test_a_limit_of_another_noun_is_a_licence(validity: Validity, closed: list[tuple[int, int, int]]) -> None:
    """Those jobs take of it that the rule counts, and the licence has its words, path and times."""
    jobs = [waiting(name, 5, chunk(cores=cores)) for name, cores in (("a", 3), ("b", 4), ("c", 2))]
    problem = compiled(window([nodes("n1 n2", cores=4)], *jobs, limits=(_FewWide(validity=validity),)))
    ((rule, counter),) = problem.counters.items()
    assert (f"{rule}", rule.path, rule.reason) == ("wide on 8 cores", "limits[0]", WaitingReason.LIMIT)
    assert [dict(job.licenses) for job in problem.instance.jobs] == [{rule: 1}, {rule: 1}, {}]
    assert (counter.left, list(counter.closed), problem.has_all_plans) == (1, closed, True)


def test_units_are_put_together() -> None:
    """Chunks of a kind that an engine names more than once on a node are one entry of the allocation."""
    chunks = (chunk(3, cores=2), chunk(1, gpus=1))
    found = placements(chunks, [("n2", 0, 1), ("n1", 1, 1), ("n2", 0, 2)])
    assert found == (
        Placement(node="n2", chunk=0, count=3, resources=Amounts({"cores": 6})),
        Placement(node="n1", chunk=1, count=1, resources=Amounts({"gpus": 1})),
    )
    segments = (Segment(start=5, end=7, allocation=found), Segment(start=7, end=9, allocation=found[:1]))
    planned = in_segments("a", iter(segments))
    assert (planned.start, planned.end, planned.segments) == (5, 9, segments)


def test_what_runs_beyond_a_node_fits_for_engines() -> None:
    """Of two jobs on one node's cores the first holds all of it, the other nothing; plans have what the window says."""
    instance = window(
        [nodes("n", cores=4)], running("r", 30, n={"cores": 3}), running("s", 20, n={"cores": 3}),
        waiting("w", 10, chunk(cores=1)),
    )  # fmt: skip
    problem = compiled(instance)
    assert is_overcommitted(instance)
    assert problem.is_overcommitted
    assert not is_overcommitted(problem.instance)
    stated = tuple(repeated(job) for job in instance.jobs if job.running is not None)
    held = problem.to_held(stated)
    assert [[one.resources for one in job.segments[0].allocation] for job in held] == [[{"cores": 4}], []]
    assert problem.to_stated(held) == stated
    fits = replace(instance, jobs=instance.jobs[1:])
    assert compiled(fits).instance is fits
    assert not compiled(fits).is_overcommitted


@pytest.mark.parametrize("seed", seeds(40))
def test_plans_are_translated_there_and_back(seed: int) -> None:
    """A plan of the engines, stated and compiled again, is the same; stated it has no rule and no part of a node."""
    instance = parse_instance(ruled_window(seed), source=f"case {seed}")
    problem = problem_of(instance)
    jobs = PlannerEngine().plan(replace(problem.instance, has_strict_priorities=False), None).jobs
    stated = problem.to_stated(jobs)
    assert problem.to_held(stated) == tuple(jobs)
    allocations = [held for job in stated for segment in job.segments for held in segment.allocation]
    assert {type(key) for held in allocations for key in (held.node, *held.resources)} <= {str}
    assert not is_compiled(instance)
