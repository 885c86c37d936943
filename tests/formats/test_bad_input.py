"""Bad input of every kind: files that are no documents, and documents that are mutated at random."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cpsched.errors import DiskFullError, DocumentError
from cpsched.formats import (
    files,
    instance_to_document,
    load_document,
    parse_instance,
    parse_plan,
    read_instance,
    read_plan,
    write_instance,
)
from tests.formats.format_documents import job, minimal_instance, small_instance, small_plan
from tests.judges.mutations import change_bytes, change_document
from tests.sizes import examples

_SMALL = json.dumps(small_instance()).encode()


def _refusal(path: Path) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        load_document(path)
    assert caught.value.source == str(path)
    assert all(fault.path for fault in caught.value.faults)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ["file: Expected a JSON object, got an empty file"]),
        (b" \n", ["file: Expected a JSON object, got an empty file"]),
        (b"[]", ["document: Expected an object, got a list"]),
        (b'{"a": 1,\n "b" 2}', ["line 2 column 6: Expected JSON, got: Expecting ':' delimiter"]),
        (b'{"a": 1', ["line 1 column 8: Expected JSON, got: Expecting ',' delimiter"]),
        (b'\xef\xbb\xbf{"a": 1', ["line 1 column 8: Expected JSON, got: Expecting ',' delimiter"]),  # Windows' mark
        (b'{"a": "\xff"}', ["byte 7: Expected UTF-8, got the byte 0xff"]),
        ('{"a": 1}'.encode("utf-16"), ["byte 0: Expected UTF-8, got the byte 0xff"]),
        (b'{"a": [0, NaN, -Infinity]}', ["a[1]: Expected a number, got NaN", "a[2]: Expected a number, got -Infinity"]),
        (b'{"a": 1e999}', ["a: Expected a number, got 1e999"]),
        (b'{"a": {"b": 1, "b": 2}}', ["a.b: Expected the key once in its object, got it more than once"]),
        (_SMALL[:-1], [f"line 1 column {len(_SMALL)}: Expected JSON, got: Expecting ',' delimiter"]),
        (gzip.compress(_SMALL, mtime=0)[:-9], ["file: Expected a whole gzip file, got: Compressed file ended"]),
        (gzip.compress(b"", mtime=0), ["file: Expected a JSON object, got an empty file"]),
        (b"\x1f\x8b" + b"x" * 40, ["file: Expected a readable file, got: Unknown compression method"]),
    ],
)
def test_files_that_hold_no_document(tmp_path: Path, content: bytes, expected: list[str]) -> None:
    """Each is refused in one sentence that says where."""
    path = tmp_path / "d.json"
    path.write_bytes(content)
    faults = _refusal(path)
    assert len(faults) == len(expected)
    assert all(fault.startswith(start) for fault, start in zip(faults, expected, strict=True))


@pytest.mark.parametrize(
    "content", [b'{"a":' * 100_000, b"[" * 1_000_000, b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"]
)
def test_deep_nesting_is_refused(tmp_path: Path, content: bytes) -> None:
    """No RecursionError leaves the reader."""
    path = tmp_path / "deep.json"
    path.write_bytes(content)
    assert "nested too deeply" in _refusal(path)[0]


def test_an_integer_that_python_itself_refuses(tmp_path: Path) -> None:
    """An integer of 5,000 digits has a path like every other fault."""
    path = tmp_path / "long.json"
    path.write_bytes(b'{"now": ' + b"9" * 5000 + b"}")
    assert _refusal(path)[0].startswith("now: Expected a number, got 9999")


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading stops where a document may not be longer."""
    monkeypatch.setattr(files, "MAX_BYTES", 2**20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 2**26))
    assert _refusal(path) == ["file: Expected at most 1048576 bytes unpacked, got more"]


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    """A directory, a missing file and a name that no file can have are refused alike."""
    assert _refusal(tmp_path) == ["file: Expected a readable file, got: Is a directory"]
    assert _refusal(tmp_path / "none") == ["file: Expected a readable file, got: No such file or directory"]
    assert _refusal(tmp_path / "a\0b")[0].startswith("file: Expected a readable file")


def test_nothing_is_written_by_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing fails, the older file is whole and no temporary file is left."""
    instance = parse_instance(small_instance())
    path = tmp_path / "i.json.gz"
    write_instance(instance, path)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fail)
        with pytest.raises(DiskFullError, match=r"i\.json\.gz: Expected room to write it, got: No space left"):
            write_instance(parse_instance(minimal_instance()), path)
    assert read_instance(path) == instance
    assert [entry.name for entry in tmp_path.iterdir()] == ["i.json.gz"]
    with pytest.raises(DocumentError, match="No such file"):
        write_instance(instance, tmp_path / "no" / "i.json")


@pytest.mark.parametrize(("make", "parse"), [(small_instance, parse_instance), (small_plan, parse_plan)])
@examples(200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
@given(random=st.randoms(), count=st.integers(1, 4))
def test_mutated_documents_are_accepted_or_refused(
    make: Callable[[], dict[str, Any]], parse: Callable[[object], Any], random: Random, count: int
) -> None:
    """Whatever is changed: a checked value that can be written again, or a DocumentError whose faults have paths."""
    document = make()
    for _ in range(count):
        change_document(random, document)
    try:
        found = parse(document)
    except DocumentError as error:
        assert all(fault.path and fault.message for fault in error.faults)  # noqa: PT017 -- both outcomes are right
        str(error).encode()
    else:
        if parse is parse_instance:
            assert parse_instance(instance_to_document(found)) == found


@pytest.mark.parametrize(("content", "read"), [(_SMALL, read_instance), (json.dumps(small_plan()).encode(), read_plan)])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random=st.randoms())
def test_flipped_bytes_are_accepted_or_refused(
    tmp_path: Path, content: bytes, read: Callable[[Path], object], pack: Callable[[bytes], bytes], random: Random
) -> None:
    """Files with wrong bytes or a lost end, plain or gzipped, never lead to another error."""
    path = tmp_path / "flipped"
    path.write_bytes(change_bytes(random, pack(content)))
    try:
        read(path)
    except DocumentError as error:
        assert all(fault.path for fault in error.faults)  # noqa: PT017 -- both outcomes are right
        str(error).encode()


def test_many_faults_are_told_quickly() -> None:
    """Of 10,000 jobs with unknown queues, keys and dependencies the first thousand faults are told, and soon."""
    jobs = [
        job(
            f"job-{i}",
            queue=f"qeue-{i}",
            after=[{"job": f"jbo-{i}", "type": "after"}],
            **({"wall": 1} if i % 2 else {}),
        )
        for i in range(10_000)
    ]
    queues = {f"queue-{i}": {"expected_wait": 60} for i in range(1000)}
    with pytest.raises(DocumentError) as caught:
        parse_instance(minimal_instance(*jobs, queues=queues))
    *told, last = caught.value.faults
    assert len(told) == 1000
    assert str(last) == "document: there are more faults than these 1000"
