"""scripts/fetch-traces against a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cpsched.formats.logs import LogOptions, read_workload

Fetch = Callable[..., subprocess.CompletedProcess[str]]

KTH = "/l_kth_sp2/KTH-SP2-1996-2.1-cln.swf.gz"
NAME = "KTH-SP2-1996-2.1-cln.swf.gz"
BODY = gzip.compress(b"; Version: 2.2\n" + b"1 0 0 9 1 -1 -1 1 9 -1 1 1 1 -1 -1 -1 -1 -1\n" * 500, mtime=0)


class Archive(ThreadingHTTPServer):
    """A small archive: what it has, what it was asked for, and how many bytes it sends before it hangs up."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {KTH: BODY}
        self.ranges: list[str | None] = []
        self.knows_ranges = True
        self.sends_at_most: int | None = None

    @property
    def url(self) -> str:
        """Return the address to give to the script."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers GET, with ranges like ``bytes=N-``."""

    server: Archive

    def do_GET(self) -> None:
        """Send the file, or the part of it that is asked for."""
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        body = self.server.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        first = 0
        if wanted is not None and self.server.knows_ranges:
            first = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if first >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(body) - first))
        self.end_headers()
        self.wfile.write(body[first:][: self.server.sends_at_most])

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def archive() -> Iterator[Archive]:
    """Serve an archive while a test runs."""
    with Archive() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def fetch(repository: Path, archive: Archive, tmp_path: Path) -> Fetch:
    """Return a call that runs the script for the KTH log."""

    def run(*logs: str) -> subprocess.CompletedProcess[str]:
        script = repository / "scripts" / "fetch-traces"
        command = [sys.executable, str(script), str(tmp_path), *(logs or ["KTH-SP2"]), "--base-url", archive.url]
        environment = {**os.environ, "no_proxy": "127.0.0.1"}
        return subprocess.run(  # noqa: S603 - the script of this repository
            command, capture_output=True, text=True, timeout=30, check=False, env=environment
        )

    return run


def test_first_use_records_the_checksum_and_the_second_verifies(fetch: Fetch, archive: Archive, tmp_path: Path) -> None:
    """The log arrives whole, its SHA-256 is written beside it, and a second run downloads nothing."""
    first = fetch()
    assert (first.returncode, first.stderr) == (0, "")
    assert "first use: trusted" in first.stdout
    assert (tmp_path / NAME).read_bytes() == BODY
    assert (tmp_path / "SHA256SUMS").read_text() == f"{hashlib.sha256(BODY).hexdigest()}  {NAME}\n"
    second = fetch()
    assert second.returncode == 0
    assert "present, checksum as recorded" in second.stdout
    assert len(archive.ranges) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, "SHA256SUMS"]


def test_broken_connection_is_reported_and_resumed(fetch: Fetch, archive: Archive, tmp_path: Path) -> None:
    """After a hang-up the part stays, the exit code is 1, and the next run asks only for the rest."""
    archive.sends_at_most = 40
    broken = fetch()
    assert broken.returncode == 1
    assert "run again to resume" in broken.stderr
    assert not (tmp_path / NAME).exists()
    archive.sends_at_most = None
    assert fetch().returncode == 0
    assert archive.ranges == [None, "bytes=40-"]
    assert (tmp_path / NAME).read_bytes() == BODY


def test_server_without_ranges_starts_anew(fetch: Fetch, archive: Archive, tmp_path: Path) -> None:
    """A server that answers a range with the whole file does not lead to a file with a doubled head."""
    (tmp_path / f"{NAME}.part").write_bytes(BODY[:25])
    archive.knows_ranges = False
    assert fetch().returncode == 0
    assert (tmp_path / NAME).read_bytes() == BODY


def test_complete_part_is_taken(fetch: Fetch, archive: Archive, tmp_path: Path) -> None:
    """A part that was complete when the run before was killed is checked and taken, though the server says 416."""
    (tmp_path / f"{NAME}.part").write_bytes(BODY)
    assert fetch().returncode == 0
    assert (tmp_path / NAME).read_bytes() == BODY


@pytest.mark.parametrize("body", [b"<html>moved</html>", BODY[:-9]], ids=["a page", "truncated"])
def test_damaged_log_is_refused(fetch: Fetch, archive: Archive, tmp_path: Path, body: bytes) -> None:
    """What is no sound gzip file is neither kept nor recorded."""
    archive.files[KTH] = body
    result = fetch()
    assert result.returncode == 1
    assert "no sound gzip file" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_other_content_than_recorded_is_refused(fetch: Fetch, archive: Archive, tmp_path: Path) -> None:
    """A download that differs from the record is deleted, and the record stays."""
    record = f"{'0' * 64}  {NAME}\n"
    (tmp_path / "SHA256SUMS").write_text(record)
    result = fetch()
    assert result.returncode == 1
    assert "the download was deleted" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["SHA256SUMS"]
    assert (tmp_path / "SHA256SUMS").read_text() == record


def test_changed_file_is_reported_and_left_alone(fetch: Fetch, tmp_path: Path) -> None:
    """A log that changed on disk is an error, and it is the user who decides which of the two is wrong."""
    assert fetch().returncode == 0
    changed = gzip.compress(b"other", mtime=0)
    (tmp_path / NAME).write_bytes(changed)
    result = fetch()
    assert result.returncode == 1
    assert "delete the wrong one" in result.stderr
    assert (tmp_path / NAME).read_bytes() == changed


def test_missing_log_does_not_stop_the_others(fetch: Fetch, tmp_path: Path) -> None:
    """A 404 is said with its URL, the exit code is 1, and the other log is there."""
    result = fetch("RICC", "KTH-SP2")
    assert result.returncode == 1
    assert "404" in result.stderr
    assert "/l_ricc/RICC-2010-2.swf.gz" in result.stderr
    assert (tmp_path / NAME).exists()


def test_unreachable_archive_is_a_clear_error(fetch: Fetch, archive: Archive) -> None:
    """No traceback where nobody answers."""
    archive.socket.close()
    result = fetch()
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "refused" in result.stderr.lower()


def test_bad_record_and_unknown_log_are_refused(fetch: Fetch, tmp_path: Path) -> None:
    """A line in the record that is no checksum, and a log that nobody knows, are told apart by exit codes 1 and 2."""
    assert fetch("NOSUCH").returncode == 2
    (tmp_path / "SHA256SUMS").write_text("nonsense\n")
    result = fetch()
    assert result.returncode == 1
    assert "line 1" in result.stderr


def test_tables_of_a_gpu_cluster_become_a_workload(fetch: Fetch, archive: Archive, tmp_path: Path) -> None:
    """Pods and nodes are fetched, and the cluster file holds the pods; other columns are told."""
    at = "/cluster-trace-gpu-v2023/csv/openb_"
    pods = "name,cpu_milli,memory_mib,num_gpu,creation_time,deletion_time,scheduled_time"
    archive.files[f"{at}pod_list_default.csv"] = f"{pods}\np,2000,10,1,5,65,6\n".encode()
    archive.files[f"{at}node_list_all_node.csv"] = b"sn,cpu_milli,memory_mib,gpu\na,4000,100,2\nb,4000,100,2\n"
    assert fetch("Alibaba-GPU-2023").stderr == ""
    cluster = tmp_path / "openb.cluster.json"
    instance, _ = read_workload(tmp_path / "openb_pod_list_default.csv", LogOptions(cluster=cluster))
    (machine,), (pod,) = instance.cluster.classes, instance.jobs
    assert (machine.names, dict(machine.resources)) == (("a", "b"), {"cores": 4, "mem": 100, "gpus": 2})
    assert (pod.runtime, dict(pod.request.totals)) == (59, {"cores": 2, "mem": 10, "gpus": 1})
    for name in ("SHA256SUMS", "openb_node_list_all_node.csv"):
        (tmp_path / name).unlink()
    archive.files[f"{at}node_list_all_node.csv"] = b"name\na\n"
    told = fetch("Alibaba-GPU-2023")
    assert (told.returncode, "expected a table with sn" in told.stderr) == (1, True)
