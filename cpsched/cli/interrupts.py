"""Interruptions, by Ctrl-C or SIGTERM, of what is better finished."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def is_interruption(error: BaseException | None) -> bool:
    """Return whether an error is an interruption, or became of one.

    Python 3.11 makes a `RuntimeError` of what is raised while a class is made, as in an import.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


@contextmanager
def finished(what: str) -> Iterator[Callable[[], bool]]:
    """Finish the block although the process is interrupted; a second interruption ends it.

    `what`: what the block does, as it is told when the process is interrupted.

    Yields what returns whether the process was interrupted, also after the block.
    """
    is_interrupted = False
    if threading.current_thread() is not threading.main_thread():  # only there signals can be handled
        yield lambda: False
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        restore()
        print(f"cpsched: interrupted; {what} first, a second interruption ends that", file=sys.stderr)

    for number, handler in before.items():
        if handler is signal.default_int_handler:
            signal.signal(number, note)
    try:
        yield lambda: is_interrupted
    finally:
        restore()
