"""The speed-up of moldable jobs: how long a job takes on another number of chunks than it asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil

from cpsched.domain.job import Step

#: How many times as fast a job is on so many chunks as on one; at least 1.
Speedup = Callable[[int], Fraction]


def amdahl(serial: Fraction) -> Speedup:
    """Return the speed-up of a job of which a part is serial (Amdahl 1967): 1 / (f + (1 - f) / n)."""
    return lambda count: 1 / (serial + (1 - serial) / count)


def downey(parallelism: Fraction, sigma: Fraction) -> Speedup:
    """Return the speed-up of a job by its average parallelism A, at least 1, and the variance of that, at least 0
    (Downey 1997, eq. 1 and 2).
    """

    def low(count: int) -> Fraction:
        if count >= 2 * parallelism - 1:
            return parallelism
        if count >= parallelism:
            return parallelism * count / (sigma * (parallelism - Fraction(1, 2)) + count * (1 - sigma / 2))
        return parallelism * count / (parallelism + sigma / 2 * (count - 1))

    def high(count: int) -> Fraction:
        if count >= parallelism + parallelism * sigma - sigma:
            return parallelism
        return count * parallelism * (sigma + 1) / (sigma * (count + parallelism - 1) + parallelism)

    return lambda count: max(Fraction(1), low(count) if sigma <= 1 else high(count))


def resized(own: Step, count: int, speedup: Speedup) -> Step:
    """Return a step of one kind of chunks with another number of them, and as long as the speed-up says, rounded up."""
    (chunk,) = own.request.chunks
    seconds = ceil(own.walltime * speedup(chunk.count) / speedup(count))
    return Step(walltime=seconds, request=replace(own.request, chunks=(replace(chunk, count=count),)))
