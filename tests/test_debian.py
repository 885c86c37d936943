"""The Debian package: built, installed in a fresh Debian 13, used, and removed again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cpsched.site.daemon import read_site

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
#: A Debian 13 (`scripts/slurm-lab debian`), which is copied and never changed.
DEBIAN = Path(os.environ.get("CPSCHED_SLURM_ROOT") or "/nowhere")
SITE = "/etc/cpsched/site.toml"


@dataclass(frozen=True)
class Machine:
    """A Debian in a directory. A command has processes and mounts of its own, which end with it."""

    root: Path

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line of shell as its root, in an empty home."""
        spaces = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={self.root}/proc"]
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run(  # noqa: S603 - a test's own command
            [*spaces, "chroot", self.root, "sh", "-ec", f"cd /root; {line}"],
            env=variables | {"LANG": "C.UTF-8", "NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def said(self, line: str) -> str:
        """Return what a line of shell prints, which has to succeed."""
        done = self.run(line)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Install the package on a copy of the Debian."""
    if os.geteuid() != 0 or shutil.which("dpkg-deb") is None:
        pytest.skip("only root can install a package, and a Debian build it")
    if not (DEBIAN / "etc/debian_version").exists():
        pytest.skip("CPSCHED_SLURM_ROOT names no Debian: scripts/slurm-lab debian DIRECTORY makes one")
    folder = tmp_path_factory.mktemp("debian")
    there = Machine(folder / "root")
    subprocess.run(["cp", "-a", DEBIAN, there.root], check=True)  # noqa: S603, S607
    shutil.copy("/etc/resolv.conf", there.root / "etc/resolv.conf")
    if there.run("apt-get -q update").returncode != 0:
        pytest.skip("no mirror of Debian can be reached")
    build = [sys.executable, str(ROOT / "scripts/debian-package"), str(there.root / "root")]
    subprocess.run(build, check=True, capture_output=True)  # noqa: S603 - ours
    # nothing of it has to survive a power failure
    quick = "apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io install"
    there.said(f"{quick} ./cpsched_*.deb man-db logrotate")
    yield there
    shutil.rmtree(folder)


def test_the_site_file_is_a_dry_run(repository: Path) -> None:
    """Whoever starts the daemon with the file as it came gives no orders."""
    site = read_site(repository / "scripts/debian/root" / SITE[1:])
    assert site.dry_run
    assert site.manager.kind == "slurm"


@pytest.mark.slow
def test_it_plans_on_a_fresh_debian(machine: Machine) -> None:
    """Any user finds the command; a plan is made and verified, by the Python of that Debian."""
    assert machine.said("cpsched --version").strip() == f"cpsched {VERSION}"
    machine.said("cpsched example tiny-bridi")
    machine.said("cpsched solve tiny-bridi.json --engine planner -o plan.json")
    assert "No violations" in machine.said("cpsched verify tiny-bridi.json plan.json")
    machine.said("cpsched serve tiny-bridi.json --check")


@pytest.mark.slow
def test_what_surrounds_it_is_in_order(machine: Machine) -> None:
    """Man pages, completions, units and the rotation of the log are found by those who read them, without complaint."""
    for page in ("cpsched", "cpsched-solve", "cpsched-daemon"):
        assert machine.said(f"man -w {page}").strip() == f"/usr/share/man/man1/{page}.1.gz"
    shown = machine.said("man --warnings -E UTF-8 cpsched-solve")
    assert "--engine" in shown
    assert "warning" not in shown
    assert "cpsched-solve (1)" in machine.said("mandb -q; whatis cpsched-solve")
    machine.said("bash -n /usr/share/bash-completion/completions/cpsched")
    units = "/usr/lib/systemd/system/cpsched.service /usr/lib/systemd/system/cpsched-*.service"
    assert machine.said(f"systemd-analyze verify {units}") == ""
    assert "error" not in machine.said("logrotate --debug /etc/logrotate.d/cpsched")


@pytest.mark.slow
def test_the_account_can_run_the_daemon(machine: Machine) -> None:
    """It may write what it has to write; the units run that very program as that account."""
    checked = machine.run(f"runuser -u cpsched -- cpsched daemon --config {SITE} --check").stdout
    assert "a dry run" in checked
    assert "ok   store" in checked
    assert machine.said("stat -c '%U %a' /var/lib/cpsched /var/log/cpsched").split("\n")[:2] == ["cpsched 700"] * 2
    assert machine.said("readlink -f $(command -v cpsched)").strip() == "/opt/cpsched/bin/cpsched"


@pytest.mark.slow
def test_it_goes_as_it_came(machine: Machine) -> None:
    """It stays where jobs may still be steered; else nothing is left of it but what the administrator has changed."""
    machine.said(f"sed -i 's/^dry_run = true/dry_run = false/' {SITE}")
    refused = machine.run("apt-get -q -y remove cpsched")  # no Slurm answers here, so none can be asked what is steered
    assert refused.returncode != 0
    assert "dry_run = true" in refused.stderr + refused.stdout
    machine.said("cpsched --version")
    machine.said(f"sed -i 's/^dry_run = false/dry_run = true/' {SITE}")
    machine.said("apt-get -q -y remove cpsched")
    assert (
        machine.said(f"ls -d {SITE} /var/lib/cpsched /opt/cpsched /usr/bin/cpsched 2>&1 || true").count("No such") == 2
    )
    machine.said("dpkg --purge cpsched")
    assert machine.said("find /etc /opt /run /usr /var -xdev -path '*cpsched*' -not -path '/var/cache/man/*'") == ""
