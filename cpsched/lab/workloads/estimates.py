"""Walltimes for models that have only run times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Deciles (0, 10, …, 100 %) of run time / walltime over 5,930 jobs of Eurora in spring 2014, published with PA-HPC-SIM
#: (Apache-2.0): tiny or full. Jobs that ran a little longer than their walltime count as full.
ACCURACY = (0.0, 0.015, 0.028, 0.045, 0.099, 0.256, 0.497, 0.811, 0.997, 1.0, 1.0)


def estimated_walltimes(draw: np.random.Generator, runtimes: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Return a walltime for each run time: the one divided by an accuracy, in whole minutes.

    No walltime exceeds `longest` seconds, a multiple of 60 that no run time exceeds. So the estimates of long jobs are
    better than those of short ones, as in real logs.
    """
    accuracy = np.interp(draw.random(len(runtimes)) * 10, np.arange(11), ACCURACY)
    asked = np.ceil(runtimes / np.maximum(accuracy, runtimes / longest) / 60) * 60
    return np.asarray(np.minimum(asked, longest), dtype=np.int64)
