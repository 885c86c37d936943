"""Two worker processes on this machine, for all tests of this folder that need some: they take time also where they
wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from cpsched.lab.bench import local
from tests.bench.dask_settings import dask_settings

if TYPE_CHECKING:
    from distributed import Client


@pytest.fixture(scope="package")
def client() -> Iterator[Client]:
    """Return a client of two workers; one that is killed is started anew, which takes long: two are enough here."""
    with dask_settings({"distributed.scheduler.allowed-failures": 1}), local(2) as client:
        yield client
