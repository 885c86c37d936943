"""Changed copies of objects of a document."""

from __future__ import annotations

from dataclasses import replace

from cpsched.domain import Amounts, Chunk, Job, Request, Step, with_fields


def test_a_copy_has_the_new_values_and_the_others_of_the_original() -> None:
    """A changed copy of a job is what `replace` makes of it, and the original is as it was."""
    request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 2})),))
    job = Job(id="j", user="alice", submit=3, steps=(Step(walltime=60, request=request),), array=(1, 2))
    values = {"licenses": Amounts({"matlab": 1}), "deadline": 99, "array": None}
    assert with_fields(job, values) == replace(job, licenses=Amounts({"matlab": 1}), deadline=99, array=None)
    assert with_fields(job, {}) == job == replace(job, deadline=None)
