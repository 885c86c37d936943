"""The lines of a log, one after the other: plain or gzip, with bounds on all that a file may do to its reader."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from cpsched.errors import DocumentError, Fault
from cpsched.formats.paths import open_file

#: A log of more bytes than this (unpacked) is refused; the largest public ones have about 100 MiB.
_MAX_LOG_BYTES = 2**31
#: So are such lines; the 21 columns of MetaCentrum list every node of a job and take some kilobytes.
_MAX_LINE_BYTES = 2**20


def read_lines(path: Path) -> Iterator[str]:
    """Yield the stripped lines of a file, plain or gzip (told by its first bytes, not by its name).

    Raises `DocumentError` if the file cannot be read, is a damaged gzip file, is larger than any log, or has longer
    lines.
    """
    size = 0
    try:
        with open_file(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            while line := stream.readline(_MAX_LINE_BYTES):
                size += len(line)
                if size > _MAX_LOG_BYTES or len(line) == _MAX_LINE_BYTES:
                    limits = f"{_MAX_LOG_BYTES} bytes, and fewer than {_MAX_LINE_BYTES} in each line"
                    raise DocumentError(str(path), [Fault("", f"Expected at most {limits}, got more")])
                yield line.decode("utf-8", errors="replace").strip()
    except (OSError, ValueError, EOFError, zlib.error) as error:
        # ValueError: a NUL in the path.
        raise DocumentError(
            str(path), [Fault("", f"Expected a readable log, got: {getattr(error, 'strerror', None) or error}")]
        ) from error
