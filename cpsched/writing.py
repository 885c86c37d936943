"""Output files that are complete or not there: written under another name, which then becomes the right one.

May import: `errors`. Begin with `whole_file`, which all that writes files goes through.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cpsched.errors import DiskFullError, DocumentError, Fault

__all__ = ["NO_ROOM", "whole_file", "write_bytes", "write_text"]

#: Error numbers that say that there is no room for a file: disk full, quota used up, file size limit reached.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give the path of an empty temporary file beside `path`, which is renamed to `path` when the block ends.

    If the block raises an error, an older file at `path` is left as it was. The temporary file is locked while the
    block runs. Temporary files of `path` that no process has locked are leftovers of killed processes and are removed.

    Parameters
    ----------
    path
        Where the file goes. The name of the temporary file has the same suffix.

    Raises
    ------
    DiskFullError
        If the block or the renaming fails since the disk is full, or a quota or the limit of a file's size is reached.
    DocumentError
        If it fails with another `OSError`.
    """
    target = Path(path)
    try:
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
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in NO_ROOM:
            raise DiskFullError(str(path), reason) from error
        raise DocumentError(str(path), [Fault("file", f"Expected to write it, got: {reason}")]) from error


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
        unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}{target.suffix}")
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
            Path(entry.path) for entry in entries if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]
    for leftover in leftovers:
        # Files that are locked, gone or not ours are left alone.
        with contextlib.suppress(OSError):
            descriptor = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()
            finally:
                os.close(descriptor)
