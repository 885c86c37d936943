"""What is wrong with a document is said in its own words: all of it at once, each with its path."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import Instance, Outage, Plan
from cpsched.errors import DocumentError, Fault
from cpsched.formats import Faults, parse_instance, parse_plan
from cpsched.formats.kinds import Kind, Number, kind_of
from tests.formats.format_documents import job, minimal_instance, small_instance, small_plan


def _faults(document: object) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        parse_instance(document)
    return [f"{fault.path}: {fault.message}" for fault in caught.value.faults]


def _held(node: str = "cn1", cores: int = 1, **resources: int) -> list[dict[str, Any]]:
    return [{"node": node, "resources": {"cores": cores} | resources}]


def _max_wait(**keys: Any) -> dict[str, Any]:
    return {"queues": {"q": {"expected_wait": 1, "max_wait": keys}}}


def _outage(**keys: Any) -> dict[str, Any]:
    return {"outages": [{"nodes": "cn1", "start": 5, "end": 9} | keys]}


_NO_SHARE_OF_4 = "jobs[0].running.allocation[0].resources: Expected all 4 cores or a share of them (0.5), at least one"
_NO_SHARE = (
    "jobs[0].malleable.shares[0]: Expected a share of the cores between 0 and 1 (the full share, 1, is not named)"
)


def _shares(cores: int, also: bool = False, **keys: Any) -> dict[str, Any]:
    """Return a job of two chunks of 2 cores that runs on so many cores of one node (or of another one, too)."""
    malleable = keys.pop("malleable", {"shares": [0.5]})
    kind = {key: value for key, value in ({"chunk": 0, "count": 2} | keys).items() if value is not None}
    held = [{"node": "cn1", "resources": {"cores": cores}} | kind, *(_held("cn2") if also else ())]
    return {"request": "2:ncpus=2", "malleable": malleable, "running": {"start": 0, "allocation": held}}


def _on(node: str) -> list[dict[str, Any]]:
    return [{"node": node, "chunk": 0, "count": 1, "resources": {"cores": 1}}]


_MOVED = {
    "malleable": {"shares": [0.5]},
    "running": {
        "start": -5,
        "segments": [
            {"start": -5, "end": 0, "allocation": _on("cn1")},
            {"start": 0, "end": 95, "allocation": _on("cn2")},
        ],
    },
}
_STEPS = [{"walltime": 5, "request": "ncpus=1"}]
_NO_WORK: dict[str, Any] = {"walltime": None, "request": None}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"walltime": -5}, "jobs[0].walltime: Expected an integer > 0 (seconds), got -5"),
        ({"walltime": 10**18}, "jobs[0].walltime: Expected an integer <= 10000000000 (seconds), got 10000000000"),
        ({"walltime": True}, "jobs[0].walltime: Expected an integer (seconds), got true"),
        ({"walltime": 5.0}, "jobs[0].walltime: Expected an integer (seconds), got 5.0"),
        ({"walltime": "5"}, 'jobs[0].walltime: Expected an integer (seconds), got "5"'),
        ({"wallime": 5}, "jobs[0].wallime: unknown key, did you mean walltime?"),
        (
            {"request": "2:ncps=16"},
            "jobs[0].request: Expected at least one unit of a countable resource, got none, did you mean ncpus?",
        ),
        ({"submit": None}, "jobs[0].submit: Expected this key, got nothing"),
        ({"user": ""}, "jobs[0].user: Expected at least 1 characters, got 0"),
        ({"user": "a\nb"}, r'jobs[0].user: Expected a text without control characters, got "a\nb"'),
        ({"queue": "debgu"}, 'jobs[0].queue: Expected a known queue, got "debgu", did you mean debug?'),
        ({"reservation": "r11"}, 'jobs[0].reservation: Expected a known reservation, got "r11", did you mean r1?'),
        ({"reservation": "off"}, 'jobs[0].reservation: Expected a reservation for jobs, got "off", a downtime'),
        ({"after": [{"job": "w", "type": "after"}]}, 'jobs[0].after[0].job: Expected a known job, got "w"'),
        ({"after": [{"job": "j[1]", "type": "after"}]}, "jobs[0].after[0].job: Expected a known job"),
        ({"after": [{"job": "j", "type": "ater"}]}, "jobs[0].after[0].type: Expected 'after', 'afterok'"),
        ({"after": [{"job": "j", "type": "after"}]}, "jobs[0].after: Expected no cycle, got j -> j"),
        ({"array": {"indices": "0-9-9"}}, "jobs[0].array.indices: Expected ',', got '-'\n    0-9-9\n       ^"),
        ({"array": {"indices": "0-1000000"}}, "jobs[0].array.indices: Expected at most 1000000 array elements"),
        ({"array": {"indices": "0-2,2"}}, "jobs[0].array.indices: Expected every index once, got 2 twice"),
        ({"request": "2:ncpsu=2"}, "jobs[0].request: Expected at least one unit of a countable resource, got none"),
        ({"request": []}, "jobs[0].request: Expected at least 1 entries, got 0"),
        ({"request": [{"count": 0, "resources": {"cores": 1}}]}, "jobs[0].request[0].count: Expected an integer > 0"),
        ({"request": [{"count": 1, "resources": {"gpus": 0}}]}, "jobs[0].request[0]: Expected at least one unit"),
        ({"request": "ncpus=1,place=pack", "place": "pack"}, "jobs[0].request: Expected place once"),
        ({"request": "ncpus=1,lic=1", "licenses": {"lic": 1}}, "jobs[0].request: Expected the licence lic once"),
        ({"place": "pack:me"}, "jobs[0].place: Expected excl, exclusive or shared, got 'me'"),
        ({"request": None}, "jobs[0]: Expected walltime and request, or steps; got no request"),
        ({"steps": _STEPS}, "jobs[0]: Expected either steps, or walltime and request, got both"),
        (_NO_WORK | {"steps": []}, "jobs[0].steps: Expected at least 1 entries, got 0"),
        (_NO_WORK | {"steps": [{"walltime": 0, "request": "ncpus=1"}]}, "jobs[0].steps[0].walltime: Expected"),
        (_NO_WORK | {"steps": _STEPS, "malleable": {"shares": [0.5]}}, "jobs[0]: Expected a malleable or an evolving"),
        (
            _NO_WORK | {"steps": [*_STEPS, {"walltime": 5, "request": "ncpus=1,place=pack"}]},
            "jobs[0].steps[1].request: Expected the same place and licences in every step",
        ),
        ({"malleable": {"shares": [0.5], "stretch": {" 0.5": 2}}}, "jobs[0].malleable.stretch. 0.5: Expected one of"),
        ({"id": "x" * 251, "array": {"indices": "0-1000"}}, "jobs[0].id: Expected an id whose elements have at most"),
        ({"expand_limit": 2}, "jobs[0]: Expected expand_limit only together with steps"),
        ({"malleable": {"shares": [1.0]}}, f"{_NO_SHARE}, got 1"),
        ({"malleable": {"shares": [0]}}, f"{_NO_SHARE}, got 0"),
        ({"malleable": {"shares": [-0.5]}}, f"{_NO_SHARE}, got -0.5"),
        (
            {"malleable": {"shares": [0.5], "stretch": {"0.5": 0.9}}},
            "jobs[0].malleable.stretch.0.5: Expected a number >= 1.0, got 0.9",
        ),
        (
            _NO_WORK | {"steps": [{**_STEPS[0], "walltime": 0}]},
            "jobs[0].steps[0].walltime: Expected an integer > 0 (seconds), got 0",
        ),
        (_NO_WORK | {"steps": _STEPS, "expand_limit": 0.5}, "jobs[0].expand_limit: Expected a number >= 1.0, got 0.5"),
        (_shares(1), _NO_SHARE_OF_4),
        (_shares(3), _NO_SHARE_OF_4),
        (_shares(1, count=1), "jobs[0].running.allocation: Expected 2 chunks of kind 0 in all, got 1"),
        (_shares(2, chunk=1), "jobs[0].running.allocation[0].chunk: Expected a kind of chunks from 0 to 0, got 1"),
        (_shares(2, chunk=None), "jobs[0].running.allocation[0]: Expected chunk and count together, or neither"),
        (
            _shares(2, chunk=1, malleable=None),
            "jobs[0].running.allocation[0].chunk: Expected a kind of chunks from 0 to 0, got 1",
        ),
        (
            _shares(2, True),
            "jobs[0].running.allocation[1]: Expected chunk and count as on its other nodes, or on none of them",
        ),
        (_MOVED, "jobs[0].running.segments[1].allocation: Expected the same chunks on the same nodes in all segments"),
        ({"malleable": {"shares": [0.5, 0.5]}}, "jobs[0].malleable.shares: Expected every share once"),
        (
            {"malleable": {"shares": [0.5], "stretch": {"0.6": 2}}},
            'jobs[0].malleable.stretch.0.6: Expected one of the shares 0.5; got "0.6"',
        ),
        ({"running": {"start": 1, "allocation": _held()}}, "jobs[0].running.start: Expected a start not after now = 0"),
        ({"running": {"start": 0}}, "jobs[0].running: Expected either allocation or segments"),
        (
            {"running": {"start": 0, "allocation": _held()}, "array": {"indices": "1"}},
            "jobs[0]: Expected no running in an array",
        ),
        (
            {"running": {"start": 0, "allocation": _held()}, "told": {"start": 0}},
            "jobs[0]: Expected no told in a running job: its start is a fact",
        ),
        ({"expected": 101}, "jobs[0].expected: Expected at most the walltime, 100, got 101"),
        ({"expected": 0}, "jobs[0].expected: Expected an integer > 0 (seconds), got 0"),
        (
            {"expected": 9, "malleable": {"shares": [0.5]}},
            "jobs[0]: Expected no expected in an evolving or malleable job: a plan chooses how long it takes",
        ),
        ({"told": {}}, "jobs[0].told.start: Expected this key, got nothing"),
        ({"told": {"start": 5, "pirce": 1}}, "jobs[0].told.pirce: unknown key, did you mean price?"),
        ({"told": {"start": 5, "price": -0.5}}, "jobs[0].told.price: Expected a number >= 0.0, got -0.5"),
        ({"told": {"start": 0.5}}, "jobs[0].told.start: Expected an integer (seconds), got 0.5"),
        ({"tlod": {"start": 5}}, "jobs[0].tlod: unknown key, did you mean told?"),
        (
            {"running": {"start": -1, "allocation": _held("cn3")}},
            'jobs[0].running.allocation[0].node: Expected a known node, got "cn3", did you mean cn',
        ),
        (
            {"running": {"start": -1, "allocation": _held() + _held()}},
            'jobs[0].running.allocation[1].node: Expected every node once, got "cn1" twice',
        ),
        (
            {
                "running": {
                    "start": -1,
                    "allocation": [{"node": "cn1", "chunk": 0, "count": 1, "resources": {"cores": 1}}] * 2,
                }
            },
            "jobs[0].running.allocation[1].node: Expected every node once for each kind of its chunks, got chunks of "
            'kind 0 on "cn1" twice',
        ),
        (
            _NO_WORK
            | {
                "steps": _STEPS,
                "running": {"start": -1, "allocation": [{**_held()[0], "chunk": 1, "count": 1}]},
            },
            "jobs[0].running.allocation[0].chunk: Expected a kind of chunks from 0 to 0, got 1",
        ),
        (
            {"running": {"start": -1, "allocation": [{"node": "cn1", "resources": {"cores": 0}}]}},
            "jobs[0].running.allocation[0].resources: Expected at least one unit on the node, got none",
        ),
        (
            {"running": {"start": -7, "segments": [{"start": -6, "end": 9, "allocation": _held()}]}},
            "jobs[0].running.segments[0].start: Expected -7, where the one before ends, got -6",
        ),
        (
            {"running": {"start": -7, "segments": [{"start": -7, "end": -7, "allocation": _held()}]}},
            "jobs[0].running.segments[0].end: Expected an end > -7, got -7",
        ),
        ({"weight": -1}, "jobs[0].weight: Expected a number > 0.0, got -1"),
        ({"weight": 1e101}, "jobs[0].weight: Expected a number <= 1e+100, got 1e+101"),
    ],
)
def test_faults_of_a_job(keys: dict[str, Any], expected: str) -> None:
    """Each fault of a job is the only one reported, with its path, what was expected and what was got."""
    document = minimal_instance(job("j", **keys), queues={"debug": {"expected_wait": 60}})
    document["cluster"]["licenses"] = {"abaqus": 2}
    document["reservations"] = [
        {"id": "r1", "start": 0, "end": 1, "request": "ncpus=1"},
        {"id": "off", "start": 0, "end": 1, "request": "ncpus=1", "kind": "downtime"},
    ]
    faults = _faults(document)
    assert len(faults) == 1
    assert faults[0].startswith(expected)


def test_a_key_of_another_place_is_no_hint() -> None:
    """A job that waits has no allocation, though a job that runs has one: the key is not suggested for itself."""
    assert _faults(minimal_instance(job("j", allocation=[]))) == ["jobs[0].allocation: unknown key"]


def _queue_nodes(nodes: object) -> dict[str, Any]:
    return {"queues": {"q": {"expected_wait": 1, "nodes": nodes}}}


def _states(states: object) -> dict[str, Any]:
    cluster = minimal_instance()["cluster"] | {"states": states}
    return {"cluster": cluster}


def _reservation(**keys: Any) -> dict[str, Any]:
    entry = {"id": "r", "start": 4, "end": 5, "request": "ncpus=1"} | keys
    return {"reservations": [{key: value for key, value in entry.items() if value is not None}]}


def _kept(**keys: Any) -> dict[str, Any]:
    return _reservation(allocation=[{"node": "cn1", "resources": {"cores": 1}} | keys])


_LIMIT = {"consumer": {"user": "a"}, "resource": "cores"}
_POOL: dict[str, Any] = {"resource": "cores", "items": "10%"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"format": "cpsched-instance/2"}, "format: Expected 'cpsched-instance/1', got \"cpsched-instance/2\""),
        ({"jbos": []}, "jbos: unknown key, did you mean jobs?"),
        ({"now": 10**18}, "now: Expected an integer <= 1000000000000"),
        ({"epoch": "2014-03-31T18:00:00"}, "epoch: Expected an offset from UTC"),
        ({"epoch": "yesterday"}, "epoch: Expected an ISO-8601 date and time"),
        ({"epoch": "2014-03-31T18:00:00.5+02:00"}, "epoch: Expected whole seconds"),
        (
            {"epoch": "2024-01-01T00:00Z", "time_zone": "Europe/Brelin"},
            'time_zone: Expected a known time zone, got "Europe/Brelin", did you mean Europe/Berlin?',
        ),
        ({"epoch": "2024-01-01T00:00Z", "time_zone": "Europe"}, 'time_zone: Expected a known time zone, got "Europe"'),
        ({"epoch": "2024-01-01T00:00Z", "time_zone": "../x"}, 'time_zone: Expected a known time zone, got "../x"'),
        ({"time_zone": "Europe/Berlin"}, "time_zone: Expected the instance to have an epoch"),
        ({"cluster": {"nodes": []}}, "cluster.nodes: Expected at least 1 entries, got 0"),
        ({"queues": {"q": {"expected_wait": 0}}}, "queues.q.expected_wait: Expected an integer > 0 (seconds), got 0"),
        ({"queues": {"q": {"expected_wait": 1, "weight": 0}}}, "queues.q.weight: Expected a number > 0.0, got 0"),
        ({"queues": {"q": {"expected_wait": 1, "weight": "2"}}}, 'queues.q.weight: Expected a number, got "2"'),
        (_max_wait(seconds=0), "queues.q.max_wait.seconds: Expected an integer > 0 (seconds), got 0"),
        (_max_wait(price=1), "queues.q.max_wait.seconds: Expected this key, got nothing"),
        (_max_wait(seconds=1, price=-1), "queues.q.max_wait.price: Expected a number >= 0.0, got -1"),
        (_max_wait(seconds=1, price="1"), 'queues.q.max_wait.price: Expected a number, got "1"'),
        (_max_wait(seconds=1, hard=1), "queues.q.max_wait.hard: Expected true or false, got 1"),
        (_max_wait(seconds=1, hrad=True), "queues.q.max_wait.hrad: unknown key, did you mean hard?"),
        (
            {"queues": {"q": {"expected_wait": 1, "max_wiat": {}}}},
            "queues.q.max_wiat: unknown key, did you mean max_wait?",
        ),
        ({"queues": {"q": {"expected_wait": 1, "max_wait": 5}}}, "queues.q.max_wait: Expected an object, got 5"),
        (_queue_nodes("cn[2-3]"), "queues.q.nodes: Expected nodes of the cluster, got also: cn3, did you mean cn"),
        (_queue_nodes("cn1,cn1"), "queues.q.nodes: Expected every node once"),
        (_queue_nodes(""), "queues.q.nodes: Expected a node name"),
        (_queue_nodes({}), "queues.q.nodes: Expected at least 1 entries, got 0"),
        (_queue_nodes({"net": "ib"}), 'queues.q.nodes: Expected properties that some node has, got "net=ib"'),
        (_queue_nodes(5), "queues.q.nodes: Expected an object, got 5"),
        (_states({"cn1": "up", "cn3": "down"}), "cluster.states.cn3: Expected nodes of the cluster, got also: cn3"),
        (
            _states({"cn[1-2]": "up", "cn2": "down"}),
            "cluster.states.cn2: Expected one state for every node, got another for cn2",
        ),
        (_states({"cn1": "dwon"}), "cluster.states.cn1: Expected 'up', 'drain' or 'down', got \"dwon\", did you mean"),
        (_states({"cn[": "down"}), "cluster.states"),
        (_states([]), "cluster.states: Expected an object"),
        ({"priorities": "strcit"}, "priorities: Expected 'strict', got \"strcit\""),
        ({"priorities": None}, "priorities: Expected"),
        ({"objective": "weight"}, "objective: Expected 'weighted_wait', 'wait'"),
        ({"objective": {"wait": 0.0}}, "objective.wait: Expected a number > 0.0, got 0.0"),
        (
            {"cluster": {"nodes": [{"names": "cn1", "resources": {"tpus": 1}}], "licenses": {"tpus": 4}}},
            "cluster.licenses.tpus: Expected a name that means nothing else",
        ),
        ({"objective": {}}, "objective: Expected at least 1 entries, got 0"),
        ({"objective": []}, "objective: Expected at least 1 entries, got 0"),
        ({"objective": ["wait", ["makespa"]]}, "objective[1][0]: Expected 'weighted_wait', 'wait'"),
        (
            {"objective": ["wait", "makespan", {"wait": 1}]},
            "objective[0]: Expected each aim once, got wait again behind it",
        ),
        ({"objective": [{"tolerance": 0.5}, "wait"]}, "objective[0]: Expected at least one term"),
        ({"objective": [["wait", "wait"]]}, "objective[0]: Expected each term once"),
        ({"objective": [{"wait": 0}]}, "objective[0].wait: Expected a number > 0.0, got 0"),
        ({"objective": [{"wait": 1, "tolerance": -0.1}, "makespan"]}, "objective[0].tolerance: Expected a number >= 0"),
        (
            {"objective": ["wait", {"makespan": 1, "tolerance": 0.5}]},
            "objective[1].tolerance: Expected a tolerance of an aim before another one only",
        ),
        ({"objective": {"wait": 1, "tolerance": 0.5}}, "objective.tolerance: Expected 'weighted_wait', 'wait'"),
        ({"limits": [_LIMIT]}, "limits[0]: Expected items, duration or area, got no bound"),
        ({"limits": [_LIMIT | {"items": "30/"}]}, "limits[0].items: Expected items such as 30, 45% or 30/45%"),
        ({"limits": [_LIMIT | {"items": "101%"}]}, "limits[0].items: Expected at most 2147483647 items and 100 per"),
        ({"limits": [_LIMIT | {"consumer": {}, "area": 1}]}, "limits[0].consumer: Expected exactly one of user"),
        (
            {"limits": [_LIMIT | {"area": 1, "resource": "corse"}]},
            'limits[0].resource: Expected a known resource, got "corse", did you mean cores?',
        ),
        (
            {"limits": [_LIMIT | {"area": 1, "validity": {"cron": "* 8-17 * * mon-fri"}}]},
            "limits[0].validity.cron: Expected the instance to have an epoch",
        ),
        (
            {"limits": [_LIMIT | {"area": 1, "validity": {"cron": "* 25 * * *"}}], "epoch": "2024-01-01T00:00Z"},
            "limits[0].validity.cron: Expected a cron expression, got: Bad hour",
        ),
        (
            {"limits": [_LIMIT | {"area": 1, "validity": {"cron": "* * * * * *"}}], "epoch": "2024-01-01T00:00Z"},
            "limits[0].validity.cron: Expected a cron expression of 5 fields, got 6",
        ),
        ({"limits": [_LIMIT | {"area": 1, "validity": "ever"}]}, "limits[0].validity: Expected 'always', got \"ever\""),
        (
            {"limits": [_LIMIT | {"area": 1, "validity": {"from": 5, "until": 5}}]},
            "limits[0].validity: Expected from < until, got 5 and 5",
        ),
        (
            {"limits": [_LIMIT | {"area": 1, "validity": {}}]},
            "limits[0].validity: Expected at least one of from, until",
        ),
        (
            {"free_pools": [_POOL | {"nodes": "cn[2-4]"}]},
            "free_pools[0].nodes: Expected at most 2 nodes, got 3",
        ),
        (
            {"free_pools": [_POOL | {"nodes": "cn2,cm1"}]},
            "free_pools[0].nodes: Expected nodes of the cluster, got also: cm1, did you mean cn1?",
        ),
        (
            {"free_pools": [_POOL | {"open_to": {"asks_for": ["gpu"]}}]},
            'free_pools[0].open_to.asks_for[0]: Expected a known resource, got "gpu", did you mean gpus?',
        ),
        (
            {"reservations": [{"id": "r", "start": 5, "end": 5, "request": "ncpus=1"}]},
            "reservations[0]: Expected start < end, got 5 and 5",
        ),
        (
            {"reservations": [{"id": "r", "start": 4, "end": 5, "request": "ncpus=1"}] * 2},
            'reservations[1].id: Expected a unique id, got "r", as in reservations[0]',
        ),
        (
            {"reservations": [{"id": "r", "start": 4, "request": "ncpus=1"}]},
            "reservations[0]: Expected either start and end, or validity",
        ),
        (_reservation(validity={"cron": "* * * * *"}), "reservations[0]: Expected either start and end, or validity"),
        (_reservation(end=None, start=None, validity={"from": 5}), "reservations[0]: Expected cron in the validity"),
        (
            _reservation(end=None, start=None, validity={"cron": "* * * * *"}),
            "reservations[0].validity.cron: Expected the instance to have an epoch",
        ),
        (_reservation(end=4), "reservations[0]: Expected start < end, got 4 and 4"),
        (_reservation(nodes="cn1"), "reservations[0]: Expected either request or nodes"),
        (_reservation(request=None), "reservations[0]: Expected either request or nodes"),
        (
            _reservation(request=None, nodes="cn9"),
            "reservations[0].nodes: Expected nodes of the cluster, got also: cn9",
        ),
        (
            _reservation(request=None, nodes="cn1", place="pack"),
            "reservations[0]: Expected place and allocation only together with request",
        ),
        (
            _reservation(request=None, nodes="cn1", kind="downtime", licenses={}),
            "reservations[0]: Expected no licenses in a downtime of nodes",
        ),
        (_kept(node="cn9"), 'reservations[0].allocation[0].node: Expected a known node, got "cn9"'),
        (_kept(chunk=1, count=1), "reservations[0].allocation[0].chunk: Expected a kind of chunks from 0 to 0, got 1"),
        (_kept(chunk=0), "reservations[0].allocation[0]: Expected chunk and count together"),
        (_kept(resources={}), "reservations[0].allocation[0].resources: Expected at least one unit"),
        (
            {"usage": [{"consumer": {"each": "user"}, "resource": "cores", "area": 1}]},
            "usage[0]: Expected a user or a group",
        ),
        (_outage(end=5), "outages[0]: Expected start < end, got 5 and 5"),
        (_outage(nodes="cn1,cn9"), "outages[0].nodes: Expected nodes of the cluster, got also: cn9, did you mean"),
        (_outage(nodes="cn1,cn1"), "outages[0].nodes: Expected every node once"),
        (_outage(nodes="cn["), "outages[0].nodes: Expected a range of numbers such as 001-032"),
        (_outage(end=10**12 + 1), "outages[0].end: Expected an integer <= 1000000000000"),
        (_outage(until=5), "outages[0].until: unknown key"),
    ],
)
def test_faults_of_an_instance(keys: dict[str, Any], expected: str) -> None:
    """Each fault beside the jobs is the only one reported."""
    faults = _faults(minimal_instance() | keys)
    assert len(faults) == 1
    assert faults[0].startswith(expected)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"names": "cn[1-10000000000]"}, "names: Expected at most 999999 nodes, got 10000000000"),
        ({"names": "x,@all"}, "names: Expected a node name, got '@'\n    x,@all\n      ^"),
        ({"names": "x[1-3],a1,x2"}, "names: Expected every node once, got again: a1, x2 (first in cluster.nodes[0]"),
        ({"resources": {"cores": 2**31}}, "resources.cores: Expected an integer <= 2147483647, got 2147483648"),
        ({"state": "gone"}, "state: Expected 'up', 'drain' or 'down', got \"gone\""),
        ({"admits": [{}]}, "admits[0]: Expected min or max_walltime, got neither"),
        ({"admits": [{"min": {"gpu": 1}}]}, 'admits[0].min.gpu: Expected a known resource, got "gpu", did you'),
        ({"keep_free": [{"resource": "cores", "items": 1, "for": "gpu"}]}, "keep_free[0].for: Expected a known res"),
        ({"properties": {"rack": 8}}, "properties.rack: Expected a text, got 8"),
    ],
)
def test_faults_of_nodes(keys: dict[str, Any], expected: str) -> None:
    """Each fault of a node class is the only one reported."""
    document = minimal_instance()
    document["cluster"]["nodes"] = [
        {"names": "a1", "resources": {"cores": 4}},
        {"names": "b1", "resources": {"cores": 4}} | keys,
    ]
    faults = _faults(document)
    assert len(faults) == 1
    assert faults[0].startswith(f"cluster.nodes[1].{expected}")


@pytest.mark.parametrize(
    ("levels", "place", "expected"),
    [
        ({"rack": {"r1": "cn1", "r2": "cn1"}}, None, "cluster.topology.rack.r2: Expected every node in one rack, got"),
        ({"rack": {"r1": "cn1,cn9"}}, None, "cluster.topology.rack.r1: Expected nodes of the cluster, got also: cn9"),
        ({"rack": {"r1": "cn1,cn1"}}, None, "cluster.topology.rack.r1: Expected every node once"),
        ({"rack": {}}, None, "cluster.topology.rack: Expected at least 1 entr"),
        ({"rack": {"r1": "cn1"}}, "free:within=rak", "jobs[0].place: Expected a known level of the topology, got"),
        ({"rack": {"r1": "cn1"}}, "within=", "jobs[0].place: Expected a level of the topology behind within="),
        ({"rack": {"r1": "cn1"}}, "within=rack:excl", "jobs[0].place: Expected a known level of the topology, got"),
        ({"rack": {"r1": "cn1"}}, "scater:within=rack", "jobs[0].place: Expected free, pack, scatter, excl or shared"),
    ],
)
def test_faults_of_a_topology(levels: dict[str, Any], place: str | None, expected: str) -> None:
    """A node is in one group of a level, and a request names a level that is there; each fault has its path."""
    document = minimal_instance()
    document["cluster"]["topology"] = levels
    document["jobs"] = [job("a", **({} if place is None else {"place": place}))]
    faults = _faults(document)
    assert len(faults) == 1
    assert faults[0].startswith(expected)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"jobs": [job("a", place="within=rack", malleable={"shares": [0.5]}, request="ncpus=2")]}, "jobs[0]"),
        ({"jobs": [job("a", place="within=rack", walltime=None, request=None, steps=_STEPS)]}, "jobs[0]"),
        ({"reservations": [{"id": "r", "start": 1, "end": 2, "request": "ncpus=1,place=within=rack"}]}, "reserva"),
    ],
)
def test_nothing_that_changes_is_within_a_group(change: dict[str, Any], path: str) -> None:
    """Neither jobs that change while they run nor reservations may be within one group."""
    document = minimal_instance() | change
    document["cluster"]["topology"] = {"rack": {"r1": "cn1"}}
    document["jobs"] = [{key: value for key, value in one.items() if value is not None} for one in document["jobs"]]
    (fault,) = _faults(document)
    assert fault.startswith(path)
    assert "Expected no within" in fault


def test_all_faults_come_at_once_and_in_document_order() -> None:
    """Faults of shape do not hide those between sound parts; dropped entries are not called unknown."""
    document = small_instance()
    document["jobs"][0]["queue"] = "debgu"
    document["jobs"][1]["walltime"] = "long"
    document["jobs"][4]["reservation"] = "r3"
    document["jobs"].append(job("4"))
    document["usage"][0]["aera"] = 5
    assert [fault.split(":")[0] for fault in _faults(document)] == [
        "jobs[0].queue",
        "jobs[1].walltime",
        "jobs[4].reservation",
        "jobs[6].id",
        "usage[0].aera",
    ]


def test_running_jobs_that_overload_a_node_together() -> None:
    """Two jobs of 3 cores do not fit on 4: a warning has the later one's place and both names; ends may touch."""
    first = job("a", running={"start": -50, "allocation": _held(cores=3)})
    second = job("b", running={"start": -20, "allocation": _held(cores=3)})
    assert _warnings(minimal_instance(first, second)) == [
        "jobs[1].running.allocation[0]: running jobs take more than there is: "
        "node cn1 has 4 cores, got 6 from -20: a (3), b (3)"
    ]
    segments = [
        {"start": -50, "end": -20, "allocation": _held(cores=3)},
        {"start": -20, "end": 50, "allocation": _held("cn2", cores=3)},
    ]
    moved = job("a", running={"start": -50, "segments": segments})
    assert _warnings(minimal_instance(moved, second)) == []


def _warnings(document: object) -> list[str]:
    warnings: list[Fault] = []
    parse_instance(document, on_warning=warnings.append)
    return [str(warning) for warning in warnings if "more than there is" in warning.message]


@pytest.mark.parametrize(
    ("keys", "warning"),
    [
        (
            {"running": {"start": -7, "allocation": _held(gpus=1)}},
            "jobs[0].running.allocation[0]: running jobs take more than there is: "
            "node cn1 has 0 gpus, got 1 from -7: j (1)",
        ),
        (
            {"running": {"start": -7, "allocation": _held()}, "licenses": {"abaqus": 3}},
            "jobs[0].licenses: running jobs take more than there is: the cluster has 2 abaqus, got 3 from -7: j (3)",
        ),
    ],
)
def test_one_job_may_run_on_more_than_there_is(keys: dict[str, Any], warning: str) -> None:
    """A running job that has more than its node or the cluster is a fact, and a warning."""
    document = minimal_instance(job("j", **keys))
    document["cluster"]["licenses"] = {"abaqus": 2}
    assert _warnings(document) == [warning]


@pytest.mark.parametrize(
    ("outage", "is_refused"),
    [((-5, 9), True), ((0, 9), True), ((-5, 1), True), ((1, 9), False), ((-5, 0), False)],
)
def test_nothing_runs_on_a_node_that_is_down(outage: tuple[int, int], is_refused: bool) -> None:
    """At second 0 a job runs on cn2, which cannot be down then; it may have been before, and fail later."""
    running = job("j", running={"start": -9, "allocation": _held("cn2")})
    document = minimal_instance(running, outages=[{"nodes": "cn[1-2]", "start": outage[0], "end": outage[1]}])
    if is_refused:
        message = 'outages[0].nodes: Expected no running job on a node that is down, got "j" on cn2'
        assert _faults(document) == [message]
    else:
        assert parse_instance(document).outages == (Outage(nodes=("cn1", "cn2"), start=outage[0], end=outage[1]),)


def test_ids_of_array_elements_are_taken() -> None:
    """A job may not be called like an element of an array, wherever it stands; another index is free."""
    array = job("a", array={"indices": "0-9:3"})
    assert _faults(minimal_instance(job("a[3]"), array)) == [
        'jobs[0].id: Expected a unique id, got "a[3]", an element of a'
    ]
    assert len(parse_instance(minimal_instance(job("a[4]"), job("a[03]"), array)).jobs) == 3


def test_cycles_are_printed_from_their_first_job() -> None:
    """Every cycle is reported once, also one through an element of an array."""
    document = minimal_instance(
        job("free", after=[{"job": "a", "type": "afterok"}]),
        job("a", after=[{"job": "b", "type": "afterok"}]),
        job("b", after=[{"job": "c[2]", "type": "after"}]),
        job("c", array={"indices": "1-3"}, after=[{"job": "a", "type": "afterany"}]),
        job("d", after=[{"job": "d", "type": "after"}]),
    )
    assert _faults(document) == [
        "jobs[1].after: Expected no cycle, got a -> b -> c -> a",
        "jobs[4].after: Expected no cycle, got d -> d",
    ]


def test_array_elements_are_counted_over_the_whole_document() -> None:
    """Many arrays cannot ask for more memory than one may."""
    faults = _faults(minimal_instance(*(job(f"a{i}", array={"indices": "0-399999"}) for i in range(3))))
    assert faults == [
        "jobs[2].array.indices: Expected at most 200000 array elements, got 400000\n    0-399999\n    ^^^^^^^^"
    ]


def test_a_running_job_whose_walltime_has_passed_ends_in_a_second() -> None:
    """It is taken to end at now + 1, with a warning (BRIDI-11); one that ends later is left alone."""
    warnings: list[Fault] = []
    jobs = [
        job("late", running={"start": 0, "allocation": _held()}),
        job("even", running={"start": 400, "allocation": _held()}),
        job("fine", running={"start": 401, "allocation": _held()}),
    ]
    instance = parse_instance(minimal_instance(*jobs, now=500), on_warning=warnings.append)
    assert [found.running.segments[-1].end for found in instance.jobs if found.running is not None] == [501, 501, 501]
    assert [warning.path for warning in warnings] == ["jobs[0].running", "jobs[1].running"]
    assert warnings[0].message == "should have ended at 100, now is 500: taken to end at 501"


@pytest.mark.parametrize(
    "keys",
    [
        {"request": "ncpus=99"},
        {"request": "ncpus=1:rack=nowhere"},
        {"request": "ncpus=1,unheard=5"},
        {"request": [{"count": 1, "resources": {"tpus": 5}}]},
        {"walltime": 10**10},
        {"deadline": -5},
    ],
)
def test_what_can_never_run_is_no_fault(keys: dict[str, Any]) -> None:
    """Such a job goes to the waiting room later; its document is fine."""
    assert len(parse_instance(minimal_instance(job("j", **keys))).jobs) == 1


@pytest.mark.parametrize("document", [None, 5, [], "text", {}, {"cluster": 5}, {5: 1}, {"\ud800": 1}])
def test_what_is_no_instance_at_all(document: object) -> None:
    """Whatever is given, there are faults with paths."""
    assert all(": " in fault for fault in _faults(document))


def test_faults_of_a_plan() -> None:
    """A plan's faults come at once too: ids that stand twice; a hole and an unknown reason."""
    document = small_plan()
    document["waiting_room"][0]["id"] = "2"
    document["reservations"] = [
        {"id": "r", "start": 1, "end": 2, "allocation": document["jobs"][0]["segments"][0]["allocation"]}
    ] * 2
    with pytest.raises(DocumentError) as caught:
        parse_plan(document, source="p.json")
    assert str(caught.value) == (
        "p.json: 2 faults\n"
        '  waiting_room[0].id (job "2"): Expected every job once, got "2", as in jobs[0].id\n'
        '  reservations[1].id (reservation "r"): Expected every time of a reservation once, got "r at 1", as in '
        "reservations[0].id"
    )
    document["jobs"][0]["segments"][0]["end"] = 19
    document["waiting_room"][0]["reason"] = "bored"
    with pytest.raises(DocumentError) as caught:
        parse_plan(document)
    assert [fault.path for fault in caught.value.faults] == ["jobs[0]", "waiting_room[0].reason"]


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"attempts": []}, None),
        ({"record": False}, None),
        ({"record": 1}, "record: Expected true or false, got 1"),
        ({"record": True, "attempts": [{"id": "2", "start": 5, "end": 4}]}, "attempts[0].segments: Expected this key"),
        ({"attempts": small_plan()["jobs"]}, None),
        (
            {"waiting_room": [{"id": "3", "reason": "not_started", "detail": "x"}]},
            "document: Expected a job that is not_started only in a record",
        ),
    ],
)
def test_faults_of_a_record(keys: dict[str, Any], fault: str | None) -> None:
    """Attempts and jobs that nobody had started stand in records only, and each fault is said with its path."""
    document = small_plan() | keys
    if fault is None:
        assert not parse_plan(document).record
        return
    with pytest.raises(DocumentError) as caught:
        parse_plan(document)
    assert [f"{one.path}: {one.message}".startswith(fault) for one in caught.value.faults] == [True]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"WALLTIME": 5}, 'jobs[0].WALLTIME (job "j"): unknown key, did you mean walltime?'),
        ({"Steps": []}, 'jobs[0].Steps (job "j"): unknown key, did you mean steps?'),
        ({"walltime": "2h"}, 'jobs[0].walltime (job "j"): Expected an integer (seconds), got "2h"'),
        ({"place": "SCATTER"}, "got 'SCATTER', did you mean scatter?"),
        ({"place": "pack:EXCL"}, "got 'EXCL', did you mean excl?"),
        ({"request": "2:NCPUS=2"}, "Expected at least one unit of a countable resource, got none, did you mean ncpus?"),
        (
            {"request": [{"count": 1, "resources": {"mem": "10g"}}]},
            'jobs[0].request[0].resources.mem (job "j"): Expected an integer (MiB), got "10g"',
        ),
    ],
)
def test_faults_name_the_job_the_unit_and_what_is_meant(change: dict[str, Any], expected: str) -> None:
    """A fault of a job says its id beside its index, units are said, and what is only in the wrong case is found."""
    with pytest.raises(DocumentError) as refused:
        parse_instance(minimal_instance(job("j", **change)))
    assert expected in str(refused.value)


def test_states_and_nodes_get_a_hint() -> None:
    """A state in the wrong case is found; a range without brackets is one node, with a warning, or an unknown one."""
    document = minimal_instance()
    nodes = {"names": "node01-node04", "resources": {"cores": 4}}
    with pytest.raises(DocumentError, match='got "UP", did you mean up\\?'):
        parse_instance(document | {"cluster": {"nodes": [nodes | {"state": "UP"}]}})
    warnings: list[Fault] = []
    cluster = {"nodes": [nodes, {"names": "node[01-04]", "resources": {"cores": 4}}]}
    parse_instance(document | {"cluster": cluster, "jobs": []}, on_warning=warnings.append)
    said = 'cluster.nodes[0].names: one node is called "node01-node04"; did you mean the nodes node[01-04]?'
    assert [str(warning) for warning in warnings] == [said]
    outage = {"nodes": "node01-node03", "start": 0, "end": 5}
    with pytest.raises(DocumentError, match=r"node01-node03, did you mean node\[01-03\]\?"):
        parse_instance(document | {"cluster": cluster, "jobs": [], "outages": [outage]})


def test_every_time_has_its_unit() -> None:
    """Each number of both documents with the bounds of a time, a duration or a time of a plan is said in seconds."""
    pending, seen = [kind_of(Instance), kind_of(Plan)], 0
    while pending:
        kind = pending.pop()
        pending += [part for part in vars(kind).values() if isinstance(part, Kind)]
        pending += [entry.kind for entry in getattr(kind, "_entries", {}).values()]
        if isinstance(kind, Number) and kind.schema({}).get("maximum") in (10**12, 10**10, 10**17):
            faults = Faults({})
            kind.explain("long", ("key",), faults)
            with pytest.raises(DocumentError, match=r"an integer \(seconds\), got"):
                faults.refuse("document")
            seen += 1
    assert seen > 20
