"""Steps that a running job submits alone, in the form of its ``steps`` in an instance."""

from __future__ import annotations

from cpsched.domain import Amounts, Instance, Job, Place, Request, Step
from cpsched.errors import DocumentError, Fault
from cpsched.formats.instance_reader import parse_instance
from cpsched.formats.instance_writer import instance_to_document


def read_steps(written: object, instance: Instance, job: Job) -> tuple[Step, ...]:
    """Return the steps that a list says: each an object of ``walltime`` and ``request``.

    Place and licences are the job's, and need not be said.

    Raises `DocumentError` with everything that is wrong with them.
    """
    document = {
        "format": "cpsched-instance/1",
        "name": "steps",
        "cluster": instance_to_document(instance)["cluster"],
        "jobs": [{"id": job.id, "submit": 0, "steps": written}],
    }
    try:
        (read,) = parse_instance(document).jobs
    except DocumentError as error:
        faults = [Fault(fault.path.removeprefix("jobs[0]."), fault.message) for fault in error.faults]
        raise DocumentError(error.source, faults) from None
    place = job.steps[0].request.place
    if read.steps[0].request.place not in (Place(), place) or read.licenses not in (Amounts(), job.licenses):
        raise DocumentError("steps", [Fault("steps", "Expected the place and the licences of the job, or none")])
    return tuple(
        Step(walltime=step.walltime, request=Request(chunks=step.request.chunks, place=place)) for step in read.steps
    )
