"""The one place where kernels are compiled: `kernel` and `allocating_kernel` decorate plain functions on arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

import numba
from numba.core import config, event

from cpsched.rusv.kernel_cache import folder_of_module

__all__ = ["allocating_kernel", "announced", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])


class _Announcer(event.Listener):
    """Calls back once when a kernel is compiled, not when it is loaded from the cache."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify: Callable[[], None] | None = notify

    def on_start(self, event: object) -> None:
        """Call back at the first compilation."""
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def on_end(self, event: object) -> None:
        """Ignore the end of a compilation."""


def announced(notify: Callable[[], None]) -> AbstractContextManager[None]:
    """Make a context in which `notify` is called once if kernels must be compiled, which takes a while."""
    context: AbstractContextManager[None] = event.install_listener("numba:compile", _Announcer(notify))
    return context


def kernel(function: F) -> F:
    """Compile `function` at its first call; it runs without the GIL and without checks, which the wrapper owns.

    A kernel only borrows its arrays, from its caller: it makes none and returns none. So their references are not
    counted, which costs more than the work of a small kernel that gets all arrays of a timeline.
    """
    return _compiled(function, counts_references=False)


def allocating_kernel(function: F) -> F:
    """Compile `function` like `kernel`; it may make arrays, whose references are counted."""
    return _compiled(function, counts_references=True)


def _compiled(function: F, *, counts_references: bool) -> F:
    before = config.CACHE_DIR  # type: ignore[attr-defined]  # numba sets its options at run time
    config.CACHE_DIR = str(folder_of_module(function.__globals__))  # type: ignore[attr-defined]
    try:
        compiled = numba.njit(  # type: ignore[call-overload]  # numba's types do not know the option _nrt
            cache=True, nogil=True, error_model="numpy", _nrt=counts_references
        )
        return cast(F, compiled(function))
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]
