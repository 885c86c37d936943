"""Output files that are complete or not there: written under another name, which then becomes the right one.

May import: `errors`. Begin with `whole_file`, which all that writes files goes through.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cpsched.errors import CpschedError, DiskFullError, DocumentError, Fault

#: Error numbers that say that there is no room for a file: disk full, quota used up, file size limit reached.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

#: The temporary folders of `whole_folder` are called after this.
_UNFINISHED = "unfinished"


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give the path of an empty temporary file beside `path`, which is renamed to `path` when the block ends.

    If the block raises an error, an older file at `path` is left as it was. The temporary file is locked while the
    block runs. Temporary files of `path` that no process has locked are leftovers of killed processes and are removed.

    Raises `DiskFullError` if the block or the renaming fails since the disk is full, or a quota or the limit of a
    file's size is reached. Raises `DocumentError` if it fails with another `OSError`. `path`: where the file goes. The
    name of the temporary file has the same suffix.
    """
    target = Path(path)
    with _told(path, "file"):
        if not target.name:
            raise OSError("it has no name")
        _remove_leftovers(target)
        unfinished, lock = _new_file(target)
        try:
            yield unfinished
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
            os.close(lock)


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Give the path of an empty temporary folder, whose files are in the folder `path` when the block ends.

    If the block raises an error, `path` is as it was: not there, or with its older files. A full disk is met in the
    block: moving files takes no room. Folders that killed processes left beside `path`, or in it, are removed.

    Raises `DiskFullError` or `DocumentError` as `whole_file`; errors of files in the temporary folder name `path`.
    `path`: the folder; it is made, with those that it is in, where it does not exist.
    """
    with _told(path, "folder"):
        target = Path(path).resolve()
        made = [folder for folder in (target, *target.parents) if not folder.exists()]
        try:
            target.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(target / _UNFINISHED)
            unfinished = target / f".{_UNFINISHED}.{os.urandom(4).hex()}"
            unfinished.mkdir()
            lock = os.open(unfinished, os.O_RDONLY | os.O_CLOEXEC)
            try:
                with contextlib.suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_EX)
                yield unfinished
                for file in sorted(unfinished.iterdir()):
                    file.replace(target / file.name)
            except (DiskFullError, DocumentError) as error:
                raise _renamed(error, unfinished, path) from error
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
                os.close(lock)
        finally:
            for folder in made:
                with contextlib.suppress(OSError):
                    folder.rmdir()  # only where nothing is in it


def _renamed(error: DiskFullError | DocumentError, unfinished: Path, path: str | Path) -> CpschedError:
    if isinstance(error, DiskFullError):
        return DiskFullError(error.path.replace(str(unfinished), str(path)), error.reason)
    return DocumentError(error.source.replace(str(unfinished), str(path)), error.faults)


@contextmanager
def _told(path: str | Path, kind: str) -> Iterator[None]:
    """Make our errors of the system's, which name the file or folder."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in NO_ROOM:
            raise DiskFullError(str(path), reason) from error
        raise DocumentError(str(path), [Fault(kind, f"Expected to write it, got: {reason}")]) from error


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file; errors are those of `whole_file`."""
    with whole_file(path) as unfinished:
        unfinished.write_bytes(content)


def write_text(path: str | Path, text: str) -> None:
    """Write a file in UTF-8; errors are those of `whole_file`."""
    write_bytes(path, text.encode("utf-8"))


def _new_file(target: Path) -> tuple[Path, int]:
    """Make a temporary file and lock it; the lock is held as long as the descriptor is open."""
    while True:
        unfinished = target.with_name(f".{target.name}.{os.urandom(4).hex()}{target.suffix}")
        lock = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):
            # Some file systems have no locks: there leftovers stay.
            fcntl.flock(lock, fcntl.LOCK_EX)
        if unfinished.exists():
            return unfinished, lock
        # Another process took it for a leftover before it was locked.
        os.close(lock)


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary files of `target` that no process holds."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}({re.escape(target.suffix)})?")
    with os.scandir(target.parent) as entries:
        leftovers = [
            Path(entry.path)
            for entry in entries
            if name.fullmatch(entry.name) and not entry.is_symlink() and (entry.is_file() or entry.is_dir())
        ]
    for leftover in leftovers:
        # Files that are locked, gone or not ours are left alone.
        with contextlib.suppress(OSError):
            descriptor = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if leftover.is_dir():
                    shutil.rmtree(leftover)
                else:
                    leftover.unlink()
            finally:
                os.close(descriptor)
