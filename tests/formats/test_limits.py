"""What a small file can do to its reader: never take much time or memory, whatever is in it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from cpsched.errors import DocumentError
from cpsched.formats import parse_instance, read_instance
from cpsched.verify import verify_files
from tests.formats.format_documents import minimal_instance
from tests.formats.pipes import assert_pipes_are_read, waiting_for_writers

#: One reading of a document as an instance, and the MiB that it took at the most.
_READ = """
import sys
from cpsched.errors import DocumentError
from cpsched.formats import read_instance
from cpsched.verify import verify_files
try:
    read_instance(sys.argv[1]) if sys.argv[2] == "formats" else verify_files(sys.argv[1], sys.argv[1])
except DocumentError as error:
    most = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
    print(len(error.faults), most // 1024)
"""
#: What each object of a list has too many of.
_KEYS = ",".join(f'"{number}":0' for number in range(9_999))


def _reading(path: Path, reader: str) -> tuple[int, int]:
    command = [sys.executable, "-c", _READ, str(path), reader]
    faults, memory = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split()  # noqa: S603
    return int(faults), int(memory)


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["formats", "verify"])
@pytest.mark.parametrize(
    ("content", "most_faults"),
    [
        pytest.param(b'{"jobs":[' + b"{}," * 6_000_000 + b"{}]}", 1, id="empty-jobs"),
        pytest.param(b'{"jobs":[' + b"[]        ," * 2_000_000 + b"[]]}", 1, id="spread-out"),
        pytest.param(b'{"jobs":[' + b"{}," * 999_000 + b"{}]}", 1001, id="a-million-jobs"),
        pytest.param(b'{"jobs":[' + b"{}," * 300_000 + b"{}]}", 1001, id="many-jobs"),
        pytest.param(b'{"jobs":[' + b'{"request":[{},{},{},{}]},' * 100_000 + b"{}]}", 1001, id="many-chunks"),
        pytest.param(b'{"jobs":[' + f"{{{_KEYS}}},".encode() * 30 + b"{}]}", 1001, id="many-keys"),
        pytest.param(b"{" + _KEYS.encode() + b',"a":0,"b":0}', 1, id="too-many-keys"),
        pytest.param(b'{"jobs":[' + b"1e999," * 500_000 + b"1]}", 1001, id="many-infinities"),
        pytest.param(b'{"jobs":["' + b'","' * 1_000_000 + b'"]}', 1, id="many-commas"),
        pytest.param(b'{"a":"' + b'\\"' * 2_000_000 + b"," * 2_000_000, 1, id="unterminated"),
        pytest.param(b" " * 40 * 2**20, 1, id="blanks"),
    ],
)
def test_small_files_take_little(tmp_path: Path, reader: str, content: bytes, most_faults: int) -> None:
    """Packed, each is smaller than a megabyte, and is refused in less than 300 MiB, by both readers."""
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(content, compresslevel=6))
    assert path.stat().st_size < 1_000_000
    faults, memory = _reading(path, reader)
    assert 0 < faults <= most_faults
    assert memory < 300


@pytest.mark.slow
def test_an_empty_list_of_jobs_is_refused(tmp_path: Path) -> None:
    """275 kB that were 7 GB in memory: 300 MiB are more than enough to say no."""
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"jobs":[' + b"{}," * 20_971_520 + b"{}]}"))
    for reader in ("formats", "verify"):
        assert _reading(path, reader)[1] < 300


def test_a_plain_file_of_too_many_values(tmp_path: Path) -> None:
    """What is not packed has few values for its size, too; what stands inside of texts is none."""
    path = tmp_path / "crowded.json"
    path.write_bytes(b'{"jobs":[' + b"{}," * 1_500_000 + b"{}]}")
    for read in (read_instance, lambda path: verify_files(path, path)):
        with pytest.raises(DocumentError, match="at most 1000000 values"):
            read(path)
    path.write_bytes(b'{"name":"' + b"{}," * 1_500_000 + b'"}')
    with pytest.raises(DocumentError, match="name: Expected at most 256 characters"):
        read_instance(path)
    with pytest.raises(DocumentError, match="format: expected 'cpsched-instance/1'"):
        verify_files(path, path)


def test_faults_keep_their_indices() -> None:
    """Lists are checked entry by entry; each fault says where in the whole list it is, however deep."""
    good = {"id": "a", "submit": 0, "walltime": 1, "request": "ncpus=1"}
    bad = {"id": "b", "submit": "0", "walltime": 1, "request": [{"count": 1, "resources": {"cores": 1}}, {"count": 0}]}
    with pytest.raises(DocumentError) as caught:
        parse_instance(minimal_instance(good, bad, {**good, "id": "c", "malleable": {"shares": [0.5, 2]}}))
    assert [f"{fault.path}: {fault.message}" for fault in caught.value.faults] == [
        'jobs[1].submit: Expected an integer (seconds), got "0"',
        "jobs[1].request[1].count: Expected an integer > 0, got 0",
        "jobs[1].request[1].resources: Expected this key, got nothing",
        "jobs[2].malleable.shares[1]: Expected a share of the cores between 0 and 1 "
        "(the full share, 1, is not named), got 2",
    ]


def test_pipes_and_devices(tmp_path: Path) -> None:
    """A named pipe is read when somebody writes to it, and is not waited for without end; a device is refused."""
    assert_pipes_are_read(tmp_path, read_instance, waiting_for_writers)
