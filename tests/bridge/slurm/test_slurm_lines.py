"""Looks at Slurm's jobs by a line for each: when the JSON of all jobs is read, and when it is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cpsched.domain import Amounts, Placement
from cpsched.errors import BridgeError
from cpsched.site.bridge import Announce, HandBack, Hold, Note, Order, Refusal, Requeue, Result, Start
from cpsched.site.bridge.commands import Answer
from cpsched.site.bridge.slurm import SlurmClient, SlurmManager, SlurmModel
from cpsched.site.bridge.slurm.json_reader import read_answer
from cpsched.site.bridge.slurm.lines import COLUMNS, END, as_ordered, lines_by_job
from cpsched.site.bridge.slurm.marker import GATE
from cpsched.site.bridge.slurm.records import SlurmRecords
from tests.bridge.slurm.answers import NODES_2205, NOW, Document, running, waiting

#: Which column has what of a job; of the others all have the same.
KEYS = {
    "JobID": "job_id",
    "ReqNodes": "required_nodes",
    "NumNodes": "node_count",
    "MinCPUs": "minimum_cpus_per_node",
    "NumCPUs": "cpus",
    "EligibleTime": "eligible_time",
    "Reason": "state_reason",
    "admin_comment": "admin_comment",
    "State": "job_state",
    "TimeLimit": "time_limit",
}


def line(job: Document) -> str:
    """Return the line of a job."""
    values = [str(job.get(KEYS.get(column, ""), "")) or "(null)" for column in COLUMNS]
    return "".join(f"{value}{END}" for value in values)


def steered(number: int, **fields: Any) -> Document:
    """Return a waiting job that is steered."""
    return waiting(
        number, **{"eligible_time": GATE, "state_reason": "BeginTime", "admin_comment": "cpsched:1", **fields}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(SlurmClient):
    """Answers from some jobs, which lines for scontrol change; counts the answers in JSON. Mutable."""

    jobs_by_id: dict[str, Document] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def command(self, *arguments: str, given: str = "", codes: Sequence[int] = (0,)) -> Answer:
        """Answer as Slurm would."""
        said = ""
        if "--version" in arguments:
            said = "slurm 22.05.8"
        elif "--json" in arguments and arguments[0] == "squeue":
            self.read.append("jobs")
            said = json.dumps({"jobs": list(self.jobs_by_id.values())}, indent=2)
        elif "--json" in arguments:
            said = json.dumps({"nodes": NODES_2205}, indent=2)
        elif any(one.startswith("--Format") for one in arguments):
            said = "".join(f"{line(job)}\n" for job in self.jobs_by_id.values())
        elif given:
            self._obey(given)
        elif arguments[-1] == "config":
            said = "Configuration data as of 2026-01-01\nSelectType = select/cons_tres\n"
        elif "show" in arguments:
            said = f"No {arguments[-1]} in the system\n"
        return Answer(0, said.encode(), "")

    def _obey(self, given: str) -> None:
        for order in given.splitlines():
            if order.startswith("requeue "):
                name = order.split()[-1]
                self.written.append(name)
                self.jobs_by_id[name] |= {"job_state": "COMPLETING", "restart_cnt": 1}
                continue
            words = dict(word.split("=", 1) for word in order.split()[1:])
            job = self.jobs_by_id[words["JobId"]]
            self.written.append(words["JobId"])
            job["admin_comment"] = words["AdminComment"]
            if "StartTime" in words:
                job["eligible_time"] = int(words["StartTime"][3:])
            if "ReqNodeList" in words:
                job["required_nodes"] = words["ReqNodeList"]


def manager_of(*jobs: Document) -> tuple[SlurmManager, Told]:
    """Return a manager that has taken a snapshot of some jobs, and its Slurm."""
    slurm = Told(jobs_by_id={str(job["job_id"]): job for job in jobs})
    manager = SlurmManager(slurm, SlurmModel(kind="slurm", steering="exact"), clock=lambda: NOW)
    manager.snapshot()
    assert slurm.read.pop() == "jobs"
    return manager, slurm


def start_of(manager: SlurmManager, job: str) -> Start:
    """Return an order to start a job as it is now."""
    revision = manager.snapshot().jobs[job].revision
    place = Placement(node="m1", resources=Amounts({"cores": 1}), chunk=0, count=1)
    return Start(job=job, at=NOW + 5, allocation=(place,), revision=revision)


def test_jobs_whose_lines_are_as_before_are_not_read_again() -> None:
    """Another look, an order that is carried out, and the look after it read no JSON; what the order did is seen."""
    manager, slurm = manager_of(steered(1), steered(2))
    (receipt,) = manager.apply([start_of(manager, "1")])
    assert receipt.result is Result.DONE
    facts = manager.snapshot().jobs["1"]
    assert (facts.due, facts.nodes) == (NOW + 5, ("m1",))
    assert slurm.read == []
    slurm.jobs_by_id["2"]["time_limit"] = 99
    assert manager.snapshot().instance.jobs[1].walltime == 99 * 60
    assert slurm.read == ["jobs"]


def test_no_job_is_stopped_where_another_one_is_not() -> None:
    """Of the stops for one job all are ordered or none; a stopped job gives back its nodes, and is seen to do so."""
    batch = {"requeue": True, "batch_flag": True}
    manager, slurm = manager_of(*(running(number, "m1", {"m1": (1, 100)}, **batch) for number in (1, 2, 3)))
    seen = manager.snapshot().jobs
    stops = [Requeue(job=job, urgent="9", revision=seen[job].revision, nodes=("m1",)) for job in ("1", "2")]
    other = replace(stops[0], job="3", urgent="8", revision=seen["3"].revision)
    receipts = manager.apply([replace(stops[0], revision="another"), stops[1], other])
    assert [one.refusal for one in receipts] == [Refusal.CHANGED, Refusal.CHANGED, None]
    assert slurm.written == ["3"]
    assert [one.result for one in manager.apply(stops)] == [Result.DONE] * 2
    facts = manager.snapshot().jobs
    assert {(one.is_leaving, one.restarts) for one in facts.values()} == {(True, 1)}


def test_a_note_is_written_once_and_has_what_all_orders_say() -> None:
    """A forecast, an announcement and a hold of one job, in one cycle, are one line; each has its receipt."""
    manager, slurm = manager_of(waiting(1), waiting(2, admin_comment="ticket-12"))
    note = Note(job="1", forecast=(NOW + 60, NOW + 90))
    announced = Announce(job="1", start=NOW + 60, nodes=("m1",), why="it waits")
    orders: list[Order] = [note, announced, Hold(job="1", until=NOW + 300), replace(note, job="2")]
    receipts = manager.apply(orders)
    assert [one.order for one in receipts] == orders
    assert [one.result for one in receipts] == [Result.DONE] * 3 + [Result.REFUSED]
    assert slurm.written == ["1"]
    said = slurm.jobs_by_id["1"]["admin_comment"]
    assert all(f";{key}=" in said for key in ("until", "start", "where", "why", "forecast"))
    facts = manager.snapshot().jobs
    assert (facts["1"].noted, facts["1"].until, facts["1"].may_note) == (note.forecast, NOW + 300, True)
    assert (facts["2"].noted, facts["2"].may_note, facts["2"].is_marked) == (None, False, False)
    assert [one.result for one in manager.apply(orders[:3])] == [Result.ALREADY] * 3


@pytest.mark.parametrize(
    ("what", "refusal"),
    [({"time_limit": 99}, Refusal.CHANGED), ({"state_reason": "JobHeldUser", "priority": 0}, Refusal.HELD)],
)
def test_a_job_whose_line_has_changed_is_read_again_before_an_order(what: Document, refusal: Refusal) -> None:
    """It was changed between the snapshot and the order: it is not started."""
    manager, slurm = manager_of(steered(1), steered(2))
    order = start_of(manager, "1")
    slurm.jobs_by_id["1"] |= what
    (receipt,) = manager.apply([order])
    assert (receipt.result, receipt.refusal) == (Result.REFUSED, refusal)
    assert slurm.read == ["jobs"]


def test_an_order_that_is_not_seen_to_be_done_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is as before says that nothing was done: the receipt is what the jobs themselves say."""
    manager, slurm = manager_of(steered(1))
    monkeypatch.setattr(Told, "_obey", lambda self, given: None)
    (receipt,) = manager.apply([start_of(manager, "1")])
    assert receipt.result is Result.UNKNOWN
    assert slurm.read == ["jobs"]


@pytest.mark.parametrize("said", ["", "garbage", line(steered(1))])
def test_lines_that_leave_jobs_out_are_not_trusted(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """Where squeue prints nothing, or not all, each look reads the jobs themselves."""
    manager, slurm = manager_of(steered(1), steered(2))
    monkeypatch.setattr(Told, "lines", lambda self: said)
    for limit in (30, 40):
        slurm.jobs_by_id["2"]["time_limit"] = limit
        assert manager.snapshot().instance.jobs[1].walltime == 60 * limit
    (receipt,) = manager.apply([start_of(manager, "1")])
    assert receipt.result is Result.DONE
    assert slurm.read == ["jobs"] * 5


def test_jobs_are_read_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not everything is in the lines: a job that excludes other nodes than before is seen some seconds later."""
    manager, slurm = manager_of(steered(1))
    slurm.jobs_by_id["1"]["excluded_nodes"] = "m2"
    manager.snapshot()
    assert slurm.read == []
    monkeypatch.setattr("cpsched.site.bridge.slurm.manager._TRUSTED", -1.0)
    (job,) = manager.snapshot().instance.jobs
    assert job.request.chunks[0].where != {}
    assert slurm.read == ["jobs"]


def test_a_job_is_read_from_its_line_as_from_json() -> None:
    """What an order may change is the same in both; more is not read from lines."""
    job = steered(1)
    (record,) = read_answer({"jobs": [job]}, "squeue").jobs
    changed = job | {"required_nodes": "g[1-2]", "eligible_time": NOW, "admin_comment": "cpsched:1;at=5"}
    changed |= {"minimum_cpus_per_node": 3, "state_reason": "Resources"}
    (expected,) = read_answer({"jobs": [changed]}, "squeue").jobs
    assert as_ordered(record, line(job), line(changed)) == expected
    for other in ({"job_state": "RUNNING"}, {"time_limit": 5}, {"state_reason": "JobHeldAdmin"}, {"cpus": "1K"}):
        assert as_ordered(record, line(job), line(changed | other)) is None
    assert as_ordered(record._replace(state=record.state.HELD), line(job), line(changed)) is None
    assert as_ordered(record, line(job), line(changed) + END) is None


def test_lines_are_told_apart_by_number() -> None:
    """Each line is that of the job whose number it begins with."""
    jobs = [steered(1), steered(2), steered(17)]
    assert lines_by_job("".join(f"{line(job)}\n" for job in jobs)) == {str(job["job_id"]): line(job) for job in jobs}


def test_an_order_for_a_task_of_an_array_reads_all_jobs() -> None:
    """Such a task has no line of its own."""
    array = {"array_job_id": 9, "array_task_string": "3-4"}
    manager, slurm = manager_of(steered(9, **array))
    manager.apply([HandBack(job="9_5")])
    assert slurm.read == ["jobs"]


def test_no_jobs_are_not_believed_where_there_were_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """A valid answer without a job that squeue named a moment before is a failure, and the next one counts."""
    manager, slurm = manager_of(steered(1), steered(2))
    kept = dict(slurm.jobs_by_id)
    slurm.jobs_by_id["1"]["time_limit"] = 99
    with monkeypatch.context() as patch:
        patch.setattr(Told, "jobs", lambda _: ())
        with pytest.raises(BridgeError, match="Expected job 1, which squeue named"):
            manager.snapshot()
    assert set(manager.snapshot().jobs) == set(kept)


def test_lost_nodes_and_a_clock_that_goes_back_are_not_believed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nodes there is no snapshot; a few of them count after two minutes, an earlier clock the next time."""
    now, real = [NOW], [0.0]
    monkeypatch.setattr("cpsched.site.bridge.slurm.manager.time.monotonic", lambda: real[0])
    manager = SlurmManager(
        Told(jobs_by_id={"1": steered(1)}), SlurmModel(kind="slurm", steering="exact"), clock=lambda: now[0]
    )
    manager.snapshot()
    for nodes, seconds, is_believed in ((0, 0, False), (1, 100, False), (1, 130, True), (0, 999, False)):
        real[0] = seconds
        records = SlurmRecords(nodes=read_answer({"nodes": NODES_2205}, "nodes").nodes[:nodes])
        with nullcontext() if is_believed else pytest.raises(BridgeError, match="Expected the nodes"):
            manager._doubt(records, NOW)
    manager = SlurmManager(
        Told(jobs_by_id={"1": steered(1)}), SlurmModel(kind="slurm", steering="exact"), clock=lambda: now[0]
    )
    manager.snapshot()
    now[0] -= 3600
    with pytest.raises(BridgeError, match="the clock went back"):
        manager.snapshot()
    assert manager.snapshot().taken_at == NOW - 3600
