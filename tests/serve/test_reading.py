"""The endpoints that only read: what they say of a small window, and how they refuse what they do not know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cpsched.domain import FrozenMap
from cpsched.formats import instance_to_document, parse_instance, parse_plan
from cpsched.verify import verify
from tests.bridge.small_world import job, site
from tests.serve.serving import asking, opened, users_site


def get(path: str, **params: Any) -> Any:
    """Return what a reader on loopback gets."""
    with asking() as client:
        answer = client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()


def test_the_state_counts_what_there_is() -> None:
    """Two jobs run, three have a start, one has none; the figures of the cluster are those of the running jobs."""
    state = get("/v1/state")
    assert state["counts"] == {"running": 2, "waiting": 4, "planned": 3, "not_planned": 1}
    assert state["cluster"]["resources"] == state["cluster"]["used"] == {"cores": 8}
    assert state["cluster"]["states"] == {"up": 2, "drain": 0, "down": 0}
    assert (state["now"], state["utc_offset"], state["epoch"]) == (10, 3600, "2026-01-01T00:00:00+01:00")
    assert state["source"] == {"kind": "instance", "name": "small"}
    assert state["viewer"]["visibility"] == "all"
    assert state["cycle"] is None


def test_jobs_are_listed_with_their_starts() -> None:
    """A job is listed with what it asks for and where it is to run, one without a start with the reason."""
    rows = {row["id"]: row for row in get("/v1/jobs")["jobs"]}
    assert (rows["r1"]["status"], rows["r1"]["start"], rows["r1"]["end"], rows["r1"]["nodes"]) == (
        "running",
        0,
        50,
        "n1",
    )
    assert (rows["a1"]["status"], rows["a1"]["start"], rows["a1"]["nodes"]) == ("planned", 50, "n1")
    assert (rows["b2"]["start"], rows["b2"]["nodes"], rows["b2"]["request"]) == (200, "n[1-2]", "2:ncpus=4")
    assert (rows["x"]["status"], rows["x"]["reason"], rows["x"]["start"]) == ("waiting_room", "unsatisfiable", None)
    assert "9 cores" in rows["x"]["detail"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"status": "running"}, ["r1", "r2"]),
        ({"search": "BOB"}, ["b1", "b2"]),
        ({"search": "secret"}, ["a1"]),
        ({"sort": "id", "limit": 2, "offset": 1}, ["b1", "b2"]),
        ({"sort": "user", "descending": True}, ["x", "b1", "b2", "r1", "r2", "a1"]),
        ({"sort": "start", "descending": True}, ["b2", "b1", "a1", "r1", "r2", "x"]),
        ({"offset": 100}, []),
    ],
)
def test_a_page_of_jobs(query: dict[str, Any], expected: list[str]) -> None:
    """Jobs are chosen, searched, sorted (those without the value last), and cut into pages."""
    assert [row["id"] for row in get("/v1/jobs", **query)["jobs"]] == expected


def test_the_total_is_that_of_all_pages() -> None:
    """A page says how many jobs there are on all of them."""
    assert get("/v1/jobs", limit=1)["total"] == 6
    assert get("/v1/jobs", limit=1, search="bob")["total"] == 2


def test_elements_of_arrays_are_jobs() -> None:
    """Each element of an array is listed and explained by itself."""
    window = site(job("sweep", array={"indices": "0-2"}))
    with asking(opened(window)) as client:
        assert [row["id"] for row in client.get("/v1/jobs").json()["jobs"]] == ["sweep[0]", "sweep[1]", "sweep[2]"]
        assert client.get("/v1/jobs/sweep[1]").json()["status"] == "planned"
        assert client.get("/v1/jobs/sweep[2]/explanation").json()["job"] == "sweep[2]"
        assert client.get("/v1/jobs/sweep").status_code == 404


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "a b", "ü€", "..", "'; --", "a?b#c", "%2e"])
def test_hostile_names_are_only_names(name: str) -> None:
    """A job of any name is listed, found and explained by it."""
    from urllib.parse import quote

    window = site(job(name, user=name))
    with asking(opened(window)) as client:
        assert [row["id"] for row in client.get("/v1/jobs").json()["jobs"]] == [name]
        if name != "..":
            assert client.get(f"/v1/jobs/{quote(name, safe='')}").json()["user"] == name
            assert client.get(f"/v1/jobs/{quote(name, safe='')}/explanation").json()["job"] == name


def test_the_map_of_the_nodes() -> None:
    """Each node is there with its class, its state, and what running jobs have of it."""
    found = get("/v1/nodes")
    assert found["classes"] == [{"names": "n[1-2]", "resources": {"cores": 4}, "properties": {}}]
    assert found["nodes"][0] == {
        "name": "n1", "node_class": 0, "groups": [], "state": "up", "used": {"cores": 4}, "shares": {"cores": 1.0},
        "jobs": 1,
    }  # fmt: skip
    assert found["levels"] == []


def test_the_map_has_the_topology() -> None:
    """Each node is there with its groups, of the widest level first; one in no group of a level says so."""
    switches = FrozenMap[str, tuple[str, ...]]({"s1": ("n1",), "s2": ("n2",)})
    halls = FrozenMap[str, tuple[str, ...]]({"east": ("n1",)})
    instance = users_site()
    cluster = replace(instance.cluster, topology=FrozenMap({"switch": switches, "hall": halls}))
    with asking(opened(replace(instance, cluster=cluster))) as client:
        found = client.get("/v1/nodes").json()
    assert found["levels"] == ["hall", "switch"]
    assert [node["groups"] for node in found["nodes"]] == [["east", "s1"], [None, "s2"]]


def test_the_documents_are_the_documents() -> None:
    """The instance is the one that is served, and the plan passes the verifier."""
    document, plan = get("/v1/instance"), get("/v1/plan")
    assert document == instance_to_document(users_site())
    assert parse_instance(document).name == parse_plan(plan).instance
    assert verify(document, plan) == ()


def test_the_chart_is_a_page() -> None:
    """The plan is a page of its own, whose policy is its own too."""
    with asking() as client:
        page = client.get("/v1/gantt")
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
        assert "script-src &#x27;sha256-" in page.text or "script-src 'sha256-" in page.text


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "offset=-1",
        "status=gone",
        "sort=password",
        "colour=red",
        "search=" + "x" * 300,
    ],
)
def test_what_cannot_be_asked_is_refused_with_all_faults(query: str) -> None:
    """A bad query is refused as a problem that names the parameter."""
    with asking() as client:
        refused = client.get(f"/v1/jobs?{query}")
        assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
        problem = refused.json()
        assert problem["status"] == 422
        assert [fault["path"] for fault in problem["faults"]] == [query.partition("=")[0]]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/nothing", 404), ("GET", "/v1/jobs/none", 404), ("PUT", "/v1/state", 405), ("GET", "/../etc", 404)],
)
def test_what_is_not_there_is_a_problem_too(method: str, path: str, status: int) -> None:
    """Errors of routing have the form of all others."""
    with asking() as client:
        refused = client.request(method, path)
        assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json")
        assert refused.json()["status"] == status


def test_metrics_are_prometheus_s() -> None:
    """The figures can be read by Prometheus."""
    from prometheus_client.parser import text_string_to_metric_families

    with asking() as client:
        families = {one.name: one for one in text_string_to_metric_families(client.get("/v1/metrics").text)}
    jobs = {sample.labels["state"]: sample.value for sample in families["cpsched_serve_jobs"].samples}
    assert jobs == {"running": 2, "waiting": 4, "planned": 3, "not_planned": 1}
    assert families["cpsched_serve_ready"].samples[0].value == 1
