"""The site's file, read and checked, and what the daemon is made of by it."""

import os
from pathlib import Path

from cpsched.errors import DocumentError, Fault
from cpsched.formats import read_instance, read_settings
from cpsched.portfolio import WindowPlanner, team_of
from cpsched.site.bridge import FilesManager, MemoryManager, ResourceManager, World
from cpsched.site.bridge.slurm import SlurmManager, SlurmModel, client_of
from cpsched.site.daemon.choosing import Choices
from cpsched.site.daemon.heartbeat import Watchdog
from cpsched.site.daemon.logs import Log, make_log, open_log
from cpsched.site.daemon.metrics import Metrics
from cpsched.site.daemon.planning import Planner
from cpsched.site.daemon.service import Daemon, Settings
from cpsched.site.daemon.site_model import FilesModel, MemoryModel, SiteModel
from cpsched.site.daemon.state import Policy
from cpsched.site.daemon.store import Store

#: What a database of SQLite begins with.
_SQLITE = b"SQLite format 3\0"
#: Looks of the watchdog in the time after which the daemon is dead.
_LOOKS = 10
#: The fewest days of history from which an engine can be chosen.
_LEAST_DAYS = 8


def read_site(path: Path) -> SiteModel:
    """Read the site's file. Raises `DocumentError` with everything that is wrong with it."""
    site, faults = read_settings(path, SiteModel)
    if "://" in site.store.url and "@" in site.store.url and ":" in site.store.url.split("://")[1].split("@")[0]:
        others = path.stat().st_mode & 0o077
        if others:
            faults.add(
                ("store", "url"), "Expected a file that only its owner can read (mode 0600), as it has a password"
            )
    if site.planning.budget > site.cycle.period:
        said = f"Expected a budget within the period of {site.cycle.period} s, got {site.planning.budget:g}"
        faults.add(("planning", "budget"), said)
    if site.cycle.hold < 2 * site.cycle.period:  # it is renewed when half of it is over
        said = f"Expected at least two periods of {site.cycle.period} s, got {site.cycle.hold}"
        faults.add(("cycle", "hold"), said)
    engines = (site.planning.engine, *site.planning.choose)
    if len(engines) > 1:
        rules = [name for name in engines if WindowPlanner(name=name, budget=0.0).is_rule]
        if len(rules) < len(engines):
            named = ", ".join(dict.fromkeys(name for name in engines if name not in rules))
            faults.add(("planning", "choose"), f"Expected rules, as the engine too, got {named}")
        elif len(set(engines)) < len(engines):
            faults.add(("planning", "choose"), f"Expected each engine once, got {', '.join(engines)}")
        if site.store.keep_days < _LEAST_DAYS or not site.store.snapshot_every:
            said = f"Expected store.keep_days of {_LEAST_DAYS} or more and snapshots, as a choice needs a week"
            faults.add(("planning", "choose"), f"{said}, got {site.store.keep_days} days")
    faults.raise_if_any(str(path))
    return site


def store_url(source: str) -> str | None:
    """Return the URL of a daemon's store: of a site's file (``.toml``), a SQLite file, or a URL; None: it is none.

    Raises `DocumentError` if the site's file is not in order.
    """
    if "://" in source:
        return source
    path = Path(source)
    if path.suffix == ".toml":
        return read_site(path).store.url
    return f"sqlite:///{path.resolve()}" if _is_sqlite(path) else None


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def refuse_root(site: SiteModel, path: Path) -> None:
    """Refuse to run as root, unless the site's file allows it.

    Raises `DocumentError` if the process is root's, and may not be.
    """
    if os.geteuid() == 0 and not site.allow_root:
        message = "Expected an account of its own, got root; allow_root = true runs it all the same"
        raise DocumentError(str(path), [Fault("allow_root", message)])


def manager_of(site: SiteModel, path: Path) -> ResourceManager:
    """Return the resource manager that the site has.

    Raises `DocumentError` if a file that it needs is not in order. Raises `BridgeError` if it cannot be used.
    """
    manager = site.manager
    if isinstance(manager, SlurmModel):
        return SlurmManager(client_of(manager), manager)
    if isinstance(manager, FilesModel):
        return FilesManager(Path(manager.directory))
    return MemoryManager(World(read_instance(path.parent / manager.instance)), speed=manager.speed)


def daemon_of(site: SiteModel, path: Path) -> Daemon:
    """Return the daemon that the site wants, which reads its file again when it is told to.

    Raises `DocumentError` if a file that it needs is not in order. Raises `BridgeError` or `StoreError` if the
    manager or the store cannot be used.
    """
    manager, store, metrics = manager_of(site, path), Store(site.store.url), Metrics()
    stream = None if site.log.file is None else open_log(site.log.file)
    log = make_log(level=site.log.level, form=site.log.format, stream=stream)

    def again() -> tuple[Settings, Planner] | None:
        try:
            new = read_site(path)
        except DocumentError as error:
            log.error("the site's file is not in order: the old one holds", error=str(error))
            return None
        for table in ("manager", "store", "metrics", "log", "watchdog"):
            if getattr(new, table) != getattr(site, table):
                log.warning("this table counts from the next start on", table=table)
        return _settings_of(new, path), _planner_of(new, log)

    daemon = Daemon(manager, store, _planner_of(site, log), _settings_of(site, path), log=log, metrics=metrics)
    daemon.reread = again
    if stream is not None:
        daemon.at_the_end.append(stream.close)
    if site.metrics.port is not None:
        metrics.serve(site.metrics.port)
    return daemon


def watchdog_of(site: SiteModel, path: Path) -> tuple[Watchdog, float]:
    """Return the site's watchdog, and the seconds between two looks.

    Raises `DocumentError` if the site has none, or a manager that lives in the daemon's own memory.
    """
    if site.watchdog is None or isinstance(site.manager, MemoryModel):
        message = "Expected a table [watchdog], and a manager outside of the daemon, got " + (
            "no such table" if site.watchdog is None else "one in memory"
        )
        raise DocumentError(str(path), [Fault("watchdog", message)])
    log = make_log(level=site.log.level, form=site.log.format)
    dead_after = site.watchdog.dead_after
    watchdog = Watchdog(manager_of(site, path), Path(site.watchdog.heartbeat), dead_after, log)
    return watchdog, dead_after / _LOOKS


def _settings_of(site: SiteModel, path: Path) -> Settings:
    slurm = site.manager if isinstance(site.manager, SlurmModel) else None
    return Settings(
        policy=Policy(
            is_dry_run=site.dry_run,
            only_ranks=slurm is not None and slurm.steering == "order",
            counts_priorities=slurm is not None and slurm.weights == "priority",
            influence=1.0 if slurm is None else slurm.influence,
            horizon=site.cycle.horizon,
            is_noting=slurm is not None and slurm.notes and site.promises.forecasts > 0,
            lease=site.cycle.hold,
            patience=site.cycle.patience,
            grain=site.promises.grain,
        ),
        budget=site.planning.budget,
        period=site.cycle.period,
        least=site.cycle.least,
        price=site.promises.price,
        keep_days=site.store.keep_days,
        snapshot_every=site.store.snapshot_every,
        forecast_every=site.promises.forecasts,
        heartbeat=None if site.watchdog is None else Path(site.watchdog.heartbeat),
        metrics_file=None if site.metrics.file is None else Path(site.metrics.file),
        rate=site.manager.speed if isinstance(site.manager, MemoryModel) else 1.0,
        choices=Choices.of((site.planning.engine, *site.planning.choose), path),
    )


def _planner_of(site: SiteModel, log: Log) -> Planner:
    def report(what: str, error: Exception) -> None:
        log.error("planning failed", way=what, exc_info=error)

    planning = site.planning
    engine = WindowPlanner(
        name=planning.engine,
        # engines without solvers take the time that they need
        budget=planning.budget if team_of(planning.engine, workers=planning.workers).lanes else 0.0,
        most=planning.most_jobs,
        workers=planning.workers,
        seed=planning.seed,
    )
    return Planner(engine, gain=site.promises.gain, report=report)
