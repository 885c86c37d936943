"""`InWorker`: what the improvers have in common whose work is done in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from cpsched.cp.params import BoundParams, CpParams, NeighbourhoodParams
from cpsched.cp.process import COMMAND, Worker, available_memory
from cpsched.domain import Instance
from cpsched.planner import unsupported

Params = TypeVar("Params", BoundParams, CpParams, NeighbourhoodParams)


class InWorker(Generic[Params]):
    """An improver with a worker process.

    `params`: how it works. `command`: how the worker is started; replaced in tests.
    """

    def __init__(self, params: Params, command: Sequence[str] = COMMAND) -> None:
        self.params: Params = params
        self._command = command

    def prepare(self) -> None:
        """Nothing is compiled, and what is loaded is loaded in the worker."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the model cannot honour: the same as the planner's, and alternatives
        of one job with several places.
        """
        elsewhere: list[str] = []
        for job in instance.jobs:
            if any(one.request.place != job.steps[0].request.place for one in job.alternatives):
                elsewhere.append(f"job {job.id}: alternatives with another place")
        return (*unsupported(instance), *elsewhere)

    def worker(self) -> Worker:
        """Start a worker, which may use a part of the memory that is available now.

        Raises `EngineError` if it cannot be started.
        """
        return Worker(int(self.params.memory_share * available_memory()), self._command)
