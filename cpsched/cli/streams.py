"""The streams of the process: closed ones lead to nothing, and no message is lost in another error."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class _Output(io.TextIOWrapper):
    """stdout: errors of writing name it.

    They are caught here and not in the file behind: an interruption there, after what was written, would have it
    written once more.
    """

    def write(self, text: str) -> int:
        """Write a text."""
        with _naming_stdout():
            return super().write(text)

    def flush(self) -> None:
        """Write what has not been written yet."""
        with _naming_stdout():
            super().flush()


@contextmanager
def _naming_stdout() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, "<stdout>") from None


class _Messages(io.FileIO):
    """The file behind stderr: messages that cannot be written are lost; the exit code remains correct."""

    def write(self, data: object) -> int:
        """Write to the file, or to nothing."""
        try:
            return super().write(data)  # type: ignore[arg-type]  # a buffer: typing has no name for it yet
        except OSError:
            return len(data)  # type: ignore[arg-type]  # a buffer: typing has no name for it yet


def mend_streams() -> None:
    """Open closed streams on nothing, and let stdout and stderr fail as commands expect it.

    Without this the next file that is opened would take the number of a closed stream, and get its output.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the life of the process
    sys.stdout = _text(_Output, io.FileIO(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(io.TextIOWrapper, _Messages(2, "w", closefd=False), sys.stderr)


def _text(kind: type[io.TextIOWrapper], raw: io.FileIO, before: TextIO | None) -> TextIO:
    """Return a text stream in place of the one before, which is None where it was closed."""
    if before is not None:
        before.flush()
    return kind(
        io.BufferedWriter(raw),
        encoding="utf-8" if before is None else before.encoding,
        errors="backslashreplace",  # an escape for each character that the terminal cannot show
        line_buffering=raw.fileno() == 2 or raw.isatty(),
    )
