"""The naive twin of the compiled event loop: what a queue rule does to a workload, second by second of its events.

Written from the contract of queue rules, with one dict for each node, and everything worked out anew at every event.
Who may stand on which node, and in which order nodes and kinds are taken, is asked of the literal planner.

The contract. At each second at which something happens those end who do so, estimates are corrected that were exceeded,
jobs leave that are too late, nodes return and break, other amounts are set aside, booked jobs start, jobs arrive; then
there is one pass through the queue. Who starts lets those go that wait for a
start: if they may come at once, that is another event of the same second. A reservation is made when somebody stands
behind a head that has to wait; it stands as long as that job is the first one looked at and no earlier end lets it in,
and falls when an estimate is corrected or a node breaks or returns, since it rests on those. Whenever somebody is to
start beside it, its job is put first on what is not free yet; the queue is looked through until nobody starts.

A job starts only on what is not set aside in any second of its walltime, for rules or for jobs with one start, which
are given nodes when they come. The head's reservation falls at each second at which that may change.

A rule with several reservations makes all anew whenever anything happens: in the order of the queue a job starts if it
fits beside those before it, or gets one itself, if that begins before the last of all that wait would end if it started
at once.

A job with alternatives has its place in the queue by the first of its choices that could start on the empty machine.
Whenever it may start, it does so by the first of its choices that fits, and its reservation is for that of the open
ones which starts first. One that costs more than that by which it waits is open once it has waited so many seconds.

By Smith's index jobs are due that have waited for so many times the longest wait so far under EASY, or the time that
the machine needs for the rest of the queue, whichever is longer; a job of the whole machine for half as many times.
EASY has the same jobs and real runtimes, on a machine without nodes that has as much as all of them; what depends on
runtimes that are not known has not happened there yet. They come before all without promises, in the order in which
they became eligible. The index of others falls to 1 until then, by the square of the wait.

Once a day the waits are compared with those under EASY, when so many jobs have started there. While more than a
twentieth of these is lost since some job, all are due, and of those that have no promise only the first has a
reservation. If a tenth is gained in all, that is a job from the first on that has not ended. If not, half the loss is
enough, and so it is that EASY waits for the end of a job that it has started two days ago and that still waits. A few
jobs are enough where nodes interchange and anything is lost in all.

Jobs that may stop others come before the pass, those of the highest level first, each level in the order of the queue
up to the first that can not start. A job takes what is free, else the place of running jobs: of those that may be
stopped the cheapest until it fits, without those that are not needed, the dearest first; the prices are seconds of lost
work times weight, or times cores too, whichever choice loses less in the end. With notice they are told, and nothing
starts until it is over; the choice is made anew then, those that were told first.

Who is suspended keeps all but the cores. Those are left to it as they become free, except for jobs that may stop it,
which take them if they find no others; it continues when it has all, after urgent jobs and before the pass. The highest
level comes first, then who was suspended first; nobody takes what one before it waits for. Nobody knows when that is:
until then the cores are expected to be free for none. A failure of one of its nodes takes all that it has done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, exp, frexp, inf, log, log2, log10, sqrt
from typing import NamedTuple

from cpsched.domain import FOR_EVER, Arrangement, DependencyType, Instance, Job, SetAside, StopKind
from cpsched.lab.sim import BackfillRule, Expectation, Order, Prediction, QueueRule
from cpsched.metrics import Ending
from cpsched.problem import refusal
from tests.oracle.literal_planner import Mapped, Node, awaited, mapping_orders, node_weight

__all__ = ["Run", "Story", "play_naively"]

#: What a node counts besides its resources: less than 0 while a job is on it, or has it exclusively.
_IDLE, _OPEN = "is idle", "is open"
#: By how many minutes an estimate is raised that is exceeded, one after the other (Tsafrir et al. 2007, section 4).
_RAISES = (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000)

#: What is free of each counter, or what a job takes of it, by node; the licences stand under the name None.
_Amounts = dict[str | None, dict[object, int]]


class Run(NamedTuple):
    """What became of a start: where the chunks stand is None of those who ran at the beginning."""

    start: int
    end: int
    mapped: Mapped | None


class Story(NamedTuple):
    """What happened: how each job ended, the runs that came to an end, those that were cut short, the seconds of work
    that jobs have lost by that; and the first and the last second, and the seconds in all, that jobs started as under
    EASY.
    """

    endings: dict[str, Ending]
    runs: dict[str, Run]
    attempts: list[tuple[str, Run]]
    lost: dict[str, int]
    as_easy: tuple[int, int, int] | None


@dataclass
class _Life:
    """What is known of a job; mutable."""

    job: Job
    #: Its place in the order of submission.
    rank: int
    ending: Ending
    #: How long it is believed to run (s), and how often that was raised.
    estimate: int
    #: How long it is predicted to run (s), for the order.
    predicted: int
    raises: int = 0
    #: From when on a licence that it asks for is set aside for ever.
    closed: float = inf
    #: From when on it waits in the queue; None while it waits for others.
    release: int | None = None
    has_come: bool = False
    key: float = 0.0
    #: When it was started first, and last if it runs; when it is believed to end then, and when it will.
    first_start: int | None = None
    start: int | None = None
    believed: int = 0
    end: int = 0
    mapped: Mapped | None = None
    takes: _Amounts = field(default_factory=dict)
    #: What it can run by; `job` is one of these, and the first one while it waits.
    choices: tuple[Job, ...] = ()
    #: Since when it knows that it will be stopped, how often it was, and the seconds of work that it has lost.
    told: int | None = None
    stops: int = 0
    lost: int = 0
    #: Which suspension it was, if it is suspended; the work of the runs before that, which a failure would take.
    asleep: int | None = None
    saved: int = 0

    def take(self, choice: Job) -> None:
        """Run by a choice from now on, or wait."""
        if len(self.choices) > 1:
            self.job, self.estimate = choice, choice.walltime

    def opens(self, choice: Job) -> int:
        """Return the second from which on it may run by a choice."""
        return self.job.submit + max(0, choice.steps[0].cost - self.choices[0].steps[0].cost)

    @property
    def latest(self) -> float:
        """The last second at which it may start."""
        if self.job.start_at is not None:
            return self.job.start_at
        end = self.closed if self.job.deadline is None else min(self.closed, self.job.deadline)
        return end - self.job.walltime

    @property
    def eligible(self) -> int:
        """Since when nothing but room is missing for a start; who ran at the beginning waited for nobody."""
        return self.job.submit if self.release is None else self.release


def play_naively(
    instance: Instance, rule: QueueRule, *, predicts: Prediction | None, trusted: int = 5000, few: int = 5000
) -> Story:
    """Return the history until nothing happens any more; `trusted`: so many jobs of EASY say how it does, a `few` how
    it does in all.
    """
    return _Play(instance, rule, predicts, trusted, few).story()


class _Play:
    """A workload while it is played; mutable."""

    def __init__(
        self, instance: Instance, rule: QueueRule, predicts: Prediction | None, trusted: int, few: int
    ) -> None:
        self.instance, self.rule, self.predicts, self.trusted, self.few = instance, rule, predicts, trusted, few
        cluster = instance.cluster
        self.nodes = {
            name: Node.empty(name, index, cluster.class_of[name]) for index, name in enumerate(cluster.node_names)
        }
        self.by_weight = sorted(self.nodes, key=lambda name: node_weight(cluster, cluster.class_of[name]))
        self.free: _Amounts = {name: self._capacity(name) for name in self.nodes}
        self.free[None] = dict[object, int](cluster.licenses.items())
        self.empty = _copied(self.free)
        #: In how many outages a node is.
        self.outages = dict.fromkeys(self.nodes, 0)
        self.lives = []
        for rank, job in enumerate(sorted(instance.elements(), key=lambda job: job.submit)):
            choices = tuple(one for one in job.choices if len(job.choices) == 1 or self._is_possible(one))
            own = (*choices, job.choices[0])[0]
            life = _Life(own, rank, self._ending_before(own), own.walltime, own.walltime, choices=choices or (own,))
            self.lives.append(life)
        for life in self.lives:
            for aside in instance.set_aside:
                for name, amount in aside.licenses.items() if aside.end >= instance.now + FOR_EVER else ():
                    if life.job.licenses.get(name, 0) > cluster.licenses[name] - amount:
                        life.closed = min(life.closed, aside.start)
        self.by_id = {life.job.id: life for life in self.lives}
        self.awaited = {life.job.id: awaited(instance, life.job) for life in self.lives}
        #: How long the jobs of each user ran.
        self.history: dict[str | None, list[int]] = {}
        #: Of each class of jobs the decayed sum of the shares of walltime that they took, and of their number.
        self.learnt: dict[tuple[object, ...], tuple[float, float]] = {}
        #: The reservations of a rule with several: (job, from, to, amounts); the first job without a promise that is
        #: blocked.
        self.blocked: list[tuple[_Life, int, int, _Amounts]] = []
        self.head: _Life | None = None
        #: Under EASY: who has not come yet, who waits, the starts of those that run; up to which second all that is
        #: known, and the longest wait so far (s); the limit of waits by that (ms).
        self.turns: list[_Life] = []
        self.replay_queue: list[_Life] = []
        self.replay_starts: dict[str, int] = {}
        self.replayed, self.longest, self.work = -inf, 0, 0
        self.come: list[_Life] = []
        self.replay_waits: dict[str, int] = {}
        self.as_easy, self.next_day = False, -inf
        #: The first jobs that have ended here and under EASY, and what was lost with them.
        self.done = (0, 0.0)
        #: The seconds from which on jobs start as under EASY, or by the rule again.
        self.looks: list[tuple[int, bool]] = []
        self.attempts: list[tuple[str, Run]] = []
        #: What is withheld of free cores for those that are suspended.
        self.withheld: _Amounts = {}
        #: For whom there is a reservation, when, and by which choice.
        self.reservation: tuple[_Life, int, Job] | None = None
        #: What happens to nodes, and has not yet: (time, 0 for a return and 1 for a break, nodes).
        self.changes = sorted(
            change
            for outage in instance.outages
            for change in ((outage.start, 1, outage.nodes), (outage.end, 0, outage.nodes))
        )

        #: What rules set aside, and what is set aside for jobs with one start: (from, to, amounts).
        self.asides = [(aside.start, aside.end, self._amounts_of(aside)) for aside in instance.set_aside]
        self.booked: dict[str, tuple[int, int, _Amounts]] = {}
        #: When that changes, or may do so.
        edges = {edge for start, end, _ in self.asides if end > instance.now for edge in (start, end)}
        edges = {edge for edge in edges if edge < instance.now + FOR_EVER}
        for life in self.lives:
            if life.job.start_at is not None and life.job.running is None and life.ending != Ending.REFUSED:
                edges |= {life.job.start_at, life.job.start_at + life.job.walltime}
        self.edges = sorted(edge for edge in edges if edge > instance.now)
        self.now = instance.now
        #: Whether one has arrived for whom the whole queue is looked through.
        self.is_new = False
        #: Until when jobs have notice; when a job may be stopped that has not run for long enough yet.
        self.notice: int | None = None
        self.woken: int | None = None
        self.stated = {life.job.id: life.job for life in self.lives}
        self.levels = {name: self.level(job) for name, job in self.stated.items()}
        if predicts is None and rule.expect is not Expectation.WALLTIME:
            self.predicts = Prediction.ORDER

    def _amounts_of(self, aside: SetAside) -> _Amounts:
        """Return what is set aside of each counter, by node."""
        found: _Amounts = {None: dict[object, int](aside.licenses.items())}
        for held in aside.allocation:
            here = found.setdefault(held.node, {})
            for counter, amount in self.nodes[held.node].demands(held.resources).items():
                here[counter] = here.get(counter, 0) + amount
        return found

    def _ending_before(self, job: Job) -> Ending:
        """Return how a job ends that never starts."""
        return Ending.REFUSED if job.running is None and self._is_refused(job) else Ending.WAITING

    def _is_possible(self, job: Job) -> bool:
        """Return whether a choice could start on the empty machine."""
        is_near = job.request.place.within is not None
        return refusal(self.instance, job) is None and not (is_near and self.mapped(job, self.empty) is None)

    def _is_refused(self, job: Job) -> bool:
        """Return whether a job can never start, even on the empty machine."""
        return refusal(self.instance, job) is not None or self.mapped(job, self.empty) is None

    def _capacity(self, name: str) -> dict[object, int]:
        """Return what an empty node has of each counter."""
        return {**{counter: vector.max_avl for counter, vector in self.nodes[name].used.items()}, _IDLE: 0, _OPEN: 0}

    def story(self) -> Story:
        """Run the simulation."""
        self.begin()
        now: int | None = self.instance.now
        while now is not None:
            self.now = now
            happens = [
                self.end(now),
                self.correct(now),
                self.give_up(now),
                self.change_nodes(now),
                self.change_asides(now),
                self.begin_booked(now),
                self.arrive(now),
                any(now == life.opens(one) > life.job.submit for life in self.waiting() for one in life.choices),
            ]
            if self.rule.due_after is not None:
                self.replay_easy(now)
                self.compare_waits(now)
            happens.append(self.serve_urgent(now))
            if self.notice is None and any(happens):
                if self.rule.backfill is BackfillRule.RESERVING:
                    self.serve_reserving(now)
                else:
                    self.serve(now)
            now = self.next_second(now)
        return Story(
            {life.job.id: life.ending for life in self.lives},
            {
                life.job.id: Run(life.start, life.end, life.mapped)
                for life in self.lives
                if life.start is not None and life.ending in (Ending.COMPLETED, Ending.KILLED)
            },
            sorted(self.attempts),
            {life.job.id: life.lost for life in self.lives},
            self.spells(),
        )

    # ---- events ----

    def running(self) -> list[_Life]:
        """Return who runs."""
        return [life for life in self.lives if life.start is not None and life.ending == Ending.WAITING]

    def waiting(self) -> list[_Life]:
        """Return the queue, in the order of submission."""
        return [
            life
            for life in self.lives
            if life.has_come and life.start is None and life.ending == Ending.WAITING and life.job.id not in self.booked
            if life.asleep is None
        ]

    def sleeping(self) -> list[_Life]:
        """Return who is suspended, in the order in which they continue."""
        found = [(-self.levels[life.job.id], life.asleep, life) for life in self.lives if life.asleep is not None]
        return [life for _, _, life in sorted(found, key=lambda one: one[:2])]

    def to_come(self) -> list[_Life]:
        """Return who will come at a second that is known."""
        return [life for life in self.lives if life.release is not None and not life.has_come]

    def begin(self) -> None:
        """Start the jobs that run at the beginning, and find the jobs without dependencies."""
        now = self.instance.now
        for life in self.lives:
            if life.job.running is not None:
                life.has_come, life.start, life.first_start = True, life.job.running.start, life.job.running.start
                life.key = self.key(life, now)
                held: dict[str, dict[str, int]] = {}
                for placement in next(s for s in life.job.running.segments if s.end > now).allocation:
                    here = held.setdefault(placement.node, {})
                    for name, amount in placement.resources.items():
                        here[name] = here.get(name, 0) + amount
                takes = {name: self.nodes[name].demands(amounts) for name, amounts in held.items()}
                self.book(life, [(name, dict[object, int](amounts.items())) for name, amounts in takes.items()], now)
        for life in self.lives:
            self.let_go(life)

    def next_second(self, now: int) -> int | None:
        """Return the time of the next event; failures of nodes do not count if no job is left."""
        times = [max(now, life.release) for life in self.to_come() if life.release is not None]
        for life in self.running():
            times += [life.end, life.believed]
        times += [int(life.latest) + 1 for life in self.waiting() if life.latest < inf]
        times += [at for life in self.waiting() for one in life.choices if (at := life.opens(one)) > now]
        times += [start for start, _, _ in self.booked.values()]
        times += [time for time in (self.notice, self.woken) if time is not None]
        is_alive = times or self.waiting()
        if is_alive and self.changes:
            times.append(self.changes[0][0])
        if is_alive and self.edges:
            times.append(self.edges[0])
        return min(times, default=None)

    def end(self, now: int) -> bool:
        """End the jobs that end now."""
        ended = [life for life in self.running() if life.end == now]
        for life in ended:
            real = self.slowed(life)
            is_killed = real is not None and real > life.job.walltime
            if is_killed and self.resumes(life):
                self.cut(life, self.told_before(), now)
                continue
            self.change(self.free, life.takes, 1)
            life.ending = Ending.KILLED if is_killed else Ending.COMPLETED
            assert life.start is not None
            self.history.setdefault(life.job.user, []).append(now - life.start)
            self.learn(life.choices[0], (now - life.start) / life.job.walltime)
        for life in self.lives if ended else ():
            self.let_go(life)
        return bool(ended)

    def correct(self, now: int) -> bool:
        """Believe that those run on for a while who were believed to end now."""
        exceeded = [life for life in self.running() if life.believed == now]
        for life in exceeded:
            assert life.start is not None
            raised = life.estimate + 60 * _RAISES[min(life.raises, len(_RAISES) - 1)]
            life.estimate = life.predicted = min(raised, life.job.walltime)
            life.raises += 1
            life.believed = max(life.start + life.estimate, now + 1)
            self.reservation = None
        return bool(exceeded)

    def give_up(self, now: int) -> bool:
        """Drop those from the queue who can no longer be in time."""
        late = [life for life in self.waiting() if life.latest < now]
        for life in late:
            life.ending = Ending.REFUSED
        return bool(late)

    def change_asides(self, now: int) -> bool:
        """Process the seconds at which other amounts are set aside."""
        happens = bool(self.edges) and self.edges[0] <= now
        while self.edges and self.edges[0] <= now:
            del self.edges[0]
            self.reservation = None
        return happens

    def begin_booked(self, now: int) -> bool:
        """Start those whose booked time begins: on their nodes, or on others if one of those is out."""
        due = [name for name, (start, _, _) in self.booked.items() if start == now]
        for life in [life for life in self.lives if life.job.id in due]:
            _, _, takes = self.booked.pop(life.job.id)
            self.reservation = None
            mapped, life.mapped = life.mapped, None
            assert mapped is not None
            room = self.room_until(self.free, life.job.walltime)
            has_all = all(
                name in room and (name is None or room[name][_OPEN] == 0) and room[name].get(counter, 0) >= amount
                for name, amounts in takes.items()
                for counter, amount in amounts.items()
                if counter not in (_IDLE, _OPEN)
            ) and all(
                name in room and room[name][_IDLE] == 0
                for name in takes
                if name is not None and life.job.request.place.exclusive
            )
            if has_all:
                self.start_on(life, mapped, now)
            elif not self.start_if_mapped(life, room, now):
                life.ending = Ending.REFUSED
        return bool(due)

    def book_ahead(self, life: _Life, now: int) -> None:
        """Find nodes for a job with one start, from then on for its walltime; refuse it if there are none."""
        self.reservation = None
        start = life.job.start_at
        assert start is not None
        if start == now:
            if not self.start_if_mapped(life, self.room_until(self.free, life.job.walltime), now):
                life.ending = Ending.REFUSED
            return
        mapped = self.mapped(life.job, self.room_from(start, life.job.walltime))
        if mapped is None:
            life.ending = Ending.REFUSED
            return
        life.mapped = mapped
        takes = self.taken(life.job, self.demands(life.job, mapped))
        self.booked[life.job.id] = start, start + life.job.walltime, takes

    def change_nodes(self, now: int) -> bool:
        """Process returns and failures of nodes."""
        happens = False
        while self.changes and self.changes[0][0] <= now:
            happens = True
            _, is_break, names = self.changes.pop(0)
            for name in names:
                self.outages[name] += 1 if is_break else -1
                if is_break and self.outages[name] == 1:
                    self.break_node(name, now)
                elif not is_break and self.outages[name] == 0:
                    self.free[name] = self._capacity(name)
            self.reservation = None
        return happens

    def break_node(self, name: str, now: int) -> None:
        """Cut those short who are on a node, and put it out of use."""
        for life in self.running():
            if name in life.takes:
                self.cut(life, -1, now)
        for life in self.sleeping():
            if name in life.takes:
                self.change(self.free, self.part(life, is_lent=False), 1)
                life.asleep = None
                self.let_wait(life, 0, -1, now)
        self.withhold(None)
        assert self.free.pop(name) == self._capacity(name)

    # ---- stops ----

    def told_before(self) -> int:
        """Return how long before a stop a job is told."""
        return -1 if self.instance.preemption is None else self.instance.preemption.notice

    @staticmethod
    def kept(life: _Life, seconds: int, told: int) -> int:
        """Return how much of a run of some seconds is left for the next one, if it was told so long before its end."""
        way = life.job.preemptible
        if way is None or way.interval is None:
            return seconds if way is not None and way.by is StopKind.SUSPEND and told >= 0 else 0
        written = [*range(0, seconds + 1, way.interval), *([seconds - way.cost] if told >= way.cost else [])]
        return max(0, max(written) - way.cost)

    def resumes(self, life: _Life) -> bool:
        """Return whether a job whose walltime is over comes again; one that ran at the beginning does not."""
        given = self.instance.preemption
        way = life.job.preemptible
        may_come = given is not None and given.resume and life.mapped is not None and way is not None and way.interval
        if not may_come:
            return False
        return self.kept(life, life.job.walltime, self.told_before()) > 0

    def cut(self, life: _Life, told: int, now: int) -> None:
        """End the run of a job before its work is done, of which it was told so long before; it waits again."""
        assert life.start is not None
        self.change(self.free, life.takes, 1)
        self.attempts.append((life.job.id, Run(life.start, now, life.mapped)))
        seconds, life.start = now - life.start, None
        self.let_wait(life, seconds, told, now)

    def let_wait(self, life: _Life, seconds: int, told: int, now: int) -> None:
        """Put a job into the queue that ran for so many seconds since it began or continued."""
        life.told, way = None, life.job.preemptible
        kept = self.kept(life, seconds, told)
        life.lost += seconds - kept
        if way is not None and way.by is StopKind.SUSPEND:
            life.saved += kept
            if told < 0:
                life.lost, life.saved, life.job = life.lost + life.saved, 0, self.stated[life.job.id]
                life.choices, life.estimate = (life.job,), life.job.walltime
        if way is not None and way.by is not StopKind.REQUEUE:
            own, job = self.stated[life.job.id], life.job
            left = own.walltime if seconds == job.walltime else job.walltime - kept
            runtime = None if job.runtime is None else max(1, job.runtime - kept)
            life.job = replace(job, steps=(replace(job.steps[0], walltime=left),), runtime=runtime)
            life.choices, life.estimate = (life.job,), left
        life.take(life.choices[0])
        if self._is_refused(life.job) or life.latest < now:
            life.ending = Ending.REFUSED

    def level(self, job: Job) -> int:
        """Return how far a job is above those that it may stop, 0 if there are none."""
        given = self.instance.preemption
        if given is None or not any(self.instance.may_stop(job, other) for other in self.stated.values()):
            return 0
        if not given.queues:
            return 10**9 + self.instance.priority(job)
        depth, names = -1, {job.queue or ""}
        while names:
            depth, names = depth + 1, {below for name in names for below in given.queues.get(name, ())}
        return depth

    def serve_urgent(self, now: int) -> bool:
        """Start jobs that may stop others, unless jobs have notice; return whether something has changed."""
        self.woken = None
        if self.notice is not None and now < self.notice:
            return False
        has_changed, self.notice = self.notice is not None, None
        self.withhold(None)
        for level in sorted({*self.levels.values()} - {0}, reverse=True):
            queue = [life for life in self.waiting() if self.levels[life.job.id] == level]
            for life in sorted(queue, key=lambda life: (life.key, life.rank)):
                has_started = self.start_by_stops(life, now)
                self.withhold(None)
                if not has_started:
                    break
                has_changed, self.reservation = True, None
            if self.notice is not None:
                return has_changed
        for life in self.running():
            life.told = None
        return self.let_continue(now) or has_changed

    @staticmethod
    def lends(life: _Life) -> bool:
        """Return whether a job is suspended when it is stopped."""
        return life.job.preemptible is not None and life.job.preemptible.by is StopKind.SUSPEND

    @staticmethod
    def part(life: _Life, *, is_lent: bool) -> _Amounts:
        """Return of what a job takes that which it lends when it is suspended, or that which it keeps."""
        return {
            name: {
                counter: amount
                for counter, amount in amounts.items()
                if is_lent == (name is not None and "cores" in (counter, getattr(counter, "resource", "")))
            }
            for name, amounts in life.takes.items()
        }

    def withhold(self, by: _Life | None) -> None:
        """Leave what is free of their cores to those that are suspended; not of those that a job may stop."""
        self.change(self.free, self.withheld, 1)
        self.withheld = {}
        for life in self.sleeping():
            if by is None or not self.instance.may_stop(by.job, life.job):
                for name, amounts in self.part(life, is_lent=True).items():
                    here = self.withheld.setdefault(name, {})
                    for counter, amount in amounts.items():
                        here[counter] = here.get(counter, 0) + amount
        for name, amounts in self.withheld.items():
            for counter, amount in amounts.items():
                amounts[counter] = min(amount, max(0, self.free[name][counter]))
        self.change(self.free, self.withheld, -1)

    def let_continue(self, now: int) -> bool:
        """Resume the jobs that have all their cores; return whether anybody was suspended."""
        asleep, left = self.sleeping(), _copied(self.withheld)
        for life in asleep:
            lent, kept = self.part(life, is_lent=True), self.part(life, is_lent=False)
            self.change(left, lent, -1)
            if all(left[name][counter] >= 0 for name, of in lent.items() for counter in of):
                life.asleep, life.start = None, now
                self.change(self.withheld, lent, -1)
                self.change(self.free, lent, 1)
                self.change(self.free, kept, 1)
                self.run(life, now)
        if asleep:
            self.reservation = None
        return bool(asleep)

    def start_by_stops(self, life: _Life, now: int) -> bool:
        """Start a job where it fits, or in the place of others; tell whether it has started."""
        if self.start_first(life, self.room_now, now):
            return True
        self.withhold(life)
        if self.start_first(life, self.room_now, now):
            return True
        chosen, notice = self.stops_for(life, now), self.told_before()
        untold = [other for other in chosen if notice and other.told is None]
        for other in untold:
            other.told, self.notice = now, now + notice
        if untold or not chosen:
            return False
        for other in chosen:
            other.stops += 1
            self.cut(other, notice, now)
            if self.lends(other):
                other.asleep = len(self.attempts)
                self.change(self.free, self.part(other, is_lent=False), -1)
        assert self.start_first(life, self.room_now, now)
        return True

    def stops_for(self, life: _Life, now: int) -> list[_Life]:
        """Return the jobs to stop for a job, none if all are not enough."""
        given, able = self.instance.preemption, list[_Life]()
        assert given is not None
        for other in self.running():
            assert other.start is not None
            may_stop = self.instance.may_stop(life.job, other.job) and not self._is_refused(other.job)
            may_stop = may_stop and now < other.start + other.job.walltime
            first = other.start + max(1, given.exempt)
            if may_stop and (given.stops is None or other.stops < given.stops):
                able += [other] if now >= first else []
                self.woken = first if first > now and (self.woken is None or first < self.woken) else self.woken
        tries = [self.needed(life, sorted(able, key=self.price(now, by)), now) for by in (False, True)]
        return min(tries, key=lambda chosen: sum(self.price(now, True)(other)[0] for other in chosen))

    def price(self, now: int, is_whole: bool) -> Callable[[_Life], tuple[float, int]]:
        """Return what it costs to stop a job now, in cores or not."""

        def price_of(life: _Life) -> tuple[float, int]:
            assert life.start is not None
            if life.told is not None:
                return -1.0, life.rank
            seconds = now - life.start
            lost = 1 + seconds - self.kept(life, seconds, self.told_before())
            cores = float(life.job.request.totals.get("cores", 0)) if is_whole else 1.0
            return lost * float(self.instance.own_weight(life.job)) * cores, life.rank

        return price_of

    def needed(self, life: _Life, able: list[_Life], now: int) -> list[_Life]:
        """Return the first jobs without which another one fits, without those that are not needed; none if all are not
        enough.
        """

        def fits(stopped: list[_Life]) -> bool:
            free = _copied(self.free)
            for other in stopped:
                self.change(free, self.part(other, is_lent=True) if self.lends(other) else other.takes, 1)
            return self.mapped(life.job, self.room_until(free, life.job.walltime)) is not None

        count = next((count for count in range(1, len(able) + 1) if fits(able[:count])), 0)
        chosen = able[:count]
        for other in reversed(chosen[:-1]):
            fewer = [one for one in chosen if one is not other]
            chosen = fewer if fits(fewer) else chosen
        return chosen

    def arrive(self, now: int) -> bool:
        """Process the arrivals of now."""
        arrived = [life for life in self.to_come() if life.release is not None and life.release <= now]
        for life in sorted(arrived, key=lambda life: (self.comes_by_itself(life), life.rank)):
            life.has_come = True
            if now > life.latest:
                life.ending = Ending.REFUSED
                continue
            if life.job.start_at is not None:
                self.book_ahead(life, now)
                continue
            self.turns.append(life)
            self.come.append(life)
            self.expect(life)
            life.key = self.key(life, now)
            if self.predicts is Prediction.ALL:
                life.estimate = life.predicted
        return bool(arrived)

    def expect(self, life: _Life) -> None:
        """Predict the runtime of a job, if the rule predicts any."""
        job = life.job
        if self.predicts and self.rule.expect is Expectation.CLASSES:
            life.predicted = self.expected_by_classes(job)
        elif self.predicts and job.user is not None and self.history.get(job.user):
            lengths = self.history[job.user][-2:]
            mean = -(-sum(lengths) // len(lengths))  # rounded up
            life.predicted = max(1, min(mean, job.walltime))

    def classes(self, job: Job) -> list[tuple[object, ...]]:
        """Return the classes of a job, the widest first."""
        cores = job.request.totals.get("cores", 0)
        parts = (job.queue, frexp(job.walltime)[1], job.user, job.walltime, cores)
        return [(), *(parts[:number] for number in (2, 3, 4, 5))]

    def learn(self, job: Job, part: float) -> None:
        """Note which part of its walltime a job took."""
        for known, decay in zip(self.classes(job), (0.995, 0.995, 0.9, 0.9, 0.9), strict=True):
            total, number = self.learnt.get(known, (0.0, 0.0))
            self.learnt[known] = total * decay + min(1.0, part), number * decay + 1.0

    def comes_by_itself(self, life: _Life) -> bool:
        """Return whether a job comes when it is submitted, and no sooner or later for any other reason."""
        is_later = life.job.not_before is not None and life.job.not_before > max(life.job.submit, self.instance.now)
        return not self.awaited[life.job.id] and not is_later

    def let_go(self, life: _Life) -> None:
        """Find out from when on a job waits in the queue, if all for whom it waits have let it go."""
        job = life.job
        if life.release is not None or job.running is not None or life.ending == Ending.REFUSED:
            return
        release = max(job.submit, job.submit if job.not_before is None else job.not_before)
        for dependency, other_job in self.awaited[job.id]:
            other = self.by_id[other_job.id]
            if dependency.type is DependencyType.AFTER:
                if other.first_start is None:
                    return
                release = max(release, other.first_start + dependency.delay)
                continue
            wanted = {
                DependencyType.AFTEROK: {Ending.COMPLETED},
                DependencyType.AFTERNOTOK: {Ending.KILLED},
                DependencyType.AFTERANY: {Ending.COMPLETED, Ending.KILLED},
            }[dependency.type]
            if other.ending not in wanted:
                return
            release = max(release, other.end + dependency.delay)
        life.release = release

    # ---- the pass through the queue ----

    def key(self, life: _Life, now: int) -> float:
        """Return by what a job stands in the queue, the least first."""
        if self.rule.order is Order.SMITH or self.rule.due_after is not None:
            promised = min(life.latest, inf if (due := self.instance.must_start_by(life.job)) is None else due)
            if promised < inf:
                return promised - 4e15
        return self.aged(self.index(life, now), life, now)

    def index(self, life: _Life, now: int) -> float:
        """Return the same where nobody is due, or has a promise."""
        length, cores = max(life.predicted, 1), life.job.request.totals.get("cores", 0)
        wait = now - life.job.submit
        match self.rule.order:
            case Order.SUBMISSION:
                return life.job.submit
            case Order.WALLTIME:
                return length
            case Order.AREA:
                return length * cores
            case Order.F1:
                return log10(length) * cores + 870 * log10(max(life.job.submit, 1))
            case Order.WSPT:
                return length * self.smith(life.job)
            case Order.SMITH:
                return sqrt(length * life.job.walltime) * self.smith(life.job)
            case Order.WFP3:
                return -((wait / length) ** 3) * cores
            case Order.UNICEF:
                return -wait / (max(log2(cores) if cores else 0.0, 1e-15) * length)

    def aged(self, key: float, life: _Life, now: int) -> float:
        """Return the index of a job that has waited."""
        if self.rule.due_after is None:
            return key
        others = max(0, self.work - self.work_of(life))
        times = self.rule.due_after * (1.0 - 0.5 * self.share(life.job))
        limit = int(times * max(others, 1000 * self.longest))
        part = 1000.0 * (now - life.eligible) / max(limit, 1)
        if part >= 1.0 or self.as_easy:
            return -2e15 + life.eligible
        return exp(log(key) * (1.0 - part * part)) if key > 1.0 else key

    def replay_easy(self, now: int) -> None:
        """Go on with what EASY would have done, up to the first second that hangs on an end that is not known."""
        while True:
            ends, unknown = dict[str, int](), list[int]()
            for name, start in self.replay_starts.items():
                life = self.by_id[name]
                own = life.choices[0]
                if life.ending != Ending.WAITING:
                    is_over = life.ending in (Ending.COMPLETED, Ending.KILLED)
                    ran = (
                        life.end - (life.start or 0)
                        if len(life.choices) == 1
                        else min(own.runtime or own.walltime, own.walltime)
                    )
                    ends[name] = start + (ran if is_over else 0)
                else:
                    unknown.append(start + (0 if life.start is None else now - life.start))
            at = max(min([now, *ends.values(), *(life.eligible for life in self.turns[:1])]), self.replayed)
            if any(second < at for second in unknown):
                return
            self.replayed = at
            ended = [name for name, end in ends.items() if end <= at]
            for name in ended:
                del self.replay_starts[name]
            come = 0
            while self.turns and self.turns[0].eligible <= at:
                self.replay_queue.append(self.turns.pop(0))
                come += 1
            if ended or come:
                self.backfill_replayed(int(at))
            waits = [int(at) - life.eligible for life in self.replay_queue[:1]]
            self.longest = max(self.longest, *waits, 0)
            if not ended and not come:
                return

    def compare_waits(self, now: int) -> None:
        """Find out, once a day, whether jobs start as under EASY: from some job on they have waited so much longer than
        there that it is a twentieth of all waits there; or they have gained little in all, and lose half of that or
        keep EASY waiting; of few jobs, where they have lost in all.
        """
        is_empty = not self.running() and not self.waiting()
        if now < self.next_day or len(self.replay_waits) < self.few or is_empty:
            return
        self.next_day = now + 86_400
        (done, lost), pairs, is_over = self.done, list[tuple[float, float]](), True
        for place, life in enumerate(self.come):
            if place == done and sum(here for here, _ in pairs) < 0.9 * sum(there for _, there in pairs):
                lost = 0.0
            is_cut = any(name == life.job.id for name, _ in self.attempts)
            is_known = life.job.id in self.replay_waits
            weight = 0.0 if life.ending == Ending.REFUSED or is_cut else self.share(life.job) / self.smith(life.job)
            until = now if is_known else int(self.replayed)
            wait = (until if life.start is None else min(life.start, until)) - life.eligible
            waited = self.replay_waits[life.job.id] if is_known else until - life.eligible
            pairs.append((weight * max(0, wait), weight * max(0, waited)))
            if place >= done:
                lost = max(0.0, lost + pairs[-1][0] - pairs[-1][1])
                is_over = is_over and is_known and life.ending != Ending.WAITING
                self.done = (place + 1, lost) if is_over else self.done
        here, there = (sum(waits) for waits in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
        if len(self.replay_waits) < self.trusted:
            self.as_easy = here > there
        elif here < 0.9 * there:
            self.as_easy = lost > 0.05 * there
        else:
            starts = self.replay_starts.items()
            is_held_up = any(self.by_id[name] in self.waiting() and now - at > 172_800 for name, at in starts)
            self.as_easy = is_held_up or lost > 0.025 * there
        self.looks.append((now, self.as_easy))

    def spells(self) -> tuple[int, int, int] | None:
        """Return when jobs started as under EASY: from a look that says so until the next one, or the end."""
        looks = pairwise([*self.looks, (self.now, False)])
        spells = [(at, end) for (at, is_easy), (end, _) in looks if is_easy]
        return (spells[0][0], spells[-1][1], sum(end - at for at, end in spells)) if spells else None

    def backfill_replayed(self, at: int) -> None:
        """Start whom EASY starts at a second."""
        free = Counter(self.totals())
        for name in self.replay_starts:
            free.subtract(self.asked(self.by_id[name].choices[0]))
        beside: tuple[int, Counter[str]] | None = None
        for life in list(self.replay_queue):
            asked, end = self.asked(life.choices[0]), at + life.choices[0].walltime
            is_short = beside is None or end <= beside[0]
            if asked <= free and (beside is None or is_short or asked <= beside[1]):
                self.replay_queue.remove(life)
                self.replay_starts[life.job.id] = at
                self.replay_waits[life.job.id] = at - life.eligible
                self.longest = max(self.longest, at - life.eligible)
                free.subtract(asked)
                if beside is not None and not is_short:
                    beside[1].subtract(asked)
            elif beside is None:
                beside = self.reserved_in_replay(asked, free)

    def reserved_in_replay(self, asked: Counter[str], free: Counter[str]) -> tuple[int, Counter[str]]:
        """Return the first second at which so much is free by walltimes, and what else is."""
        ends = {name: start + self.by_id[name].choices[0].walltime for name, start in self.replay_starts.items()}
        for second in sorted(set(ends.values())):
            then = Counter(free)
            for name in (name for name, end in ends.items() if end <= second):
                then.update(self.asked(self.by_id[name].choices[0]))
            if asked <= then:
                then.subtract(asked)
                return second, then
        raise AssertionError("the job is larger than the machine")

    def work_of(self, life: _Life) -> int:
        """Return for how many ms the machine needs all its parts for a job."""
        return ceil(1000.0 * self.share(life.job) * self.expected_by_classes(life.job))

    def totals(self) -> dict[str, int]:
        """Return how much the machine has of everything."""
        total = Counter(self.instance.cluster.licenses)
        for one in self.instance.cluster.classes:
            total.update({name: len(one.names) * amount for name, amount in one.resources.items()})
        return total

    @staticmethod
    def asked(job: Job) -> Counter[str]:
        """Return how much a job asks for of everything."""
        asked = Counter(job.licenses)
        for chunk in job.request.chunks:
            asked.update({name: chunk.count * amount for name, amount in chunk.resources.items()})
        return asked

    def expected_by_classes(self, job: Job) -> int:
        """Return the runtime that jobs like this one lead to expect."""
        ratio = 1.0
        for known in self.classes(job):
            total, number = self.learnt.get(known, (0.0, 0.0))
            ratio = (total + 4.0 * ratio) / (number + 4.0)
        return max(1, min(ceil(ratio * job.walltime), job.walltime))

    def smith(self, job: Job) -> float:
        """Return the expected wait of a job times the largest share of the machine that it asks for, by its weight."""
        return self.share(job) * self.instance.expected_wait(job) / float(self.instance.weight(job))

    def share(self, job: Job) -> float:
        """Return the largest share of the machine that a job asks for."""
        has = self.totals()
        return max((amount / has[name] for name, amount in self.asked(job).items() if has.get(name)), default=0.0)

    def serve(self, now: int) -> None:
        """Start whom the rule starts now."""
        queue = self.waiting()
        self.renew_keys(queue, now)
        queue.sort(key=lambda life: (life.key, life.rank))
        if self.is_starved(queue, now):
            return
        queue = [life for life in queue if life.start is None]
        while queue and self.start_head(queue[0], now):
            del queue[0]
        behind = queue[1:] if self.rule.depth is None else queue[1 : 1 + self.rule.depth]
        if not behind or self.rule.backfill is BackfillRule.NOBODY:
            return
        reserved = self.reserve(queue[0]) if self.rule.backfill is BackfillRule.NOT_DELAYING else None
        has_started = True
        while has_started:
            has_started = False
            for life in [life for life in behind if life.start is None]:
                has_started |= self.start_first(life, lambda one: self.room_behind(one, queue[0], reserved), now)

    def room_behind(self, life: _Life, head: _Life, reserved: tuple[_Life, int, Job] | None) -> _Amounts | None:
        """Return the room for a job behind the head, None if there is none."""
        if reserved is not None and self.now + life.estimate > reserved[1]:
            return self.room_beside(*reserved[1:], life.job.walltime)
        return self.room_now(life)

    def room_now(self, life: _Life) -> _Amounts:
        """Return what is free for a job from now on until its walltime is over."""
        return self.room_until(self.free, life.job.walltime)

    def start_first(self, life: _Life, room_of: Callable[[_Life], _Amounts | None], now: int) -> bool:
        """Start a job by the first of its choices that fits; tell whether it does."""
        for choice in life.choices:
            if now < life.opens(choice):
                continue
            life.take(choice)
            room = room_of(life)
            if room is not None and self.start_if_mapped(life, room, now):
                return True
        life.take(life.choices[0])
        return False

    def renew_keys(self, queue: Sequence[_Life], now: int) -> None:
        """Work out the keys anew where they change with time, or with what is learnt."""
        learns = self.rule.expect is Expectation.CLASSES
        if self.rule.due_after is not None:
            self.work = sum(self.work_of(life) for life in queue)
        is_due = self.rule.due_after is not None
        if learns or is_due or self.rule.order in (Order.SMITH, Order.WFP3, Order.UNICEF):
            for life in queue:
                if learns:
                    self.expect(life)
                life.key = self.key(life, now)

    def serve_reserving(self, now: int) -> None:
        """Start whom a rule with several reservations starts now."""
        queue = self.waiting()
        self.renew_keys(queue, now)
        self.blocked, self.head = [], None
        horizon = now + max((one.walltime for life in queue for one in life.choices), default=0)
        for life in sorted(queue, key=lambda life: (life.key, life.rank)):
            if not self.is_let_in(life, now):
                continue
            if self.start_first(life, lambda one: self.room_between(now, one.job.walltime), now):
                continue
            if life.key >= (-2e15 if self.as_easy else 0) and self.head is None:
                self.head = life
            if not self.as_easy or self.head in (None, life):
                self.reserve_for(life, horizon)

    def is_let_in(self, life: _Life, now: int) -> bool:
        """Return whether the gate lets a job in."""
        if self.rule.gate is None or self.head is None or life.key < 0:
            return True
        return self.index(life, now) <= exp(self.rule.gate) * self.index(self.head, now)

    def reserve_for(self, life: _Life, horizon: int) -> None:
        """Reserve nodes for a job at its earliest start, if that is not too late, and before the horizon."""
        times = {other.believed for other in self.running()} | {end for _, _, end, _ in self.blocked}
        for time in sorted({time for time in {*times, *self.edges} if time > self.now}):
            if time > life.latest or time >= horizon:
                return
            for choice in self.open_now(life):
                room = self.room_between(time, choice.walltime)
                if any(room[None].get(name, 0) < amount for name, amount in choice.licenses.items()):
                    continue
                mapped = self.mapped_late(choice, room)
                if mapped is not None:
                    takes = self.taken(choice, self.demands(choice, mapped))
                    self.blocked.append((life, time, time + choice.walltime, takes))
                    return

    def open_now(self, life: _Life) -> list[Job]:
        """Return the choices of a job that are open now."""
        return [choice for choice in life.choices if life.opens(choice) <= self.now]

    def room_between(self, time: int, walltime: int) -> _Amounts:
        """Return what is free from a second on for so long, beside what is reserved."""
        begins = {start for _, start, _, _ in self.blocked} | set(self.edges)
        room: _Amounts | None = None
        for second in (time, *(begin for begin in begins if time < begin < time + walltime)):
            here = self.room_at(self.expected(second), second)
            for _, start, end, takes in self.blocked:
                if start <= second < end:
                    self.change(here, takes, -1)
            room = here if room is None else _lowest(room, here)
        assert room is not None
        return room

    def is_starved(self, queue: Sequence[_Life], now: int) -> bool:
        """Start who starves, and tell whether one is left for whom all have to wait."""
        if self.rule.max_starve is None:
            return False
        for life in sorted(queue, key=lambda life: (life.eligible, life.rank)):
            if now - life.eligible > self.rule.max_starve:
                if not self.start_first(life, self.room_now, now):
                    return True
                self.reservation = None
        return False

    def start_head(self, life: _Life, now: int) -> bool:
        """Start the head if it fits; who else was the head before loses the reservation."""
        if self.reservation is not None and self.reservation[0] is not life:
            self.reservation = None
        return self.start_first(life, self.room_now, now)

    def start_if_mapped(self, life: _Life, room: _Amounts, now: int) -> bool:
        """Start a job where it fits into some room; tell whether it does."""
        mapped = self.mapped(life.job, room)
        if mapped is None:
            return False
        self.start_on(life, mapped, now)
        return True

    def start_on(self, life: _Life, mapped: Mapped, now: int) -> None:
        """Start a job on nodes on which it fits."""
        life.start, life.mapped = now, mapped
        if life.first_start is None:
            life.first_start = now
            for other in self.lives:
                self.let_go(other)
        self.book(life, self.demands(life.job, mapped), now)

    def reserve(self, head: _Life) -> tuple[_Life, int, Job] | None:
        """Return the reservation of the head, None if it could not start in time if all had ended who run."""
        for time in sorted({*(life.believed for life in self.running()), *self.edges}):
            if self.reservation is not None and time >= self.reservation[1]:
                break
            fits = (one for one in self.open_now(head) if self.mapped(one, self.room_from(time, one.walltime)))
            if (choice := next(fits, None)) is not None:
                self.reservation = head, time, choice
                break
        if self.reservation is not None and self.reservation[1] > head.latest:
            self.reservation = None
        return self.reservation

    def room_beside(self, time: int, head: Job, walltime: int) -> _Amounts | None:
        """Return what is free from now on for so long beside a reservation, if the head takes what is not free yet
        first; None if no such place is found for it.
        """
        mapped = self.mapped_late(head, self.room_from(time, head.walltime))
        if mapped is None:
            return None
        takes = self.taken(head, self.demands(head, mapped))
        beside = self.expected(time)
        self.change(beside, takes, -1)
        room = _lowest(self.room_at(self.free, self.now), self.room_at(beside, time))
        for edge in self.edges:
            if edge < self.now + walltime:
                later = self.expected(edge)
                if time <= edge < time + head.walltime:
                    self.change(later, takes, -1)
                room = _lowest(room, self.room_at(later, edge))
        return room

    # ---- room ----

    def expected(self, time: int) -> _Amounts:
        """Return what is free when those have ended who are believed to have done so, whatever is set aside."""
        later = _copied(self.free)
        for life in self.running():
            if life.believed <= time:
                self.change(later, life.takes, 1)
        return later

    def room_at(self, free: _Amounts, time: int) -> _Amounts:
        """Return what is left of what is free without what is set aside at a second."""
        room = _copied(free)
        for start, end, amounts in (*self.asides, *self.booked.values()):
            if start <= time < end:
                for name, of_node in amounts.items():
                    for counter, amount in of_node.items() if name in room else ():
                        if counter in room[name] and amount:
                            room[name][counter] -= amount
                            if name is not None:
                                room[name][_IDLE] -= 1
        return {
            name: {counter: amount if counter in (_IDLE, _OPEN) else max(0, amount) for counter, amount in here.items()}
            for name, here in room.items()
        }

    def room_until(self, free: _Amounts, walltime: int) -> _Amounts:
        """Return what is free now, and stays so for so long."""
        room = self.room_at(free, self.now)
        for edge in self.edges:
            if edge < self.now + walltime:
                room = _lowest(room, self.room_at(self.expected(edge), edge))
        return room

    def room_from(self, time: int, walltime: int) -> _Amounts:
        """Return what will be free from a later second on for so long."""
        room = self.room_at(self.expected(time), time)
        for edge in self.edges:
            if time <= edge < time + walltime:
                room = _lowest(room, self.room_at(self.expected(edge), edge))
        return room

    def demands(self, job: Job, mapped: Mapped) -> list[tuple[str, dict[object, int]]]:
        """Return what each part of a mapping takes of a node."""
        return [
            (
                name,
                {
                    counter: count * amount
                    for counter, amount in self.nodes[name].demands(job.request.chunks[kind].resources).items()
                },
            )
            for name, kind, count in mapped
        ]

    def taken(self, job: Job, demands: Iterable[tuple[str, Mapping[object, int]]]) -> _Amounts:
        """Return all that a job takes."""
        takes: _Amounts = {None: dict[object, int](job.licenses.items())}
        for name, amounts in demands:
            here = takes.setdefault(name, {_IDLE: 1, _OPEN: int(job.request.place.exclusive)})
            for counter, amount in amounts.items():
                here[counter] = here.get(counter, 0) + amount
        return takes

    def book(self, life: _Life, demands: Iterable[tuple[str, Mapping[object, int]]], now: int) -> None:
        """Book the allocation of a job from now on."""
        life.takes = self.taken(life.job, demands)
        self.run(life, now)

    def run(self, life: _Life, now: int) -> None:
        """Start a job now with what it takes."""
        assert life.start is not None
        self.change(self.free, life.takes, -1)
        life.believed = max(life.start + life.estimate, now + 1)
        real = self.slowed(life)
        life.end = max(life.start + (life.job.walltime if real is None else min(real, life.job.walltime)), now + 1)

    def slowed(self, life: _Life) -> int | None:
        """Return how long a job would run on its nodes, by the slowest of the levels of whose groups it is in several.

        None if that is not known.
        """
        cluster, runtime = self.instance.cluster, life.job.runtime
        if runtime is None or life.mapped is None:
            return runtime
        percent = 0
        for level, more in cluster.slowdown.items():
            used = {name for name, *_ in life.mapped}
            if len(used) > 1 and not any(used <= set(nodes) for nodes in cluster.topology[level].values()):
                percent = max(percent, more)
        return runtime + ceil(runtime * percent / 100)

    @staticmethod
    def change(room: _Amounts, takes: _Amounts, sign: int) -> None:
        """Add what a job takes, times `sign`."""
        for name, amounts in takes.items():
            for counter, amount in amounts.items():
                room[name][counter] += sign * amount

    def mapped(self, job: Job, room: _Amounts) -> Mapped | None:
        """Return where the chunks of a job stand in some room, None if they find no place."""
        if any(room[None].get(name, 0) < amount for name, amount in job.licenses.items()):
            return None
        if job.request.place.within is not None:
            return self.mapped_within(job, room)
        for name, amount in job.request.totals.items():
            if sum(free.get(name, 0) for node, free in room.items() if node is not None) < amount:
                return None  # the system has not enough (OCCS-23)
        tries = [
            (kinds, [name for name in names if name in room])
            for kinds, names in (
                [(tuple(range(len(job.request.chunks))), [name]) for name in self.by_weight]
                if job.request.place.arrangement is Arrangement.PACK
                else mapping_orders(self.instance.cluster, job)
            )
        ]
        found = (self.greedily_mapped(job, room, kinds, names) for kinds, names in tries)
        return next((mapped for mapped in found if mapped is not None), None)

    def in_groups(self, job: Job, room: _Amounts) -> Iterator[tuple[Job, _Amounts]]:
        """Yield a job of a level as one that may be anywhere, and the room of each group, the smallest group first."""
        place = job.request.place
        anywhere = replace(job.request, place=replace(place, within=None, segment=None, spread=None))
        far = replace(job, steps=(replace(job.steps[0], request=anywhere),))
        for names in sorted(self.instance.cluster.topology[place.within or ""].values(), key=len):
            yield far, {node: free for node, free in room.items() if node is None or node in names}

    def mapped_within(self, job: Job, room: _Amounts) -> Mapped | None:
        """Return where the chunks of one kind stand in the group in which least room is left then, or in several: one
        after the other in that which takes most, the last ones in that with least room.
        """
        (chunk,), place, mapped = job.request.chunks, job.request.place, Mapped()
        left, groups = chunk.count, list(self.in_groups(job, room))
        while left:
            fits = [self.num_fitting(*group) for group in groups]
            if place.spread:
                takes = [min(left, fit, place.spread) for fit in fits]
            else:
                takes = [min(left, fit) // (size := place.segment or left) * size for fit in fits]
            most = max(takes, default=0)
            if most == 0:
                return None
            _, best = min((fits[k] if most == left else 0, k) for k, take in enumerate(takes) if take == most)
            far, part = groups.pop(best)
            asked = replace(far.request, chunks=(replace(chunk, count=most),))
            here = self.mapped(replace(far, steps=(replace(far.steps[0], request=asked),)), part)
            assert here is not None
            mapped, left = [*mapped, *here], left - most
        return sorted(mapped, key=lambda part: self.nodes[part[0]].index)

    def num_fitting(self, job: Job, room: _Amounts) -> int:
        """Return how many chunks of the one kind of a job fit into some room, on a node at most all of them."""
        (chunk,), place, found = job.request.chunks, job.request.place, 0
        most = 1 if place.arrangement is Arrangement.SCATTER else chunk.count
        for name in [name for name in room if name is not None and self.nodes[name].admits(job, chunk)]:
            if room[name][_IDLE if place.exclusive else _OPEN] == 0:
                demands = self.nodes[name].demands(chunk.resources)
                found += min([most, *(room[name][c] // amount for c, amount in demands.items())])
        return found

    def mapped_late(self, job: Job, later: _Amounts) -> Mapped | None:
        """Return where a job stands in the room of a later time if it takes first what is not free yet."""
        if job.request.place.segment or job.request.place.spread:
            return self.mapped_within(job, later)
        if job.request.place.within is not None:
            found = (self.mapped_late(far, part) for far, part in self.in_groups(job, later))
            return next((mapped for mapped in found if mapped is not None), None)
        if job.request.place.arrangement is Arrangement.PACK:
            kinds, names = tuple(range(len(job.request.chunks))), [name for name in self.by_weight if name in later]
            fitting = [name for name in names if self.greedily_mapped(job, later, kinds, [name]) is not None]
            free = self.room_at(self.free, self.now)
            at_once = [name for name in fitting if self.greedily_mapped(job, free, kinds, [name]) is not None]
            best = [name for name in fitting if name not in at_once] + at_once
            return self.greedily_mapped(job, later, kinds, best[:1]) if best else None
        found = (
            self.greedily_mapped_late(job, later, kinds, names)
            for kinds, names in mapping_orders(self.instance.cluster, job)
        )
        return next((mapped for mapped in found if mapped is not None), None)

    def greedily_mapped_late(
        self, job: Job, later: _Amounts, kinds: Sequence[int], names: Sequence[str]
    ) -> Mapped | None:
        """Fill the nodes with the chunks of each kind, first as many as find no room now; None if some are left."""
        place, at_once = job.request.place, self.room_at(self.free, self.now)
        openness = _IDLE if place.exclusive else _OPEN
        left = {name: dict(later[name]) for name in names if name in later and later[name][openness] == 0}
        mapped: Mapped = []
        for kind in kinds:
            chunk = job.request.chunks[kind]
            most = 1 if place.arrangement is Arrangement.SCATTER else chunk.count
            chunks: dict[str, tuple[int, int]] = {}
            for name in [name for name in names if name in left and self.nodes[name].admits(job, chunk)]:
                is_taken = place.arrangement is Arrangement.SCATTER and any(name == other for other, _, _ in mapped)
                demands, free = self.nodes[name].demands(chunk.resources), at_once[name]
                then = min([0 if is_taken else most, *(left[name][c] // amount for c, amount in demands.items())])
                now = min([then, *(free[c] // amount for c, amount in demands.items())])
                chunks[name] = then, now if free[openness] == 0 else 0
            late = min(chunk.count, sum(then - now for then, now in chunks.values()))
            early = chunk.count - late
            for name, (then, now) in chunks.items():
                count = min(late, then - now) + min(early, now)
                late, early = late - min(late, then - now), early - min(early, now)
                if count:
                    mapped.append((name, kind, count))
                    for counter, amount in self.nodes[name].demands(chunk.resources).items():
                        left[name][counter] -= count * amount
            if late or early:
                return None
        return mapped

    def greedily_mapped(self, job: Job, room: _Amounts, kinds: Sequence[int], names: Sequence[str]) -> Mapped | None:
        """Fill the nodes with the chunks of each kind, as many as fit; None if some are left (OCCS-30)."""
        place = job.request.place
        left = {name: dict(room[name]) for name in names if room[name][_IDLE if place.exclusive else _OPEN] == 0}
        mapped: Mapped = []
        for kind in kinds:
            chunk = job.request.chunks[kind]
            missing = chunk.count
            for name in [name for name in names if name in left and self.nodes[name].admits(job, chunk)]:
                demands = self.nodes[name].demands(chunk.resources)
                count = min(missing, *(left[name][counter] // amount for counter, amount in demands.items()))
                if place.arrangement is Arrangement.SCATTER:
                    count = min(count, 0 if any(name == other for other, _, _ in mapped) else 1)
                if count > 0:
                    mapped.append((name, kind, count))
                    missing -= count
                    for counter, amount in demands.items():
                        left[name][counter] -= count * amount
            if missing:
                return None
        return sorted(mapped, key=lambda part: (self.nodes[part[0]].index, part[1]))


def _copied(room: _Amounts) -> _Amounts:
    return {name: dict(amounts) for name, amounts in room.items()}


def _lowest(one: _Amounts, other: _Amounts) -> _Amounts:
    """Return what is free in both rooms."""
    return {
        name: {counter: min(amount, other[name][counter]) for counter, amount in amounts.items()}
        for name, amounts in one.items()
    }
