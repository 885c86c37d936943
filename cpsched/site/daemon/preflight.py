"""The preflight: whether the daemon could do its work here, each finding with what to do. It leaves nothing changed."""

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from cpsched.errors import StoreError
from cpsched.site.bridge import Finding
from cpsched.site.bridge.slurm import SlurmModel, findings
from cpsched.site.daemon.heartbeat import sign_of_watchdog
from cpsched.site.daemon.site_model import MemoryModel, SiteModel, WatchdogModel
from cpsched.site.daemon.store import Store, file_of

#: Bytes that a disk must have room for.
_ROOM = 2**20


def check_site(site: SiteModel) -> Iterator[Finding]:
    """Yield what was found about the resource manager, the store and the watchdog of a site."""
    if isinstance(site.manager, SlurmModel):
        yield from findings(site.manager, is_live=not site.dry_run)
    yield _store(site.store.url)
    if site.watchdog is not None and not isinstance(site.manager, MemoryModel):
        yield _watchdog(site.watchdog)


def _store(url: str) -> Finding:
    """Look whether the store can be written; a file that is not there is not made, as it would be of this account."""
    path = file_of(url)
    if path is None:
        try:
            Store(url, is_reader=True).close()
        except StoreError as error:
            return Finding("store", False, str(error))
        return Finding("store", True, "there")
    folder = path.absolute().parent
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM))
    except OSError as error:
        said = f"{folder}: {error.strerror}: it must be writable for this account, with room"
        return Finding("store", False, said)
    if not path.exists():
        return Finding("store", True, "can be written")
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=5, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("ROLLBACK")
    except sqlite3.Error as error:
        said = f"{path}: {error}: it needs to be of the daemon's account"
        return Finding("store", False, said)
    return Finding("store", True, "can be written")


def _watchdog(watchdog: WatchdogModel) -> Finding:
    """Look whether the watchdog has looked lately."""
    try:
        age = time.time() - sign_of_watchdog(Path(watchdog.heartbeat)).stat().st_mtime
    except OSError:
        age = float("inf")
    if age <= watchdog.dead_after:
        return Finding("watchdog", True, f"it looked {max(0, round(age))} s ago")
    return Finding("watchdog", False, "it does not run: cpsched daemon --config SITE.toml --watchdog")
