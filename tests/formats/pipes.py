"""Named pipes and devices in the place of files, and how long a reader waits for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from cpsched.errors import DocumentError
from cpsched.formats import paths

__all__ = ["assert_pipes_are_read", "waiting_for_writers"]


@contextmanager
def waiting_for_writers(seconds: float) -> Iterator[None]:
    """Let readers of documents wait so long for somebody who writes to a pipe."""
    with patch.object(paths, "PATIENCE", seconds):
        yield


def assert_pipes_are_read(
    folder: Path, read: Callable[[Path], object], waiting: Callable[[float], AbstractContextManager[object]]
) -> None:
    """Assert that a reader refuses a pipe without a writer and a device, and reads what somebody writes."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    with waiting(0.1):
        with pytest.raises(DocumentError, match=r"nothing was written .*within 0.1 s"):
            read(pipe)
        with pytest.raises(DocumentError, match="neither a file nor a pipe"):
            read(Path("/dev/zero"))
    writer = threading.Thread(target=pipe.write_bytes, args=(b'{"a": ',))
    writer.start()
    with waiting(60.0), pytest.raises(DocumentError, match="JSON"):
        read(pipe)
    writer.join()
