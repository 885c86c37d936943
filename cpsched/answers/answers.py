"""The door to answers: a plan that is kept booked, and asked about its jobs and about jobs that do not exist yet."""

from itertools import pairwise

from cpsched.answers.chain import Link, chain_of
from cpsched.answers.changes import changes_for
from cpsched.answers.explanation import Blocked, Explanation, JobState
from cpsched.answers.inquiry import Inquiry
from cpsched.answers.submission import Submission
from cpsched.answers.world import PlanView
from cpsched.arguments import at_the_door
from cpsched.domain import Instance, Job, Plan, PlannedJob
from cpsched.errors import DocumentError, Fault
from cpsched.report import moment

#: The most intervals of causes in an explanation: where there are more, the first half of these, and the others evenly.
MOST_INTERVALS = 12


class Answers:
    """An instance and a plan of it, booked once and then asked often; a question leaves no trace.

    Parameters
    ----------
    instance, plan
        The two documents.

    Raises
    ------
    DocumentError
        If the plan is none of this instance, or has jobs that do not fit beside each other.
    """

    @at_the_door
    def __init__(self, instance: Instance, plan: Plan) -> None:
        self._world = PlanView(instance, plan)
        self._waiting = {job.id: job for job in plan.waiting_room}

    def __repr__(self) -> str:
        return f"<Answers about {len(self._world.entries)} jobs, {len(self._waiting)} of them without a start>"

    @at_the_door
    def has(self, job_id: str) -> bool:
        """Tell whether the instance has a job, or an element of an array, of this id."""
        return job_id in self._world.entries

    @at_the_door
    def explain(self, job_id: str, at: int | None = None) -> Explanation:
        """Return why a job starts when the plan says, and not earlier.

        Parameters
        ----------
        job_id
            A job of the instance, or an element of an array.
        at
            A second of the instance's clock: why it does not start then. None: every second from `now` on.

        Raises
        ------
        ValueError
            If the instance has no such job.
        """
        world = self._world
        if not self.has(job_id):
            raise ValueError(f"job_id: Expected a job of the instance, got {job_id!r}")
        entry, planned = world.entries[job_id], world.planned.get(job_id)
        if entry.running is not None:
            run = entry.running if planned is None else planned
            end = run.segments[-1].end
            return Explanation(job=job_id, state=JobState.RUNNING, start=run.start, end=end)
        with world.without(job_id):
            return self._explained(entry, planned, at)

    @at_the_door
    def chain(self, job_id: str) -> tuple[Link, ...]:
        """Return the jobs behind a start, link by link: each starts when the next one ends.

        The first is the job itself; empty, if it has no start. The last is one that nothing kept from starting, or one
        that runs, or the `MOST_LINKS`-th.

        Raises
        ------
        ValueError
            If the instance has no such job.
        """
        if not self.has(job_id):
            raise ValueError(f"job_id: Expected a job of the instance, got {job_id!r}")
        return chain_of(self._world, job_id)

    def _explained(self, job: Job, planned: PlannedJob | None, at: int | None) -> Explanation:
        """Return the explanation of a job that waits, and holds nothing now."""
        world, inquiry = self._world, Inquiry(self._world, job)
        free_start = inquiry.free_start()
        waiting = self._waiting.get(job.id)
        last = world.last_end if planned is None else planned.start
        blocked, is_whole = self._blocked(inquiry, last, at)
        return Explanation(
            job=job.id,
            state=JobState.WAITING_ROOM if planned is None else JobState.PLANNED,
            start=None if planned is None else planned.start,
            end=None if planned is None else planned.end,
            reason=None if waiting is None else waiting.reason,
            detail=None if waiting is None else waiting.detail,
            form=_form(job) or _stopped(world, planned, job),
            blocked=blocked,
            is_whole=is_whole,
            free_start=free_start,
            changes=changes_for(world, job, None if planned is None else planned.start),
        )

    def _blocked(self, inquiry: Inquiry, last: int, at: int | None) -> tuple[tuple[Blocked, ...], bool]:
        """Return the causes in order of time up to a second, and whether all of them; at `at` only that one."""
        if at is not None:
            return (inquiry.at(at, max(at + 1, last)),), True
        half = MOST_INTERVALS // 2
        blocked: list[Blocked] = []
        second = self._world.instance.now
        while second < last and len(blocked) < half:
            blocked.append(inquiry.at(second, last))
            second = blocked[-1].end
        for step in range(half) if second < last else ():
            sampled = second + (last - 1 - second) * step // (half - 1)
            if sampled >= blocked[-1].end:
                blocked.append(inquiry.at(sampled, last))
        is_whole = all(one.end == other.start for one, other in pairwise(blocked))
        return tuple(blocked), is_whole and (not blocked or blocked[-1].end >= last)

    @at_the_door
    def submit(self, job: Job) -> Submission:
        """Return when a job that does not exist yet would start if it were submitted now, without moving any other.

        Parameters
        ----------
        job
            As an instance would state it (`parse_submission`); its id is that of no other job.

        Raises
        ------
        DocumentError
            If it is an array of several jobs.
        ValueError
            If the instance has a job of that id.
        """
        if job.array is not None and len(job.array) > 1:
            fault = Fault("array", f"Expected one job, got an array of {len(job.array)}: ask about one of its elements")
            raise DocumentError("the submission", [fault])
        if job.id in self._world.members:
            raise ValueError(f"job: Expected an id that no job of the instance has, got {job.id!r}")
        return Submission.of(self._world, job)

    @at_the_door
    def instead(self, job: Job) -> Submission:
        """Return when a waiting job would start if it were another one, without moving any other.

        Parameters
        ----------
        job
            The changed job, with the id of the one that waits.

        Raises
        ------
        ValueError
            If no job, or element of an array, of this id waits.
        """
        world = self._world
        if not self.has(job.id) or world.entries[job.id].running is not None:
            raise ValueError(f"job: Expected the id of a job that waits, got {job.id!r}")
        with world.without(job.id):
            return Submission.of(world, job)


@at_the_door
def explain(instance: Instance, plan: Plan, job_id: str, at: int | None = None) -> Explanation:
    """Say why a job does not start earlier; `Answers` is for several questions about one plan.

    Raises
    ------
    DocumentError
        If the plan is none of this instance, or has jobs that do not fit beside each other.
    ValueError
        If the instance has no such job.
    """
    return Answers(instance, plan).explain(job_id, at)


def _stopped(world: PlanView, planned: PlannedJob | None, job: Job) -> str | None:
    """Return in words that a job is stopped, or which jobs are stopped for it: those that end on its nodes then."""
    for one in world.plan.attempts:
        if one.id == job.id:
            names = [other.id for other in world.plan.jobs if _gives_way(one, other)]
            at = moment(world.instance, one.end)
            return f"stopped at {at}{' for ' if names else ''}{', '.join(names)}, and planned again"
    names = [one.id for one in world.plan.attempts if planned is not None and _gives_way(one, planned)]
    return f"stopped for it: {', '.join(names)}" if names else None


def _gives_way(attempt: PlannedJob, planned: PlannedJob) -> bool:
    """Tell whether a run is stopped when a job starts on one of its nodes."""
    taken = {one.node for one in planned.segments[0].allocation} if attempt.end == planned.start else set[str]()
    return not taken.isdisjoint(one.node for one in attempt.segments[-1].allocation)


def _form(job: Job) -> str | None:
    """Return how a job that can change is looked for, in words."""
    if job.is_evolving:
        return f"looked for as its {len(job.steps)} steps, none of them held"
    if job.alternatives:
        most = max(one.cost for one in job.alternatives)
        words = f"looked for by its own request and by each alternative ({len(job.alternatives)})"
        return f"{words}, at a cost of up to {most} s of waiting" if most else words
    if job.malleability is not None:
        shares = ", ".join(f"{100 * share:.3g} %" for share in (1, *job.malleability.shares))
        return f"looked for on one share of its cores from start to end ({shares})"
    return None
