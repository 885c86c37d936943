"""The machine in memory with users, administrators and failures, whose part a test plays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cpsched.domain import Instance, Job, NodeState, Placement
from cpsched.site.bridge import JobState, World
from cpsched.site.bridge.own_scheduler import queue_nodes
from cpsched.site.bridge.world import WorldJob


class PlayedWorld(World):
    """A world in which somebody does things. Mutable."""

    def __init__(self, instance: Instance, **more: Any) -> None:
        #: Called with each job that has just started, or ended.
        self.listeners: list[Callable[[WorldJob], None]] = []
        super().__init__(instance, **more)

    def _start(self, entry: WorldJob, allocation: tuple[Placement, ...]) -> None:
        super()._start(entry, allocation)
        self._tell(entry)

    def _leave(self, entry: WorldJob, state: JobState) -> None:
        super()._leave(entry, state)
        self._tell(entry)

    def _tell(self, entry: WorldJob) -> None:
        for listener in self.listeners:
            listener(entry)

    def submit(self, job: Job) -> None:
        """Take a job that waits, or that will once its `submit` is reached."""
        self._admit(job)
        if job.id in self.jobs:
            self._bind(self.jobs[job.id])
        self._settle()

    def cancel(self, job_id: str) -> None:
        """End a job, whether it waits or runs."""
        entry = self.jobs[job_id]
        if not entry.state.is_over:
            self._leave(entry, JobState.CANCELLED)
            self._settle()

    def hold(self, job_id: str) -> None:
        """Hold a waiting job for its user."""
        entry = self.jobs[job_id]
        if entry.state is JobState.WAITING:
            entry.state, entry.due = JobState.HELD, None
            self._changed(entry)

    def release(self, job_id: str) -> None:
        """Release a held job: it waits for its start."""
        entry = self.jobs[job_id]
        if entry.state is JobState.HELD:
            entry.state = JobState.WAITING
            self._changed(entry)
            self._settle()

    def alter(self, job: Job) -> None:
        """Give a waiting job another request, walltime or queue."""
        entry = self.jobs[job.id]
        if entry.state in (JobState.WAITING, JobState.HELD):
            entry.job, entry.due, entry.allocation = replace(job, submit=entry.job.submit), None, ()
            self._changed(entry)
            self._settle()

    def start_by_hand(self, job_id: str) -> bool:
        """Start a waiting job wherever it fits, as an administrator may; tell whether it fits."""
        entry = self.jobs[job_id]
        if entry.state is not JobState.WAITING:
            return False
        allocation = self.shop.first_fit(entry.job, queue_nodes(self.site, entry.job))
        if allocation is None:
            return False
        self._start(entry, allocation)
        return True

    def requeue(self, job_id: str) -> None:
        """Stop a running job and let it wait again."""
        entry = self.jobs[job_id]
        if entry.state is JobState.RUNNING:
            self.stop(entry)

    def set_node(self, node: str, state: NodeState) -> None:
        """Change a node's state; if it goes down, the jobs that run there wait again."""
        self._set_node(node, state)
        self._settle()
