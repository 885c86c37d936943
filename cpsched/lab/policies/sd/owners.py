"""The running jobs that have all cores of all their nodes, and could lend some of them (SD-4, SD-6, SD-7)."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Amounts, Chunk, NodeClass
from cpsched.lab.policies.sd.mates import Mate, SdRule, select_mates
from cpsched.lab.policies.sd.partners import Guest, Lender, Pace, lender_of
from cpsched.lab.sim import Site

#: The tolerance of floats (s), or of penalties.
_SLACK = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Owner:
    """A running job that can lend."""

    lender: Lender
    entries: NDArray[np.int32]
    #: Its nodes by their numbers, ascending.
    nodes: NDArray[np.int32]
    #: Owners of a kind have room for the same guests.
    kind: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _List:
    """The jobs that could lend now, as arrays of one length."""

    jobs: NDArray[np.int64]
    nodes: NDArray[np.int64]
    kinds: NDArray[np.int64]
    #: The end of the walltime of each, and its least speed while it lends.
    over: NDArray[np.float64]
    pace: NDArray[np.float64]


class Owners:
    """Owners, and which of them have their nodes to themselves; mutable.

    `site`, `rule`: the simulation, and the parameters. `by_loss`: whether the penalty of a mate is what its slowdown
    loses by lending, in place of what it is then.
    """

    def __init__(self, site: Site, rule: SdRule, *, by_loss: bool = False) -> None:
        self._site, self._rule, self._by_loss = site, rule, by_loss
        cluster = site.instance.cluster
        number = {one.names[0]: place for place, one in enumerate(cluster.classes)}
        #: The number of the class of each node.
        self._class_of = np.array([number[cluster.class_of[node].names[0]] for node in site.columns.node_names])
        #: By job.
        self.of: dict[int, Owner] = {}
        #: The jobs that do not lend, with the ends of their walltimes.
        self._idle: dict[int, Fraction] = {}
        self._list: _List | None = None
        #: The number of running jobs on each node, if there are jobs without cores, which may run beside an owner.
        self._is_crowded = any("cores" not in chunk.resources for job in site.jobs for chunk in job.request.chunks)
        self._tenants = np.zeros(len(site.columns.node_names), dtype=np.int64)
        self._stands: dict[int, NDArray[np.int32]] = {}
        for running in site.running.tolist():
            self.enter(running, site.entries_of(running))
        #: The rank of each job by id, which decides among equal jobs.
        self._rank = np.argsort(np.argsort(np.array([job.id for job in site.jobs], dtype=np.str_)))
        self._kinds: dict[tuple[tuple[NodeClass, tuple[Amounts, ...]], ...], int] = {}
        self._of_kind: list[Lender] = []
        self._room: dict[tuple[int, int], bool] = {}
        #: The numbered requests of guests, and the number of each guest's request.
        self._asks: dict[tuple[Chunk, Amounts, Pace], int] = {}
        self._asked: dict[int, int] = {}
        #: Guests without mates, by request: nodes, the least time, and the cut-off. Until another job can
        #: lend, mates only become fewer and their penalties higher, as they do for a longer guest.
        self._futile: dict[int, tuple[int, Fraction, float]] = {}

    def enter(self, job: int, entries: NDArray[np.int32]) -> None:
        """Record the nodes of a job that starts."""
        if self._is_crowded:
            self._stands[job] = np.unique(entries[:, 0])
            self._tenants[self._stands[job]] += 1
            self._list = None

    def add(self, index: int, entries: NDArray[np.int32], over: Fraction) -> None:
        """Add a job that has all cores of its nodes, if it can lend; `over` is when its walltime is."""
        job = self._site.jobs[index]
        allocation = self._site.columns.allocation_of(job.request, self._differing(entries))
        lender = lender_of(job, allocation, self._site.instance.cluster, self._rule)
        if lender is None:
            return
        kind = self._kinds.setdefault(lender.kinds, len(self._kinds))
        if kind == len(self._of_kind):
            self._of_kind.append(lender)
        nodes = np.unique(entries[:, 0])
        self.of[index] = Owner(lender=lender, entries=entries, nodes=nodes, kind=kind)
        self._note(index, over)

    def _differing(self, entries: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return entries of one node of each kind, where each node has one entry; else all entries."""
        if len(np.unique(entries[:, 0])) < len(entries):
            return entries
        kinds = np.column_stack([self._class_of[entries[:, 0]], entries[:, 1:]])
        found: NDArray[np.int32] = entries[np.unique(kinds, axis=0, return_index=True)[1]]
        return found

    def add_again(self, job: int) -> int:
        """Make a job the only owner of its nodes from now on; return the end of its walltime."""
        over = self._site.now + self._site.work_left(job)
        self._note(job, over)
        return ceil(over)

    def _note(self, job: int, over: Fraction) -> None:
        self._idle[job], self._list = over, None
        size = len(self.of[job].nodes)
        self._futile = {asked: found for asked, found in self._futile.items() if found[0] < size}

    def lend(self, job: int) -> None:
        """Record that a job lends from now on."""
        del self._idle[job]
        self._list = None

    def remove(self, job: int) -> None:
        """Forget a job that is gone."""
        self.drop(job)
        if job in self._stands:
            self._tenants[self._stands.pop(job)] -= 1
            self._list = None
            self._futile.clear()

    def drop(self, job: int) -> None:
        """Remove a job from all lists."""
        self.of.pop(job, None)
        if self._idle.pop(job, None) is not None:
            self._list = None

    def is_idle(self, job: int) -> bool:
        """Return whether a job could lend, and does not lend yet."""
        return job in self._idle

    def mates_of(self, guest: Guest, cut_off: float) -> tuple[Mate, ...] | None:
        """Return the mates that the rule chooses, with penalties below the cut-off; None if there are none (SD-6)."""
        asked = self._number_of(guest)
        if asked in self._futile:
            _, time, highest = self._futile[asked]
            if guest.time >= time and cut_off <= highest:
                return None
        chosen = select_mates(self._candidates(guest, cut_off), guest.chunk.count, self._rule)
        if chosen is None:
            self._futile[asked] = guest.chunk.count, guest.time, cut_off
        return chosen

    def _number_of(self, guest: Guest) -> int:
        number = self._asked.get(id(guest))
        if number is None:
            number = self._asks.setdefault((guest.chunk, guest.borrowed, guest.pace), len(self._asks))
            self._asked[id(guest)] = number
        return number

    def _candidates(self, guest: Guest, cut_off: float) -> list[Mate]:
        """Return possible mates of a guest: they end after it, have room for it, and a penalty below the cut-off.

        Those are left out that no least set needs.
        """
        site, listed, most = self._site, self._listed(), self._rule.most_mates
        wanted, seconds = guest.chunk.count, guest.seconds
        left = listed.over - site.now
        ends = site.now + seconds + np.maximum(0, np.ceil(left - listed.pace * seconds - _SLACK))
        since = listed.over if self._by_loss else site.submit[listed.jobs]
        penalties = (ends - since) / site.walltime[listed.jobs]
        fits = (listed.nodes <= wanted) & (left >= listed.pace * float(guest.time) - _SLACK) & (penalties < cut_off)
        has_room = np.array([self._has_room(kind, guest) for kind in range(len(self._of_kind))], dtype=np.bool_)
        places = np.flatnonzero(fits)
        places = places[has_room[listed.kinds[places]]]
        if len(places):
            places = places[_may_complete(listed.nodes[places], wanted, most)]
            order = np.lexsort((self._rank[listed.jobs[places]], penalties[places], listed.nodes[places]))
            places = places[order]
            sizes = listed.nodes[places]
            places = places[np.arange(len(sizes)) - np.searchsorted(sizes, sizes) < most]
        found = (self._mate(job, guest) for job in listed.jobs[places].tolist())
        return [mate for mate in found if mate is not None]

    def _mate(self, job: int, guest: Guest) -> Mate | None:
        """Return a job as a mate, to the fraction; None if it ends before its guest does."""
        pace, work = self.of[job].lender.pace.cautious, self._idle[job] - self._site.now
        if work < pace * guest.time:
            return None
        of_job = self._site.jobs[job]
        end = self._site.now + guest.seconds + max(0, ceil(work - pace * guest.seconds))
        since = self._idle[job] if self._by_loss else int(self._site.submit[job])
        penalty = Fraction(end - since) / of_job.walltime
        return Mate(job_id=of_job.id, nodes=len(self.of[job].nodes), penalty=penalty)

    def _has_room(self, kind: int, guest: Guest) -> bool:
        """Return whether owners of a kind have room for a guest; asked once of each pair."""
        pair = kind, id(guest)
        if pair not in self._room:
            self._room[pair] = self._of_kind[kind].has_room_for(guest)
        return self._room[pair]

    def _listed(self) -> _List:
        if self._list is None:
            jobs = list(self._idle)
            if self._is_crowded:
                jobs = [job for job in jobs if self._tenants[self.of[job].nodes].max() == 1]
            owners = [self.of[job] for job in jobs]
            self._list = _List(
                jobs=np.array(jobs, dtype=np.int64),
                nodes=np.array([len(owner.nodes) for owner in owners], dtype=np.int64),
                kinds=np.array([owner.kind for owner in owners], dtype=np.int64),
                over=np.array([float(self._idle[job]) for job in jobs], dtype=np.float64),
                pace=np.array([float(owner.lender.pace.cautious) for owner in owners], dtype=np.float64),
            )
        return self._list


def _may_complete(sizes: NDArray[np.int64], wanted: int, most: int) -> NDArray[np.bool_]:
    """Return which sizes can be part of a sum of so many nodes; of at most two, each follows from the other."""
    if most > 2:
        return np.ones(len(sizes), dtype=np.bool_)
    is_there = np.zeros(wanted + 1, dtype=np.bool_)
    if most > 1:
        is_there[sizes] = True
    is_there[0] = True
    return is_there[wanted - sizes]
