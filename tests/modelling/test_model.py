"""A window built in Python: the same as its document, checked as one, solved and shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from inspect import signature
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cpsched
from cpsched import DocumentError, Model, Plan, errors
from cpsched.domain import Amounts, Instance, Placement
from cpsched.formats import instance_schema, instance_to_document, parse_instance, plan_to_document, read_instance
from cpsched.formats.logs import JobLog, LogKind, LogOptions, take_jobs
from cpsched.formats.swf import read_swf, write_swf
from cpsched.metrics import log_rows
from cpsched.verify import verify

ROOT = Path(__file__).parents[2]


def small_model() -> Model:
    """Return a model with a wide job and one that waits for it."""
    model = Model("small", now=100)
    model.add_nodes("n[1-2]", cores=4, properties={"rack": "1"})
    wide = model.add_job("2:ncpus=4", walltime=600, id="wide")
    model.add_job(1, walltime=60, after=[wide])
    return model


@pytest.mark.parametrize(
    ("noun", "method", "elsewhere"),
    [
        ("Instance", Model.__init__, {"format", "cluster", "queues", "jobs", "limits", "free_pools", "reservations"}),
        ("NodeClass", Model.add_nodes, set()),
        ("Queue", Model.add_queue, set()),
        ("Job", Model.add_job, set()),
        ("Limit", Model.add_limit, {"consumer"}),
        ("FreePool", Model.add_pool, set()),
        ("Reservation", Model.add_reservation, set()),
    ],
)
def test_a_model_can_say_each_key_of_a_document(noun: str, method: Callable[..., object], elsewhere: set[str]) -> None:
    """What a key of the document is, a keyword is too, but for what other methods or words say."""
    assert instance_schema()["$defs"][noun]["properties"].keys() - elsewhere <= signature(method).parameters.keys()


def test_a_model_can_say_each_key_of_a_cluster() -> None:
    """Nodes, licences (consumed or not), topology and slowdown have methods; states are said with the nodes."""
    keys = instance_schema()["$defs"]["Cluster"]["properties"].keys()
    assert keys == {"nodes", "licenses", "consumed", "topology", "slowdown", "states"}


def solved(model: Model) -> Plan:
    """Return the planner's plan of a model, verified."""
    plan, instance = model.solve(engine="planner"), model.instance()
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    return plan


def test_a_model_is_solved() -> None:
    """Jobs get ids, are submitted now, and start when they can; the plan is asked by id."""
    plan = solved(small_model())
    assert (plan["wide"].start, plan["wide"].nodes) == (100, ("n1", "n2"))
    assert plan["job-2"].start == 700
    with pytest.raises(KeyError, match="no job job-3"):
        plan["job-3"]


def test_every_entry_is_that_of_a_document() -> None:
    """Nodes, licences, queues, all kinds of jobs, limits, pools and reservations: as the document says them."""
    model = Model("all", now=np.int64(10), objective={"wait": 1.0}, epoch="2026-01-01T00:00:00+00:00", time_zone="UTC")
    model.add_nodes(["n1", "n2", "n3"], {"state": 5}, cores=np.int64(8), gpus=2, priority=1, state="up")
    model.add_license("abaqus", 3)
    model.add_topology("switch", {"s1": "n[1-2]"})
    model.add_queue("short", 600, max_wait={"seconds": 3600}, nodes="n[1-2]")
    model.add_job({"resources": {"cores": 2}}, np.int32(60), queue="short", user="eve", told=50, id="a")
    model.add_job([{"count": 2, "resources": {"cores": 1}, "where": {}}], 60, array="0-3", licenses={"abaqus": 1})
    model.add_job("ncpus=4", 60, malleable=(0.5,), submit=-5)
    model.add_job(steps=[(30, 2), (40, "2:ncpus=1")], expand_limit=2)
    model.add_job(1, 60, after=["a", {"job": "job-2[1]", "type": "after", "delay": 5}])
    model.add_limit("cores", 6, each="user")
    model.add_limit("gpus", user="eve", area=1000, soft=True)
    model.add_pool("cores", "10/20%", {"users": ["eve"]}, validity={"cron": "* 8-17 * * *"})
    model.add_reservation("maintenance", 500, 600, nodes="n3", kind="downtime")
    model.add_reservation("course", request=2, validity={"cron": "0 9 * * mon"}, users=["eve"])
    assert model.instance() == parse_instance(
        {
            "format": "cpsched-instance/1",
            "name": "all",
            "now": 10,
            "objective": {"wait": 1.0},
            "epoch": "2026-01-01T00:00:00+00:00",
            "time_zone": "UTC",
            "cluster": {
                "nodes": [
                    {"names": "n[1-3]", "resources": {"state": 5, "cores": 8, "gpus": 2}, "priority": 1, "state": "up"}
                ],
                "licenses": {"abaqus": 3},
                "topology": {"switch": {"s1": "n[1-2]"}},
            },
            "queues": {"short": {"expected_wait": 600, "max_wait": {"seconds": 3600}, "nodes": "n[1-2]"}},
            "jobs": [
                {
                    "id": "a",
                    "submit": 10,
                    "walltime": 60,
                    "request": "ncpus=2",
                    "queue": "short",
                    "user": "eve",
                    "told": {"start": 50},
                },
                {
                    "id": "job-2",
                    "submit": 10,
                    "walltime": 60,
                    "request": "2:ncpus=1",
                    "licenses": {"abaqus": 1},
                    "array": {"indices": "0-3"},
                },
                {"id": "job-3", "submit": -5, "walltime": 60, "request": "ncpus=4", "malleable": {"shares": [0.5]}},
                {
                    "id": "job-4",
                    "submit": 10,
                    "steps": [{"walltime": 30, "request": "ncpus=2"}, {"walltime": 40, "request": "2:ncpus=1"}],
                    "expand_limit": 2,
                },
                {
                    "id": "job-5",
                    "submit": 10,
                    "walltime": 60,
                    "request": "ncpus=1",
                    "after": [{"job": "a", "type": "afterany"}, {"job": "job-2[1]", "type": "after", "delay": 5}],
                },
            ],
            "limits": [
                {"consumer": {"each": "user"}, "resource": "cores", "items": "6"},
                {"consumer": {"user": "eve"}, "resource": "gpus", "area": 1000, "soft": True},
            ],
            "free_pools": [
                {
                    "resource": "cores",
                    "items": "10/20%",
                    "open_to": {"users": ["eve"]},
                    "validity": {"cron": "* 8-17 * * *"},
                }
            ],
            "reservations": [
                {"id": "maintenance", "start": 500, "end": 600, "nodes": "n3", "kind": "downtime"},
                {"id": "course", "request": "ncpus=2", "validity": {"cron": "0 9 * * mon"}, "users": ["eve"]},
            ],
        }
    )


def test_all_faults_are_told_at_once() -> None:
    """The reader of documents checks a model: with paths, and with suggestions."""
    model = small_model()
    model.add_job(1, walltime=600.5, id="a")  # type: ignore[arg-type]  # the fault
    model.add_job(1, walltime=60, id="b", licenses={"x": "y"})  # type: ignore[dict-item]  # the fault
    model.add_job("2:ncpus", walltime=60, id="wide")
    with pytest.raises(DocumentError) as caught:
        model.solve()
    told = str(caught.value)
    for part in ("jobs[2].walltime", "jobs[3].licenses.x", "jobs[4].request"):
        assert part in told


def test_a_model_of_an_instance_is_that_instance() -> None:
    """An instance that was read can be changed as a model; unchanged it is the same."""
    for path in sorted((ROOT / "instances").glob("tiny-*.json")):
        instance = read_instance(path)
        assert Model.from_instance(instance).instance() == instance


def test_jobs_as_a_table(tmp_path: Path) -> None:
    """A table of jobs makes a model, missing cells are left out; a model makes the table again."""
    jobs = pd.DataFrame(
        {"id": ["a", "b"], "request": ["ncpus=2", "ncpus=1"], "walltime": [60, 30], "deadline": [np.nan, 500.0]}
    )
    model = Model.from_frame(jobs, "table", now=7)
    model.add_nodes("n1", cores=2)
    instance = model.instance()
    assert [(job.submit, job.walltime, job.deadline) for job in instance.jobs] == [(7, 60, None), (7, 30, 500)]
    again = Model.from_frame(model.to_frame(), "table", now=7)
    again.add_nodes("n1", cores=2)
    assert again.instance() == instance
    with pytest.raises(ValueError, match="add_job has no keyword for column 'walltme', did you mean walltime"):
        Model.from_frame(jobs.rename(columns={"walltime": "walltme"}))


def test_a_table_has_what_pandas_has() -> None:
    """Cores as integers of numpy, times as timestamps since the epoch of the model, durations as timedeltas."""
    jobs = pd.DataFrame(
        {
            "request": np.array([2, 1], dtype=np.int32),
            "walltime": pd.to_timedelta(["1 min", "30 s"]),
            "submit": pd.to_datetime(["2026-01-01 00:00:10", None]),
            "user": pd.array(["eve", None], dtype="string"),
        }
    )
    model = Model.from_frame(jobs, now=60, epoch="2026-01-01T00:00:00Z", time_zone="UTC")
    model.add_nodes("n1", cores=2)
    first, second = model.instance().jobs
    assert (first.submit, first.walltime, first.user, first.steps[0].request.chunks[0].resources["cores"]) == (
        10,
        60,
        "eve",
        2,
    )
    assert (second.submit, second.walltime) == (60, 30)
    with pytest.raises(ValueError, match="epoch"):
        Model.from_frame(jobs)


def test_keywords_are_those_of_the_document() -> None:
    """Each key of an entry is a keyword that says so, and no other one is."""
    properties = instance_schema()["$defs"]
    for method, noun in (
        (Model.add_job, "Job"), (Model.add_queue, "Queue"), (Model.add_limit, "Limit"), (Model.add_pool, "FreePool"),
        (Model.add_reservation, "Reservation"),
    ):  # fmt: skip
        keywords = set(signature(method).parameters) - {"self", "name", "user", "group", "each"}
        keys = set(properties[noun]["properties"]) - {"consumer", "user", "group"}
        assert keywords == keys, noun
    with pytest.raises(TypeError, match="walltme"):
        Model().add_job(1, walltme=60)  # type: ignore[call-arg]  # the fault


def test_a_plan_is_a_collection_of_its_jobs() -> None:
    """It has a length, is iterated over, and knows what is in it."""
    plan = solved(small_model())
    assert [job.id for job in plan] == ["wide", "job-2"]
    assert len(plan) == 2
    assert "wide" in plan
    assert plan["wide"] in plan
    assert "job-3" not in plan


def test_a_plan_as_a_table() -> None:
    """A row for each job; one without a start has its reason, and no times."""
    model = small_model()
    model.add_job("ncpus=5", walltime=10, id="large")
    plan = solved(model)
    frame = plan.to_frame().set_index("id")
    assert frame.loc["wide", ["start", "end", "nodes"]].tolist() == [100, 700, ("n1", "n2")]
    assert frame.loc["large", "reason"] == "unsatisfiable"
    assert frame["start"].isna().tolist() == [False, False, True]
    with pytest.raises(KeyError, match="unsatisfiable"):
        plan["large"]


class _Texts(HTMLParser):
    """Collects tags and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_notebook_shows_a_plan() -> None:
    """Summary and chart are HTML in which names are text, and a large plan stays small."""
    model = Model("<b>window</b>")
    model.add_nodes("n[1-40]", cores=1)
    for number in range(200):
        model.add_job(1, walltime=60, id=f"<img src=x onerror=alert({number})>")
    shown = _Texts()
    html = solved(model)._repr_html_()
    shown.feed(html)
    assert set(shown.tags) == {"div", "b", "table", "tr", "th", "td", "svg", "rect", "text", "title", "line", "p"}
    assert [text for text in shown.texts if re.fullmatch(r"n\d+", text)] == [f"n{number}" for number in range(1, 25)]
    assert {"now", "+1 min", "+4 min"} <= set(shown.texts)
    assert "<b>window</b>" in shown.texts
    assert "<img src=x onerror=alert(0)>: 0 to 60 s" in shown.texts
    assert shown.tags.count("rect") == 24 * 5
    assert len(html) < 60_000


def _placements(nodes: int) -> tuple[Placement, ...]:
    """Return a core on each of so many nodes."""
    return tuple(Placement(node=f"m{number}", resources=Amounts({"cores": 1})) for number in range(nodes))


def test_reprs_are_short(tmp_path: Path) -> None:
    """Models, instances, plans, logs and simulations of any size show themselves in a line."""
    model = small_model()
    plan = solved(model)
    assert repr(model) == "<Model 'small': 2 jobs, 1 kind of nodes>"
    assert repr(model.instance()) == "<Instance 'small': 2 jobs on 2 nodes, now 100>"
    assert repr(plan).startswith("<Plan of 'small': 2 jobs, weighted_wait 0.333333")
    assert repr(plan["wide"]) == "<PlannedJob 'wide': 100 to 700 s on n1, n2>"
    wide = replace(plan["wide"], segments=(replace(plan["wide"].segments[0], allocation=_placements(10_000)),))
    assert repr(wide) == "<PlannedJob 'wide': 100 to 700 s on m0, m1, m2 and 9997 more nodes>"
    explained = cpsched.explain(model.instance(), plan, "job-2")
    assert repr(explained) == "<Explanation of 'job-2': planned, starts at 700 s, not earlier: dependency>"
    first = cpsched.explain(model.instance(), plan, "wide")
    assert repr(first) == "<Explanation of 'wide': planned, starts at 100 s>"
    asked = cpsched.Answers(model.instance(), plan)
    assert repr(asked) == "<Answers about 2 jobs, 0 of them without a start>"
    compared = cpsched.whatif(model.instance(), plan, cpsched.WhatIf(drain=("n1",)))
    assert repr(compared) == "<Comparison of 2 jobs: 0 start later, 0 earlier>"
    history = cpsched.simulate(model.instance(), cpsched.make_scheduler("fcfs"))
    assert repr(history) == "<History under 'fcfs': 2 jobs, 2 of them over>"
    assert repr(history.runs) == "<Runs of 2 jobs, 2 of them over>"
    log = tmp_path / "log.swf"
    write_swf(log, log_rows(history.runs), header={"MaxNodes": "2", "MaxProcs": "8"})
    assert len(repr(read_swf(log))) < 200
    accounting = JobLog(source="a.acct", kind=LogKind.TORQUE, jobs=(), faults=())
    assert repr(accounting) == "<JobLog of 'a.acct': 0 jobs, 0 lines without a job>"
    taken = take_jobs(log, LogOptions(), arriving=True)
    assert len(repr(taken)) < 1000
    assert repr(taken) == f"<LogWindow: {taken.instance!r}, 0 jobs left out, 0 adjusted>"


def test_a_model_of_a_dict_takes_numbers_of_numpy() -> None:
    """A document that a program made with numpy's integers, tuples and floats is that with Python's."""
    document = instance_to_document(small_model().instance())
    made = {**document, "now": np.int64(document["now"]), "jobs": tuple(document["jobs"])}
    made["jobs"][0]["walltime"] = np.int32(made["jobs"][0]["walltime"])
    assert Model.from_dict(made).instance() == small_model().instance()
    with pytest.raises(DocumentError, match="unknown key"):
        Model.from_dict({**made, "jbos": []}).instance()


def test_public_names_are_there() -> None:
    """Each name that the package lists can be fetched, and its document states the version of the package."""
    assert all(getattr(cpsched, name) is not None for name in cpsched.__all__)
    assert set(cpsched.__all__) == set(dir(cpsched))
    assert cpsched.Instance is Instance
    assert json.dumps(cpsched.__version__)
    assert {
        name for name, one in vars(errors).items() if one.__class__ is type and one.__module__ == errors.__name__
    } <= set(cpsched.__all__)
    with pytest.raises(AttributeError, match="no attribute 'solver'"):
        _ = cpsched.solver  # type: ignore[attr-defined]  # it is not there
