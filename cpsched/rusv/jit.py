"""The one place where kernels are compiled: `kernel` decorates a plain function on arrays.

Compiled code is cached on disk, under a folder whose name holds the versions and a digest of every kernel's source:
numba by itself looks only at the file of the function that it compiles, so that a caller would go stale when a kernel
in another file changes.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config, event

__all__ = ["announced", "cache_folder", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])

#: All that kernels are made of, in all rooms; some of it for constants.
_SOURCES = (
    *(Path(__file__).parent / name for name in ("jit.py", "vector.py", "../planner/costs.py")),
    *sorted(Path(__file__).parents[1].rglob("*kernels.py")),
)


def cache_folder() -> Path:
    """Return the folder of the compiled kernels: below ``XDG_CACHE_HOME``, or temporary if that cannot be written."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in _SOURCES:
        digest.update(source.read_bytes())
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    folder = base / "cpsched" / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="cpsched-kernels-"))


_FOLDER = cache_folder()


class _Announcer(event.Listener):
    """Calls back when a kernel is compiled, not when it comes from the cache; once."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify: Callable[[], None] | None = notify

    def on_start(self, event: object) -> None:
        """Call back at the first compilation."""
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def on_end(self, event: object) -> None:
        """Say nothing when a compilation ends."""


def announced(notify: Callable[[], None]) -> AbstractContextManager[None]:
    """Return a context in which `notify` is called once if kernels must be compiled, which takes a while."""
    context: AbstractContextManager[None] = event.install_listener("numba:compile", _Announcer(notify))
    return context


def kernel(function: F) -> F:
    """Compile `function` when it is first called; without the GIL, and without checks: the wrapper owns those."""
    before = config.CACHE_DIR  # type: ignore[attr-defined]  # numba sets its options at run time
    config.CACHE_DIR = str(_FOLDER)  # type: ignore[attr-defined]
    try:
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]
