"""Answers in words, with dates where the instance has an epoch; names cannot harm a terminal."""

from collections.abc import Iterator, Sequence

from cpsched.answers.chain import Link
from cpsched.answers.explanation import Blocked, CauseKind, Explanation, Holder, JobState
from cpsched.answers.submission import Submission
from cpsched.answers.whatif import Comparison, JobChange
from cpsched.domain import Instance
from cpsched.formats import fold_hostlist
from cpsched.report import duration, moment, value_text
from cpsched.text import printable

#: The most jobs of a cause that are named; the rest is counted.
MOST_HOLDERS = 10
#: The most jobs of a comparison that are listed in each part; the rest is counted.
MOST_MOVED = 20


def _planned(explanation: Explanation, second: int) -> str:
    """Return in words when a plan has a job that could start at a second."""
    if explanation.start is None:
        return "the plan gives it no start"
    if explanation.start == second:
        return "so the plan has it"
    return "the plan has it later" if explanation.start > second else "the plan has it earlier"


def first_line(instance: Instance, explanation: Explanation) -> str:
    """Return in one sentence why a job does not start now, or that it runs."""
    if explanation.state is JobState.RUNNING:
        return "runs: what has started is never moved"
    if explanation.state is JobState.WAITING_ROOM and not explanation.blocked:
        return f"has no start: {printable(explanation.detail or 'the plan does not say why')}"
    if not explanation.blocked:
        return "starts at the first second that it may"
    first = explanation.blocked[0]
    if first.cause.kind is CauseKind.NOTHING:
        beside = f"could start at {moment(instance, first.start)}, beside all other jobs"
        return f"{beside}; {_planned(explanation, first.start)}"
    words = f"not at {moment(instance, first.start)}: {printable(first.cause.detail)}"
    holders = first.cause.holders
    if not holders:
        return words
    more = f" and {len(holders) - 1} more" if len(holders) > 1 else ""
    return f"{words}; {_holder_words(instance, holders[-1])}{more}"


def explanation_lines(instance: Instance, explanation: Explanation) -> Iterator[str]:
    """Yield an explanation line by line."""
    yield f"job {printable(explanation.job)}: {_plan_words(instance, explanation)}"
    yield first_line(instance, explanation)
    if explanation.form is not None:
        yield printable(explanation.form)
    if explanation.state is JobState.RUNNING:
        return
    if explanation.blocked:
        yield "causes:" if explanation.is_whole else "causes at some seconds until then (--at asks about another one):"
    for blocked in explanation.blocked:
        yield from _blocked_lines(instance, blocked)
    if explanation.free_start is not None and (explanation.start is None or explanation.free_start < explanation.start):
        yield f"free: it could start at {moment(instance, explanation.free_start)}, beside all other jobs"
    if explanation.start is None and explanation.free_start is None:
        yield "free: at no second could it start, beside all other jobs"
    if explanation.changes:
        yield "it could start earlier, beside all other jobs:" if explanation.start is not None else "it could start:"
    for change in explanation.changes:
        yield f"  at {moment(instance, change.start)} {printable(change.detail)}"


def chain_lines(instance: Instance, chain: Sequence[Link]) -> Iterator[str]:
    """Yield the chain of a job link by link; nothing where it is the job alone."""
    if len(chain) < 2:
        return
    yield "the chain behind its start:"
    for link in chain:
        verb = "runs since" if link.start < instance.now else "starts at"
        words = f"  {_who(link)} {verb} {moment(instance, link.start)}"
        if link.holder is not None and link.holder.end is not None:
            words += f", when job {printable(link.holder.job)} has ended at {moment(instance, link.holder.end)}"
        yield words + (f" ({link.cause}: {printable(link.detail)})" if link.cause is not None else "")


def _who(one: Link | Holder | JobChange) -> str:
    return f"job {printable(one.job)}" + ("" if one.user is None else f" of {printable(one.user)}")


def _plan_words(instance: Instance, explanation: Explanation) -> str:
    if explanation.start is None or explanation.end is None:
        if explanation.reason is None:
            return "not in the plan"
        return f"in the waiting room, {explanation.reason}: {printable(explanation.detail or '')}"
    verb = "runs" if explanation.state is JobState.RUNNING else "planned"
    span = f"{moment(instance, explanation.start)} to {moment(instance, explanation.end)}"
    return f"{verb} from {span} ({duration(explanation.end - explanation.start)})"


def _blocked_lines(instance: Instance, blocked: Blocked) -> Iterator[str]:
    cause = blocked.cause
    until = f" until {moment(instance, blocked.end)}" if blocked.end > blocked.start + 1 else ""
    where = f" on {_node_words(cause.nodes)}" if cause.nodes else ""
    rule = f" ({cause.rule})" if cause.rule is not None else ""
    words = f"{cause.kind}: {printable(cause.detail)}{where}{printable(rule)}"
    yield f"  {moment(instance, blocked.start)}{until}: {words}"
    for holder in cause.holders[:MOST_HOLDERS]:
        yield f"    {_holder_words(instance, holder)}"
    if len(cause.holders) > MOST_HOLDERS:
        yield f"    and {len(cause.holders) - MOST_HOLDERS} more"


def _holder_words(instance: Instance, holder: Holder) -> str:
    """Return another job, and until when it is in the way."""
    who = _who(holder)
    if holder.start is None or holder.end is None:
        return f"{who} has no start"
    where = f" on {_node_words(holder.nodes)}" if holder.nodes else ""
    if holder.is_running:
        return f"{who} runs until {moment(instance, holder.end)}{where}"
    return f"{who} is planned from {moment(instance, holder.start)} to {moment(instance, holder.end)}{where}"


def _node_words(nodes: Sequence[str]) -> str:
    return printable(fold_hostlist(list(nodes)))


def comparison_lines(instance: Instance, comparison: Comparison, name: str) -> Iterator[str]:
    """Yield which jobs gain and which pay.

    `instance`: the one before the change. `comparison`: the two plans. `name`: of the objective.
    """
    moved, reasons = comparison.moved, {waiting.id: waiting for waiting in comparison.plan.waiting_room}
    for title, jobs in (
        ("later", [job for job in moved if (job.seconds or 0) > 0]),
        ("earlier", [job for job in reversed(moved) if (job.seconds or 0) < 0]),
        ("no start any more", [job for job in moved if job.after is None and not job.is_gone]),
        ("a start at last", [job for job in moved if job.before is None and not job.is_new and job.after is not None]),
        ("new", [job for job in comparison.jobs if job.is_new]),
        ("gone", [job for job in comparison.jobs if job.is_gone]),
    ):
        if jobs:
            yield f"{title}:"
        for job in jobs[:MOST_MOVED]:
            waits = reasons.get(job.job)
            reason = "" if waits is None else f" ({waits.reason}: {printable(waits.detail)})"
            yield f"  {_moved_words(instance, job)}{reason}"
        if len(jobs) > MOST_MOVED:
            yield f"  and {len(jobs) - MOST_MOVED} more"
    for sign, word in ((1, "later"), (-1, "earlier")):
        count, seconds = comparison.seconds(sign)
        yield f"{count} of {len(comparison.jobs)} jobs start {word}, by {duration(seconds)} in all"
    before, after = (value_text(value) for value in (comparison.value_before, comparison.value_after))
    yield f"{name} of the jobs in both plans: {before} before, {after} after"


def _moved_words(instance: Instance, job: JobChange) -> str:
    who = _who(job)
    before, after = (None if start is None else moment(instance, start) for start in (job.before, job.after))
    if job.is_gone:
        return f"{who}: {'had no start' if before is None else f'was planned for {before}'}"
    if job.is_new:
        return f"{who}: {'has no start' if after is None else f'would start at {after}'}"
    shift = "" if job.seconds is None else f", {duration(abs(job.seconds))} {'later' if job.seconds > 0 else 'earlier'}"
    return f"{who}: {before or 'no start'} -> {after or 'no start'}{shift}"


def submission_lines(instance: Instance, submission: Submission) -> Iterator[str]:
    """Yield when and where a new job would start."""
    planned = submission.planned
    if planned is None:
        yield f"would have no start: {printable(submission.detail)}"
        return
    wait = planned.start - instance.now
    when = "at once" if wait == 0 else f"in {duration(wait)}"
    yield f"would start {when}, at {moment(instance, planned.start)}, and end by {moment(instance, planned.end)}"
    for segment in planned.segments:
        yield f"  on {_node_words(list(dict.fromkeys(placement.node for placement in segment.allocation)))}"
