"""Output files are complete or not there, and a full disk is told as such."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpsched.errors import DocumentError
from cpsched.writing import whole_file, whole_folder, write_text
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


#: Writes two files into a folder, the second of which is larger than a file may be.
_TOO_LARGE = """
import resource, sys
from cpsched.writing import whole_folder, write_text
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with whole_folder(sys.argv[1]) as folder:
        write_text(folder / "small.json", "new")
        write_text(folder / "large.json", "x" * 2000)
except Exception as error:
    print(type(error).__name__, error)
"""


def too_large(folder: Path) -> str:
    """Let a process fail to write a folder, and return its error."""
    command = [sys.executable, "-B", "-c", _TOO_LARGE, str(folder)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout  # noqa: S603


def test_a_folder_without_room_is_absent(tmp_path: Path) -> None:
    """If one of its files has no room, none is there, nor the folder; the error has the name that it would have."""
    said = too_large(tmp_path / "deep" / "results")
    expected = f"DiskFullError {tmp_path / 'deep' / 'results' / 'large.json'}: Expected room to write it, got: File too"
    assert said.startswith(expected)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_room_keeps_its_older_files(tmp_path: Path) -> None:
    """What is in the folder stays as it was: not one of the new files is there."""
    (tmp_path / "small.json").write_text("older")
    assert "Expected room to write it" in too_large(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["small.json"]
    assert (tmp_path / "small.json").read_text() == "older"


def test_a_folder_is_whole(tmp_path: Path) -> None:
    """Its files come together, beside those that are there; folders that killed processes left go."""
    folder = tmp_path / "results"
    left = folder / ".unfinished.0123abcd"
    left.mkdir(parents=True)
    (left / "summary.json").write_text("half")
    (folder / "notes.txt").write_text("mine")
    with whole_folder(folder) as unfinished:
        write_text(unfinished / "a.json", "a")
        write_text(unfinished / "b.json", "b")
        assert not (folder / "a.json").exists()
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "a.json": "a",
        "b.json": "b",
        "notes.txt": "mine",
    }


def test_an_interrupted_folder_is_absent(tmp_path: Path) -> None:
    """Any other end of the block leaves nothing either."""
    with pytest.raises(LookupError), whole_folder(tmp_path / "results") as unfinished:
        raise LookupError((unfinished / "a.json").write_text("a"))
    assert list(tmp_path.iterdir()) == []


def test_what_can_be_no_folder_is_told(tmp_path: Path) -> None:
    """A file in the place of the folder, or of one above it."""
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "results"):
        with pytest.raises(DocumentError, match="folder: Expected to write it, got: "), whole_folder(path):
            pass
