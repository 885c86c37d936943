"""Where cells run: on a Dask scheduler, in jobs of Slurm; and the errors where these are missing."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from cpsched.errors import CampaignError
from cpsched.lab.bench import at_address, on_slurm
from cpsched.lab.bench.clusters import local, require_packages
from tests.bench.dask_settings import dask_settings

if TYPE_CHECKING:
    from distributed import Client


def address_of(client: Client) -> str:
    """Where the scheduler of a client listens."""
    address: str = client.scheduler_info()["address"]
    return address


def test_a_running_scheduler_is_used(client: Client) -> None:
    """A client of an address sees the workers that are there."""
    with at_address(address_of(client)) as other:
        assert set(other.nthreads()) == set(client.nthreads())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x", "127.0.0.1:port"])
def test_an_address_without_a_scheduler_is_told(address: str) -> None:
    """Where nobody answers, or where the address is none, the error has the address."""
    with (
        dask_settings({"distributed.comm.timeouts.connect": "300ms"}),
        pytest.raises(CampaignError, match=f"Expected a Dask scheduler at {address}, got: "),
        at_address(address),
    ):
        pass


def test_a_worker_that_ends_as_it_starts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that the system has killed is no bug."""

    def killed(**options: object) -> None:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", killed)
    with pytest.raises(CampaignError, match="Nanny failed to start"), local(2):
        pass


def test_missing_packages_are_told_before_anything_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names what is missing and how it is installed."""
    require_packages()
    monkeypatch.setattr("cpsched.lab.bench.clusters.find_spec", lambda name: None if name == "pyarrow" else object())
    with pytest.raises(CampaignError, match=r"Campaigns need pyarrow, .* pip install '\.\[bench\]'"):
        require_packages()


def test_slurm_needs_dask_jobqueue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error says how to install it."""
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(CampaignError, match=r"pip install '\.\[slurm\]'"), on_slurm(2):
        pass


def jobqueue(cluster: Any) -> ModuleType:
    """Return a stand-in for dask-jobqueue."""
    module = ModuleType("dask_jobqueue")
    module.SLURMCluster = cluster  # type: ignore[attr-defined]  # a module made for the test
    return module


def test_slurm_without_configuration_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """dask-jobqueue refuses to guess memory: its words come through, with where to say it."""

    def refuse(**_: Any) -> None:
        raise ValueError("You must specify how much memory to use per job like ``memory='24 GB'``")

    monkeypatch.setitem(sys.modules, "dask_jobqueue", jobqueue(refuse))
    with pytest.raises(CampaignError, match=r"how much memory .* jobqueue\.slurm"), on_slurm(2):
        pass


class JobsOfSlurm:
    """Stands in for dask-jobqueue's cluster; its workers are those of the tests."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.calls: list[object] = []

    def __call__(self, **options: Any) -> JobsOfSlurm:
        """Take the place of making one."""
        self.calls.append(options)
        return self

    def __enter__(self) -> None:
        self.calls.append("open")

    def __exit__(self, *_: object) -> None:
        self.calls.append("closed")

    def get_client(self) -> AbstractContextManager[Client]:
        """Return a client of its workers, which outlives the cluster."""
        return nullcontext(self._client)


def test_slurm_gets_a_job_for_each_worker(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    """So many workers are asked for, each a process of one core, and the cluster is closed at the end."""
    cluster = JobsOfSlurm(client)
    monkeypatch.setitem(sys.modules, "dask_jobqueue", jobqueue(cluster))
    with on_slurm(3) as other:
        assert other is client
    assert cluster.calls == [{"n_workers": 3, "cores": 1, "processes": 1}, "open", "closed"]
