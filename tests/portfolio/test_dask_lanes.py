"""Lanes on the workers of a Dask cluster: they find plans, a lost one is an event, and errors say what is wrong."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cpsched.cli import main
from cpsched.engine import Board, Budget
from cpsched.errors import EngineError
from cpsched.formats import read_instance
from cpsched.metrics import objective_value
from cpsched.portfolio import solve, team_of, with_dask_lanes
from cpsched.portfolio.dask_lanes import DaskLane, Slice, work
from cpsched.verify import verify_files
from tests.bench.dask_settings import dask_settings
from tests.search.searched import board_of, planned

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

WINDOW = Path(__file__).parents[2] / "instances" / "eurora-like-0050.json.gz"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Return a cluster of two processes on this machine; one that is killed is not started anew."""
    from distributed import LocalCluster

    settings = {"distributed.comm.timeouts.connect": "60s", "distributed.scheduler.worker-ttl": None}
    with (
        dask_settings(settings),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    """Return a client of the cluster."""
    with cluster.get_client() as client:
        yield client


@pytest.mark.large
def test_a_slice_of_work_is_a_better_plan() -> None:
    """What a worker does with a plan, done here: it returns a better one that plans the same jobs."""
    instance = read_instance(WINDOW)
    first = planned(instance)
    found = work(instance, first.jobs, (), Slice(engine="search", lane=0, seed=3, seconds=20.0))
    assert found.best is not None
    assert [job.id for job in found.best.jobs] == [job.id for job in first.jobs]
    assert found.best.value == objective_value(instance, found.best.jobs) < objective_value(instance, first.jobs)


@pytest.mark.large
def test_workers_find_plans(cluster: LocalCluster) -> None:
    """A team with nobody at home but the planner gets better plans from its workers, which the verifier accepts."""
    instance = read_instance(WINDOW)
    address: str = cluster.scheduler_address
    with with_dask_lanes(team_of("search", workers=1), "search", address) as team:
        assert len(team.lanes) == 1 + 2
        alone = type(team)(first=team.first, lanes=team.lanes[1:])
        plan = solve(instance, engine="search", budget=8, team=alone)
    assert plan.objective.value < plan.objective.planner
    assert {found.by.split(":")[0] for found in plan.incumbents} <= {"planner", "list", "search"}
    assert not [event for event in plan.events if event.by == "dask"]


@pytest.mark.slow
def test_the_command_uses_the_workers(cluster: LocalCluster, tmp_path: Path) -> None:
    """``solve --dask`` writes a verified plan; without a scheduler it says which one was expected, and writes none."""
    plan = tmp_path / "plan.json"
    asked = ["solve", str(WINDOW), "--engine", "search", "--workers", "1", "--budget", "3", "-o", str(plan)]
    shown = CliRunner().invoke(main, [*asked, "--dask", cluster.scheduler_address])
    assert shown.exit_code == 0, shown.output
    assert verify_files(WINDOW, plan) == ()
    plan.unlink()
    with dask_settings({"distributed.comm.timeouts.connect": "300ms"}):
        shown = CliRunner().invoke(main, [*asked, "--dask", "tcp://127.0.0.1:1"])
    assert shown.exit_code == 4
    assert "Expected a Dask scheduler at tcp://127.0.0.1:1" in shown.stderr
    assert not plan.exists()


@pytest.mark.slow
def test_a_worker_that_is_lost_is_an_event(client: Client) -> None:
    """A killed worker ends its own lane, which says so, and no other."""
    instance = read_instance(WINDOW)
    board = board_of(instance, planned(instance), seconds=20)
    pids: dict[str, int] = client.run(os.getpid)
    lost, kept = sorted(pids)
    lanes = {worker: DaskLane(client, worker, "search", place) for place, worker in enumerate((lost, kept))}
    threads = {
        worker: Thread(target=lane.improve, args=(instance, board), kwargs={"seed": 0})
        for worker, lane in lanes.items()
    }
    for thread in threads.values():
        thread.start()
    time.sleep(1)
    os.kill(pids[lost], signal.SIGKILL)
    threads[lost].join(60)
    assert not threads[lost].is_alive()
    assert threads[kept].is_alive()
    assert [(event.by, event.what) for event in board.events] == [("dask", f"the worker {lost} is lost; its lane ends")]
    threads[kept].join(120)
    assert not threads[kept].is_alive()
    assert board.best.version > 0


def test_no_scheduler_and_no_lanes_are_told() -> None:
    """Where nobody answers, or where the engine improves nothing, the error says so."""
    with (
        dask_settings({"distributed.comm.timeouts.connect": "300ms"}),
        pytest.raises(EngineError, match=r"Expected a Dask scheduler at tcp://127\.0\.0\.1:1, got: "),
        with_dask_lanes(team_of("search"), "search", "tcp://127.0.0.1:1"),
    ):
        pass
    with (
        pytest.raises(EngineError, match="Expected an engine that improves plans"),
        with_dask_lanes(team_of("planner"), "planner", "tcp://127.0.0.1:1"),
    ):
        pass


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what is missing and how it is installed."""
    monkeypatch.setattr("cpsched.portfolio.dask_lanes.find_spec", lambda name: None)
    with (
        pytest.raises(EngineError, match=r"need distributed, .* pip install '\.\[bench\]'"),
        with_dask_lanes(team_of("search"), "search", "tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.slow
def test_another_version_is_refused(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers with another version of cpsched would read the window otherwise: they are not used."""
    monkeypatch.setattr("cpsched.portfolio.dask_lanes.version", lambda name: "0.0.0")
    with (
        pytest.raises(EngineError, match=r"Expected cpsched 0\.0\.0 on tcp://.*, got "),
        with_dask_lanes(team_of("search"), "search", cluster.scheduler_address),
    ):
        pass


def test_a_budget_too_short_for_the_way_is_not_spent() -> None:
    """With less than half a second left no worker is asked."""
    instance = read_instance(WINDOW)
    board = Board(
        planned(instance).jobs, by="planner", budget=Budget(0.4), value_of=lambda jobs: 0.0, judge=lambda jobs: []
    )
    DaskLane(None, "tcp://nobody", "search", 0).improve(instance, board, seed=0)  # type: ignore[arg-type]  # no client is asked
    assert board.best.version == 0
