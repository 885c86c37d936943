"""Settings of Dask for a part of a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dask.config

__all__ = ["dask_settings"]


@contextmanager
def dask_settings(settings: Mapping[str, object]) -> Iterator[None]:
    """Set settings of ``distributed``, once it has set its own: else these would be gone with ours."""
    import distributed  # noqa: F401 - loads its settings

    with dask.config.set(settings):
        yield
