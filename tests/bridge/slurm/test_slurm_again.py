"""Slurm asked again and again: what is read beside what was known is what is read anew."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from cpsched.errors import DocumentError
from cpsched.site.bridge.slurm import json_reader, make_snapshot
from cpsched.site.bridge.slurm.client import AnswerReader
from cpsched.site.bridge.slurm.directory import merge_records
from cpsched.site.bridge.slurm.json_reader import parse_answer, read_answer
from cpsched.site.bridge.slurm.marker import GATE, Marker, marked
from cpsched.site.bridge.slurm.records import SlurmRecords
from cpsched.site.bridge.slurm.snapshot import SnapshotMaker
from tests.bridge.slurm.answers import (
    JOBS_2205,
    LICENSES_2205,
    NODES_2205,
    NOW,
    PARTITIONS_2205,
    RESERVATIONS_2205,
    Document,
    meta,
    running,
    waiting,
)
from tests.sizes import seeds

#: What a user may have written: JSON that looks like the end of an entry, or like another one.
EVIL = '"},\n    {\n      "job_id": 9, "name": "x\n    }\n  ]'


def said(key: str, entries: list[Document], indent: int | None = 2) -> str:
    """Return an answer as Slurm writes it."""
    return json.dumps({"meta": meta("22.5.8"), "errors": [], key: entries, "last_update": 5}, indent=indent)


def changed(rng: random.Random, job: Document) -> Document:
    """Return a job to which something has happened."""
    order = Marker(ordered="m1", at=NOW, given=NOW, nodes=1, cpus=1, pernode=1)
    ways: list[dict[str, Any]] = [
        {"name": rng.choice(["other", EVIL, "jüb"])},
        {"time_limit": rng.randint(1, 99)},
        {"eligible_time": rng.choice([NOW - 5, NOW + 5, GATE, 0])},
        {"job_state": "CANCELLED", "end_time": NOW},
        {"state_reason": "JobHeldUser", "priority": 0},
        {"dependency": rng.choice(["afterok:8(unfulfilled)", "afterany:3(unfulfilled)", "singleton(unfulfilled)", ""])},
        {"admin_comment": marked("", rng.choice([Marker(), order])), "eligible_time": rng.choice([NOW, GATE])},
        {"required_nodes": rng.choice(["m1", "", "g[1-2]"])},
        {"excluded_nodes": rng.choice(["m1", "", "g[1-2]"])},
        {"restart_cnt": 1},
        {"last_sched_evaluation": rng.randint(0, 9)},
        {"features": rng.choice(["gpu", "rack1|gpu", ""])},
    ]
    if job["job_state"] == "PENDING" and not job["array_job_id"]:
        began = NOW + rng.randint(-99, 99)
        where = {"start_time": began, "end_time": began + 600}
        ways.append(running(job["job_id"], "m1", {"m1": (1, 100)}) | where)
    return {**job, **rng.choice(ways)}


def after_a_while(rng: random.Random, jobs: list[Document], nodes: list[Document]) -> tuple[list[Document], ...]:
    """Return jobs and nodes a while later."""
    jobs = [changed(rng, job) if rng.random() < 0.2 else job for job in jobs if rng.random() < 0.95]
    last = max((job["job_id"] for job in jobs), default=1)
    jobs += [waiting(last + 1 + number, cpus=rng.randint(1, 20)) for number in range(rng.randint(0, 2))]
    rng.shuffle(jobs)
    if rng.random() < 0.3:
        way: dict[str, Any] = rng.choice(
            [{"state_flags": ["DRAIN"]}, {"state_flags": []}, {"real_memory": 5}, {"weight": 3}]
        )
        nodes = [{**node, **way} if rng.random() < 0.3 else node for node in nodes]
    return jobs, nodes


@pytest.mark.parametrize("seed", seeds(20))
def test_a_snapshot_beside_the_one_before_is_one_made_anew(seed: int) -> None:
    """Whatever happens to jobs and nodes, and however long it takes."""
    rng, now = random.Random(seed), NOW
    readers, maker = (AnswerReader(), AnswerReader()), SnapshotMaker()
    jobs, nodes = [*JOBS_2205, waiting(20)], list(NODES_2205)
    rest = read_answer({"partitions": PARTITIONS_2205, "licenses": LICENSES_2205}, "rest")
    for turn in range(25):
        if turn % 3 != 2:  # else time alone has passed
            jobs, nodes = after_a_while(rng, jobs, nodes)
        now += rng.choice([0, 0, 1, 30, 700, -3])
        texts = said("jobs", jobs), said("nodes", nodes, rng.choice([2, 4, None]))
        held = read_answer({"reservations": RESERVATIONS_2205[: turn // 10]}, "held")
        parts = [
            reader.read(text.encode(), "again", kind)
            for reader, text, kind in zip(readers, texts, ("jobs", "nodes"), strict=True)
        ]
        anew = [read_answer(parse_answer(text, "anew"), "anew") for text in texts]
        assert parts == anew
        one, other = (merge_records([("", part) for part in (*each, rest, held)])[0] for each in (parts, anew))
        assert maker.make(one, now) == make_snapshot(other, now)


def test_what_is_as_before_is_the_same_object() -> None:
    """Jobs, facts and the cluster of one snapshot are those of the one before where nothing of them has changed."""
    reader, maker = AnswerReader(), SnapshotMaker()
    nodes = read_answer({"nodes": NODES_2205, "partitions": PARTITIONS_2205}, "sinfo")
    jobs = [waiting(1), waiting(2, dependency="afterok:1(unfulfilled)"), running(3, "m1", {"m1": (1, 100)}), waiting(4)]

    def look(at: int) -> Any:
        records, _ = merge_records([("", reader.read(said("jobs", jobs).encode(), "squeue", "jobs")), ("", nodes)])
        return maker.make(records, at)

    first = look(NOW)
    jobs[3] = waiting(4, time_limit=99)
    second = look(NOW + 10)
    same = [one is other for one, other in zip(first.instance.jobs, second.instance.jobs, strict=True)]
    assert same == [True, True, True, False]
    assert [first.jobs[name] is second.jobs[name] for name in "1234"] == [True, True, True, False]
    assert first.instance.cluster is second.instance.cluster
    assert first.instance.queues is second.instance.queues
    third = look(NOW + 11)
    assert (third.jobs is second.jobs, third.taken_at, third.instance.now) == (True, NOW + 11, NOW + 11)


def test_an_entry_that_is_as_before_is_not_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an answer in which one entry has changed, one is read; of an answer that is the same, none."""
    reader, read = AnswerReader(), list[int]()
    usual = json_reader.read_answer

    def counting(answer: Any, source: str) -> SlurmRecords:
        read.append(len(answer.get("jobs", ())))
        return usual(answer, source)

    monkeypatch.setattr("cpsched.site.bridge.slurm.client.read_answer", counting)
    jobs = [waiting(number) for number in range(1, 6)]
    other = [*jobs[:2], waiting(3, cpus=2), *jobs[3:]]
    for answer in (jobs, jobs, other, other[1:]):
        reader.read(said("jobs", answer).encode(), "squeue", "jobs")
        read.append(-1)
    assert read == [0, 5, -1, -1, 0, 1, -1, 0, 0, -1]


@pytest.mark.parametrize(
    "text",
    [
        said("jobs", [waiting(1, name=EVIL), waiting(2)]),
        said("jobs", [waiting(1)], None),
        said("jobs", []),
        said("jobs", [{}]),
        json.dumps({"jobs": [waiting(1, inner={"jobs": [waiting(2)]})], "nodes": []}, indent=2),
        said("jobs", [waiting(1)]).replace('"jobs"', '"meta2": 1, "jobs"'),
        said("jobs", [waiting(1), waiting(2)]).replace('"errors": []', '"jobs": []'),
        said("jobs", [waiting(1), waiting(2, cpus="many")]),
        said("jobs", [waiting(1)])[:-9],
        said("jobs", [waiting(1), waiting(2)]).replace("},", "}, 7,"),
        said("jobs", [waiting(1)]).replace('"errors": []', '"errors": [{"error": "no"}]'),
        "",
    ],
)
def test_strange_answers_are_read_as_a_whole(text: str) -> None:
    """What is not as Slurm writes it says the same, or has the same faults, as if there had been no answer before."""

    def outcome(read: Any) -> object:
        try:
            return read()
        except DocumentError as error:
            return error.faults

    reader = AnswerReader()
    reader.read(said("jobs", [waiting(1), waiting(2)]).encode(), "squeue", "jobs")
    expected = outcome(lambda: read_answer(parse_answer(text, "squeue"), "squeue"))
    for _ in range(2):
        assert outcome(lambda: reader.read(text.encode(), "squeue", "jobs")) == expected


def test_an_answer_of_something_else_is_refused() -> None:
    """An answer without a list of what was asked for is no answer that there is none of it."""
    reader = AnswerReader()
    for text in (said("nodes", [{"name": "n1", "state": "idle"}]), "{}"):
        with pytest.raises(DocumentError, match="Expected a list of jobs"):
            reader.read(text.encode(), "squeue", "jobs")
    assert reader.read(said("jobs", []).encode(), "squeue", "jobs").jobs == ()
