"""Documents and domain values: reading is the inverse of writing, and real documents are read."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given

from cpsched.domain import (
    Event,
    FrozenMap,
    Instance,
    MaxWait,
    NodeState,
    Objective,
    ObjectiveTerm,
    Plan,
    PromisedStart,
    SolverWork,
)
from cpsched.errors import DocumentError
from cpsched.formats import (
    instance_schema,
    instance_to_document,
    parse_instance,
    parse_plan,
    plan_schema,
    plan_to_document,
    read_instance,
    read_plan,
    write_instance,
    write_plan,
)
from tests.formats.format_documents import instances, job, minimal_instance, plans, small_instance, small_plan
from tests.sizes import examples

_SLOW = examples(40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@_SLOW
@given(instances())
def test_an_instance_survives_its_document(instance: Instance) -> None:
    """Writing an instance as JSON and reading it gives the same instance."""
    assert parse_instance(json.loads(json.dumps(instance_to_document(instance)))) == instance


@_SLOW
@given(plans())
def test_a_plan_survives_its_document(plan: Plan) -> None:
    """Writing a plan as JSON and reading it gives the same plan."""
    assert parse_plan(json.loads(json.dumps(plan_to_document(plan)))) == plan


def test_a_small_instance_becomes_domain_values() -> None:
    """What stands in a document is found in the instance, key by key."""
    instance = parse_instance(small_instance())
    assert instance.epoch is not None
    assert instance.epoch.utcoffset() == timedelta(hours=2)
    assert instance.cluster.node_names == ("cn1", "cn2", "fat1")
    assert instance.cluster.class_of["fat1"].state is NodeState.DRAIN
    assert instance.queues["debug"].nodes == instance.queues["long"].nodes == ("cn1", "cn2")
    assert instance.jobs[0].running is not None
    assert instance.jobs[0].running.segments[0].end == 1200
    assert instance.jobs[1].licenses == {"abaqus": 2}
    assert instance.jobs[2].array == tuple(range(10))
    assert [step.walltime for step in instance.jobs[3].steps] == [50, 60]
    assert instance.jobs[3].expand_limit is None
    assert instance.jobs[4].malleability is not None
    assert instance.jobs[4].malleability.stretch == {0.5: 1.8}
    assert instance.objective == Objective(
        weights=FrozenMap({ObjectiveTerm.WEIGHTED_WAIT: 1.0, ObjectiveTerm.MAKESPAN: 0.001})
    )


def test_states_of_single_nodes_split_their_class() -> None:
    """There is one class for each state, the nodes that are up keep their order, and no class is lost."""
    document = minimal_instance()
    document["cluster"] = {
        "nodes": [
            {"names": "n[1-9]", "resources": {"cores": 4}},
            {"names": "m[1-2]", "resources": {}, "state": "down"},
        ],
        "states": {"n[7-8],m1": "down", "n2": "drain", "n3": "up", "m2": "up"},
    }
    cluster = parse_instance(document).cluster
    assert [(node_class.names, str(node_class.state)) for node_class in cluster.classes] == [
        (("n1", "n3", "n4", "n5", "n6", "n9"), "up"),
        (("n2",), "drain"),
        (("n7", "n8"), "down"),
        (("m1",), "down"),
        (("m2",), "up"),
    ]
    written = instance_to_document(parse_instance(document))
    assert [nodes["names"] for nodes in written["cluster"]["nodes"]] == ["n[1,3-6,9]", "n2", "n[7-8]", "m1", "m2"]
    assert parse_instance(written).cluster == cluster


def test_documents_are_canonical() -> None:
    """Requests are text, host lists folded, defaults left out; writing twice gives the same."""
    document = minimal_instance(
        job("1", request=[{"count": 1, "resources": {"cores": 2, "mem": 2048}}], place="free:shared", after=[]),
        job("2", request=[{"count": 1, "resources": {"unheard": 2}}], licenses={"abaqus": 1, "none": 0}),
        now=0,
        objective={"wait": 1.0},
    )
    document["cluster"]["nodes"] = [{"names": "cn1,cn2,cn3", "resources": {"cores": 4}, "state": "up", "priority": 0}]
    written = instance_to_document(parse_instance(document))
    assert written == {
        "format": "cpsched-instance/1",
        "name": "m",
        "now": 0,
        "cluster": {"nodes": [{"names": "cn[1-3]", "resources": {"cores": 4}}]},
        "jobs": [
            {"id": "1", "submit": 0, "walltime": 100, "request": "1:ncpus=2:mem=2g"},
            {
                "id": "2",
                "submit": 0,
                "walltime": 100,
                "licenses": {"abaqus": 1},
                "request": [{"count": 1, "resources": {"unheard": 2}}],
            },
        ],
        "objective": "wait",
    }
    assert instance_to_document(parse_instance(written)) == written


def test_limits_of_waiting_and_told_starts() -> None:
    """What stands in the keys is found in the instance, defaults are filled in, and not written again."""
    queues = {
        "plain": {"expected_wait": 60, "max_wait": {"seconds": 90, "price": 10, "hard": False}},
        "hard": {"expected_wait": 60, "max_wait": {"seconds": 90, "price": 0, "hard": True}},
    }
    told = [{"start": -5, "price": 1.0}, {"start": 7, "price": 0.25}]
    document = minimal_instance(*(job(f"{n}", told=one) for n, one in enumerate(told)), queues=queues)
    instance = parse_instance(document)
    assert instance.queues["plain"].max_wait == MaxWait(seconds=90, price=10, is_hard=False)
    assert instance.queues["hard"].max_wait == MaxWait(seconds=90, price=0, is_hard=True)
    assert [entry.told for entry in instance.jobs] == [
        PromisedStart(start=-5, price=1),
        PromisedStart(start=7, price=0.25),
    ]
    written = instance_to_document(instance)
    assert written["queues"]["plain"]["max_wait"] == {"seconds": 90}
    assert written["queues"]["hard"]["max_wait"] == {"seconds": 90, "price": 0, "hard": True}
    assert [entry["told"] for entry in written["jobs"]] == [{"start": -5}, {"start": 7, "price": 0.25}]


def test_a_proof_and_events_are_left_out_where_there_are_none() -> None:
    """A plan has the optional keys only where it has something to say in them."""
    document = small_plan()
    assert plan_to_document(parse_plan(document)) == document
    document["objective"] |= {"bound": 2.0, "gap": 0.2, "proof": "Smith's rule"}
    document["events"] = [{"at": 1.25, "by": "cp", "what": "ended by itself: status 9"}]
    document["work"] = [{"by": "search", "seconds": 2.5}, {"by": "cp", "seconds": 6.0, "what": "7 neighbourhoods"}]
    plan = parse_plan(document)
    assert plan.work == (
        SolverWork(by="search", seconds=2.5),
        SolverWork(by="cp", seconds=6.0, what="7 neighbourhoods"),
    )
    assert plan.objective.proof == "Smith's rule"
    assert plan.events == (Event(at=1.25, by="cp", what="ended by itself: status 9"),)
    assert plan_to_document(plan) == document


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"events": [{"at": -1, "by": "x", "what": "y"}]}, "events[0].at: Expected a number >= 0.0, got -1"),
        ({"events": [{"at": 1, "by": "", "what": "y"}]}, "events[0].by: Expected at least 1 characters, got 0"),
        ({"events": [{"at": 1, "by": "x", "what": ""}]}, "events[0].what: Expected at least 1 characters, got 0"),
        ({"events": [{"at": 1, "by": "x"}]}, "events[0].what: Expected this key, got nothing"),
        ({"work": [{"by": "x", "seconds": -1}]}, "work[0].seconds: Expected a number >= 0.0 (seconds), got -1"),
        ({"work": [{"by": "x", "seconds": 1, "what": ""}]}, "work[0].what: Expected at least 1 characters, got 0"),
        ({"evnets": []}, "evnets: unknown key, did you mean events?"),
    ],
)
def test_faults_of_events(keys: dict[str, Any], fault: str) -> None:
    """Each is said with its path."""
    with pytest.raises(DocumentError) as refused:
        parse_plan(small_plan() | keys)
    assert [str(one) for one in refused.value.faults] == [fault]


@pytest.mark.parametrize(("proof", "fault"), [("", "at least 1 characters"), (None, "a text"), (5, "a text")])
def test_a_proof_is_in_words(proof: object, fault: str) -> None:
    """A proof that says nothing is refused, and so is null: the key is left out instead."""
    document = small_plan()
    document["objective"]["proof"] = proof
    with pytest.raises(DocumentError, match=f"objective.proof: Expected {fault}"):
        parse_plan(document)


def test_files_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    """Both documents go through plain and gzipped files, which hold the same bytes for the same content."""
    instance, plan = parse_instance(small_instance()), parse_plan(small_plan())
    for name in ("a.json", "b.json.gz"):
        write_instance(instance, tmp_path / name)
        first = (tmp_path / name).read_bytes()
        write_instance(instance, tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
        assert read_instance(tmp_path / name) == instance
        write_plan(plan, tmp_path / name)
        assert read_plan(str(tmp_path / name)) == plan
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json.gz"]


def _objects(schema: Any) -> Any:
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        for value in schema.values():
            yield from _objects(value)


def test_schemas_forbid_unknown_keys_and_know_the_words_of_the_documents() -> None:
    """Every object of both schemas is closed; optional keys are not null; keys with Python's names have their own."""
    for schema in (instance_schema(), plan_schema()):
        assert all(found["additionalProperties"] is False for found in _objects(schema))
        assert json.loads(json.dumps(schema)) == schema
        assert schema["$schema"].startswith("https://json-schema.org/")
    definitions = instance_schema()["$defs"]
    assert definitions["Job"]["required"] == ["id", "submit"]
    assert definitions["Job"]["properties"]["walltime"]["exclusiveMinimum"] == 0
    assert "default" not in definitions["Job"]["properties"]["walltime"]
    assert "for" in definitions["KeepFree"]["properties"]
    assert "from" in definitions["Validity"]["properties"]


@pytest.mark.slow
def test_real_documents_are_read_and_written(shared_data: Path) -> None:
    """All windows and snapshots of real machines are accepted, and survive being written."""
    files = sorted([*shared_data.glob("eurora/*.json.gz"), *shared_data.glob("snapshots/*.json.gz")])
    assert files
    for file in files:
        instance = read_instance(file)
        assert instance.jobs
        assert parse_instance(instance_to_document(instance)) == instance


def test_a_large_instance_is_read() -> None:
    """10,000 jobs on 5,500 nodes, every one of them busy."""
    running = [{"node": f"n{number:04d}", "resources": {"cores": 16, "mem": 1000}} for number in range(1, 5501)]
    jobs = [job(f"j{i}", queue="q", request=f"{i % 90 + 1}:ncpus={i % 16 + 1}:mem={i}m") for i in range(9999)]
    document = minimal_instance(job("r", running={"start": 0, "allocation": running}), *jobs)
    document["queues"] = {"q": {"expected_wait": 60}}
    document["cluster"]["nodes"] = [{"names": "n[0001-5500]", "resources": {"cores": 16, "mem": 65536}}]
    instance = parse_instance(document)
    assert len(instance.jobs) == 10_000
    assert len(instance.cluster.node_names) == 5_500


def test_a_record_says_so() -> None:
    """A plan has the keys of a record only where it is one; what was cut short stands like a planned job."""
    document = small_plan()
    run = document["jobs"][0]
    assert parse_plan(document).record is False
    document |= {"record": True, "attempts": [run]}
    document["waiting_room"][0]["reason"] = "not_started"
    record = parse_plan(document)
    assert (record.record, record.attempts) == (True, record.jobs)
    assert plan_to_document(record) == document
