"""Users who look at results first: which job's end a job of a log followed, and after how long."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cpsched.domain import Dependency, DependencyType, Job

#: A user who submits nothing for longer than this after the end of all that was submitted has begun another session (s;
#: Shmueli and Feitelson, TPDS 2009).
LONGEST_THINK = 1200


def with_feedback(jobs: Sequence[Job], ends: Mapping[str, int]) -> Iterator[Job]:
    """Yield jobs with dependencies that keep think times in place of submissions (Zakay and Feitelson, MASCOTS 2014).

    Jobs that a user submitted before all earlier ones had ended are a batch. If a batch began at most `LONGEST_THINK`
    after the batch before it had ended, all of its jobs follow the job of that one which ended last, each by as many
    seconds as in the log. All other jobs come when they came in the log; so do those with a time or a dependency of
    their own.

    `jobs`: in the order of submission. `ends`: when they ended in the log; jobs of which that is not known do not
    count.
    """
    #: Of each user: the job of the present batch that ended last, and that of the batch before which it followed.
    batches: dict[str, tuple[str | None, str | None]] = {}
    for job in jobs:
        if job.user is None or job.id not in ends:
            yield job
            continue
        last, before = batches.get(job.user, (None, None))
        if last is not None and ends[last] <= job.submit:
            before = last if job.submit - ends[last] <= LONGEST_THINK else None
            last = None
        last = job.id if last is None or ends[job.id] > ends[last] else last
        batches[job.user] = last, before
        if before is None or job.after or job.not_before is not None:
            yield job
        else:
            link = Dependency(job=before, type=DependencyType.AFTERANY, delay=job.submit - ends[before])
            yield replace(job, after=(link,))
