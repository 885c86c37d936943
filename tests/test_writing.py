"""Output files are complete or not there, and a full disk is told as such."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpsched.errors import DocumentError
from cpsched.writing import whole_file, write_text
from tests.limited import with_small_files

#: Begins to write a file, says so, and never ends.
_HANGING = """
import sys, time
from cpsched.writing import whole_file
with whole_file(sys.argv[1]) as unfinished:
    unfinished.write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""


@contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that is in the middle of writing `path`."""
    command = [sys.executable, "-c", _HANGING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["plan.json", "plan.json.gz", "folder.with.dots.csv"])
def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path, name: str) -> None:
    """What a killed process left is removed by the next one that writes the same file; other hidden files stay."""
    path = tmp_path / name
    with writer(path) as process:
        process.kill()
        process.wait()
    (leftover,) = tmp_path.iterdir()
    assert leftover.name.startswith(f".{name}.")
    others = [tmp_path / f".{name}.notes", tmp_path / f".other.{name}.12345678"]
    for other in others:
        other.touch()
    write_text(path, "whole")
    assert path.read_text() == "whole"
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


def test_a_leftover_without_suffix_is_removed(tmp_path: Path) -> None:
    """Versions before this one left names that end in the eight digits."""
    (tmp_path / ".plan.json.0123abcd").touch()
    write_text(tmp_path / "plan.json", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_a_file_that_is_being_written_is_no_leftover(tmp_path: Path) -> None:
    """A second process that writes the same file leaves the temporary file of the first one alone."""
    path = tmp_path / "plan.json"
    with writer(path):
        write_text(path, "whole")
        assert len(list(tmp_path.iterdir())) == 2


def test_an_error_leaves_the_older_file(tmp_path: Path) -> None:
    """If the writing fails, the older file is as it was, and nothing else is left."""
    path = tmp_path / "plan.json"
    write_text(path, "older")
    with pytest.raises(LookupError), whole_file(path) as unfinished:
        raise LookupError(unfinished.write_text("half"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]
    assert path.read_text() == "older"


def test_a_file_without_room_is_named(tmp_path: Path) -> None:
    """Beyond the limit of a file's size there is no room: the error names the file, and the older one is kept."""
    path = tmp_path / "plan.json"
    write_text(path, "older")
    code = "import sys; from cpsched.writing import write_text; write_text(sys.argv[1], 'x' * 2000)"
    ended = with_small_files(code, str(path), size=1000)
    assert ended.stderr.endswith(f"DiskFullError: {path}: Expected room to write it, got: File too large\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]
    assert path.read_text() == "older"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Any other reason is a fault of what was asked for."""
    with pytest.raises(DocumentError, match="Expected to write it, got: No such file"):
        write_text(tmp_path / "none" / "plan.json", "whole")
