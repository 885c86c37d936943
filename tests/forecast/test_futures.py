"""Futures of a window: what is played is what the simulator plays, and what cannot be is not told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import FOR_EVER, Instance, Job
from cpsched.forecast import Kind, RuntimeLearner, forecast, play_futures
from cpsched.formats import parse_instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate
from cpsched.problem import dominant_share
from tests.sizes import examples

DAY = 86_400
NOW = 2 * DAY


def by_smith(instance: Instance, job: Job) -> float:
    """Order by Smith's index: expected wait x expected runtime x largest share of the machine / weight."""
    share = dominant_share(instance.cluster, job)
    return float(instance.expected_wait(job) * job.expected_runtime * share / instance.weight(job))


class Knowing(RuntimeLearner):
    """Knows how long the jobs of each user run."""

    def __init__(self, lengths: dict[str, int]) -> None:
        super().__init__()
        self.lengths = lengths

    def quantiles(self, kind: Kind, levels: Any, *, ran: int = 0) -> Any:
        """Return the one runtime, however much of it is over."""
        assert kind.user is not None
        return np.full(len(levels), max(self.lengths[kind.user], ran + 1))


def window(jobs: list[dict[str, Any]], *, now: int = NOW, nodes: int = 4, **rest: Any) -> Instance:
    """Return an instance of nodes with one core."""
    cluster = {"nodes": [{"names": f"n[1-{nodes}]", "resources": {"cores": 1}}], **rest.pop("cluster", {})}
    document = {"format": "cpsched-instance/1", "name": "w", "now": now, "cluster": cluster, "jobs": jobs, **rest}
    return parse_instance(document, source="test")


def waiting(name: str, size: int, walltime: int, submit: int = NOW, **rest: Any) -> dict[str, Any]:
    """Return a job of its own user."""
    return {"id": name, "user": name, "submit": submit, "walltime": walltime, "request": f"{size}:ncpus=1", **rest}


def running(name: str, nodes: list[int], walltime: int, since: int, **rest: Any) -> dict[str, Any]:
    """Return a job that runs on some nodes."""
    held = [{"node": f"n{node}", "resources": {"cores": 1}} for node in nodes]
    start = {"start": NOW - since, "allocation": held}
    return {**waiting(name, len(nodes), walltime, NOW - since, **rest), "running": start}


def starts(
    instance: Instance, learner: RuntimeLearner, past: tuple[Job, ...] = (), **rest: Any
) -> dict[str, list[int]]:
    """Return the starts of each job in all futures, in seconds from now on."""
    found = play_futures(instance, learner, past, **{"futures": 3, **rest})
    return {name: (found.starts[:, place] - instance.now).tolist() for place, name in enumerate(found.ids)}


@pytest.mark.kernels
def test_a_worked_example() -> None:
    """Four nodes, two busy until 100 though the rule believes 400. The wide job waits for them; beside it only the job
    starts at once that ends by 400; the long one starts after the wide one, at 150.
    """
    instance = window(
        [
            running("r", [1, 2], 400, 0),
            waiting("wide", 4, 60),
            waiting("long", 1, 500),
            waiting("short", 1, 300),
        ]
    )
    found = starts(instance, Knowing({"r": 100, "wide": 50, "long": 500, "short": 90}))
    assert found == {"wide": [100] * 3, "long": [150] * 3, "short": [0] * 3}


def test_what_arrives_delays_only_as_the_rule_lets_it() -> None:
    """A job of three nodes waits for two to come free; one that arrived yesterday at this time, and may come again a
    second from now, takes the free node for as long as the rule lets it: beyond the start of the first one, not of the
    second.
    """
    jobs = [running("r", [1, 2], 100, 0), waiting("head", 4, 50), waiting("second", 3, 50)]
    (late,) = window([waiting("late", 1, 100, NOW - DAY)]).jobs
    lengths = {"r": 100, "head": 50, "second": 50, "late": 100}
    assert starts(window(jobs), Knowing(lengths)) == {"head": [100] * 3, "second": [150] * 3}
    assert starts(window(jobs), Knowing(lengths), (late,)) == {"head": [100] * 3, "second": [150] * 3}
    jobs[1] = waiting("head", 3, 50)
    (longer,) = window([waiting("late", 1, 10_000, NOW - DAY)]).jobs
    assert starts(window(jobs), Knowing({**lengths, "late": 10_000}), (longer,))["second"] == [150] * 3


def test_dependencies_and_what_is_set_aside() -> None:
    """A job that waits for the end of a running one, and of another, starts with their delays; a downtime of all nodes
    from 200 to 300 lets no job run into it.
    """
    after = [{"job": "r", "type": "afterok", "delay": 10}]
    jobs = [
        running("r", [1], 55, 0),
        waiting("a", 1, 50, after=after),
        waiting("b", 1, 20, after=[{"job": "a", "type": "after", "delay": 5}]),
        waiting("c", 1, 20, after=[{"job": "a", "type": "afterany"}]),
    ]
    lengths = {"r": 40, "a": 30, "b": 20, "c": 20}
    assert starts(window(jobs), Knowing(lengths)) == {"a": [50] * 3, "b": [55] * 3, "c": [80] * 3}
    down = {"id": "d", "start": NOW + 60, "end": NOW + 300, "kind": "downtime", "nodes": "n[1-4]"}
    found = starts(window(jobs, reservations=[down]), Knowing(lengths))
    assert found == {"a": [300] * 3, "b": [305] * 3, "c": [330] * 3}


def test_a_job_that_cannot_start_has_no_forecast() -> None:
    """Not one that is too wide, nor one that waits for it."""
    jobs = [waiting("wide", 5, 10), waiting("a", 1, 10, after=[{"job": "wide", "type": "after"}]), waiting("b", 1, 10)]
    assert starts(window(jobs), RuntimeLearner()) == {"b": [0] * 3}
    assert starts(window([]), RuntimeLearner()) == {}
    with pytest.raises(ValueError, match="at least 1"):
        play_futures(window(jobs), RuntimeLearner(), futures=0)


def test_futures_end_when_that_is_enough() -> None:
    """Those that were played are the first ones of more."""
    instance = window([waiting(f"j{number}", 4, 100) for number in range(3)])
    short = play_futures(instance, RuntimeLearner(), futures=20, seed=1, is_over=lambda played: played >= 4)
    assert short.starts.shape == (4, 3)
    assert forecast(instance, RuntimeLearner(), futures=20, is_over=lambda played: played >= 4)


def test_names_of_the_past_are_no_names_of_now() -> None:
    """Jobs of the past have other names than those that wait, whatever these are."""
    (old,) = window([waiting("past 0", 1, 10, NOW - DAY)]).jobs
    jobs = [waiting("past 0", 1, 10), waiting("past past 0", 1, 10)]
    assert starts(window(jobs), RuntimeLearner(), (old,)) == {"past 0": [0] * 3, "past past 0": [0] * 3}


jobs_of_a_window = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 60), st.integers(1, 80)), max_size=8)


@pytest.mark.slow
@pytest.mark.kernels
@given(
    here=jobs_of_a_window,
    runs=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 50), st.integers(1, 80)), max_size=4),
    coming=st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 60), st.integers(1, 80), st.integers(0, 120)), max_size=8
    ),
    is_smith=st.booleans(),
)
@examples(100)
def test_a_future_is_what_the_simulator_plays(
    here: list[tuple[int, int, int]],
    runs: list[tuple[int, int, int]],
    coming: list[tuple[int, int, int, int]],
    is_smith: bool,
) -> None:
    """With one runtime for each job, and the jobs of a day ago that come again, all waiting jobs start as they do under
    the simulator's EASY backfilling, or WSPT with it, which share no code with the player.
    """
    jobs, lengths = list[dict[str, Any]](), dict[str, int]()
    for number, (walltime, since, length) in enumerate(runs):
        ran = min(since, walltime - 1)
        lengths[f"r{number}"] = max(min(length, walltime), ran + 1)
        jobs.append(running(f"r{number}", [1 + number], walltime, ran))
    for number, (size, walltime, length) in enumerate(here):
        lengths[f"w{number}"] = min(length, walltime)
        jobs.append(waiting(f"w{number}", size, walltime))
    past, future = [], []
    for number, (size, walltime, length, offset) in enumerate(coming):
        lengths[f"a{number}"] = min(length, walltime)
        past.append(waiting(f"a{number}", size, walltime, NOW - DAY + offset))
        future.append(waiting(f"a{number}", size, walltime, NOW + 1 + offset))
    past.append(waiting("first", 1, 1, NOW - DAY))
    lengths["first"] = 1
    future.append(waiting("first", 1, 1, NOW + 1))
    order = {"order": by_smith} if is_smith else {}
    found = starts(window(jobs), Knowing(lengths), window(past).jobs, futures=1, **order)
    workload = window([{**job, "runtime": lengths[job["id"]]} for job in (*jobs, *future)])
    scheduler = make_scheduler("wspt", {"backfill": "easy"}) if is_smith else make_scheduler("easy")
    runs_of = simulate(workload, scheduler).runs
    played = dict(zip(runs_of.ids, (runs_of.start - NOW).tolist(), strict=True))
    assert {name: one for name, (one,) in found.items()} == {name: played[name] for name in found}


@given(here=jobs_of_a_window, seed=st.integers(0, 9))
def test_starts_ascend_and_are_the_same_for_a_seed(here: list[tuple[int, int, int]], seed: int) -> None:
    """The starts of a job ascend over the futures, none is before now; the same seed gives the same ones; and the first
    job of the queue, which fits the empty machine, starts now in all of them.
    """
    instance = window([waiting(f"w{number}", size, walltime) for number, (size, walltime, _) in enumerate(here)])
    learner = RuntimeLearner()
    for number, (_, walltime, runtime) in enumerate(here):
        learner.learn(Kind(None, f"w{number}", walltime), runtime)
    found = play_futures(instance, learner, futures=20, seed=seed)
    assert (np.diff(found.starts, axis=0) >= 0).all()
    assert found.starts.min(initial=NOW) >= NOW
    assert (found.starts < NOW + FOR_EVER).all()
    if here:
        assert set(found.starts[:, 0].tolist()) == {NOW}
    again = play_futures(instance, learner, futures=20, seed=seed)
    assert found.ids == again.ids
    assert (found.starts == again.starts).all()
