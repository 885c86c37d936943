"""The report on a replay: how near it is, in words, and what a change does over the replicas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cpsched.metrics import Ending, SimulatedRun, fidelity
from cpsched.report import CampaignCell, Replay, replay_report, replay_tables
from tests.metrics.made_runs import Row, runs_of


def a_run(policy: str, *waits: int) -> SimulatedRun:
    """Return a simulation of jobs that come at once, wait so long, and run for a minute each."""
    rows = (Row(0, wait, wait + 60, ending=Ending.COMPLETED, user=f"u{job}") for job, wait in enumerate(waits))
    return SimulatedRun(workload="w", policy=policy, capacity={"cores": 20}, runs=runs_of(*rows))


def a_replay(real: SimulatedRun | None, unchanged: SimulatedRun, **changed: list[float]) -> Replay:
    """Return a replay of three replicas with these mean waits; those of the unchanged one are 100, 110 and 120 s."""
    means = {"unchanged": [100.0, 110.0, 120.0], **changed}
    cells = [
        CampaignCell(workload="w", policy=policy, replica=str(place), figures={"wait.mean": value, "wqt": None})
        for place in range(3)
        for policy, values in means.items()
        for value in values[place : place + 1]
    ]
    only = np.ones(len(unchanged.runs), dtype=np.bool_)
    runs = (unchanged, *(replace(unchanged, policy=policy) for policy in changed))
    return Replay(
        name="w",
        real=real,
        runs=runs,
        summaries={run.policy: run.summary(only=only) for run in (*([] if real is None else [real]), *runs)},
        only=only,
        fidelity=None if real is None else fidelity(real.runs, unchanged.runs, only),
        cells=tuple(cells),
        replicas=3,
    )


@pytest.mark.parametrize(
    ("real", "replayed", "said"),
    [
        ((1000, 2000, 3000), (1100, 2000, 3000), "near"),
        ((0, 10, 20), (20, 10, 50), "near"),
        ((10, 20, 90), (80, 20, 160), "rough"),
        ((1000, 2000, 3000), (700, 1500, 2000), "rough"),
        ((1000, 2000, 3000), (100, 200, 300), "far: jobs waited for something"),
        ((1000, 2000, 3000), (3000, 2000, 1000), "far"),
        ((100, 200, 300), (1000, 2000, 3000), "far: jobs waited less than the replay"),
    ],
)
def test_how_near_it_is_stands_first(real: tuple[int, ...], replayed: tuple[int, ...], said: str) -> None:
    """By the mean wait, of which a minute is nothing, and by whether the same jobs wait long, or all start alike."""
    report = replay_report(a_replay(a_run("as it was", *real), a_run("unchanged", *replayed)))
    assert f"That is {said}" in report.sentences[0]
    assert report.sections[0].title == "How near the replay is"
    assert report.sections[0].tables[0].rows[0][1] == "3"


def test_without_real_starts_nothing_is_said_to_be_near() -> None:
    """There is no table of it then, and no column of what happened."""
    replay = a_replay(None, a_run("unchanged", 10, 20))
    report = replay_report(replay)
    assert report.sentences[0].startswith("The history does not say when jobs started")
    assert report.sections[0].tables == ()
    assert list(replay.summaries) == ["unchanged"]
    assert len(list(replay_tables(replay))) == 1


def test_differences_are_within_replicas() -> None:
    """10 s less in each replica is more than chance, though the replicas differ by more; mixed ones may be chance."""
    changed = {"less": [90.0, 100.0, 110.0], "mixed": [90.0, 115.0, 119.0], "same": [100.0, 110.0, 120.0]}
    replay = a_replay(a_run("as it was", 10, 20), a_run("unchanged", 10, 20), **changed)
    found = {one.label: one for one in replay.differences()}
    assert {one.figure for one in found.values()} == {"wait.mean"}  # what was not measured is left out
    assert (found["less"].difference.mean, found["less"].difference.half_width) == (-10.0, 0.0)
    assert found["less"].share == pytest.approx(-10 / 110)
    sentences = replay_report(replay).sentences[1:]
    assert [words.partition(":")[0] for words in sentences] == ["less", "mixed", "same"]
    assert "more than chance (3 replicas)" in sentences[0]
    assert "may be chance" in sentences[1]
    assert "no job waits longer or shorter in the mean" in sentences[2]
    assert len(list(replay_tables(replay))) == 1 + 3 + 1


def test_one_replica_does_not_tell_chance() -> None:
    """There is no interval then."""
    replay = a_replay(None, a_run("unchanged", 10, 20), less=[90.0])
    one = replace(replay, cells=tuple(cell for cell in replay.cells if cell.replica == "0"), replicas=1)
    assert "one replica does not tell" in replay_report(one).sentences[1]
