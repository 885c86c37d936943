"""The order in which waiting jobs are served: by priority, then by submission."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.sim import Site


def ranks(site: Site) -> NDArray[np.int64]:
    """Return the rank of each job by its priority (its queue's, if it has none), then by submission."""
    priorities = np.array([site.instance.priority(job) for job in site.jobs], dtype=np.int64)
    found: NDArray[np.int64] = np.argsort(np.argsort(-priorities, kind="stable"))
    return found
