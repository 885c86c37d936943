"""Steps that a running job submits alone, in the form of its ``steps`` in an instance."""

from __future__ import annotations

import json
from typing import Any

from cpsched.domain import Amounts, Instance, Job, Place, Request, Step
from cpsched.errors import DocumentError, Fault
from cpsched.formats.instance_reader import parse_instance
from cpsched.formats.instance_writer import instance_to_document

__all__ = ["parse_steps"]


def parse_steps(text: str, instance: Instance, job: Job, *, source: str = "<memory>") -> tuple[Step, ...]:
    """Return the steps that a JSON list says: each an object of ``walltime`` and ``request``.

    Place and licences are the job's, and need not be said.

    Raises
    ------
    DocumentError
        With everything that is wrong with them.
    """
    try:
        written: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(source, [Fault("steps", f"Expected a JSON list, got: {error}")]) from None
    document = {
        "format": "cpsched-instance/1",
        "name": "steps",
        "cluster": instance_to_document(instance)["cluster"],
        "jobs": [{"id": job.id, "submit": 0, "steps": written}],
    }
    try:
        (read,) = parse_instance(document, source=source).jobs
    except DocumentError as error:
        faults = [Fault(fault.path.removeprefix("jobs[0]."), fault.message) for fault in error.faults]
        raise DocumentError(source, faults) from None
    place = job.steps[0].request.place
    if read.steps[0].request.place not in (Place(), place) or read.licenses not in (Amounts(), job.licenses):
        raise DocumentError(source, [Fault("steps", "Expected the place and the licences of the job, or none")])
    return tuple(
        Step(walltime=step.walltime, request=Request(chunks=step.request.chunks, place=place)) for step in read.steps
    )
