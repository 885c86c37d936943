"""The Debian package: built, installed in a fresh Debian 13, used, and removed again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pytest

from cpsched.site.daemon import read_site

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
#: A Debian 13 (`scripts/slurm-lab debian`), which is copied and never changed.
DEBIAN = Path(os.environ.get("CPSCHED_SLURM_ROOT") or "/nowhere")
SITE = "/etc/cpsched/site.toml"
T = TypeVar("T")
#: What becomes the first process of a machine: a systemd that sees devices, control groups and a network of its own.
BOOT = """
mount --make-rprivate /; mount --bind "$1" "$1"; cd "$1"
mount -t proc proc proc; mount -o bind,ro proc/sys proc/sys; mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup; mount -t tmpfs tmpfs run; mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/shm dev/pts; mount -t tmpfs tmpfs dev/shm; mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
for one in null zero full random urandom tty; do touch dev/$one; mount --bind /dev/$one dev/$one; done
exec env -i container=test PATH=/usr/sbin:/usr/bin chroot . /lib/systemd/systemd --unit=basic.target
"""
#: A site that needs no Slurm: its machine is in memory.
MEMORY = """
dry_run = false
[manager]
kind = "memory"
instance = "tiny-bridi.json"
[planning]
engine = "wspt_list"
[store]
url = "sqlite:////var/lib/cpsched/cpsched.db"
[watchdog]
heartbeat = "/run/cpsched/heartbeat"
[log]
file = "/var/log/cpsched/daemon.log"
"""


@dataclass(frozen=True)
class Machine:
    """A Debian in a directory. A command has processes and mounts of its own, which end with it."""

    root: Path
    #: What a command begins with: in which spaces it runs.
    within: tuple[str, ...]

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line of shell as its root, in an empty home."""
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run(  # noqa: S603 - a test's own command
            [*self.within, "chroot", self.root, "sh", "-ec", f"cd /root; {line}"],
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


@contextmanager
def booted(machine: Machine) -> Iterator[Machine]:
    """Let systemd run in a machine, in a control group of its own, and end all of it."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = [Path(fields[1]) for fields in mounts if fields[2] == "cgroup2" and "rw" in fields[3].split(",")]
    if not found:
        pytest.skip("no control groups (v2) can be made here, so no systemd runs")
    group = found[0] / f"cpsched-test-{os.getpid()}"
    group.mkdir()
    spaces = "unshare --pid --mount --uts --ipc --net --cgroup --fork --kill-child"
    line = f'echo $$ > {group}/cgroup.procs; exec {spaces} sh -ec "$0" sh {machine.root}'
    process = subprocess.Popen(["sh", "-ec", line, BOOT], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603, S607
    try:
        first = wait_for(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text).split()[0]
        there = replace(machine, within=("nsenter", "-t", first, "-m", "-u", "-i", "-n", "-p", "-C"))
        wait_for(lambda: there.run("systemctl is-active basic.target").stdout == "active\n")
        yield there
    finally:
        process.kill()
        process.wait()
        wait_for(lambda: "populated 0" in (group / "cgroup.events").read_text())
        for folder in [*sorted(group.rglob("*/"), reverse=True), group]:
            folder.rmdir()


def wait_for(look: Callable[[], T]) -> T:
    """Return what is there at last."""
    for _ in range(600):
        if found := look():
            return found
        time.sleep(0.2)
    raise AssertionError("it did not come")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Install the package on a copy of the Debian."""
    if os.geteuid() != 0 or shutil.which("dpkg-deb") is None:
        pytest.skip("only root can install a package, and a Debian build it")
    if not (DEBIAN / "etc/debian_version").exists():
        pytest.skip("CPSCHED_SLURM_ROOT names no Debian: scripts/slurm-lab debian DIRECTORY makes one")
    folder = tmp_path_factory.mktemp("debian")
    root = folder / "root"
    there = Machine(root, ("unshare", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc"))
    subprocess.run(["cp", "-a", DEBIAN, there.root], check=True)  # noqa: S603, S607
    for name in ("resolv.conf", "nsswitch.conf"):  # its Slurm looks up no names, and apt has to
        shutil.copy(f"/etc/{name}", there.root / "etc" / name)
    if there.run("apt-get -q -o APT::Update::Error-Mode=any update").returncode != 0:
        pytest.skip("no mirror of Debian can be reached")
    build = [sys.executable, str(ROOT / "scripts/debian-package"), str(there.root / "root")]
    done = subprocess.run(build, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
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
def test_it_stays_where_jobs_may_be_steered(machine: Machine) -> None:
    """No Slurm answers here, so nobody can say that it is as before: the administrator has to."""
    machine.said(f"sed -i 's/^dry_run = true/dry_run = false/' {SITE}")
    refused = machine.run("apt-get -q -y remove cpsched")
    assert refused.returncode != 0
    assert "dry_run = true" in refused.stderr + refused.stdout
    machine.said(f"cpsched --version; sed -i 's/^dry_run = false/dry_run = true/' {SITE}")


@pytest.mark.slow
def test_it_runs_under_systemd_and_goes_as_it_came(machine: Machine) -> None:
    """Daemon, watchdog and page start as units, within what these allow; a removal ends them, and leaves no trace."""
    (machine.root / "etc/cpsched/memory.toml").write_text(MEMORY)
    machine.said("cpsched example tiny-bridi -o /etc/cpsched/tiny-bridi.json")
    machine.said("echo 'tokens = []' >/etc/cpsched/tokens.toml; chown cpsched /etc/cpsched/tokens.toml")
    machine.said(f"chmod 600 /etc/cpsched/tokens.toml; cp {SITE} /root")
    units = "cpsched cpsched-watchdog cpsched-serve"
    asking = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8765/docs').status)"
    with booted(machine) as there:
        there.said(f"systemctl set-environment NUMBA_DISABLE_JIT=1; systemctl enable {units}")
        there.said("systemctl start cpsched-watchdog")  # of a Slurm; a machine in memory has none
        wait_for(lambda: there.run("ls /run/cpsched/heartbeat.watchdog").stdout)
        there.said(f"cp /etc/cpsched/memory.toml {SITE}; systemctl start cpsched cpsched-serve")
        wait_for(lambda: there.run("ls /run/cpsched/heartbeat").stdout)  # after a good cycle
        wait_for(lambda: there.run(f'/opt/cpsched/bin/python -c "{asking}"').stdout == "200\n")
        assert there.said(f"systemctl is-active {units}").split() == ["active"] * 3
        there.said("logrotate --force /etc/logrotate.d/cpsched; test -e /var/log/cpsched/daemon.log.1")
        there.said("systemctl stop cpsched; systemctl start cpsched")
        there.said(f"cp /root/site.toml {SITE}; apt-get -q -y remove cpsched")
        assert "active" not in there.run(f"systemctl is-active {units}").stdout.replace("inactive", "").split()
    machine.said("cd /etc/cpsched; rm memory.toml tokens.toml tiny-bridi.json; dpkg --purge cpsched")
    found = machine.said("mkdir -p /opt; find /etc /opt /run /usr /var -xdev -path '*cpsched*'").splitlines()
    others = ("/var/cache/cpsched-slurm-lab", "/var/cache/man/", "/var/tmp/systemd-private-")  # noqa: S108 - looked at
    assert [path for path in found if not path.startswith(others)] == []
