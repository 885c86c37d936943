"""Two worker processes on this machine, for all tests that need some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dask.config
import pytest

from cpsched.bench import local

if TYPE_CHECKING:
    from distributed import Client


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """Return a client of two workers; one that is killed is started anew, which takes long: two are enough here."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), local(2) as client:
        yield client
