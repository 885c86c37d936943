"""The site's file: what it may say, and what is refused, with all faults at once."""

from __future__ import annotations

import os
import re
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from cpsched.errors import DocumentError
from cpsched.site.daemon import SiteModel, read_site, refuse_root, watchdog_of

LEAST = '[manager]\nkind = "memory"\ninstance = "i.json"\n[store]\nurl = "sqlite:////tmp/x.db"\n'


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    """Write a site's file."""
    path = folder / "site.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_new_installation_makes_a_dry_run(tmp_path: Path) -> None:
    """A file that says no more than it must makes a dry run, at least every 30 seconds."""
    site = read_site(written(tmp_path, LEAST))
    assert site.dry_run
    assert not site.allow_root
    assert site.cycle.period <= 30


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """Unknown keys, wrong types and values out of bounds are refused together, each with its path."""
    text = (
        'dryrun = true\n[manager]\nkind = "pbs"\n[cycle]\nperiod = 31\n[planning]\nengine = "magic"\n[store]\nurl = 5\n'
    )
    with pytest.raises(DocumentError) as caught:
        read_site(written(tmp_path, text))
    said = str(caught.value)
    for path in ("dryrun", "manager", "cycle.period", "planning.engine", "store.url"):
        assert path in said, said
    assert "did you mean dry_run" in said


def test_a_budget_has_to_fit_into_the_period(tmp_path: Path) -> None:
    """A cycle cannot plan for longer than until the next one."""
    with pytest.raises(DocumentError, match=r"planning\.budget"):
        read_site(written(tmp_path, f"{LEAST}[planning]\nbudget = 20\n[cycle]\nperiod = 10\n"))


def test_a_hold_lasts_for_two_periods(tmp_path: Path) -> None:
    """One that ends before the cycle that renews it would hold nobody."""
    with pytest.raises(DocumentError, match=r"cycle\.hold"):
        read_site(written(tmp_path, f"{LEAST}[cycle]\nhold = 59\n"))
    assert (
        read_site(written(tmp_path, f"{LEAST}[cycle]\nhold = 10\nperiod = 5\n[planning]\nbudget = 1\n")).cycle.hold
        == 10
    )


@pytest.mark.parametrize(("mode", "is_fine"), [(0o600, True), (0o640, False), (0o644, False)])
def test_a_password_is_for_its_owner_only(tmp_path: Path, mode: int, is_fine: bool) -> None:
    """A file with a password that others can read is refused, and the message does not tell the password."""
    text = LEAST.replace("sqlite:////tmp/x.db", "postgresql+psycopg://u:hush@host/db")
    path = written(tmp_path, text, mode)
    if is_fine:
        assert read_site(path).store.url
        return
    with pytest.raises(DocumentError, match="0600") as caught:
        read_site(path)
    assert "hush" not in str(caught.value)


def test_root_is_refused_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon does not run as root, but for a site that says so."""
    path = written(tmp_path, LEAST)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(DocumentError, match="allow_root"):
        refuse_root(read_site(path), path)
    refuse_root(read_site(written(tmp_path, f"allow_root = true\n{LEAST}")), path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refuse_root(read_site(written(tmp_path, LEAST)), path)


def test_a_watchdog_needs_a_manager_outside(tmp_path: Path) -> None:
    """A machine in the daemon's own memory dies with it: there is nothing to watch."""
    path = written(tmp_path, f'{LEAST}[watchdog]\nheartbeat = "/run/x"\n')
    with pytest.raises(DocumentError, match="watchdog"):
        watchdog_of(read_site(path), path)


def test_the_page_for_operators_has_every_key(repository: Path) -> None:
    """docs/daemon.md names each key of the file with its default."""
    page = (repository / "docs" / "daemon.md").read_text()

    rows = {line.split("|")[1].strip(): line.split("|")[2] for line in page.splitlines() if line.count("|") == 4}
    defaults = {key: shown for keys, shown in rows.items() for key in re.findall(r"`([a-z_.]+)`", keys)}

    def check(model: Any, prefix: str) -> None:
        hints = get_type_hints(model)
        for field in fields(model):
            name = f"{prefix}{field.name}"
            if name == "manager":
                continue
            kinds = (hints[field.name], *get_args(hints[field.name]))
            inner = next((one for one in kinds if is_dataclass(one)), None)
            if inner is not None:
                check(inner, f"{name}.")
                continue
            assert name in defaults, f"{name} has no row"
            if field.default not in (None, MISSING):
                default = list(field.default) if isinstance(field.default, tuple) else field.default
                assert str(default).lower().removesuffix(".0") in defaults[name], name

    check(SiteModel, "")
