"""The clusters that run cells: processes on this machine, a running Dask scheduler, or jobs of Slurm."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cpsched.errors import CampaignError
from cpsched.text import how_to_install

if TYPE_CHECKING:
    from distributed import Client


#: The first action of workers: they ignore Ctrl-C, since the main process ends them.
_DEAF = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"


def require_packages() -> None:
    """Raise `CampaignError` if a package of campaigns is missing, before anything is computed."""
    missing = [name for name in ("distributed", "matplotlib", "pyarrow") if find_spec(name) is None]
    if missing:
        raise CampaignError(f"Campaigns need {', '.join(missing)}, not installed here; {how_to_install('bench')}")


@contextmanager
def local(workers: int) -> Iterator[Client]:
    """Yield a client of this number of processes on this machine, which end with it.

    Raises `CampaignError` if one of them ends before it works.
    """
    from distributed import LocalCluster

    try:
        # Simulations hold the interpreter's lock: one process for each.
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            preload=[_DEAF],
        )
    except RuntimeError as error:
        raise CampaignError(f"Expected {workers} worker processes on this machine, got: {error}") from error
    with cluster, cluster.get_client() as client:
        yield client


@contextmanager
def at_address(address: str) -> Iterator[Client]:
    """Yield a client of a Dask scheduler, whose workers need cpsched, and the files of the campaign at the same paths.

    Raises `CampaignError` if there is no scheduler at that address.
    """
    from distributed import Client

    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise CampaignError(f"Expected a Dask scheduler at {address}, got: {error}") from error
    with client:
        yield client


@contextmanager
def on_slurm(workers: int) -> Iterator[Client]:
    """Yield a client of this number of jobs of Slurm, each with one process; they end with it.

    Memory, walltime, partition and so on come from Dask's own configuration, ``jobqueue.slurm``.

    Raises `CampaignError` if dask-jobqueue is missing, or not configured.
    """
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise CampaignError(f"--slurm needs dask-jobqueue; {how_to_install('slurm')}") from error
    try:
        cluster = SLURMCluster(n_workers=workers, cores=1, processes=1)
    except ValueError as error:
        raise CampaignError(f"dask-jobqueue: {error} See jobqueue.slurm in Dask's configuration.") from error
    with cluster, cluster.get_client() as client:
        yield client
