"""slurmrestd: the same snapshot as from the commands, errors in time, and a token that nobody sees."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.errors import BridgeError, DocumentError
from cpsched.site.bridge import JobState, Result
from cpsched.site.bridge.slurm import SlurmClient, SlurmManager
from cpsched.site.bridge.slurm.rest import RestServer
from cpsched.site.bridge.slurm.site import SlurmModel, client_of, read_site
from tests.bridge.slurm.laboratory import Laboratory, start
from tests.bridge.slurm.test_slurm_real import submit_many_kinds

TOKEN = "eyJhbGciOiJIUzI1NiJ9.secret.signature"  # noqa: S105 - of nobody
PATHS = json.dumps(
    {"paths": {f"/slurm/v0.0.{number}/jobs": {} for number in (9, 40, 38)} | {"/slurmdb/v0.0.99/jobs": {}}}
)


class Server:
    """A server that gives each answer as it is, on a port of this machine, and keeps what it was asked. Mutable."""

    def __init__(self, *answers: bytes, pause: float = 0) -> None:
        self.asked: list[str] = []
        #: Bytes that were sent.
        self.sent = 0
        self._answers, self._pause = answers, pause
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            client, _ = self._socket.accept()
            with client:
                self.asked.append(client.recv(65536).decode())
                try:
                    for at in range(0, len(answer), 1 if self._pause else max(1, len(answer))):
                        client.sendall(answer[at : at + 1] if self._pause else answer)
                        self.sent += 1 if self._pause else len(answer)
                        time.sleep(self._pause)
                except OSError:  # the other end has gone
                    return

    def end(self) -> None:
        """Wait until all answers are given."""
        self._thread.join(60)
        self._socket.close()
        assert not self._thread.is_alive()


def answer(text: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """Return an answer of slurmrestd."""
    size = len(text) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nContent-Type: application/json\r\n\r\n{text}".encode()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """Return a file with a token, which only its owner can read."""
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


def test_the_newest_version_is_asked_with_the_token(token: Path) -> None:
    """The version is asked for once, the newest one is used, and each question has the token and nothing else has."""
    server = Server(answer(PATHS), answer("{}"), answer('{"nodes": []}'))
    rest = RestServer(server.address, token=token)
    assert [rest.get("jobs"), rest.get("nodes")] == [b"{}", b'{"nodes": []}']
    server.end()
    assert [said.split()[1] for said in server.asked] == [
        "/openapi/v3", "/slurm/v0.0.40/jobs", "/slurm/v0.0.40/nodes",
    ]  # fmt: skip
    assert all(f"X-SLURM-USER-TOKEN: {TOKEN}\r\n" in said for said in server.asked)
    assert all(said.startswith("GET ") for said in server.asked)


@pytest.mark.parametrize(
    ("said", "match"),
    [
        (answer("no\x1b[2J\nsuch token", "401 UNAUTHORIZED"), "got 401: no"),
        (answer('{"jobs": [', length=100), "IncompleteRead|whole answer"),
        (b"garbage\r\n\r\n", "BadStatusLine"),
        (b"", "RemoteDisconnected"),
        (answer("[]"), "Expected a JSON object"),
        (answer('{"jobs": [], "errors": [{"error": "Unable to contact slurm controller"}]}'), "Unable to contact"),
        (answer('{"nodes": []}'), "Expected a list of jobs"),
    ],
)
def test_failures_are_errors_without_the_token(token: Path, said: bytes, match: str) -> None:
    """Another status, half an answer, none, and errors with status 200: each is told without token and escapes."""
    server = Server(answer(PATHS), said)
    client = SlurmClient(rest=RestServer(server.address, token=token))
    with pytest.raises(BridgeError, match=match) as caught:
        client.jobs()
    server.end()
    assert TOKEN not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_slow_answer_is_given_up_in_time() -> None:
    """A server that sends a byte now and then takes no longer than it may, in all."""
    server = Server(answer(PATHS), pause=0.05)
    with pytest.raises(BridgeError, match=r"within 0\.3 s"):
        RestServer(server.address, seconds=0.3).get("jobs")
    server.end()
    assert 0 < server.sent < len(PATHS)


def test_a_token_that_others_can_read_is_not_used(token: Path) -> None:
    """No question is asked with a token that others can read, or that is none; and no message has it."""
    rest = RestServer("http://127.0.0.1:1", token=token)
    for text, mode in ((TOKEN, 0o644), (f"{TOKEN}\r\nX: y", 0o600), ("", 0o600)):
        token.write_text(text)
        token.chmod(mode)
        with pytest.raises(BridgeError, match="one token") as caught:
            rest.get("jobs")
        assert TOKEN not in str(caught.value)
    token.unlink()
    with pytest.raises(BridgeError, match="Expected the token"):
        rest.get("jobs")


@pytest.mark.parametrize(
    "address", ["http://example.com:6820", "https://127.0.0.1:6820", "unix:relative", "http://127.0.0.1:6820/slurm"]
)
def test_only_this_machine_is_asked(tmp_path: Path, address: str) -> None:
    """Another machine, and what is no address, are refused when the site's file is read."""
    with pytest.raises(ValueError, match="expected unix:/PATH"):
        RestServer(address)
    path = tmp_path / "site.toml"
    path.write_text(f'[manager]\nkind = "slurm"\nrest = "{address}"\n')
    with pytest.raises(DocumentError, match="Expected unix:/PATH"):
        read_site(path)


@pytest.fixture
def rest_lab(lab: Laboratory) -> Iterator[Laboratory]:
    """Return the cluster with a slurmrestd."""
    lab.script("revive", "slurmrestd")
    path = lab.directory / "rest.socket"
    lab.wait(path.exists)
    yield lab
    lab.script("kill", "slurmrestd", "--signal", "KILL")


@pytest.mark.slow
@pytest.mark.slurm
def test_a_real_slurmrestd_says_what_the_commands_say(rest_lab: Laboratory) -> None:
    """The snapshot of a cluster with jobs of all shapes is equal, and orders given by it are carried out and seen."""
    lab = rest_lab
    lab.run("scontrol", "create", "reservation=r1", "Users=root", "Nodes=m2", "StartTime=now+1hour", "Duration=10")
    lab.run("scontrol", "update", "NodeName=c1", "State=DRAIN", "Reason=test")
    running = [lab.submit("-N2", "-n9"), lab.submit("-n4", "--gres=gpu:k40:2"), lab.submit("--licenses=ansys:1")]
    lab.wait(lambda: {lab.facts(job).state for job in running} == {JobState.RUNNING})
    lab.close()
    jobs = submit_many_kinds(lab)
    held = lab.submit("--hold", "--dependency=singleton")
    model = SlurmModel(
        kind="slurm",
        commands=lab.commands,
        conf=str(lab.directory / "etc" / "slurm.conf"),
        rest=f"unix:{lab.directory}/rest.socket",
    )
    manager = SlurmManager(client_of(model), replace(model, steering="exact", gate=str(lab.gate)))
    by_rest, by_commands = manager.snapshot(), lab.manager.snapshot()
    lab.run("scontrol", "delete", "reservation=r1")
    assert {job.id for job in by_rest.instance.jobs} == {*jobs, *running}
    assert [left.id for left in by_rest.left] == [held]
    assert by_rest.instance.reservations
    assert by_rest.instance.cluster.licenses == {"matlab": 4, "ansys": 2}
    later = replace(by_rest.instance, now=by_commands.instance.now)
    assert later == by_commands.instance
    assert (by_rest.left, by_rest.jobs) == (by_commands.left, by_commands.jobs)
    (receipt,) = manager.apply([start(by_rest, jobs[4], "m1", cores=2)])
    assert receipt.result is Result.DONE
    lab.wait(lambda: manager.snapshot().jobs[jobs[4]].state is JobState.RUNNING)
    lab.script("kill", "slurmrestd", "--signal", "KILL")
    with pytest.raises(BridgeError, match="Expected an answer"):
        manager.snapshot()
    lab.script("revive", "slurmrestd")
    lab.wait(lambda: lab.directory.joinpath("rest.socket").exists())
    time.sleep(0.5)
    assert manager.snapshot().jobs[jobs[4]].nodes == ("m1",)
