"""The priorities of ``priority/multifactor``: age, fair share and size of a job, each with a weight (slurm.conf(5)).

The factors are between 0 and 1: the age as a part of ``PriorityMaxAge``; the size as a part of the machine's cores
(``PriorityFavorSmall=NO``); and 2^(-usage / share) of Slurm's classic fair share, with the usage that decays in the
simulation, and 1/2 for users without a share. A priority of the job or its queue goes before: it is a partition's tier.
Jobs have their priorities anew every ``PriorityCalcPeriod``, and when they come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.sim import Site

if TYPE_CHECKING:
    from cpsched.lab.policies.slurm.slurm import SlurmParameters

#: What a user has who is not listed: as one that has had exactly its share.
_EVEN = 0.5


def priorities(site: Site, jobs: NDArray[np.int64], parameters: SlurmParameters) -> NDArray[np.int64]:
    """Return the priority of each of some jobs at this second, a whole number as in Slurm."""
    age = np.clip((site.now - site.submit[jobs]) / parameters.max_age, 0.0, 1.0)
    size = site.cores[jobs] / max(1, site.instance.cluster.totals.get("cores", 0))
    found = parameters.weight_age * age + parameters.weight_size * size
    if parameters.weight_fair_share:
        found += parameters.weight_fair_share * _fair_share(site, jobs)
    whole: NDArray[np.int64] = np.floor(found).astype(np.int64)
    return whole


def _fair_share(site: Site, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the fair-share factor of the user of each of some jobs, in its account."""
    shares = site.fair_share
    if shares is None:
        return np.full(len(jobs), _EVEN)
    factors = {key: 2.0 ** -float(one.usage / one.share) if one.share else 0.0 for key, one in shares.standings.items()}
    chosen = [site.jobs[job] for job in jobs.tolist()]
    return np.array([factors.get((job.user, job.project), _EVEN) for job in chosen])
