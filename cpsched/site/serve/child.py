"""A process that plans one instance and ends: ``python -m cpsched.site.serve.child``.

It reads one task from standard input, its length in 8 bytes before it, and writes the outcome to standard output, both
as JSON. It ends when its standard input does: then the server has gone, or needs the outcome no more.
"""

import json
import os
import sys
import threading
from typing import Any, BinaryIO

from cpsched.errors import CpschedError, DocumentError, Fault, SyntaxFault
from cpsched.formats import parse_instance, plan_to_document
from cpsched.portfolio import prepare, solve

#: Bytes of the number before a task.
LENGTH_BYTES = 8
#: The most faults that are told.
_MOST_FAULTS = 100


def main() -> None:
    """Do the task that standard input has."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    task = json.loads(source.read(int.from_bytes(source.read(LENGTH_BYTES))))
    threading.Thread(target=_end_with, args=(source,), daemon=True).start()
    sink.write(json.dumps(outcome_of(task)).encode())
    sink.flush()
    os._exit(0)  # without unloading the kernels


def _end_with(source: BinaryIO) -> None:
    """End this process when nobody can write to it any more."""
    source.read()
    os._exit(1)


def outcome_of(task: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of a task: the plan, or under ``error`` and ``faults`` why that cannot be."""
    try:
        return _solved(task)
    except (DocumentError, SyntaxFault) as error:
        faults = error.faults if isinstance(error, DocumentError) else (Fault("", str(error)),)
        listed = [[fault.path, fault.message] for fault in faults[:_MOST_FAULTS]]
        return {"error": "What was asked is not in order", "faults": listed}
    except CpschedError as error:
        return {"error": str(error), "faults": []}


def _solved(task: dict[str, Any]) -> dict[str, Any]:
    instance = parse_instance(task["instance"], source="the instance")
    prepare(task["engine"], workers=task["workers"], changing=any(job.changes for job in instance.jobs))
    plan = solve(
        instance,
        engine=task["engine"],
        budget=task["budget"],
        seed=task["seed"],
        workers=task["workers"],
        document=task["instance"],
    )
    return {"plan": plan_to_document(plan)}


if __name__ == "__main__":
    main()
