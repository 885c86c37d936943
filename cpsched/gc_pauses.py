"""When Python looks for garbage: not while a snapshot is taken and acted on, nor while kernels are compiled.

Imports nothing of cpsched.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Make a context in which Python does not look for cyclic garbage.

    It would walk all that there is again and again while a snapshot grows, which takes a third of its time, and finds
    nothing: snapshots, plans and documents have no cycles. While kernels are compiled it takes an eighth of the
    time, and finds next to nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def collected() -> Iterator[None]:
    """Make a context, within one of `uncollected`, in which Python looks for cyclic garbage: a search may make some."""
    was_enabled = gc.isenabled()
    gc.enable()
    try:
        yield
    finally:
        if not was_enabled:
            gc.disable()
