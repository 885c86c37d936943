"""Instances that are sent to be planned: the plans are plans, the queue is bounded, and what is cancelled ends."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from cpsched.formats import instance_to_document
from cpsched.site.serve import child
from cpsched.verify import verify
from tests.bridge.small_world import job, site
from tests.serve.serving import ALICE, BOB, OPERATOR, Client, asking, bearer, users_site

DOCUMENT = instance_to_document(users_site())


def send(
    client: Client, document: Any = DOCUMENT, query: str = "budget=0&engine=planner", token: str = ALICE
) -> httpx.Response:
    """Send an instance."""
    return client.post(f"/v1/plans?{query}", json=document, headers=bearer(token))


def outcome(client: Client, location: str, token: str = ALICE) -> Any:
    """Return what became of an instance."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found = client.get(location, headers=bearer(token)).json()
        if found["state"] not in ("queued", "running"):
            return found
        time.sleep(0.05)
    raise AssertionError("it is not planned")


def children() -> set[int]:
    """Return the processes that plan for this one."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                status = (entry / "stat").read_text().rpartition(")")[2].split()
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(status[1]) == os.getpid() and status[0] != "Z" and child.__name__.encode() in words:
                found.add(int(entry.name))
    return found


def eventually(holds: Any) -> bool:
    """Tell whether something comes to hold."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_an_instance_is_planned() -> None:
    """It is queued, planned by another process, and its plan passes the verifier."""
    with asking() as client:
        answer = send(client, query="budget=0.2&engine=portfolio&seed=3")
        assert answer.status_code == 202
        queued = answer.json()
        assert answer.headers["location"] == queued["location"] == f"/v1/plans/{queued['id']}"
        done = outcome(client, queued["location"])
        assert (done["state"], done["error"]) == ("done", None), done
        assert verify(DOCUMENT, done["plan"]) == ()
        assert done["plan"]["engine"]["name"] == "portfolio"
        for token, status in ((BOB, 404), (OPERATOR, 200)):
            assert client.get(queued["location"], headers=bearer(token)).status_code == status
        assert client.request("DELETE", queued["location"], headers=bearer(BOB)).status_code == 404
        assert client.request("DELETE", queued["location"], headers=bearer(ALICE)).status_code == 204
        assert client.get(queued["location"], headers=bearer(ALICE)).status_code == 404


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"now": "noon"}, "now"),
        ({"jobs": [{"id": "a", "submit": 0, "walltime": -5, "request": "ncpus=1"}]}, "jobs[0].walltime"),
        ({"jobs": [{"id": "a", "submit": 0, "wallime": 5, "walltime": 5, "request": "ncpus=1"}]}, "jobs[0].wallime"),
        ({"cluster": None}, "cluster"),
        ({"format": "cpsched-plan/1"}, "format"),
    ],
)
def test_all_faults_of_an_instance_are_told(change: dict[str, Any], path: str) -> None:
    """What the reader of documents refuses is refused with its paths, and not queued."""
    with asking() as client:
        refused = send(client, {**DOCUMENT, **change})
        assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
        assert path in [fault["path"] for fault in refused.json()["faults"]], refused.text
    both = [{"id": "a", "submit": 0, "walltime": 0, "request": "ncpus=1"}, {"id": "", "submit": "x"}]
    with asking() as client:
        assert len(send(client, {**DOCUMENT, "jobs": both}).json()["faults"]) == 3


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"nul", b"[" * 100_000, b'{"a":1,"a":2}', b"\xff", b"\x1f\x8b\x08"]
)
def test_what_is_no_document_is_refused(content: bytes) -> None:
    """Whatever is sent is a problem of the sender."""
    with asking() as client:
        headers = {**bearer(ALICE), "Content-Type": "application/json"}
        assert client.post("/v1/plans", content=content, headers=headers).status_code == 422


def test_an_instance_that_is_too_large_is_refused() -> None:
    """A short text can be very many jobs or nodes: these are counted before anything is planned."""
    array = {**DOCUMENT["jobs"][2], "array": {"indices": "0-999999"}}
    nodes = [{"names": "n[1-100000]", "resources": {"cores": 4}}]
    with asking() as client:
        for change, path in (({"jobs": [array]}, "jobs"), ({"cluster": {"nodes": nodes}, "jobs": []}, "cluster.nodes")):
            refused = send(client, {**DOCUMENT, **change})
            assert refused.status_code == 422
            assert [fault["path"] for fault in refused.json()["faults"]] == [path]


def test_other_contents_are_refused() -> None:
    """A form that another page sends is no instance."""
    with asking() as client:
        headers = {**bearer(ALICE), "Content-Type": "text/plain"}
        assert client.post("/v1/plans", content=b"{}", headers=headers).status_code == 415


@pytest.mark.parametrize("query", ["budget=61", "budget=-1", "budget=nan", "engine=none", "seed=-1", "workers=64"])
def test_more_than_is_allowed_is_refused(query: str) -> None:
    """A budget beyond the server's, and what no option is, are refused."""
    with asking() as client:
        assert send(client, query=query).status_code == 422


@pytest.mark.slow
def test_the_queue_is_bounded_and_what_is_cancelled_ends() -> None:
    """One is planned and one waits; a third is refused; those that are cancelled leave no process behind."""
    # far from optimal for as long as it takes
    window = instance_to_document(site(*(job(f"j{n}", f"ncpus={1 + n % 4}", walltime=50 + 7 * n) for n in range(60))))
    with asking(most_queued=1) as client:
        first = send(client, window, "budget=60").json()["location"]
        assert eventually(lambda: client.get(first, headers=bearer(ALICE)).json()["state"] == "running")
        second = send(client, window, "budget=60").json()
        assert (second["state"], second["position"]) == ("queued", 0)
        refused = send(client, window)
        assert (refused.status_code, refused.headers["content-type"]) == (429, "application/problem+json")
        assert int(refused.headers["retry-after"]) > 0
        assert eventually(lambda: len(children()) == 1)
        assert client.request("DELETE", second["location"], headers=bearer(ALICE)).status_code == 204
        assert client.request("DELETE", first, headers=bearer(ALICE)).status_code == 204
        assert eventually(lambda: not children())
        third = send(client, window, "budget=60").json()["location"]
        assert eventually(lambda: client.get(third, headers=bearer(ALICE)).json()["state"] == "running")
        assert eventually(lambda: len(children()) == 1)
    assert eventually(lambda: not children())


def test_outcomes_are_forgotten() -> None:
    """Of what is over only the newest is kept, and not for ever."""
    from cpsched.site.serve.access import Viewer
    from cpsched.site.serve.children import Children
    from cpsched.site.serve.problems import Problem
    from cpsched.site.serve.settings import ServeSettings
    from cpsched.site.serve.submissions import Submissions, Submitted

    kept = Submissions(Children(1), ServeSettings(most_kept=3, keep_seconds=100))
    viewer = Viewer(key="me")
    for number in range(6):
        age = 1000 if number == 5 else 0
        kept._all[f"{number}"] = Submitted(
            id=f"{number}", owner="me", engine="planner", budget=0, submitted=time.time() - age, state="done"
        )
    assert kept.find(viewer, "4").id == "4"
    for gone in ("0", "1", "5"):
        with pytest.raises(Problem):
            kept.find(viewer, gone)


def test_a_child_tells_what_is_wrong() -> None:
    """Faults, texts that are none and engines that cannot are outcomes, not the end of a process."""
    task = {"kind": "solve", "instance": {"format": "x"}, "engine": "planner", "budget": 0, "seed": 0, "workers": 1}
    found = child.outcome_of(task)
    assert found["faults"]
    assert "plan" not in found
    unknown = child.outcome_of({**task, "instance": DOCUMENT, "engine": "none"})
    assert "none" in unknown["error"]
