"""The chain of jobs behind a start: each starts when the next one ends, down to one that nothing kept from starting."""

from dataclasses import dataclass

from cpsched.answers.explanation import CauseKind, Holder
from cpsched.answers.inquiry import Inquiry
from cpsched.answers.world import PlanView

#: The most links of a chain.
MOST_LINKS = 12
#: The most jobs that end at a second and are tried one by one.
_MOST_TRIED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A job of a chain, and what kept it from starting one second earlier."""

    job: str
    user: str | None
    start: int
    #: None: it runs, or could start no earlier than `now`.
    cause: CauseKind | None = None
    detail: str = ""
    #: The job for which it waited, with which the chain goes on; None: the chain ends here.
    holder: Holder | None = None


def chain_of(world: PlanView, job_id: str) -> tuple[Link, ...]:
    """Return the chain of a job of the plan, the job itself first; empty, if it has no start.

    The next link is a job that ends when this one starts, and without which it could start a second earlier; where it
    waits for jobs by its dependencies, the one that ends last. A job is named once.
    """
    links: list[Link] = []
    known: set[str] = set()
    name: str | None = job_id
    while name is not None and name in world.planned and name not in known and len(links) < MOST_LINKS:
        known.add(name)
        links.append(_link(world, name))
        holder = links[-1].holder
        name = None if holder is None else holder.job
    return tuple(links)


def _link(world: PlanView, name: str) -> Link:
    """Return what kept a planned job from starting one second earlier."""
    entry, start = world.entries[name], world.planned[name].start
    if entry.running is not None or start <= world.instance.now:
        return Link(job=name, user=entry.user, start=start)
    with world.without(name):
        inquiry = Inquiry(world, entry)
        cause = inquiry.at(start - 1, start).cause
        last = max(cause.holders, key=lambda one: (one.end or one.start or 0, one.job), default=None)
        if last is not None and cause.kind is not CauseKind.DEPENDENCY:
            ended = _ended(world, inquiry, start)
            last = None if ended is None else inquiry.holder(ended)
    return Link(job=name, user=entry.user, start=start, cause=cause.kind, detail=cause.detail, holder=last)


def _ended(world: PlanView, inquiry: Inquiry, start: int) -> str | None:
    """Return the widest job that ends at a second and without which the job could start one second earlier; where none
    suffices by itself, the widest of all that end then, if all together do.
    """
    second, occupation = start - 1 - world.instance.now, world.occupation
    if inquiry.question is None:
        return None
    ended = sorted(
        (job for job in world.planned.values() if job.end == start and job.id in occupation.place_of),
        key=lambda job: (-len(job.nodes), job.id),
    )
    tried = [[job] for job in ended[:_MOST_TRIED]]
    for jobs in (*tried, ended):
        with occupation.without([occupation.place_of[job.id] for job in jobs]):
            if inquiry.question.find(occupation, second, second) is not None:
                return jobs[0].id
    return None
