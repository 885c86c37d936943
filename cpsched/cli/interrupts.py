"""Interruptions, by Ctrl-C or SIGTERM, of what is better finished."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click


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
        click.echo(f"cpsched: interrupted; {what} first, a second interruption ends that", err=True)

    for number, handler in before.items():
        if handler is signal.default_int_handler:
            signal.signal(number, note)
    try:
        yield lambda: is_interrupted
    finally:
        restore()
