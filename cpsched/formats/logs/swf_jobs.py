"""Jobs of a log in Standard Workload Format, made of its 18 numbers, in the form of the jobs of all logs."""

from enum import StrEnum

from cpsched.domain import MAX_AMOUNT, MAX_COUNT, MAX_DURATION, Amounts, Chunk, Dependency, DependencyType, Request
from cpsched.formats.logs.jobs import LogAnomaly, LogJob, Note, NotTaken
from cpsched.formats.swf import SwfJob

#: Statuses of lines about one part of a job that was swapped or checkpointed; the whole job has a line of its own.
_PARTIAL = frozenset({2, 3, 4})
#: The fields that messages name, by their number in the format.
_FIELDS = {5: "processors", 8: "requested processors", 10: "requested memory", 11: "status"}


class MemoryField(StrEnum):
    """The meanings of field 10 of a log, the requested memory."""

    #: As the format says.
    KB_PER_PROCESSOR = "kb-per-processor"
    #: As in the logs of MetaCentrum.
    BYTES_PER_JOB = "bytes-per-job"


class SwfTranslator:
    """Mutable: makes jobs from the lines of one log; equal requests and equal names are one object.

    A job of P processors requests P chunks of one core, placed freely. The names of its user, group and queue are
    ``u``, ``g`` and ``q``, each with the number in the log.

    `cores_per_chunk`: cores of a chunk (whole nodes); a job has as many chunks as hold its processors. `memory_field`:
    the meaning of field 10 in this log. `has_memory`: whether memory counts. `dependencies`: whether a job waits for
    its preceding job, and then for the think time (fields 17 and 18).
    """

    def __init__(
        self, *, cores_per_chunk: int, memory_field: MemoryField, has_memory: bool, dependencies: bool = False
    ) -> None:
        self._dependencies = dependencies
        self._cores = cores_per_chunk
        self._memory_field = memory_field
        self._has_memory = has_memory
        self._requests: dict[tuple[int, int], Request] = {}
        self._names: dict[tuple[str, int], str] = {}

    def job_of(self, line: SwfJob) -> LogJob:
        """Make a job from a line.

        Raises `NotTaken` if the line is about one part of a job, or has no size, or one beyond all bounds.
        """
        if line.status in _PARTIAL:
            why = "is that of a part of a job that was swapped or checkpointed, not of a job"
            raise NotTaken(LogAnomaly.PART, _field(11, line.status, why))
        request, notes = self._request(line)
        after = self._after(line)
        if after:
            message = f"waits for job {after[0].job}, and {after[0].delay} s more"
            notes = (*notes, (LogAnomaly.WAITS, message))
        return LogJob(
            id=line.id,
            line=line.line,
            submit=line.submit,
            request=request,
            walltime=line.requested_time,
            runtime=line.run_time,
            start=None if line.wait is None or line.wait < 0 else line.submit + line.wait,
            user=self._name("u", line.user),
            group=self._name("g", line.group),
            queue=self._name("q", line.queue),
            status=line.status,
            after=after,
            notes=notes,
        )

    def _after(self, line: SwfJob) -> tuple[Dependency, ...]:
        """Return the dependency on the preceding job; no log says how that has to end."""
        before, think_time = line.preceding_job, line.think_time
        if not self._dependencies or before is None or before < 0 or before == line.number:
            return ()
        delay = min(max(think_time or 0, 0), MAX_DURATION)
        return (Dependency(job=str(before), type=DependencyType.AFTERANY, delay=delay),)

    def _request(self, line: SwfJob) -> tuple[Request, tuple[Note, ...]]:
        """Return the request of a line, the same object for equal requests."""
        notes: tuple[Note, ...] = ()
        processors = line.requested_processors
        if processors is None or processors < 1:
            got = line.processors
            if got is None or got < 1:
                raise NotTaken(LogAnomaly.NO_SIZE, f"{_field(8, processors)} and {_field(5, got)} are no size")
            message = _field(8, processors, f"is no size: the {got} that it got are")
            notes = ((LogAnomaly.SIZE_IS_WHAT_IT_GOT, message),)
            processors = got
        asked = line.requested_memory
        memory = asked if self._has_memory and asked is not None and asked > 0 else 0
        request = self._requests.get((processors, memory))
        if request is None:
            request = self._requests[processors, memory] = self._new_request(processors, memory)
        return request, notes

    def _new_request(self, processors: int, memory: int) -> Request:
        count = -(-processors // self._cores)
        if count > MAX_COUNT:
            message = _field(8, processors, f"is {count} chunks, of which there are at most 10^6")
            raise NotTaken(LogAnomaly.BEYOND, message)
        resources = {"cores": self._cores}
        if memory:
            per_job = self._memory_field is MemoryField.BYTES_PER_JOB
            parts = processors * 2**20 if per_job else 2**10
            resources["mem"] = -(-memory * self._cores // parts)
            if resources["mem"] > MAX_AMOUNT:
                why = f"is {resources['mem']} MiB for a chunk, of which there are at most {MAX_AMOUNT}"
                raise NotTaken(LogAnomaly.BEYOND, _field(10, memory, why))
        return Request(chunks=(Chunk(count=count, resources=Amounts(resources)),))

    def _name(self, letter: str, number: int | None) -> str | None:
        """Return the name of a user, group or queue, the same object each time."""
        if number is None:
            return None
        name = self._names.get((letter, number))
        if name is None:
            name = self._names[letter, number] = f"{letter}{number}"
        return name


def _field(number: int, value: int | None, what: str = "") -> str:
    """Describe a field: its number, its name and its value."""
    said = f"field {number} ({_FIELDS[number]}), {'unknown' if value is None else value}"
    return f"{said}, {what}" if what else said
