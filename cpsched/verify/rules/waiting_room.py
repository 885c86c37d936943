"""The plan's claims about jobs without a start must be true, as far as that is judged without a search.

Whether a job has a place beside all that is planned is asked of nobody here: to find places is the engines' work. A
claim is refused only where it is certainly false. Nodes on which a job fits if it is alone prove that it can be had; a
kind of chunks that does not fit alone proves that it cannot; mapping many kinds is hard, so that the answer may also be
"cannot tell".
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from cpsched.verify.case import Case, Violation, named
from cpsched.verify.layouts import EmptyCluster, lay, lay_in_groups
from cpsched.verify.model import Job, Waiting
from cpsched.verify.rules.limits import is_let_in, is_limited, is_ruled_out
from cpsched.verify.rules.timing import released_at


def check_waiting_room(case: Case) -> Iterator[Violation]:
    """Check that what the waiting room says of a job is true, as far as that can be checked."""
    room = WaitingRoom(case)
    for entry in case.plan.waiting:
        if not entry.job.running and (denial := room.denial(entry)) is not None:
            yield Violation("waiting_room", entry.id, f"it is said to be {entry.reason}, but {denial}")


class WaitingRoom:
    """The evidence against claims about jobs of the waiting room; mutable only in its cache."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._answers: dict[tuple[int, bool], str | bool | None] = {}
        #: The job of each entry in each of its choices.
        self._choices: dict[str, list[Job]] = {}

    def denial(self, entry: Waiting) -> str | None:
        """Return why the claim of an entry is false, or None if that is not found out."""
        if entry.reason == "not_mapped":  # that no mapping was found is believed
            return None
        claim: Callable[[Job], str | None] = getattr(self, f"_{entry.reason}")
        choices = self._choices.setdefault(
            entry.job.entry, [entry.job.chosen(number) for number in range(len(entry.job.alternatives) + 1)]
        )
        denials = [claim(job) for job in choices]
        return denials[0] if all(denials) else self._by_a_choice(entry.reason, choices)

    def _by_a_choice(self, reason: str, choices: Sequence[Job]) -> str | None:
        """Return by which choice a job could run on empty nodes, although the plan says that none can."""
        if reason not in ("walltime", "unsatisfiable", "unavailable"):
            return None
        for number, job in enumerate(choices):
            if self.case.instance.is_beyond_queue(job) or self._is_beyond_nodes(job):
                continue
            if nodes := self._fits(job, only_up=reason != "unsatisfiable"):
                return f"by its {f'alternative {number}' if number else 'own request'} it could run on {nodes}"
        return None

    def _fits(self, job: Job, *, only_up: bool) -> str | bool | None:
        """Name nodes on which a job would fit if it were alone; False proves that there are none, None is no answer."""
        key = (id(job), only_up)
        if key not in self._answers:
            self._answers[key] = self._decide(job, only_up)
        return self._answers[key]

    def _decide(self, job: Job, only_up: bool) -> str | bool | None:
        instance = self.case.instance
        if any(amount > instance.licenses.get(name, 0) for name, amount in job.licenses.items()):
            return False
        empty = EmptyCluster([one for one in instance.classes if not only_up or one[0].state == "up"], job.queue)
        request = job.steps[0].request
        groups = instance.groups(request.within)
        if request.segment is not None or request.spread is not None:
            layout = lay_in_groups(request, job.walltime, [empty.rooms(request, 0, 1, among) for among in groups])
            return False if layout is None else named(layout)
        found = [_laid(job, empty, among) for among in groups]
        return next((nodes for nodes in found if nodes), None if None in found else False)

    def _is_beyond_nodes(self, job: Job) -> bool:
        """Return whether more than nodes decides on a job: a reservation, a licence that others may have consumed, or a
        rule that may always keep it out.
        """
        if not self.case.instance.consumed.isdisjoint(job.licenses):
            return True
        return job.reservation is not None or is_ruled_out(self.case.instance, job)

    def _walltime(self, job: Job) -> str | None:
        """``walltime``: it is beyond its queue's ``max_walltime``."""
        if self.case.instance.is_beyond_queue(job):
            return None
        return f"its walltime of {job.walltime} s is within what its queue accepts"

    def _unsatisfiable(self, job: Job) -> str | None:
        """``unsatisfiable``: even an empty, healthy cluster could not run it."""
        nodes = None if self._is_beyond_nodes(job) else self._fits(job, only_up=False)
        return f"on an empty, healthy cluster it could run on {nodes}" if nodes else None

    def _unavailable(self, job: Job) -> str | None:
        """``unavailable``: it would fit if all nodes were up, but not on those that are."""
        if self._is_beyond_nodes(job):
            return None
        if nodes := self._fits(job, only_up=True):
            return f"without other jobs it could run on {nodes}, which are up"
        if self._fits(job, only_up=False) is False:
            return "it would not fit if all nodes were up either"
        return None

    def _too_late(self, job: Job) -> str | None:
        """``too_late``: its times, another job by ``max_delay``, or the end of its reservation leave no start."""
        is_bounded = job.start_at is not None or job.deadline is not None or job.reservation is not None
        is_bounded = is_bounded or any(one.max_delay is not None for one in job.after)
        if is_bounded or self.case.instance.must_start_by(job) is not None:
            return None
        return "it has neither start_at nor deadline nor max_delay nor a hard max_wait to keep"

    def _dependency(self, job: Job) -> str | None:
        """``dependency``: one of those that it waits for has no start in this plan."""
        if not job.after:
            return "it waits for no other job"
        return None if released_at(self.case, job) is None else "all that it waits for have a start"

    def _limit(self, job: Job) -> str | None:
        """``limit``: a limit of its user or group leaves it no start."""
        return None if is_limited(self.case.instance, job) else "no limit is about its user or group"

    def _free_pool(self, job: Job) -> str | None:
        """``free_pool``: a free pool that does not let it in leaves it no start."""
        return "all free pools let it in" if all(is_let_in(pool, job) for pool in self.case.instance.pools) else None

    def _reservation(self, _: Job) -> str | None:
        """``reservation``: its reservation has nothing for it, or reservations leave it no start."""
        return None if self.case.instance.reservations else "there are no reservations"

    def _not_started(self, _: Job) -> str | None:
        """``not_started``: the job had not been started when a record ends."""
        return None if self.case.plan.is_record else "this plan is no record"


def _laid(job: Job, empty: EmptyCluster, among: Collection[str] | None) -> str | bool | None:
    """Name nodes `among` some on which a job would fit; see `WaitingRoom._fits`."""
    for step in job.steps:
        for chunk in step.request.chunks:
            alone = replace(step.request, chunks=(chunk,))
            if lay(alone, job.walltime, empty.rooms(alone, 0, 1, among)) is None:
                return False
    layouts = empty.layouts(job, among)
    return None if layouts is None else named(node for layout in layouts for node in layout)
