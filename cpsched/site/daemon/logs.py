"""Structured logs: one event on a line, without anything that a terminal or a reader would take for something else."""

import io
import os
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any, TextIO, cast

import structlog

from cpsched.text import printable

#: What a logger of structlog is to us: ``log.info("event", key=value)``.
Log = Any

_LEVELS: Mapping[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
#: Keys whose values nobody may read, should one ever be logged.
_SECRET = ("password", "secret", "token", "key", "url")
#: The most characters of a value.
_LONGEST = 1000


def open_log(path: str) -> TextIO:
    """Open a file to append a log to, readable by its owner only; nothing is kept in a buffer."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    raw: Any = os.fdopen(number, "ab", buffering=0)
    return io.TextIOWrapper(raw, encoding="utf-8", write_through=True)


class _Patient:
    """A stream on which a line may get lost, as on a full disk: that must not end the daemon. Mutable."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        #: Whether a line may have been cut off.
        self._is_cut = False

    def write(self, text: str) -> None:
        """Write a line, if there is room for it."""
        try:
            self._stream.write(f"\n{text}" if self._is_cut else text)
        except OSError:
            self._is_cut = True
        else:
            self._is_cut = False

    def flush(self) -> None:
        """Pass on what waits in the stream, if there is room for it."""
        with suppress(OSError):
            self._stream.flush()


def make_log(*, level: str = "info", form: str = "json", stream: TextIO | None = None) -> Log:
    """Make a logger.

    `level`: the least level that is written. `form`: ``json`` or ``text``. `stream`: where it is written; None:
    standard error.
    """
    renderer = structlog.processors.JSONRenderer() if form == "json" else structlog.processors.LogfmtRenderer()
    return structlog.wrap_logger(
        structlog.WriteLogger(cast(TextIO, _Patient(stream or sys.stderr))),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _safe,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        cache_logger_on_first_use=True,
    )


def _safe(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide secrets, and show each text on one line."""
    for name, value in event.items():
        if any(part in name.lower() for part in _SECRET):
            event[name] = "(hidden)"
        elif isinstance(value, str):
            event[name] = printable(value[:_LONGEST])
    return event
