"""The heartbeat of the daemon, and the watchdog that listens to it: the dead-man switch.

The daemon touches a file after each cycle in which it could do its work. When the file is older than it may be, the
watchdog, another process, hands all waiting jobs back to the manager's own scheduler and opens the gate; and again,
as long as no heartbeat comes. A daemon that lives on finds the jobs handed back in its next snapshot, and takes them.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cpsched.errors import BridgeError
from cpsched.site.bridge import ResourceManager, Result
from cpsched.site.daemon.logs import Log
from cpsched.site.daemon.orders import hand_back_orders, steered_jobs


def beat(path: Path) -> None:
    """Touch the file of the heartbeat."""
    path.touch(mode=0o600)


def sign_of_watchdog(heartbeat: Path) -> Path:
    """Return the file that the watchdog of a heartbeat touches whenever it looks."""
    return heartbeat.with_name(f"{heartbeat.name}.watchdog")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedBack:
    """What became of the wish that all waiting jobs are the manager's own."""

    #: How many orders did something.
    orders: int
    #: What a last look found still steered: jobs, and the gate.
    left: tuple[str, ...]
    #: Why, in the manager's words, as far as it gave any.
    why: str = ""


def hand_back(manager: ResourceManager) -> HandedBack:
    """Give all waiting jobs to the manager's own scheduler, and look whether it has them.

    Raises `BridgeError` if the manager does not answer.
    """
    orders = hand_back_orders(manager.snapshot())
    receipts = manager.apply(orders) if orders else ()
    after = manager.snapshot()
    left = (*steered_jobs(after), *(["the gate is closed"] if after.gate_is_closed else []))
    refused = [one for one in receipts if one.result not in (Result.DONE, Result.ALREADY) and one.detail]
    done = sum(receipt.result is Result.DONE for receipt in receipts)
    return HandedBack(orders=done, left=left, why=refused[0].detail if left and refused else "")


class Watchdog:
    """Looks after one daemon.

    `manager`: the resource manager, which is asked only when the heart has stopped. `heartbeat`: the file.
    `dead_after`: seconds without a heartbeat after which the daemon is dead; the first ones count from now. `log`:
    Where it says what it does. `clock`: returns seconds; it counts when the file was seen to change, so that no jump of
    the system's clock matters.
    """

    def __init__(
        self,
        manager: ResourceManager,
        heartbeat: Path,
        dead_after: int,
        log: Log,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._manager, self._path, self._dead_after, self._log, self._clock = manager, heartbeat, dead_after, log, clock
        self._seen, self._at = self._stamp(), clock()
        self.is_alarmed = False

    def _stamp(self) -> int | None:
        """Return the time of the file's last change (ns), or None where there is no file."""
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def look(self) -> bool:
        """Look once, hand back if the daemon is dead, and tell whether it is."""
        with suppress(OSError):  # a full disk is no reason not to look
            beat(sign_of_watchdog(self._path))
        stamp, now = self._stamp(), self._clock()
        if stamp != self._seen:
            self._seen, self._at = stamp, now
        silent = now - self._at
        if silent <= self._dead_after:
            if self.is_alarmed:
                self._log.info("the heart beats again")
            self.is_alarmed = False
            return False
        try:
            found = hand_back(self._manager)
        except BridgeError as error:
            self._log.error("could not hand back", error=str(error), silent=round(silent))
        else:
            if found.left:
                self._log.error("still steered", count=len(found.left), first=found.left[0], why=found.why)
            if found.orders or not self.is_alarmed:
                said = "handed back to the manager's own scheduler"
                self._log.warning(said, orders=found.orders, silent=round(silent))
            self.is_alarmed = True
        return True
