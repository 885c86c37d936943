"""A verifier that knows less than the contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from cpsched.verify import judge
from cpsched.verify.model import Job
from cpsched.verify.rules import RULES
from cpsched.verify.rules.limits import check_limits

__all__ = ["with_longest_walltimes", "with_own_requests", "without_limits"]


@contextmanager
def without_limits() -> Iterator[None]:
    """Let the verifier know nothing of limits."""
    with patch.object(judge, "RULES", [rule for rule in RULES if rule is not check_limits]):
        yield


@contextmanager
def with_longest_walltimes() -> Iterator[None]:
    """Let rules see each choice of a job with the longest walltime of all."""

    def chosen(job: Job, number: int) -> Job:
        steps = (job.steps[0], *job.alternatives)
        longest = max(step.walltime for step in steps)
        return replace(job, steps=(replace(steps[number], walltime=longest),), alternatives=(), usual=job.walltime)

    with patch.object(Job, "chosen", chosen):
        yield


@contextmanager
def with_own_requests() -> Iterator[None]:
    """Let rules see each job as it asks itself, whatever a plan chooses."""
    with patch.object(Job, "chosen", lambda job, number: replace(job, alternatives=(), usual=None)):
        yield
