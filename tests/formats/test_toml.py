"""TOML from outside: what is beyond the bounds is refused in one sentence, soon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cpsched.errors import DocumentError
from cpsched.formats import load_toml, parse_toml, paths

TOO_DEEP = "s: 1 fault\n  Expected at most 32 tables or lists in each other, got more"


@pytest.mark.parametrize(
    "value",
    [
        "[" * 100_000,
        "[" * 3000 + "]" * 3000,
        "[" * 40 + "]" * 40,
        "{a=" * 3000 + "1" + "}" * 3000,
    ],
)
def test_deep_nesting_is_refused(value: str) -> None:
    """No RecursionError leaves the reader."""
    with pytest.raises(DocumentError) as caught:
        parse_toml(f"x = {value}", "s")
    assert str(caught.value) == TOO_DEEP


@pytest.mark.parametrize("key", ["a." * 100_000 + "b=1", '"a" . ' * 100_000 + "b=1", "[" + "a." * 40 + "b]"])
def test_long_keys_are_not_parsed(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time to parse a key grows with the square of its parts: the parser never sees one of too many."""
    monkeypatch.setattr("tomllib.loads", lambda _: pytest.fail("it was parsed"))
    with pytest.raises(DocumentError) as caught:
        parse_toml(f"x = 1\n{key}", "s")
    assert str(caught.value) == TOO_DEEP


@pytest.mark.parametrize(
    "text",
    [
        '"' + "a." * 40 + '"',
        "'" + "a." * 40 + "'",
        '"""' + "a.\n" * 40 + '\\""" a.b """',
        "'''" + "a.\n" * 40 + "'''",
        "1 # " + "a." * 40,
        "[" + "0.5, " * 40 + "]",
        "[" * 31 + "]" * 31,
    ],
)
def test_dots_in_texts_are_no_nesting(text: str) -> None:
    """Texts, comments and lists of numbers may have any number of dots."""
    assert "x" in parse_toml(f"x = {text}", "s")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9" * 5000, "Expected integers of at most 64 bits, got a longer one"),
        ("0x" + "f" * 20_000, "x: Expected an integer of at most 64 bits, got an integer of more than 38 digits"),
        ("[0, 9223372036854775808]", "x[1]: Expected an integer of at most 64 bits, got 9223372036854775808"),
    ],
)
def test_long_integers_are_refused(text: str, expected: str) -> None:
    """TOML has integers of 64 bits."""
    with pytest.raises(DocumentError) as caught:
        parse_toml(f"x = {text}", "s")
    assert [str(fault) for fault in caught.value.faults] == [expected]
    assert parse_toml("x = [-9223372036854775808, 9223372036854775807]", "s") == {"x": [-(2**63), 2**63 - 1]}


def test_files_that_are_no_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices, pipes without a writer, folders, missing, long and faulty files: one fault each."""
    monkeypatch.setattr(paths, "PATIENCE", 0.1)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for name, content in {"long": b"#" * (2**20 + 1), "binary": b"x = '\xff'", "faulty": b"x = "}.items():
        (tmp_path / name).write_bytes(content)
    expected = {
        fifo: "file: Expected a readable file, got: nothing was written to this pipe within 0.1 s",
        Path("/dev/zero"): "file: Expected a readable file, got: neither a file nor a pipe",
        tmp_path: "file: Expected a readable file, got: Is a directory",
        tmp_path / "none": "file: Expected a readable file, got: No such file or directory",
        tmp_path / ("x" * 300): "file: Expected a readable file, got: File name too long",
        tmp_path / "a\0b": "file: Expected a readable file, got: embedded null byte",
        tmp_path / "long": "file: Expected at most 1048576 bytes, got more",
        tmp_path
        / "binary": "Expected TOML, got: 'utf-8' codec can't decode byte 0xff in position 5: invalid start byte",
        tmp_path / "faulty": "Expected TOML, got: Invalid value (at end of document)",
    }
    for path, message in expected.items():
        with pytest.raises(DocumentError) as caught:
            load_toml(path)
        assert [str(fault) for fault in caught.value.faults] == [message]
