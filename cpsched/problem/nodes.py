"""Rules about nodes: queues with nodes of their own, free pools of some nodes, and reservations (OCCS-16, 20, 42).

Nodes of a queue have a property that its chunks ask for. A free pool of some nodes is a resource of these nodes that
only jobs without access take; the amount that they may have together is spread over the nodes. A reservation sets its
amounts aside, and its jobs run on nodes of their own, which have these amounts.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from cpsched.domain import (
    FOR_EVER,
    AdmitCondition,
    Amounts,
    Cluster,
    FreePool,
    FrozenMap,
    Instance,
    Job,
    KeepFree,
    NodeClass,
    NodeState,
    Placement,
    Request,
    Reservation,
    ReservedSlice,
    Running,
    Segment,
    SetAside,
    WaitingReason,
    with_fields,
)
from cpsched.problem.amounts import Amount, Supply, by_node
from cpsched.problem.calendar import Intervals
from cpsched.problem.choices import apart, at_most, choices_apart, together
from cpsched.problem.counters import Times, is_spread
from cpsched.problem.exclusive_nodes import Alone, alone_in, rests_of_running
from cpsched.problem.holds import beside, closed, closed_within, held_by
from cpsched.problem.pool_quotas import Spread, has_room, most_held, orders, quotas
from cpsched.problem.rule import Choice, Part, Rule, RuleOnNodes, level_rule

#: No field of a job.
_UNCHANGED: Mapping[str, Any] = FrozenMap()
#: More of a rule than all jobs together ask for.
_PLENTY = 10**6
#: The most nodes of a cluster for which it is weighed on which of them free pools leave how much.
_MOST_WEIGHED = 32


@dataclass(slots=True)
class _Asked:
    """What a job asks for besides, and when it may run; mutable."""

    #: The rules of which each chunk takes: one for each unit of a resource, or once for a chunk (None).
    takes: dict[str, str | None] = field(default_factory=dict)
    #: By rule, the resource that a chunk which takes of the rule does not ask for.
    unless: dict[str, str] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    #: The reservation that it runs in.
    slice_: ReservedSlice | None = None
    #: A licence of which there is none: it cannot run.
    refused: Rule | None = None

    def keep(self, rule: Rule, kept: KeepFree) -> None:
        """Take of what a node keeps something free of, but for chunks that it is kept free for."""
        self.takes[rule] = kept.resource
        self.unless[rule] = kept.beneficiary

    def amounts(self, resources: Mapping[str, int], count: int) -> dict[str, int]:
        """Return what `count` chunks that take `resources` take of rules."""
        return {
            name: count if of is None else resources[of]
            for name, of in self.takes.items()
            if (of is None or resources.get(of)) and self.unless.get(name) not in resources
        }


@dataclass(frozen=True, slots=True)
class _SpreadPool:
    """A free pool of some nodes, as it is spread over them."""

    rule: Rule
    #: How much jobs without access may have of its resource on each node, and when.
    quota: Mapping[str, int]
    times: Intervals
    #: The reservations whose jobs without access have a part of it.
    hosts: frozenset[ReservedSlice]


class NodeRules:
    """The rules of an instance that are about nodes; mutable until they are applied.

    `instance`: the window. `slices`: what each reservation got; a reservation that is not among them got nothing.
    `times`: when rules hold. `record`: whether the jobs are played: one that runs may start again.
    """

    def __init__(
        self, instance: Instance, slices: Sequence[ReservedSlice], times: Times, *, record: bool = False
    ) -> None:
        self._instance, self._times, self._record = instance, times, record
        self._jobs = apart(instance.jobs)
        self._slices = [one for one in slices if one.reason is None]
        self._supply = Supply(instance)
        #: Rules as resources and properties of nodes.
        self._has: dict[str, dict[str, int]] = {}
        self._is: dict[str, dict[str, str]] = {}
        self._asked: dict[str, _Asked] = {}
        #: How much free pools leave of their resource, by the pool's identity and node, as far as it is spread yet.
        self._quota: dict[tuple[int, str], int] = {}
        #: Of free pools by their number: those that are spread, and those that would be if a job asked for them.
        self._spread: dict[int, _SpreadPool] = {}
        self._unasked: set[int] = set()
        #: Of each reservation with jobs: what nodes keep free there, the rule that lets its jobs in, and whether there
        #: are nodes that a job can have for itself.
        self._kept: dict[ReservedSlice, dict[Rule, KeepFree]] = {}
        #: What its jobs may have of such resources without what they are kept free for, by reservation and node.
        self._counted: dict[tuple[ReservedSlice, str], dict[str, int]] = {}
        self._hosts: dict[ReservedSlice, tuple[Rule, bool]] = {}
        self._asides: list[SetAside] = []
        #: The requests with what jobs ask for besides, by the request and that: a rule's name says what it is.
        self._requests: dict[object, Request] = {}
        self._virtual: list[NodeClass] = []
        self._totals = dict(instance.cluster.licenses)
        #: The second from which on a rule leaves a waiting job nothing for ever, and that rule, by the job's id.
        self.closing: dict[str, tuple[int, Rule]] = {}
        #: The levels of the topology by which nodes are told apart.
        self.levels = levels_of(instance)
        #: Whether plans that keep to the rules are lost.
        self.is_strict = False
        #: The nodes of reservations.
        self._parts: set[str] = set()
        #: The jobs of each reservation that has got something.
        self._guests: dict[ReservedSlice, list[Job]] = {}
        #: Rules as resources of the nodes of reservations.
        self._of_guests: dict[str, dict[str, int]] = {}
        self._find_guests()
        self._levels()
        self._queues()
        self._pools()
        self._keep_free()
        self._reservations()

    def _of(self, job: Job) -> _Asked:
        return self._asked.setdefault(job.id, _Asked())

    def about(self, job: Job) -> "NodeRules | None":
        """Return these rules for one waiting job that the window does not have, or has in another form.

        None: a rule concerns that job and no job of the window, so that the nodes have no part for it.
        """
        if not job.levels <= set(self.levels):
            return None
        found = copy(self)
        found._asked, found.closing, found._totals = {}, {}, {}
        slice_ = None if job.reservation is None else self._slice_beside(job)
        is_known = all(found._takes_over(one, slice_) for one in choices_apart(job))
        return found if is_known else None

    def _takes_over(self, job: Job, slice_: ReservedSlice | None) -> bool:
        """Ask for what represents the rules about a job; False: the nodes have no part for one of them."""
        instance = self._instance
        queue = None if job.queue is None else instance.queues.get(job.queue)
        if job.queue is not None and queue is not None and queue.nodes is not None:
            self._of(job).where[_rule_of_queue(job.queue)] = "yes"
        for number, pool in enumerate(instance.free_pools):
            if pool.lets_in(job):
                continue
            spread, is_asking = self._spread.get(number), job.asks_for(pool.resource)
            if spread is None:
                if is_asking and number in self._unasked:
                    return False
                continue
            if slice_ is not None and is_asking and slice_ not in spread.hosts and _has_nodes(slice_, pool):
                return False
            self._of(job).takes[spread.rule] = pool.resource
            if job.reservation is None:
                self._close(spread.rule, pool, [job], spread.quota, spread.times)
        if job.reservation is None:
            return True
        reservations = {one.id: (number, one) for number, one in enumerate(instance.reservations)}
        number, reservation = reservations[job.reservation]
        if slice_ is None:
            self._refuse_late(job, number)
            return True
        if slice_ not in self._hosts or self._keeps_free_more(slice_, job):
            return False
        if job.steps[0].request.place.exclusive and not self._hosts[slice_][1]:
            return False
        for rule, kept in self._kept.get(slice_, {}).items():
            self._of(job).keep(rule, kept)
        self._let_in(job, reservation, slice_)
        return True

    def _slice_beside(self, job: Job) -> ReservedSlice | None:
        """Return the time of its reservation at which a job can run, if it is there in place of the one of its id."""
        given: dict[ReservedSlice, int] = {}
        for one in self._instance.jobs:
            if job.id in one.element_ids:
                break
            if one.reservation is not None:
                self._first_slice(one, given)
        return self._first_slice(job, given)

    def _keeps_free_more(self, slice_: ReservedSlice, job: Job) -> bool:
        """Tell whether a job asks for more than the job of its id does of what nodes of a reservation keep free."""
        before = [one for one in self._guests[slice_] if str(job.id) in (str(one.id), *one.element_ids)]
        kept = {kept for node in by_node(slice_.allocation) for kept in self._instance.cluster.class_of[node].keep_free}
        return any(_asked_for([job], one) > _asked_for(before, one) for one in kept)

    def _levels(self) -> None:
        """Give nodes their groups of those levels of the topology that jobs ask for."""
        for level in self.levels:
            rule = level_rule(level)
            for group, nodes in self._instance.cluster.topology[level].items():
                for node in nodes:
                    self._is.setdefault(node, {})[rule] = group

    # --- queues -------------------------------------------------------------------------------------------------

    def _queues(self) -> None:
        """Give the nodes of each queue a property that its jobs ask for."""
        for name, queue in self._instance.queues.items():
            if queue.nodes is None:
                continue
            rule = _rule_of_queue(name)
            for node in queue.nodes:
                self._is.setdefault(node, {})[rule] = "yes"
            for job in self._jobs:
                if job.queue == name and (self._record or job.running is None):
                    self._of(job).where[rule] = "yes"

    # --- free pools of some nodes -------------------------------------------------------------------------------

    def _pools(self) -> None:
        """Spread what free pools of some nodes leave to jobs without access over these nodes."""
        instance = self._instance
        for number, pool in enumerate(instance.free_pools):
            if pool.nodes is None or not is_spread(instance, pool):
                continue
            others = [job for job in self._jobs if not pool.lets_in(job)]
            asking = [job for job in others if job.running is None and job.asks_for(pool.resource)]
            left = pool.left_of(self._supply.of(pool.resource, pool.nodes))
            times = self._times.of(pool.validity)
            has = self._amounts(pool.nodes, pool.resource)
            if not times or left >= sum(has.values()):
                continue
            if not asking:
                self._unasked.add(number)
                continue
            words = f"jobs that are not let in may have {left} {pool.resource} of the pool's nodes at a time"
            rule = RuleOnNodes(words, f"free_pools[{number}]", WaitingReason.FREE_POOL)
            self.is_strict = True  # what is left is spread over the nodes
            taken = self._taken(others, pool.resource)
            hosting = list(self._hosting(others, pool))
            first = {node: most_held(held) for node, held in taken.items()}
            for _, node, amount in hosting:
                first[node] = first.get(node, 0) + amount
            classes = instance.cluster.class_of
            up = [node for node in pool.nodes if classes[node].is_up]
            quota = self._best_quota(pool, has, asking, (quotas(has, first, order, left) for order in orders(up)))
            self._close(rule, pool, [job for job in asking if job.reservation is None], quota, times)
            spread = Spread(rule, times, quota, taken)
            is_always = times == ((instance.now, instance.now + FOR_EVER),)
            alike: dict[tuple[int, int, tuple[Amount, ...]], list[str]] = {}
            for node, most in has.items():
                held = tuple(taken.get(node, ()))
                is_plain = is_always and sum(amount for _, _, amount in held) <= quota[node]
                self._has.setdefault(node, {})[rule] = quota[node] if is_plain else most
                if not is_plain:
                    alike.setdefault((most, quota[node], held), []).append(node)
            for (most, kept, held), alike_nodes in alike.items():
                spread.close(alike_nodes, closed(most, kept, times, held))
            for slice_, node, amount in hosting:
                name = _part(node, slice_)
                self._of_guests.setdefault(name, {})[rule] = amount
                spread.part(slice_, node, name, amount)
            self._asides += spread.asides()
            for job in others:
                self._of(job).takes[rule] = pool.resource
            hosts = frozenset(slice_ for slice_, _, _ in hosting)
            self._spread[number] = _SpreadPool(rule=rule, quota=quota, times=times, hosts=hosts)

    def _best_quota(
        self, pool: FreePool, has: Mapping[str, int], asking: Sequence[Job], found: Iterator[dict[str, int]]
    ) -> dict[str, int]:
        """Return the first quota of a pool's nodes with which fewest jobs find no room on the empty nodes."""
        best = next(found)
        if len(self._instance.cluster.node_names) > _MOST_WEIGHED:
            return best
        others = [one for one in self._instance.free_pools if one.resource == pool.resource and one is not pool]
        kinds: dict[object, tuple[Job, dict[str, int]]] = {}
        empty = self._amounts(self._instance.cluster.node_names, pool.resource)
        for job in asking:
            room = empty.copy()
            for other in others:
                if other.nodes is not None and not other.lets_in(job):
                    left = other.left_of(self._supply.of(other.resource, other.nodes))
                    room |= {node: min(room[node], self._quota.get((id(other), node), left)) for node in other.nodes}
            kinds[job.steps, tuple(room.values())] = job, room

        classes = self._instance.cluster.class_of

        def num_without(quota: Mapping[str, int]) -> int:
            within = (
                (job, room | {node: min(room[node], quota[node]) for node in has}) for job, room in kinds.values()
            )
            return sum(not has_room(job, pool.resource, room, classes) for job, room in within)

        least = num_without(best)
        for quota in found:
            if least == 0:
                break
            if (count := num_without(quota)) < least:
                least, best = count, quota
        self._quota |= {(id(pool), node): amount for node, amount in best.items()}
        return best

    def _close(
        self, rule: Rule, pool: FreePool, jobs: Sequence[Job], quota: Mapping[str, int], times: Intervals
    ) -> None:
        """Note which jobs have to end before a pool leaves them no room for ever; none in a cluster of many nodes."""
        now, classes = self._instance.now, self._instance.cluster.class_of
        since, until = times[-1]
        if until < now + FOR_EVER or since <= now or len(classes) > _MOST_WEIGHED:
            return
        room = self._amounts(tuple(classes), pool.resource) | dict(quota)
        for job in jobs:
            if not has_room(job, pool.resource, room, classes) and since < self.closing.get(job.id, (until, rule))[0]:
                self.closing[job.id] = since, rule

    def _hosting(self, others: Sequence[Job], pool: FreePool) -> Iterator[tuple[ReservedSlice, str, int]]:
        """Yield reservations with jobs without access to a pool, its nodes there, and how much these have of it."""
        ids = {job.id for job in others if job.asks_for(pool.resource)}
        among = set(pool.nodes or ())
        for slice_, guests in self._guests.items():
            if any(job.id in ids for job in guests):
                for node, amounts in by_node(slice_.allocation).items():
                    if node in among and amounts.get(pool.resource):
                        yield slice_, node, amounts[pool.resource]

    def _amounts(self, nodes: Sequence[str], resource: str) -> dict[str, int]:
        classes = self._instance.cluster.class_of
        return {node: classes[node].resources.get(resource, 0) for node in nodes}

    def _taken(self, jobs: Sequence[Job], resource: str, unless: str | None = None) -> dict[str, list[Amount]]:
        """Return when running jobs have something of a resource from now on, by node; not in their reservations, which
        have nodes of their own, and not with what else they have there (`unless`).
        """
        ends = {job.id: slice_.end for slice_, guests in self._guests.items() for job in guests}
        taken: dict[str, list[Amount]] = {}
        for job in jobs:
            if job.running is None:
                continue
            since = ends.get(job.id, self._instance.now)
            for segment in job.running.segments:
                start = max(segment.start, since) if job.id in ends else segment.start
                for held in segment.allocation if segment.end > since else ():
                    amount = held.resources.get(resource, 0)
                    if amount and unless not in held.resources:
                        taken.setdefault(held.node, []).append((start, segment.end, amount))
        return taken

    # --- what nodes keep free -----------------------------------------------------------------------------------

    def _keep_free(self) -> None:
        """Leave jobs in reservations only what others leave to them on a node that keeps something free."""
        classes, had = self._instance.cluster.class_of, dict[tuple[str, KeepFree], list[Amount]]()
        for slice_, guests in self._guests.items():
            for node, amounts in by_node(slice_.allocation).items():
                for kept in classes[node].keep_free:
                    if (node, kept) not in had:
                        taken = self._taken(self._instance.jobs, kept.resource, kept.beneficiary)
                        had[node, kept] = taken.get(node, [])
                    has = classes[node].resources.get(kept.resource, 0)
                    held, left = amounts.get(kept.resource, 0), max(0, has - kept.items)
                    most, others = min(held, left, _asked_for(guests, kept)), list(had[node, kept])
                    if kept.beneficiary in amounts:  # what is set aside for it does not count for what is kept free
                        others.append((slice_.start, slice_.end, min(has - held, left)))
                    else:
                        counted = self._counted.setdefault((slice_, node), {})
                        counted[kept.resource] = max(most, counted.get(kept.resource, 0))
                    shut = list(closed_within(slice_.start, slice_.end, most, left, others))
                    had[node, kept] += [(start, end, most - amount) for start, end, amount in shut]
                    if any(amount for _, _, amount in shut):
                        self._keep_free_in(slice_, node, kept, most, shut)

    def _keep_free_in(
        self, slice_: ReservedSlice, node: str, kept: KeepFree, most: int, shut: Sequence[Amount]
    ) -> None:
        """Leave `most` on a node to jobs of a reservation that do not ask for what it keeps free, less some amounts."""
        number = self._instance.cluster.classes.index(self._instance.cluster.class_of[node])
        words = f"{kept.resource} of {node} for jobs that ask for no {kept.beneficiary}"
        rule = RuleOnNodes(words, f"cluster.nodes[{number}].keep_free", WaitingReason.RESERVATION)
        self.is_strict = True  # its parts are given to reservations in order
        name = _part(node, slice_)
        self._of_guests.setdefault(name, {})[rule] = most
        for start, end, amount in shut:
            if amount:
                allocation = (Placement(node=name, resources=Amounts([(rule, amount)])),)
                self._asides.append(SetAside(start=start, end=end, allocation=allocation))
        self._kept.setdefault(slice_, {})[rule] = kept
        for job in self._guests[slice_]:
            self._of(job).keep(rule, kept)

    # --- reservations -------------------------------------------------------------------------------------------

    def _find_guests(self) -> None:
        """Find the time of its reservation at which each job runs in it; jobs without one are refused."""
        numbers = {one.id: number for number, one in enumerate(self._instance.reservations)}
        given: dict[ReservedSlice, int] = {}
        for job in self._instance.jobs:
            if job.reservation is not None:
                choices, slice_ = choices_apart(job), self._first_slice(job, given)
                if slice_ is not None:
                    self._guests.setdefault(slice_, []).extend(choices)
                else:
                    for one in choices if job.running is None else ():
                        self._refuse_late(one, numbers[job.reservation])

    def _reservations(self) -> None:
        """Set the amounts of reservations aside, and give their jobs nodes of their own."""
        instance, guests = self._instance, self._guests
        reservations = {one.id: (number, one) for number, one in enumerate(instance.reservations)}
        rests: list[SetAside] = []
        for slice_ in self._slices:
            number, reservation = reservations[slice_.id]
            start = max(slice_.start, instance.now)
            if start >= slice_.end:
                continue
            # on other nodes it could leave more to others; at another time its jobs could start sooner
            is_free = reservation.request is not None and not reservation.allocation
            self.is_strict = self.is_strict or is_free or (reservation.validity is not None and slice_ in guests)
            held = by_node(slice_.allocation)
            closed = held
            if reservation.is_exclusive:
                closed = {node: instance.cluster.class_of[node].resources for node in held}
            allocation = tuple(Placement(node=node, resources=amounts) for node, amounts in closed.items())
            aside = SetAside(start=start, end=slice_.end, allocation=allocation, licenses=reservation.licenses)
            jobs = guests.get(slice_, ())
            is_had = bool(reservation.is_closure or reservation.allocation)  # whatever else is there
            others = self._held_beside(jobs) if is_had or jobs else []
            asides = beside(aside, [*others, *self._asides], instance.cluster) if is_had else [aside]
            self._asides += [self._told_apart(slice_, one) for one in asides]
            for stays in _held_after(slice_, jobs):
                self._asides += beside(stays, self._asides, instance.cluster)
            if jobs:
                others += [
                    SetAside(start=one.start, end=one.end, allocation=one.allocation)
                    for one in self._slices
                    if one is not slice_
                ]
                alone = alone_in(slice_, closed, jobs, others, instance.cluster, instance.now)
                self._host(f"reservations[{number}]", reservation, slice_, held, jobs, alone)
                closures = [one for one in self._slices if reservations[one.id][1].is_closure]
                self._asides += _closed_parts(slice_, held, closures, instance)
                rests += alone.rests
                self.is_strict = self.is_strict or alone.is_strict
        self._asides += rests
        for jobs in guests.values():
            held_by_others = [*self._held_beside(jobs), *self._asides]
            self._asides += rests_of_running(jobs, held_by_others, instance.cluster)

    def _told_apart(self, slice_: ReservedSlice, aside: SetAside) -> SetAside:
        """Return the amounts set aside for a reservation, on nodes that keep something free in parts: only what jobs
        inside may have counts there, and an amount of what it is kept for, even 0, says of the rest that it does not.
        """
        found: list[Placement] = []
        for held in aside.allocation:
            unless = dict.fromkeys((one.beneficiary for one in self._instance.cluster.class_of[held.node].keep_free), 0)
            if unless:
                most = self._counted.get((slice_, held.node), {})
                counted = {name: min(amount, held.resources.get(name, 0)) for name, amount in most.items()}
                found += [replace(held, resources=Amounts([one])) for one in counted.items()]
                rest = {name: amount - counted.get(name, 0) for name, amount in held.resources.items()}
                held = replace(held, resources=Amounts({**unless, **rest}))
            found.append(held)
        return aside._replace(allocation=tuple(found))

    def _held_beside(self, guests: Sequence[Job]) -> list[SetAside]:
        """Return what running jobs have, but for those of a reservation."""
        inside = {job.id for job in guests}
        return list(held_by([job for job in self._instance.jobs if job.id not in inside]))

    def _first_slice(self, job: Job, given: dict[ReservedSlice, int]) -> ReservedSlice | None:
        """Return the time of its reservation at which a job can run in the first of its choices that finds one."""
        found = (self._slice_of(one, given) for one in job.choices)
        return next((slice_ for slice_ in found if slice_ is not None), None)

    def _slice_of(self, job: Job, given: dict[ReservedSlice, int]) -> ReservedSlice | None:
        """Return the first time of its reservation at which a job can run, or of a running job the one that is now.

        Times that are full are passed over, if there is another one: `given` are the core-seconds of jobs.
        """
        start = self._instance.now if job.running is not None else self._instance.earliest_start(job)
        needed = 1 if job.running is not None else job.walltime
        found = [
            slice_
            for slice_ in sorted(self._slices, key=lambda one: one.start)
            if slice_.id == job.reservation and slice_.end - max(start, slice_.start) >= needed
        ]
        if job.running is not None:
            return found[0] if found and found[0].start <= start else None
        cores = max(step.request.totals.get("cores", 0) for step in job.steps) * len(job.element_ids)
        for slice_ in found:
            has = sum(held.resources.get("cores", 0) for held in slice_.allocation)
            seconds = slice_.end - max(self._instance.now, slice_.start)
            if given.get(slice_, 0) + cores * job.walltime <= has * seconds:
                given[slice_] = given.get(slice_, 0) + cores * job.walltime
                return slice_
        return found[0] if found else None

    def _refuse_late(self, job: Job, number: int) -> None:
        """Give no start to a job that has no time in its reservation, which is one of a number."""
        words = f"reservation {job.reservation} has ended, or is too short, or could not be had"
        self._refuse(job, f"reservations[{number}]", words)

    def _refuse(self, job: Job, path: str, words: str) -> None:
        """Give a waiting job a licence of which there is none, so that it has no start."""
        rule = Rule(words, path, WaitingReason.RESERVATION)
        self._totals[rule] = 0
        self._of(job).refused = rule

    def _host(
        self,
        path: str,
        reservation: Reservation,
        slice_: ReservedSlice,
        held: Mapping[str, Amounts],
        guests: Sequence[Job],
        alone: Alone,
    ) -> None:
        words = f"a place in reservation {reservation.id} at {slice_.start}"
        entry = Rule(words, path, WaitingReason.RESERVATION)
        for node, amounts in held.items():
            name = _part(node, slice_)
            self._parts.add(name)
            node_class = self._instance.cluster.class_of[node]
            whole: dict[str, str] = {entry: "whole"} if node in alone.shared else {}
            self._virtual.append(
                replace(
                    node_class,
                    names=(name,),
                    resources=Amounts({**amounts, **self._of_guests.get(name, {}), entry: _PLENTY}),
                    properties=FrozenMap({**node_class.properties, **self._is.get(node, {}), **whole}),
                    admits=tuple(
                        replace(one, min=Amounts({**one.min, entry: 1}))
                        for one in node_class.admits or (AdmitCondition(),)
                    ),
                    keep_free=tuple(_kept(one, node_class, amounts) for one in node_class.keep_free),
                    state=NodeState.UP,
                )
            )
        for node, times in alone.shared.items():
            # of a node that others are on, something is set aside: enough is left for jobs that do not want it whole
            allocation = (Placement(node=_part(node, slice_), resources=Amounts([(entry, 1)])),)
            self._asides += [SetAside(start=start, end=end, allocation=allocation) for start, end in times]
        inside = {job.id for job in guests}
        running = (job for job in self._instance.jobs if job.running is not None and job.reservation == slice_.id)
        self._asides += _held_before(slice_, held, [job for job in running if job.id not in inside])
        for license_name, amount in reservation.licenses.items():
            self._license(license_name, slice_, amount)
        self._hosts[slice_] = entry, bool(alone.shared)
        for job in guests:
            self._let_in(job, reservation, slice_)

    def _let_in(self, job: Job, reservation: Reservation, slice_: ReservedSlice) -> None:
        entry, _ = self._hosts[slice_]
        if reservation.users and job.user not in reservation.users and job.running is None:
            self._refuse(job, entry.path, f"only its users may run in reservation {reservation.id}")
            return
        asked = self._of(job)
        asked.slice_ = slice_
        asked.takes[entry] = None
        if job.steps[0].request.place.exclusive:
            asked.where[entry] = "whole"
        for license_name in job.licenses:
            self._license(license_name, slice_, reservation.licenses.get(license_name, 0))

    def _license(self, name: str, slice_: ReservedSlice, amount: int) -> None:
        """Give a reservation licences of its own."""
        self._totals[_part(name, slice_)] = amount

    # --- the instance -------------------------------------------------------------------------------------------

    def apply(self, instance: Instance, counted: Mapping[str, Mapping[str, Any]] = FrozenMap()) -> Instance:
        """Return an instance without these rules: the window, of which other rules may have been compiled before.

        `instance`: the window. `counted`: by job, the fields that other rules have changed.
        """
        jobs = self.applied(instance.jobs, counted)
        if not (self._asked or self._asides or self.levels):
            return replace(instance, jobs=jobs)
        classes = tuple(self._classes(instance.cluster))
        licenses = {**self._totals, **instance.cluster.licenses}
        return replace(
            instance,
            cluster=replace(instance.cluster, classes=(*classes, *self._virtual), licenses=Amounts(licenses)),
            queues=FrozenMap({name: replace(queue, nodes=None) for name, queue in instance.queues.items()}),
            jobs=jobs,
            set_aside=(*instance.set_aside, *self._asides),
        )

    def _classes(self, cluster: Cluster) -> Iterator[NodeClass]:
        """Yield the classes with rules as resources and properties; nodes that differ in these form classes apart."""
        for node_class in cluster.classes:
            parts: dict[tuple[tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]], list[str]] = {}
            for name in node_class.names:
                resources, properties = self._has.get(name), self._is.get(name)
                key = tuple(resources.items()) if resources else (), tuple(properties.items()) if properties else ()
                parts.setdefault(key, []).append(name)
            for (more, facts), names in parts.items():
                yield replace(
                    node_class,
                    names=tuple(names),
                    resources=Amounts({**node_class.resources, **dict(more)}),
                    properties=FrozenMap({**node_class.properties, **dict(facts)}),
                )

    def applied(self, jobs: Sequence[Job], counted: Mapping[str, Mapping[str, Any]]) -> tuple[Job, ...]:
        """Return jobs that ask for what represents their rules; `counted` as `apply` has it."""
        choices = [self._applied_to(one, counted.get(one.id, _UNCHANGED)) for one in apart(jobs)]
        return together(jobs, choices)

    def _applied_to(self, job: Job, counted: Mapping[str, Any]) -> Job:
        """Return a job that asks for what represents its rules; `counted` are fields that other rules have changed."""
        asked = self._asked.get(job.id)
        if asked is None:
            return with_fields(job, counted) if counted else job
        fields: dict[str, Any] = {
            **counted,
            "steps": tuple(replace(one, request=self._extended(one.request, asked)) for one in job.steps),
            "reservation": None,
            "running": self._running(job, asked),
        }
        licenses, deadline = fields.get("licenses", job.licenses), fields.get("deadline", job.deadline)
        slice_, own = asked.slice_, self._instance.cluster.licenses
        if asked.refused is not None:
            fields["licenses"] = Amounts({**licenses, asked.refused: 1})
        elif slice_ is None:
            if job.id in self.closing:
                since, _ = self.closing[job.id]
                fields["deadline"] = since if deadline is None else min(deadline, since)
        else:
            renamed = {_part(name, slice_) if name in own else name: amount for name, amount in licenses.items()}
            fields["licenses"] = Amounts(renamed)
            if job.running is None:
                fields["not_before"] = max(slice_.start, job.not_before or slice_.start)
                fields["deadline"] = slice_.end if deadline is None else min(deadline, slice_.end)
        return with_fields(job, fields)

    def _extended(self, request: Request, asked: _Asked) -> Request:
        """Return a request that asks for what represents rules, too; one for all jobs that ask alike."""
        key = request, tuple(asked.takes.items()), tuple(asked.where.items())
        if key not in self._requests:
            chunks = tuple(
                replace(
                    chunk,
                    resources=Amounts({**chunk.resources, **asked.amounts(chunk.resources, 1)}),
                    where=FrozenMap({**chunk.where, **asked.where}) if asked.where else chunk.where,
                )
                for chunk in request.chunks
            )
            self._requests[key] = replace(request, chunks=chunks)
        return self._requests[key]

    def _running(self, job: Job, asked: _Asked) -> Running | None:
        """Return where a job runs, with what it takes of rules, on the nodes of its reservation."""
        if job.running is None:
            return None
        known: dict[tuple[Amounts, tuple[str, ...]], Amounts] = {}
        segments = tuple(
            Segment(
                start=segment.start,
                end=segment.end,
                allocation=tuple(self._placement(one, asked, known) for one in segment.allocation),
            )
            for segment in job.running.segments
        )
        return replace(job.running, segments=segments)

    def _placement(
        self, held: Placement, asked: _Asked, known: dict[tuple[Amounts, tuple[str, ...]], Amounts]
    ) -> Placement:
        """Return the placement of a running job with its amounts of rules; on most nodes it has the same (`known`)."""
        has = self._has_of(held.node, asked)
        node = held.node if asked.slice_ is None else _part(held.node, asked.slice_)
        node = node if node in self._parts else held.node
        if not has:
            return held if node == held.node else replace(held, node=node)
        key = held.resources, tuple(name for name, amount in has.items() if amount)
        if key not in known:
            taken = asked.amounts(held.resources, 0)
            more = {name: taken[name] for name in taken if name in key[1] and asked.takes[name] is not None}
            known[key] = Amounts({**held.resources, **more}) if more else held.resources
        if node == held.node and known[key] is held.resources:
            return held
        return Placement(node=node, resources=known[key], chunk=held.chunk, count=held.count)

    def _has_of(self, node: str, asked: _Asked) -> Mapping[str, int]:
        """Return the rules that a node has as resources for a job, which may have the node in its reservation."""
        if asked.slice_ is not None and _part(node, asked.slice_) in self._parts:
            return self._of_guests.get(_part(node, asked.slice_), {})
        return self._has.get(node, {})

    def touches(self, job: Job) -> bool:
        """Tell whether engines have a job otherwise than it is stated."""
        return bool(self._asked) and any(one.id in self._asked for one in choices_apart(job))

    def reservation_of(self, element: str) -> str | None:
        """Return the reservation on whose nodes a job may run, by the id that the job has in a plan; None: none."""
        names = (element, element.partition("[")[0])
        found = (self._asked.get(key) for name in names for key in (name, Choice(name, 0)))
        return next((asked.slice_.id for asked in found if asked is not None and asked.slice_ is not None), None)

    def held_node(self, job: Job, node: str) -> str:
        """Return the node for engines on which a waiting job is, where a plan of the window has it on a node."""
        asked = self._asked.get(job.id)
        return node if asked is None or asked.slice_ is None else _part(node, asked.slice_)

    def held_amounts(self, job: Job, resources: Amounts, count: int | None) -> Amounts:
        """Return the amounts on a node of chunks of a waiting job that has `resources` there in a plan."""
        asked = self._asked.get(job.id)
        if asked is None or not asked.takes:
            return resources
        return Amounts({**resources, **asked.amounts(resources, count or 0)})


def levels_of(instance: Instance) -> list[str]:
    """Return the levels of the topology that jobs ask for."""
    if not instance.cluster.topology:
        return []
    asked = {step.request.place.within for job in instance.jobs for step in (*job.steps, *job.alternatives)}
    return [level for level in instance.cluster.topology if level in asked]


def _rule_of_queue(name: str) -> Rule:
    return Rule(f"nodes of {name}", f"queues.{name}.nodes", WaitingReason.UNSATISFIABLE)


def _has_nodes(slice_: ReservedSlice, pool: FreePool) -> bool:
    among = set(pool.nodes or ())
    return any(held.node in among for held in slice_.allocation)


def _part(whole: str, slice_: ReservedSlice) -> Part:
    """Return the part of a node or licence that a reservation has."""
    return Part(whole, slice_.id, slice_.start)


def _asked_for(jobs: Sequence[Job], kept: KeepFree) -> int:
    """Return how much jobs ask for, all at a time, of what a node keeps free for chunks that they do not have."""

    def asked_by(job: Job) -> int:
        return len(job.element_ids) * max(
            sum(
                chunk.count * chunk.resources.get(kept.resource, 0)
                for chunk in step.request.chunks
                if kept.beneficiary not in chunk.resources
            )
            for step in job.steps
        )

    return at_most(jobs, asked_by)


def _held_after(slice_: ReservedSlice, guests: Sequence[Job]) -> Iterator[SetAside]:
    """Yield what running jobs of a reservation have after its end: the nodes of the cluster, on which they stay."""
    for held in held_by(guests):
        if held.end > slice_.end:
            amounts = by_node(held.allocation)
            allocation = tuple(Placement(node=node, resources=here) for node, here in amounts.items())
            yield SetAside(start=max(held.start, slice_.end), end=held.end, allocation=allocation)


def _held_before(slice_: ReservedSlice, held: Mapping[str, Amounts], jobs: Sequence[Job]) -> Iterator[SetAside]:
    """Yield what jobs of a reservation that have run since before it has nodes have of these nodes: of what it has of
    them, and all of that where a job has the node for itself.
    """
    for job in jobs:
        is_alone = job.steps[0].request.place.exclusive
        for one in held_by([job]):
            start, end = max(one.start, slice_.start), min(one.end, slice_.end)
            amounts = {
                node: {name: min(here.get(name, 0), amount) for name, amount in held[node].items()}
                for node, here in by_node(one.allocation).items()
                if node in held and start < end
            }
            allocation = tuple(
                Placement(node=_part(node, slice_), resources=held[node] if is_alone else Amounts(here))
                for node, here in amounts.items()
            )
            if allocation:
                yield SetAside(start=start, end=end, allocation=allocation)


def _closed_parts(
    slice_: ReservedSlice, held: Mapping[str, Amounts], closures: Sequence[ReservedSlice], instance: Instance
) -> Iterator[SetAside]:
    """Yield what downtimes close of the nodes that a reservation has: all that its running jobs leave there."""
    running = list(held_by([job for job in instance.jobs if job.reservation == slice_.id]))
    parts = Cluster(classes=tuple(NodeClass(names=(node,), resources=amounts) for node, amounts in held.items()))
    for closure in closures:
        start, end = max(instance.now, slice_.start, closure.start), min(slice_.end, closure.end)
        nodes = [node for node in by_node(closure.allocation) if node in held]
        if nodes and start < end:
            allocation = tuple(Placement(node=node, resources=held[node]) for node in nodes)
            for left in beside(SetAside(start=start, end=end, allocation=allocation), running, parts):
                yield left._replace(
                    allocation=tuple(replace(one, node=_part(one.node, slice_)) for one in left.allocation)
                )


def _kept(rule: KeepFree, node_class: NodeClass, amounts: Mapping[str, int]) -> KeepFree:
    """Return a rule of a node for the part of the node that a reservation has."""
    has = amounts.get(rule.resource, 0)
    left = max(0, node_class.resources.get(rule.resource, 0) - rule.items)
    return replace(rule, items=max(0, has - left))
