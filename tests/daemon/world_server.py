"""A world in a process of its own, which outlives the daemons that are killed beside it: for tests of kills.

``python -m tests.daemon.world_server SOCKET SPEED`` serves the world of `site_of_kills`; `RemoteManager` asks it.
``python -m tests.daemon.world_server SOCKET SPEED daemon DATABASE`` is a daemon of it.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from cpsched.errors import BridgeError
from cpsched.portfolio import WindowPlanner
from cpsched.site.bridge import MemoryManager, Order, Receipt, ResourceManager, Snapshot
from cpsched.site.daemon import Daemon, Planner, Policy, Settings, Store, make_log
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, site

__all__ = ["NUM_JOBS", "RemoteManager"]

#: The socket is in a folder of the test's own.
_KEY = b"tests only"
NUM_JOBS = 40


class RemoteManager:
    """The manager of a world in another process. Mutable: it holds a connection."""

    name = "remote"

    def __init__(self, address: str) -> None:
        self._connection = Client(address, authkey=_KEY)
        self._lock = threading.Lock()

    def _ask(self, method: str, *arguments: Any) -> Any:
        try:
            with self._lock:
                self._connection.send((method, arguments))
                return self._connection.recv()
        except (EOFError, OSError) as error:
            raise BridgeError((method,), f"the world does not answer: {error}") from error

    def snapshot(self) -> Snapshot:
        """Take a snapshot."""
        answer: Snapshot = self._ask("snapshot")
        return answer

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Carry out orders, one call for each, so that a kill may come between any two."""
        return tuple(receipt for order in orders for receipt in self._ask("apply", [order]))

    def watch(self, seconds: float) -> bool:
        """Wait."""
        return bool(self._ask("watch", seconds))

    def starts(self) -> list[tuple[str, int, int, tuple[str, ...], bool]]:
        """Return each start so far: job, restarts, second, nodes, and whether it was steered."""
        answer: list[tuple[str, int, int, tuple[str, ...], bool]] = self._ask("starts")
        return answer


def _serve(address: str, speed: float) -> None:
    """Serve a world until the process is killed."""
    shapes = ("ncpus=4", "2:ncpus=2", "ncpus=2", "ncpus=1")
    jobs = [
        job(f"j{n}", shapes[n % len(shapes)], walltime=20 + n % 7, submit=n // 2, runtime=8 + n % 9)
        for n in range(NUM_JOBS)
    ]
    world = PlayedWorld(site(*jobs, nodes="n[1-4]"), gate_is_closed=True, remember=10**6)
    starts: list[tuple[str, int, int, tuple[str, ...], bool]] = []
    world.listeners.append(
        lambda one: (
            None
            if one.state.is_over
            else starts.append((one.job.id, one.restarts, one.start or 0, one.nodes, one.is_steered))
        )
    )
    manager = MemoryManager(world, speed=speed)
    lock = threading.Lock()

    def answer(connection: Connection) -> None:
        while True:
            try:
                method, arguments = connection.recv()
            except (EOFError, OSError):
                return
            if method == "watch":
                before = world.changes
                threading.Event().wait(min(arguments[0], 0.05))
                with lock:
                    manager.snapshot()
                    result: Any = world.changes != before
            else:
                with lock:
                    result = list(starts) if method == "starts" else getattr(manager, method)(*arguments)
            try:
                connection.send(result)
            except OSError:
                return

    with Listener(address, authkey=_KEY) as listener:
        print("ready", flush=True)
        while True:
            try:
                connection = listener.accept()
            except (EOFError, OSError):
                continue  # whoever called was killed
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def _work(address: str, speed: float, database: str) -> None:
    """Be a daemon of the world."""
    manager: ResourceManager = RemoteManager(address)
    log = make_log(level="warning")
    planner = Planner(
        WindowPlanner(name="planner", budget=0.0), gain=0.01, report=lambda what, error: log.error(str(error))
    )
    policy = Policy(is_dry_run=False, horizon=5, patience=20, grain=5)
    settings = Settings(policy=policy, budget=0.0, period=0.3, least=0.05, rate=speed)
    daemon = Daemon(manager, Store(f"sqlite:///{database}"), planner, settings, log=log)
    signal.signal(signal.SIGTERM, lambda *_: setattr(daemon, "must_stop", True))
    daemon.begin()
    print("begun", flush=True)
    daemon.run()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _serve(sys.argv[1], float(sys.argv[2]))
    else:
        _work(sys.argv[1], float(sys.argv[2]), sys.argv[4])
