"""Opening a path: a file, or a pipe that has a writer."""

import errno
import os
import select
import stat
from pathlib import Path
from typing import BinaryIO

#: Seconds in which the first byte has to come out of a named pipe; without a writer one would wait for ever.
PATIENCE = 10.0


def open_input(path: Path) -> BinaryIO:
    """Open a file or a pipe for reading.

    Raises `OSError` if it cannot be opened, is a device, or is a pipe without a writer within `PATIENCE` seconds.
    Raises `ValueError` if the path has a NUL in it.
    """
    stream = _open(path)
    try:
        mode = os.fstat(stream.fileno()).st_mode
        if stat.S_ISFIFO(mode):
            poll = select.poll()
            poll.register(stream, select.POLLIN)
            if not poll.poll(PATIENCE * 1000):  # no data, and its last writer has not gone
                raise OSError(errno.ETIMEDOUT, f"nothing was written to this pipe within {PATIENCE:g} s")
        elif not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "neither a file nor a pipe")
        os.set_blocking(stream.fileno(), True)
    except OSError:
        stream.close()
        raise
    return stream


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading, which can be read twice. Raises `OSError` or, for a NUL, `ValueError`."""
    stream = _open(path)
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "no regular file")
    return stream


def _open(path: Path) -> BinaryIO:
    """Open a path without waiting for the other end of a pipe."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
