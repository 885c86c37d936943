"""The daemon on a directory: a site's own script writes what is true, and carries out the orders that it finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cpsched.cli import main
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.site.daemon import daemon_of, read_site
from cpsched.site.daemon.window import planning_window

FILE = """\
dry_run = {dry_run}
allow_root = true
[manager]
kind = "files"
directory = "{folder}"
[planning]
engine = "planner"
budget = 0
[store]
url = "sqlite:///{folder}/cpsched.db"
"""


class Script:
    """A site with four nodes of four cores, whose jobs take as long as they asked for. Mutable."""

    def __init__(self, folder: Path, jobs: dict[str, int]) -> None:
        self.folder, self.now = folder, 1000
        #: Their nodes; what runs with start and nodes; how often each has run.
        self.waiting, self.running = dict(jobs), dict[str, tuple[int, list[dict[str, Any]]]]()
        self.runs = dict.fromkeys(jobs, 0)

    def site(self, *, dry_run: bool = False) -> Path:
        """Write the site's file."""
        path = self.folder / "site.toml"
        path.write_text(FILE.format(folder=self.folder, dry_run=str(dry_run).lower()))
        return path

    def write(self) -> None:
        """Write what is true."""
        jobs: list[dict[str, Any]] = [
            {"id": name, "submit": 0, "walltime": 60, "request": f"{nodes}:ncpus=4"}
            for name, nodes in self.waiting.items()
        ]
        jobs += [
            {"id": name, "submit": 0, "walltime": 60, "request": f"{len(places)}:ncpus=4",
             "running": {"start": start, "allocation": places}}
            for name, (start, places) in self.running.items()
        ]  # fmt: skip
        cluster = {"nodes": [{"names": "n[1-4]", "resources": {"cores": 4}}]}
        document = {"format": "cpsched-instance/1", "name": "s", "now": self.now, "cluster": cluster, "jobs": jobs}
        new = self.folder / "new"
        new.write_text(json.dumps(document))
        new.rename(self.folder / "instance.json")

    def orders(self) -> dict[str, Any]:
        """Return the orders by job."""
        document = json.loads((self.folder / "orders.json").read_text())
        assert document["format"] == "cpsched-orders/1"
        return {entry["job"]: entry for entry in document["orders"]}

    def work(self, seconds: int) -> None:
        """Let time pass, end what is over, and start what is ordered."""
        self.now += seconds
        self.running = {name: one for name, one in self.running.items() if one[0] + 60 > self.now}
        for name, entry in self.orders().items():
            if name in self.waiting and entry["order"] == "start" and entry["at"] <= self.now:
                busy = {place["node"] for _, places in self.running.values() for place in places}
                assert busy.isdisjoint(place["node"] for place in entry["allocation"])
                assert len(entry["allocation"]) == self.waiting.pop(name)
                self.running[name] = self.now, entry["allocation"]
                self.runs[name] += 1
        self.write()


@pytest.mark.slow
def test_jobs_of_a_directory_run_as_planned(tmp_path: Path) -> None:
    """Each job runs once, on the nodes ordered, as many at a time as there is room for; afterwards nothing is left."""
    script = Script(tmp_path, {"a": 4, "b": 2, "c": 1, "d": 1, "e": 3})
    script.write()
    path = script.site()
    daemon = daemon_of(read_site(path), path)
    daemon.begin()
    for _ in range(12):
        assert daemon.cycle()
        script.work(20)
    assert script.runs == dict.fromkeys("abcde", 1)
    assert not script.waiting
    assert json.loads((tmp_path / "orders.json").read_text())["gate"] == "closed"
    daemon.close()


def choosing(folder: Path, *, has_choice: bool = True) -> None:
    """Write that two of four nodes are busy until 1090, and that two jobs may have two nodes in place of all four."""
    held = [{"node": node, "resources": {"cores": 4}} for node in ("n1", "n2")]
    busy: dict[str, Any] = {"id": "busy", "submit": 0, "walltime": 100, "request": "2:ncpus=4"}
    jobs = [busy | {"running": {"start": 990, "allocation": held}}]
    for name in ("a", "b"):
        choice = {"alternatives": [{"walltime": 70, "request": "2:ncpus=4"}]} if has_choice else {}
        jobs.append({"id": name, "submit": 0, "walltime": 60, "request": "4:ncpus=4"} | choice)
    cluster = {"nodes": [{"names": "n[1-4]", "resources": {"cores": 4}}]}
    document = {"format": "cpsched-instance/1", "name": "s", "now": 1000, "cluster": cluster, "jobs": jobs}
    (folder / "instance.json").write_text(json.dumps(document))


def test_a_job_with_a_choice_starts_by_that_of_the_plan(tmp_path: Path) -> None:
    """The order says which alternative it is, also after a restart; where it is gone the plan is another one."""
    choosing(tmp_path)
    script = Script(tmp_path, {})
    path = script.site()
    daemon = daemon_of(read_site(path), path)
    daemon.begin()
    assert daemon.cycle()
    orders = script.orders()
    assert sorted((one["order"], one.get("alternative")) for one in orders.values()) == [("hold", None), ("start", 1)]
    (first,) = (name for name, one in orders.items() if one["order"] == "start")
    assert {one["node"] for one in orders[first]["allocation"]} == {"n3", "n4"}
    plan = dict(daemon.state.plan)
    ahead = planning_window(daemon.state, lead=5)
    assert {job.id for job in ahead.instance.jobs if job.running is not None} == {"busy", first}
    assert parse_instance(instance_to_document(ahead.instance))
    daemon.close()
    daemon = daemon_of(read_site(path), path)
    daemon.begin()
    assert dict(daemon.state.plan) == plan
    choosing(tmp_path, has_choice=False)
    assert daemon.cycle()
    assert {one["order"] for name, one in script.orders().items() if name in ("a", "b")} == {"hold"}
    daemon.close()


def test_a_directory_has_a_dry_run_and_is_handed_back(tmp_path: Path) -> None:
    """A dry run writes no orders; ``--once`` writes those of one cycle, and ``--hand-back`` takes all of them back."""
    script = Script(tmp_path, {"a": 4, "b": 4})
    script.write()

    def run(path: Path, task: str) -> str:
        done = CliRunner().invoke(main, ["daemon", "--config", str(path), task])
        assert done.exit_code == 0, done.output
        return done.output

    assert "in order; files, a dry run" in run(script.site(dry_run=True), "--check")
    run(script.site(dry_run=True), "--once")
    assert not (tmp_path / "orders.json").exists()
    run(script.site(), "--once")
    assert sorted(entry["order"] for entry in script.orders().values()) == ["hold", "start"]
    run(script.site(), "--hand-back")
    assert {entry["order"] for entry in script.orders().values()} == {"hand_back"}
    assert json.loads((tmp_path / "orders.json").read_text())["gate"] == "open"


def test_the_directory_is_an_absolute_path(tmp_path: Path) -> None:
    """A relative directory is refused with its path in the file."""
    path = tmp_path / "site.toml"
    path.write_text(FILE.format(folder="here", dry_run="true"))
    with pytest.raises(DocumentError, match=r"manager\.directory: Expected an absolute path"):
        read_site(path)
