"""Schedulers of Batsim: one that serves first come, first served over the protocol starts what `fcfs` starts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import zmq

import cpsched
from cpsched.domain import Instance
from cpsched.errors import EngineError
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.lab.workloads import lublin
from cpsched.verify import verify

Event = dict[str, Any]
#: Answers the events of a message.
Answer = Callable[[list[Event]], list[Event]]


class FirstCome:
    """First come, first served on numbered resources, as a scheduler of Batsim keeps them."""

    def __init__(self) -> None:
        self.free: list[int] = []
        self.queue: list[Event] = []
        self.seen: list[str] = []

    def __call__(self, events: list[Event]) -> list[Event]:
        """Answer a message."""
        answer: list[Event] = []
        for event in events:
            data = event["data"]
            self.seen.append(event["type"])
            if event["type"] == "SIMULATION_BEGINS":
                self.free = list(range(data["nb_resources"]))
            elif event["type"] == "JOB_SUBMITTED":
                self.queue.append(data["job"])
            elif event["type"] == "JOB_COMPLETED":
                self.free = sorted([*self.free, *map(int, data["alloc"].split())])
        while self.queue and self.queue[0]["res"] <= len(self.free):
            job = self.queue.pop(0)
            taken, self.free = self.free[: job["res"]], self.free[job["res"] :]
            alloc = " ".join(map(str, taken))
            answer.append({"timestamp": 0, "type": "EXECUTE_JOB", "data": {"job_id": job["id"], "alloc": alloc}})
        return answer


@contextmanager
def listening(answer: Answer) -> Iterator[str]:
    """Yield the endpoint of a scheduler, in a thread of its own."""
    context = zmq.Context()
    socket = context.socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    is_over = threading.Event()

    def serve() -> None:
        while not is_over.is_set():
            if socket.poll(50):
                message = json.loads(socket.recv())
                socket.send_string(json.dumps({"now": message["now"], "events": answer(message["events"])}))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"tcp://127.0.0.1:{port}"
    finally:
        is_over.set()
        thread.join()
        socket.close(linger=0)
        context.term()


def starts_of(instance: Instance, policy: str, **parameters: object) -> dict[str, int]:
    """Return the start of each job, in a simulation that the verifier finds right."""
    history = cpsched.simulate(instance, cpsched.make_scheduler(policy, parameters))
    assert not verify(instance_to_document(instance), plan_to_document(history.record()))
    return dict(zip(history.runs.ids, history.runs.start.tolist(), strict=True))


@pytest.mark.parametrize("cores", [1, 16])
def test_first_come_first_served_over_the_protocol(cores: int) -> None:
    """On cores and on whole nodes, each job starts in the same second as under our rule, and it is told of all."""
    workload, theirs = lublin(40, 1, nodes=32, cores=cores), FirstCome()
    with listening(theirs) as endpoint:
        assert starts_of(workload, "batsim", endpoint=endpoint) == starts_of(workload, "fcfs")
    assert theirs.seen[0] == "SIMULATION_BEGINS"
    assert theirs.seen[-1] == "SIMULATION_ENDS"
    assert theirs.seen.count("JOB_SUBMITTED") == 40


def test_a_scheduler_may_wait_and_reject() -> None:
    """It is asked again at the second that it says, and a job that it rejects never starts."""

    def late(events: list[Event]) -> list[Event]:
        for event in events:
            if event["type"] == "JOB_SUBMITTED":
                return [
                    {"timestamp": 0, "type": "CALL_ME_LATER", "data": {"timestamp": 49.5}},
                    {"timestamp": 0, "type": "REJECT_JOB", "data": {"job_id": "w0!no"}},
                ]
            if event["type"] == "REQUESTED_CALL":
                return [{"timestamp": 0, "type": "EXECUTE_JOB", "data": {"job_id": "w0!yes", "alloc": "1-2"}}]
        return []

    model = cpsched.Model()
    model.add_nodes("n[1-2]", cores=2)
    for name in ("yes", "no"):
        model.add_job("2:ncpus=1", walltime=60, runtime=10, id=name)
    with listening(late) as endpoint:
        assert starts_of(model.instance(), "batsim", endpoint=endpoint) == {"yes": 50, "no": -1}


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([{"type": "KILL_JOB", "data": {}}], "KILL_JOB"),
        ([{"type": "EXECUTE_JOB", "data": {"job_id": "w0!?", "alloc": "0"}}], "was not told"),
        ([{"type": "EXECUTE_JOB", "data": {"job_id": "w0!job-1", "alloc": "0-99"}}], "resource 4 of 4"),
        ([{"type": "EXECUTE_JOB", "data": {"job_id": "w0!job-1", "alloc": "x"}}], "got 'x'"),
        ([{"type": "EXECUTE_JOB", "data": {"job_id": "w0!job-1", "alloc": "0"}}], "not what it asks for"),
        ([5], "Batsim's protocol"),
    ],
)
def test_answers_that_are_wrong_are_refused(events: list[Any], words: str) -> None:
    """With what is wrong with them."""
    model = cpsched.Model()
    model.add_nodes("n[1-2]", cores=2)
    model.add_job("2:ncpus=1", walltime=60)

    def wrong(told: list[Event]) -> list[Event]:
        return events if told[0]["type"] == "JOB_SUBMITTED" else []

    with listening(wrong) as endpoint, pytest.raises(EngineError, match=words):
        starts_of(model.instance(), "batsim", endpoint=endpoint)


def test_nobody_answers() -> None:
    """It is said, after the patience that was given."""
    with pytest.raises(EngineError, match=r"Nobody answered at .* within 0\.01 s"):
        starts_of(lublin(3, 1, nodes=32), "batsim", endpoint="tcp://127.0.0.1:1", patience=0.01)


def test_jobs_of_several_sizes_have_no_resources() -> None:
    """Resources of Batsim are alike."""
    model = cpsched.Model()
    model.add_nodes("n[1-2]", cores=2)
    for request in ("ncpus=1", "ncpus=2"):
        model.add_job(request, walltime=60)
    with pytest.raises(EngineError, match="units of one size"):
        starts_of(model.instance(), "batsim")
