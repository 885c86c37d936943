"""The command as a process: it serves, streams, and ends cleanly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from cpsched.formats import write_instance
from tests.bridge.small_world import job, site
from tests.serve.serving import ALICE, TOKENS, bearer, users_site
from tests.serve.test_store_source import live

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def serving(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command; give the process and the address."""
    port = free_port()
    process = subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "cpsched", "serve", *words, "--port", str(port)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                httpx.get(f"{address}/v1/health")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield process, address
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def tokens_file(folder: Path) -> Path:
    """Write the tokens of the tests."""
    path = folder / "tokens.toml"
    path.write_text(f'[[tokens]]\nuser = "alice"\nsha256 = "{TOKENS[0].sha256}"\n')
    path.chmod(0o600)
    return path


@pytest.mark.slow
def test_a_server_of_a_store(tmp_path: Path) -> None:
    """It streams what the daemon does, and ends on SIGTERM though a stream is open."""
    daemon, there = live(tmp_path, job("a"), job("b"), job("c"))
    daemon.cycle()
    with serving(str(tmp_path / "cpsched.db"), "--tokens", str(tokens_file(tmp_path))) as (process, address):
        with httpx.Client(base_url=address, timeout=30) as client:
            assert client.get("/v1/state").json()["counts"]["planned"] == 3
            assert client.get("/").headers["content-type"].startswith("text/html")
            with client.stream("GET", "/v1/events") as stream:
                lines = stream.iter_lines()
                seen = [next(lines) for _ in range(4)]
                assert seen[0].startswith("retry: ")
                there.advance(20)
                daemon.cycle()
                data = next(line for line in lines if line.startswith("data: "))
                assert json.loads(data.removeprefix("data: "))["now"] == 20
            with client.stream("GET", "/v1/events") as again:
                data = next(line for line in again.iter_lines() if line.startswith("data: "))
                assert json.loads(data.removeprefix("data: "))["now"] == 20
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=60) == 0
        words = process.stderr.read() if process.stderr else ""
    assert "Traceback" not in words
    assert ALICE not in words


@pytest.mark.slow
def test_a_killed_server_leaves_no_work_behind(tmp_path: Path) -> None:
    """The process that plans ends with the server."""
    window = tmp_path / "window.json"
    # far from optimal for as long as it takes
    instance = site(*(job(f"j{n}", f"ncpus={1 + n % 4}", walltime=50 + 7 * n) for n in range(60)))
    write_instance(instance, window)

    def planning(process: subprocess.Popen[str]) -> list[str]:
        found = subprocess.run(  # noqa: S603 - our own command
            ["/usr/bin/pgrep", "-P", str(process.pid), "-f", "cpsched.site.serve.child"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return found.stdout.split()

    def eventually(count: int, process: subprocess.Popen[str]) -> list[str]:
        end = time.monotonic() + 120
        while len(planning(process)) != count and time.monotonic() < end:
            time.sleep(0.05)
        assert len(planning(process)) == count
        return planning(process)

    with serving(str(window), "--tokens", str(tokens_file(tmp_path))) as (process, address):
        document = json.loads(window.read_text())
        httpx.post(f"{address}/v1/plans?budget=55", json=document, headers=bearer(ALICE))
        (pid,) = eventually(1, process)
        process.kill()
        process.wait()
        end = time.monotonic() + 60
        while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


@pytest.mark.slow
def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    """The command says so and ends."""
    window = tmp_path / "window.json"
    write_instance(users_site(), window)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "cpsched", "serve", str(window), "--port", str(taken.getsockname()[1])],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert found.returncode == 2
    assert "Address already in use" in found.stderr
    assert "Traceback" not in found.stderr


def test_answers_are_not_delayed() -> None:
    """Connections are known to be of TCP, without which asyncio leaves Nagle's algorithm on."""
    from cpsched.site.serve.app import tcp_listener

    with tcp_listener("localhost", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()[:2]), listener.accept()[0] as accepted:
            assert accepted.proto == socket.IPPROTO_TCP
