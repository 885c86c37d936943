"""The modes of a malleable job: shares of its cores, with request and speed (D'Amico et al.; SD-3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from cpsched.domain.frozen import Amounts
from cpsched.domain.job import Job, Malleability, RuntimeModel
from cpsched.domain.request import Chunk, Request

_CORES = "cores"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One mode of a job: with all its cores, or with a share of them."""

    share: float
    #: The job's request on this share: fewer cores in each chunk, the same of everything else.
    request: Request
    #: Work per second, in seconds at full share; in (0, 1].
    rate: Fraction

    def time_for(self, work: Fraction | int) -> int:
        """Return the seconds in which this work is done, rounded up: it ends within the last of them."""
        return ceil(work / self.rate)


def modes(job: Job, rounded: Callable[[Fraction], int] = floor) -> tuple[Mode, ...]:
    """Return the modes of a job of one step, the full share first, then by falling share.

    On a share a chunk has that share of its cores, `rounded` down or up, but at least one. A share that comes to the
    same request as a larger one is left out, and so are all shares where no chunk asks for cores. Shares and stretches
    are exactly what their decimals say: 0.7 of 10 cores is 7.

    Raises `ValueError` if the job is evolving.
    """
    full = Mode(share=1.0, request=job.request, rate=Fraction(1))
    if job.malleability is None:
        return (full,)
    found = [full]
    for share in job.malleability.shares:
        request = replace(job.request, chunks=tuple(_shrunk(chunk, share, rounded) for chunk in job.request.chunks))
        if request != found[-1].request:
            found.append(Mode(share=share, request=request, rate=_rate(job.request, request, share, job.malleability)))
    return tuple(found)


def duration_range(job: Job) -> tuple[int, int | None]:
    """Return the least and the most seconds that a waiting job can take in any plan; None: there is no most.

    A rigid job takes its walltime. An evolving job takes at least its walltime, and at most as long as with each step
    held for as long as it may be. A malleable job may change its share at any time: each second does at least as much
    work as the slowest mode, and at most as much as the full share. It ends in the second in which the work is done.
    So it can take any time from its walltime to its duration on the slowest mode. A job with alternatives takes the
    walltime of one of them.
    """
    if job.alternatives:
        return job.shortest, max((job.walltime, *(step.walltime for step in job.alternatives)))
    if job.is_evolving:
        steps = zip(job.steps, job.longest_steps, strict=True)
        longest = [most if most is None else max(step.walltime, most) for step, most in steps]
        known = [seconds for seconds in longest if seconds is not None]
        return job.walltime, sum(known) if len(known) == len(longest) else None
    return job.walltime, max(mode.time_for(job.walltime) for mode in modes(job))


def stretches_of(
    work: Fraction | int, job_modes: Sequence[Mode], changes: Sequence[tuple[int, int]]
) -> list[tuple[int, int, int]]:
    """Return how a job does its work if it changes its mode at given times: (start, end, mode) of each stretch of time
    in one mode; it ends in the second in which the work is done.

    `work`: seconds at full share, more than 0. `changes`: (second, index of the mode from then on), by ascending
    second; the first second is the start. A change after the end of the work, or to the same mode, is none.
    """
    found: list[tuple[int, int, int]] = []
    left = Fraction(work)
    for place, (start, mode) in enumerate(changes):
        end = start + job_modes[mode].time_for(left)
        if place + 1 < len(changes):
            end = min(end, changes[place + 1][0])
        if end > start:
            before = found.pop()[0] if found and found[-1][2] == mode else start
            found.append((before, end, mode))
        left -= job_modes[mode].rate * (end - start)
        if left <= 0:
            break
    return found


def _shrunk(chunk: Chunk, share: float, rounded: Callable[[Fraction], int]) -> Chunk:
    cores = chunk.resources.get(_CORES, 0)
    if not cores:
        return chunk
    left = max(1, rounded(Fraction(str(share)) * cores))
    return replace(chunk, resources=Amounts({**chunk.resources, _CORES: left}))


def _rate(full: Request, shrunk: Request, share: float, malleability: Malleability) -> Fraction:
    """Return the speed of a shrunk job: as its user states for this share, else by the model.

    ``ideal`` is the share of all cores (eq. 5), ``worst`` the share of the chunk that has the least (eq. 6).
    """
    if share in malleability.stretch:
        return 1 / Fraction(str(malleability.stretch[share]))
    if malleability.model is RuntimeModel.WORST:
        pairs = zip(full.chunks, shrunk.chunks, strict=True)
        return min(Fraction(b.resources[_CORES], a.resources[_CORES]) for a, b in pairs if _CORES in a.resources)
    return Fraction(shrunk.totals[_CORES], full.totals[_CORES])
