"""``cpsched daemon``: plan a cluster in the loop of its resource manager."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.options import AS_JSON
from cpsched.cli.outputs import echo_output
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.site.daemon import Daemon, SiteModel


#: Jobs that are named of those that could not be handed back.
_MOST_NAMED = 20


@click.command(
    "daemon", epilog="Example: cpsched daemon --config site.toml --check; when that file is in order: without --check"
)
@click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="SITE.toml",
    help="The site's file (docs/daemon.md); read again on SIGHUP.",
)
@click.option("--check", "task", flag_value="check", help="Check the file and all that the daemon needs.")
@click.option("--once", "task", flag_value="once", help="One cycle, without handing anything back; for trying out.")
@click.option(
    "--hand-back",
    "task",
    flag_value="hand-back",
    help="Give all waiting jobs to the manager's own scheduler; for when the daemon is gone.",
)
@click.option(
    "--watchdog",
    "task",
    flag_value="watchdog",
    help="Be the dead-man switch: hand everything back whenever the daemon's heartbeat stops.",
)
@AS_JSON
def command(config: Path, task: str | None, as_json: bool) -> None:
    """Plan a cluster in the loop of its resource manager.

    A new installation makes a dry run: it plans, and touches nothing. SIGTERM and Ctrl-C end it cleanly: the manager's
    own scheduler has all waiting jobs then.
    """
    from cpsched.site.daemon import hand_back, manager_of, read_site, refuse_root

    if as_json and task in (None, "watchdog"):
        raise click.UsageError("--json needs --check, --once or --hand-back.")

    site = read_site(config)
    if task == "check":
        _check(site, config, as_json=as_json)
        return
    refuse_root(site, config)
    mask = os.umask(0o077)
    try:
        if task == "hand-back":
            found = hand_back(manager_of(site, config))
            if as_json:
                echo_output("daemon-hand-back", {"orders": found.orders, "left": list(found.left)})
            elif not found.left:
                click.echo(f"{found.orders} orders: the manager's own scheduler has all waiting jobs.")
            else:
                names = ", ".join(found.left[:_MOST_NAMED])
                said = f"{len(found.left)} still steered: {names}. {found.why}"
                click.echo(printable(said), err=True)
            if found.left:
                raise click.exceptions.Exit(1)
        elif task == "watchdog":
            _watch(site, config)
        else:
            _work(site, config, is_once=task == "once", as_json=as_json)
    finally:
        os.umask(mask)


def _check(site: SiteModel, config: Path, *, as_json: bool) -> None:
    from cpsched.site.daemon import check_site

    found = list(check_site(site))
    if as_json:
        checks = [{"what": one.what, "is_fine": one.is_fine, "said": one.said} for one in found]
        echo_output("daemon-check", {"manager": site.manager.kind, "dry_run": site.dry_run, "checks": checks})
    else:
        mode = "a dry run: no orders are given" if site.dry_run else "live: it gives orders"
        click.echo(f"{printable(str(config))}: in order; {site.manager.kind}, {mode}")
        for one in found:
            click.echo(f"{'ok  ' if one.is_fine else 'FAIL'} {one.what:<15} {printable(one.said)}")
    if not all(one.is_fine for one in found):
        raise click.exceptions.Exit(1)


def _work(site: SiteModel, config: Path, *, is_once: bool, as_json: bool) -> None:
    from cpsched.site.daemon import daemon_of

    daemon = daemon_of(site, config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(daemon, "must_stop", True))
    signal.signal(signal.SIGHUP, lambda *_: daemon.read_again())
    try:
        daemon.begin()
        if is_once:
            daemon.planner.engine.prepare()
            is_good = daemon.cycle()
            _summarise(daemon, as_json=as_json)
        else:
            is_good = daemon.run()
        if not is_good:
            raise click.exceptions.Exit(1)
    finally:
        daemon.close()


def _summarise(daemon: Daemon, *, as_json: bool) -> None:
    state = daemon.state
    jobs = () if state.snapshot is None else state.snapshot.instance.jobs
    running = sum(job.running is not None for job in jobs)
    soon = sum(entry.start <= state.now + state.policy.horizon for entry in state.plan.values())
    if as_json:
        content = {
            "now": state.now,
            "running": running,
            "waiting": len(jobs) - running,
            "planned": len(state.plan),
            "horizon": state.policy.horizon,
            "to_start": soon,
            "orders": daemon.num_orders,
        }
        echo_output("daemon-once", content)
        return
    click.echo(f"running                {running:>8}")
    click.echo(f"waiting                {len(jobs) - running:>8}")
    click.echo(f"planned                {len(state.plan):>8}")
    click.echo(f"to start within {state.policy.horizon:>3} s  {soon:>8}")
    click.echo(f"orders given           {daemon.num_orders:>8}")


def _watch(site: SiteModel, config: Path) -> None:
    from cpsched.site.daemon import watchdog_of

    is_over = [False]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: is_over.__setitem__(0, True))
    watchdog, every = watchdog_of(site, config)
    while not is_over[0]:
        watchdog.look()
        end = time.monotonic() + every
        while not is_over[0] and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 1.0))
