"""What runs is a fact: odd running jobs are accepted with a warning, by both readers, all engines and the simulator."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from cpsched.cli import main
from cpsched.domain import Instance
from cpsched.errors import Fault
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.lab.policies import make_engine_scheduler, make_scheduler
from cpsched.lab.sim import simulate
from cpsched.portfolio import replan, solve
from cpsched.verify import Judge, verify
from tests.verify.small_documents import Document, instance, job, on, plan, planned, segment

CASES = Path(__file__).resolve().parent / "cases"
ODD = {
    "running-on-down": ["jobs[0].running.allocation[0].node"],
    "running-less-than-asked": ["jobs[0].running.allocation"],
    "running-before-submit": ["jobs[0].running.start"],
    "running-overcommit": ["jobs[1].running.allocation[0]"],
}
ENGINES = (
    "planner",
    "search",
    "cp",
    "portfolio",
    "minizinc",
    "fcfs",
    "easy",
)


def _load(name: str) -> Any:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def _read(document: Document) -> tuple[Instance, list[Fault]]:
    warnings: list[Fault] = []
    return parse_instance(document, on_warning=warnings.append), warnings


def _solved(document: Document, engine: str, budget: float = 1.0) -> dict[str, int]:
    """Return the starts of a plan with which the judge finds no fault."""
    found = solve(_read(document)[0], engine=engine, budget=budget)
    assert verify(document, plan_to_document(found)) == ()
    return {one.id: one.start for one in found.jobs}


@pytest.mark.parametrize(("name", "paths"), ODD.items())
def test_both_readers_warn(name: str, paths: list[str]) -> None:
    """Both readers accept what runs, and warn of it at the same place."""
    _, warnings = _read(_load(name))
    assert [warning.path for warning in warnings] == paths
    assert [warning.path for warning in Judge(_load(name)).warnings] == paths


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ODD)
def test_all_engines_take_it(name: str, engine: str) -> None:
    """Every engine plans beside odd running jobs, and nothing on an overcommitted node until what runs there fits."""
    starts = _solved(_load(name), engine)
    assert starts.get("a") in {"running-overcommit": {50}, "running-less-than-asked": {0}}.get(name, {None})


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("scheduler", ["fcfs", "conservative", "planner"])
def test_the_simulator_takes_it(name: str, scheduler: str) -> None:
    """A simulation begins with odd running jobs, and its record is one that the judge passes."""
    window, _ = _read(_load(name))
    rule = make_engine_scheduler("planner") if scheduler == "planner" else make_scheduler(scheduler)
    record = simulate(window, rule).record()
    assert verify(instance_to_document(window), plan_to_document(record)) == ()
    assert len(record.jobs) == len(window.jobs)


def test_replanning_takes_it() -> None:
    """A plan beside an overcommitted node is brought up to date, and what waits for it waits still."""
    window, _ = _read(_load("running-overcommit"))
    moved, after = replan(window, solve(window, engine="planner"), at=10)
    assert verify(instance_to_document(moved), plan_to_document(after)) == ()
    assert {one.id: one.start for one in after.jobs}["a"] == 50


@pytest.mark.parametrize("command", ["solve", "verify", "replan"])
def test_commands_tell_the_warning(command: str, tmp_path: Path) -> None:
    """The commands print the warning on standard error, and have it in their JSON."""
    window, path = str(CASES / "running-on-down.json"), str(tmp_path / "plan.json")
    first = CliRunner().invoke(main, ["solve", window, "--engine", "planner", "-o", path, "--json"])
    result = first if command == "solve" else CliRunner().invoke(main, [command, window, path, "--json"])
    assert result.exit_code == 0
    assert "warning: jobs[0].running.allocation[0].node: runs on n1, which is down" in result.stderr
    assert [one["path"] for one in json.loads(result.stdout)["warnings"]] == ODD["running-on-down"]


def test_simulate_tells_the_warning() -> None:
    """The command simulate prints the warning on standard error."""
    result = CliRunner().invoke(main, ["simulate", str(CASES / "running-on-down.json"), "--policy", "fcfs"])
    assert result.exit_code == 0
    assert "jobs[0].running.allocation[0].node: runs on n1, which is down" in result.stderr


TWO = (
    job("r", "ncpus=4", running={"start": 0, "allocation": [{"node": "n1", "resources": {"cores": 4}}]}),
    job("s", "ncpus=1", walltime=50, running={"start": 0, "allocation": [{"node": "n1", "resources": {"cores": 1}}]}),
    job("a", "mem=1m"),
)
RUN = [
    planned("r", segment(0, 100, on("n1", None, None, cores=4))),
    planned("s", segment(0, 50, on("n1", None, None, cores=1))),
]


@pytest.mark.parametrize(("node", "start", "rules"), [("n1", 0, ["capacity"]), ("n1", 50, []), ("n2", 0, [])])
def test_nothing_is_planned_on_an_overcommitted_node(node: str, start: int, rules: list[str]) -> None:
    """The judge refuses a job on a node while running jobs take more than it has, whatever else is free there."""
    answer = plan([*RUN, planned("a", segment(start, start + 100, on(node, mem=1)))])
    assert [one.rule for one in verify(instance(*TWO), answer)] == rules


def test_overcommitted_licences_are_a_fact() -> None:
    """Running jobs that hold more licences than there are leave none, and are no violation."""
    where = {"start": 0, "allocation": [{"node": "n1", "resources": {"cores": 1}}]}
    held = [
        job(name, "ncpus=1", licenses={"abaqus": 1}, walltime=100 + at, running=where) for at, name in enumerate("rs")
    ]
    document = instance(
        *held,
        job("a", "ncpus=1", licenses={"abaqus": 1}),
        cluster={"nodes": [{"names": "n1", "resources": {"cores": 4}}], "licenses": {"abaqus": 1}},
    )
    assert [warning.path for warning in Judge(document).warnings] == ["jobs[1].licenses"]
    assert _solved(document, "planner")["a"] == 101


def _crowded(rng: Random) -> Document:
    """Return a window with more running jobs than fit, of which some end, and some that wait."""
    nodes = [{"names": "n[1-3]", "resources": {"cores": 4, "mem": 8}}]
    running = []
    for number in range(rng.randint(2, 5)):
        names = rng.sample(["n1", "n2", "n3"], rng.randint(1, 2))
        malleable = {"malleable": {"shares": [0.5]}} if rng.random() < 0.3 else {}
        more = {} if malleable else {"mem": rng.randint(1, 6)}
        allocation = [{"node": name, "resources": {"cores": rng.randint(1, 4), **more}} for name in names]
        place = rng.choice(["free", "free:excl"])
        fact = {"start": 0, "allocation": allocation}
        running.append(job(f"r{number}", "1:ncpus=2", rng.randint(2, 9), running=fact, place=place, **malleable))
    waiting = [
        job(f"w{number}", f"{rng.randint(1, 3)}:ncpus={rng.randint(1, 4)}", rng.randint(1, 5)) for number in range(3)
    ]
    return instance(*running, *waiting, cluster={"nodes": nodes})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("engine", ["planner", "search", "cp", "easy"])
def test_random_crowds(seed: int, engine: str) -> None:
    """Beside random running jobs that take too much, every job gets a start, and the judge passes the plan."""
    document = _crowded(Random(seed))
    assert len(_solved(document, engine, budget=0.3)) == len(document["jobs"])


@pytest.mark.parametrize("seed", range(12))
def test_random_crowds_simulated(seed: int) -> None:
    """A simulation that begins with running jobs that take too much ends with a record that the judge passes."""
    window, _ = _read(_crowded(Random(seed)))
    for rule in (make_scheduler("easy"), make_scheduler("conservative")):
        record = simulate(window, rule).record()
        assert verify(instance_to_document(window), plan_to_document(record)) == ()
