"""The emulated cluster, once for all tests of a worker, with an empty queue for each."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bridge.slurm.laboratory import OTHER as OTHER_DEBIAN
from tests.bridge.slurm.laboratory import Laboratory, is_installed

#: Accounts of every Debian: an administrator's, an operator's, a user's, and another user's.
ADMINISTRATOR, OPERATOR, USER, OTHER = "backup", "mail", "games", "news"


@contextmanager
def started(*options: str, mode: int = 0o700) -> Iterator[Laboratory]:
    """Start a cluster in a directory of its own, whose mode says who may enter it; stop it at the end."""
    directory = Path(tempfile.mkdtemp(prefix="cpsched-lab-", dir="/tmp"))  # paths of sockets are short
    directory.chmod(mode)
    lab = Laboratory(directory)
    try:
        lab.script("start", *options, *(["--root", OTHER_DEBIAN] if OTHER_DEBIAN else []))
        yield lab
    finally:
        lab.script("stop")
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def one_lab() -> Iterator[Laboratory]:
    """Start the cluster, and stop it at the end; skip, outside of CI, where Slurm is missing."""
    if not is_installed() or os.geteuid() != 0:
        message = "a real Slurm needs root and Debian's packages (scripts/slurm-lab start installs them)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with started() as lab:
        yield lab


@pytest.fixture
def lab(one_lab: Laboratory) -> Iterator[Laboratory]:
    """Return the cluster with an empty queue, all nodes idle and the gate open."""
    one_lab.reset()
    yield one_lab
    one_lab.gate.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def one_accounting(one_lab: Laboratory) -> Iterator[Laboratory]:
    """Start a second cluster, with a slurmdbd and accounts of all levels; `one_lab` says what is missing."""
    with started("--administrator", ADMINISTRATOR, "--multifactor", "--seconds", "120", mode=0o755) as lab:
        lab.run("sacctmgr", "-i", "add", "user", OPERATOR, "account=staff", "AdminLevel=Operator")
        lab.run("sacctmgr", "-i", "add", "user", USER, "account=staff")
        shutil.chown(lab.gate.parent, ADMINISTRATOR)
        yield lab


@pytest.fixture
def accounting(one_accounting: Laboratory) -> Iterator[Laboratory]:
    """Return the cluster with a slurmdbd, with an empty queue, all nodes idle and the gate open."""
    one_accounting.reset()
    yield one_accounting
    one_accounting.gate.unlink(missing_ok=True)
