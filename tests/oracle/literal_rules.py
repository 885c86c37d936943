"""The rules of a site as ``docs/formats.md`` has them, held against a plan moment by moment, on the raw documents.

It shares no code with cpsched, nor with its verifier. Jobs are rigid, requests and places are in their parsed form, and
host lists are names with commas between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any

from tests.oracle.minute_calendar import matches

__all__ = ["Booked", "Document", "LiteralRules", "held_by"]

Document = dict[str, Any]
#: Amounts by node and resource.
Held = dict[str, dict[str, int]]

DAY, HOUR, MINUTE = 86_400, 3_600, 60


@dataclass(frozen=True, slots=True)
class Booked:
    """A job with its time and nodes, or a reservation with its slice (`job` is its entry of the document)."""

    id: str
    job: Document
    start: int
    end: int
    #: Chunks by node and kind.
    chunks: tuple[tuple[str, int, int], ...]
    held: Held
    is_running: bool = False
    is_slice: bool = False


class LiteralRules:
    """An instance, read naively, and its rules.

    Parameters
    ----------
    document
        The instance, as JSON gives it.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.now: int = document["now"]
        self.epoch = datetime.fromisoformat(document.get("epoch", "2000-01-01T00:00:00+00:00"))
        self._minutes: dict[tuple[str, datetime], bool] = {}
        self.nodes: dict[str, Document] = {
            name: entry for entry in document["cluster"]["nodes"] for name in entry["names"].split(",")
        }
        self.licenses: dict[str, int] = document["cluster"].get("licenses", {})
        self.limits: list[Document] = document.get("limits", [])
        self.pools: list[Document] = document.get("free_pools", [])
        self.reservations = {one["id"]: one for one in document.get("reservations", []) if one["end"] > self.now}
        self.jobs: dict[str, Document] = {}
        self.members: dict[str, list[str]] = {}
        for entry in document["jobs"]:
            first, dash, last = entry.get("array", {}).get("indices", "").partition("-")
            numbers = range(int(first), int(last) + 1) if dash else []
            ids = [f"{entry['id']}[{number}]" for number in numbers] or [entry["id"]]
            self.members |= {entry["id"]: ids, **{name: [name] for name in ids}}
            self.jobs |= dict.fromkeys(ids, entry)
        self.running = tuple(self._running(name) for name, job in self.jobs.items() if "running" in job)
        self.waiting = [name for name, job in self.jobs.items() if "running" not in job]
        self.resources = list(dict.fromkeys(one for node in self.nodes.values() for one in node["resources"]))

    def _running(self, name: str) -> Booked:
        job = self.jobs[name]
        start, held = job["running"]["start"], _added(job["running"]["allocation"])
        end = start + job["walltime"]
        return Booked(name, job, start, end if end > self.now else self.now + 1, (), held, is_running=True)

    def booked(self, name: str, start: int, chunks: Sequence[tuple[str, int, int]]) -> Booked:
        """Return a waiting job with its start, and its chunks by node and kind."""
        job = self.jobs[name]
        return Booked(name, job, start, start + job["walltime"], tuple(chunks), held_by(job, chunks))

    def slice_of(self, name: str, chunks: Sequence[tuple[str, int, int]]) -> Booked:
        """Return a reservation with its chunks by node and kind."""
        entry = self.reservations[name]
        held = held_by(entry, chunks)
        return Booked(name, entry, entry["start"], entry["end"], tuple(chunks), held, is_slice=True)

    def holds(self, validity: Any, time: int) -> bool:
        """Return whether a rule holds at a second."""
        if validity in (None, "always"):
            return True
        if "cron" in validity:
            return self._matches(validity["cron"], time)
        return bool(validity.get("from", -inf) <= time < validity.get("until", inf))

    def _matches(self, cron: str, time: int) -> bool:
        """Return whether a cron expression matches the minute of a second, by the clock of the epoch's offset."""
        minute = (self.epoch + timedelta(seconds=time)).replace(second=0)
        if (cron, minute) not in self._minutes:
            self._minutes[cron, minute] = matches(cron, minute)
        return self._minutes[cron, minute]

    @cached_property
    def horizon(self) -> int:
        """No start of a best plan whose starts add up to the least is later."""
        validities = [rule.get("validity") for rule in (*self.limits, *self.pools)]
        times = [
            self.now,
            *(booked.end for booked in self.running),
            *(one["end"] for one in self.reservations.values()),
        ]
        times += [one[key] for one in validities if isinstance(one, dict) for key in ("from", "until") if key in one]
        for name in self.waiting:
            times += [self.jobs[name].get(key, self.now) for key in ("submit", "not_before", "start_at", "deadline")]
            times.append(
                self.jobs[name]["submit"] + self.queue_of(self.jobs[name]).get("max_wait", {}).get("seconds", 0)
            )
        crons = [one["cron"].split() for one in validities if isinstance(one, dict) and "cron" in one]
        period = HOUR if crons else 0
        period = DAY if any(cron[1] != "*" for cron in crons) else period
        period = 7 * DAY if any(cron[4] != "*" for cron in crons) else period
        if any(cron[2] != "*" or cron[3] != "*" for cron in crons):
            raise ValueError(f"expected calendars that repeat themselves every week, got {crons}")
        each = [self.jobs[name]["walltime"] + period for name in self.waiting]
        delays = [wait["delay"] for name in self.waiting for wait in self.jobs[name].get("after", [])]
        return max(times) + sum(each) + sum(delays)

    @cached_property
    def borders(self) -> list[int]:
        """The seconds at which a rule begins or ceases to hold, or a reservation begins or ends, up to the horizon."""
        found = {time for one in self.reservations.values() for time in (one["start"], one["end"])}
        first = min([self.now, *(booked.start for booked in self.running)])
        for validity in [rule.get("validity") for rule in (*self.limits, *self.pools)]:
            if not isinstance(validity, dict):
                continue
            if "cron" not in validity:
                found |= {validity[key] for key in ("from", "until") if key in validity}
                continue
            minute = (first + self.epoch.second) // MINUTE * MINUTE - self.epoch.second
            longest = max([0, *(job["walltime"] for job in self.jobs.values())])
            before = None
            for time in range(minute, self.horizon + longest + HOUR, MINUTE):
                now = self.holds(validity, time)
                if now is not before:
                    found.add(time)
                before = now
        return sorted(found)

    def queue_of(self, job: Document) -> Document:
        """Return the queue of a job; one without a queue expects to wait for half an hour."""
        queue: Document = self.document["queues"][job["queue"]] if "queue" in job else {"expected_wait": 1800}
        return queue

    def earliest(self, job: Document) -> int:
        """Return the earliest start that a job's own times allow."""
        reserved = self.reservations[job["reservation"]]["start"] if self._is_guest(job) else self.now
        return max(self.now, job["submit"], job.get("not_before", self.now), job.get("start_at", self.now), reserved)

    def latest(self, job: Document) -> float:
        """Return the latest start that a job's own times allow."""
        bounds = [inf, job.get("start_at", inf), job.get("deadline", inf) - job["walltime"]]
        max_wait = self.queue_of(job).get("max_wait", {})
        if max_wait.get("hard") and job["submit"] + max_wait["seconds"] >= self.now:
            bounds.append(job["submit"] + max_wait["seconds"])
        if "reservation" in job:
            has_ended = job["reservation"] not in self.reservations
            bounds.append(-inf if has_ended else self.reservations[job["reservation"]]["end"] - job["walltime"])
        return -inf if self.is_too_long(job) else min(bounds)

    def is_too_long(self, job: Document) -> bool:
        """Return whether a job is longer than its queue accepts."""
        return bool(job["walltime"] > self.queue_of(job).get("max_walltime", inf))

    def _is_guest(self, job: Document) -> bool:
        return job.get("reservation") in self.reservations

    def ready(self, job: Document, others: Sequence[Booked]) -> float:
        """Return the earliest start that a job's dependencies allow, infinite if one of them has no start."""
        known = {booked.id: booked for booked in others if not booked.is_slice}
        times = [-inf]
        for wait in job.get("after", []):
            for name in self.members[wait["job"]]:
                if name not in known:
                    return inf
                moment = known[name].start if wait["type"] == "after" else known[name].end
                times.append(moment + wait["delay"])
        return max(times)

    def objections(self, booked: Booked, others: Sequence[Booked]) -> Iterator[str]:
        """Yield what is wrong with a planned job or a slice beside everything else that holds something."""
        if not booked.is_slice:
            yield from self._of_its_own(booked, others)
        yield from self._of_its_nodes(booked)
        begins = [*self.borders, *(other.start for other in others)]
        for time in {booked.start, *(begin for begin in begins if booked.start < begin < booked.end)}:
            here = [booked, *(other for other in others if other.start <= time < other.end)]
            yield from self._on_nodes(booked, here, time)
            yield from self._of_licenses(booked, here, time)
            if not booked.is_slice:
                jobs = [one for one in here if not one.is_slice]
                yield from self._of_items(booked, jobs, time)
                yield from self._of_pools(booked, jobs, time)
        if not booked.is_slice:
            yield from self._of_requests(booked, others)

    def _of_its_own(self, booked: Booked, others: Sequence[Booked]) -> Iterator[str]:
        """Yield what is wrong with its start and end."""
        job = booked.job
        if not self.earliest(job) <= booked.start <= self.latest(job):
            yield f"start {booked.start} is outside {self.earliest(job)} to {self.latest(job)}"
        if booked.start < self.ready(job, others):
            yield f"start {booked.start} is before that of its dependencies, {self.ready(job, others)}"
        if booked.end != booked.start + job["walltime"]:
            yield "it does not run for its walltime"
        if self._is_guest(job):
            users = self.reservations[job["reservation"]].get("users", [])
            if users and job.get("user") not in users:
                yield "its user may not use the reservation"
            if not any(other.is_slice and other.id == job["reservation"] for other in others):
                yield "its reservation has no slice"

    def _of_its_nodes(self, booked: Booked) -> Iterator[str]:
        """Yield what is wrong with its chunks and where each of them is."""
        asked = booked.job["request"]
        arrangement, exclusive = _place(booked.job)
        counts = Counter[int]()
        for node, kind, count in booked.chunks:
            counts[kind] += count
            chunk, has = asked[kind], self.nodes[node]
            state = self._state(node)
            if state != "up" and booked.job.get("kind") != "downtime":
                yield f"{node} is {state}"
            for name, value in chunk.get("where", {}).items():
                if has.get("properties", {}).get(name) != value:
                    yield f"{node} is not {name}={value}"
            if booked.is_slice:
                continue
            own = self.queue_of(booked.job).get("nodes")
            if own is not None and not _is_of(own, node, has):
                yield f"{node} is none of its queue's"
            guards = has.get("admits", [])
            if guards and not any(_admits(guard, chunk, booked.job["walltime"]) for guard in guards):
                yield f"the guard of {node}"
            if exclusive and any(not chunk["resources"].get(one["for"]) for one in has.get("keep_free", [])):
                yield f"{node} keeps something free, so that it cannot be had exclusively"
        if any(counts[kind] != chunk["count"] for kind, chunk in enumerate(asked)):
            yield "not all of its chunks"
        on_node = Counter[str]()
        for node, _, count in booked.chunks:
            on_node[node] += count
        if arrangement == "pack" and len(on_node) > 1:
            yield "not packed"
        if arrangement == "scatter" and max(on_node.values()) > 1:
            yield "not scattered"
        *parts, within = booked.job.get("place", "").split(":")
        level = within.removeprefix("within=") if within.startswith("within=") else ""
        groups = Counter(self.groups_of(node).get(level) for node, _, count in booked.chunks for _ in range(count))
        key, _, number = parts[-1].partition("=") if parts else ("", "", "")
        if level and None in groups:
            yield f"on a node in no {level}"
        elif level and key == "segment" and any(count % int(number) for count in groups.values()):
            yield f"a segment in several groups of {level}"
        elif level and key == "spread" and max(groups.values()) > int(number):
            yield f"not spread over groups of {level}"
        elif level and not number and len(groups) > 1:
            yield f"not within one {level}"

    def groups_of(self, node: str) -> dict[str, str]:
        """Return the group of a node by level of the topology."""
        levels: Document = self.document["cluster"].get("topology", {})
        return {level: name for level, groups in levels.items() for name in groups if node in groups[name].split(",")}

    def _on_nodes(self, booked: Booked, here: Sequence[Booked], time: int) -> Iterator[str]:
        """Yield what is too much on one of its nodes at a moment: capacity, reservations, keep_free, exclusive use."""
        inside = booked.job.get("reservation") if not booked.is_slice else None
        slices = {one.id: one for one in here if one.is_slice}
        for node in booked.held:
            there = [one for one in here if node in one.held]
            facts = [one for one in there if one.is_running]
            for name in self.resources:
                has = self.nodes[node]["resources"].get(name, 0)
                if sum(one.held[node].get(name, 0) for one in facts) > has:
                    yield f"at {time}: running jobs have too much of {node}"
            # what is outside of all reservations; a guest is inside of its own
            if inside in slices:
                guests = [one for one in there if not one.is_slice and one.job.get("reservation") == inside]
                has_slice = slices[inside].held.get(node, {})
                for name, amount in booked.held[node].items():
                    if amount and _sum(guests, node, name) > has_slice.get(name, 0):
                        yield f"at {time}: too much {name} of {node} in {inside}"
            else:
                outside = [one for one in there if one.is_slice or one.job.get("reservation") not in slices]
                for name, amount in booked.held[node].items():
                    has = self.nodes[node]["resources"].get(name, 0)
                    if amount and _sum(outside, node, name) > has:
                        yield f"at {time}: too much {name} of {node}"
            if not booked.is_slice:
                yield from self._kept_free(booked, there, node, time)
            for other in there:
                is_alone = _place(booked.job)[1] or _place(other.job)[1]
                if is_alone and other is not booked and not _is_host(booked, other) and not _is_host(other, booked):
                    yield f"at {time}: {node} is shared with {other.id}, one has it exclusively"

    def _kept_free(self, booked: Booked, there: Sequence[Booked], node: str, time: int) -> Iterator[str]:
        """Yield where chunks that do not ask for something leave too little free for those that do."""
        for rule in self.nodes[node].get("keep_free", []):
            name, most = rule["resource"], self.nodes[node]["resources"].get(rule["resource"], 0) - rule["items"]
            taken = {id(one): _without(one, node, name, rule["for"]) for one in there if not one.is_slice}
            if taken[id(booked)] and sum(taken.values()) > max(0, most):
                yield f"at {time}: {node} keeps {rule['items']} {name} free"

    def _of_licenses(self, booked: Booked, here: Sequence[Booked], time: int) -> Iterator[str]:
        """Yield where too many licences are held, in the cluster or in the reservation of the job."""
        slices = {one.id: one for one in here if one.is_slice}
        inside = booked.job.get("reservation") if not booked.is_slice else None
        for name, amount in booked.job.get("licenses", {}).items():
            if inside in slices:
                among = [one for one in here if not one.is_slice and one.job.get("reservation") == inside]
                most = slices[inside].job.get("licenses", {}).get(name, 0)
            else:
                among = [one for one in here if one.is_slice or one.job.get("reservation") not in slices]
                most = self.licenses.get(name, 0)
            if amount and sum(one.job.get("licenses", {}).get(name, 0) for one in among) > most:
                yield f"at {time}: too many {name}"

    def _state(self, node: str) -> str:
        """Return the state of a node: its own, or that of its entry."""
        state: str = self.document["cluster"].get("states", {}).get(node, self.nodes[node].get("state", "up"))
        return state

    def _up(self, name: str, nodes: Sequence[str] | None = None) -> int:
        """Return how much of a resource is up now."""
        if name in self.licenses:
            return self.licenses[name]
        up = [node for node in self.nodes if self._state(node) == "up"]
        among = up if nodes is None else [node for node in up if node in nodes]
        return sum(self.nodes[node]["resources"].get(name, 0) for node in among)

    def _items(self, text: str, available: int) -> int:
        """Return the larger of an amount and a share of what is available."""
        found = 0
        for part in text.split("/"):
            share = int(Fraction(part[:-1]) * available / 100) if part.endswith("%") else int(part)
            found = max(found, share)
        return found

    def _taken(self, booked: Booked, name: str, nodes: Sequence[str] | None = None) -> int:
        """Return how much of a resource, or of licences, a job has; or how many jobs it counts as."""
        if name in ("jobs", "arrayjobs"):
            return int(name == "jobs" or "array" in booked.job)
        if name in self.licenses:
            amount: int = booked.job.get("licenses", {}).get(name, 0)
            return amount
        return sum(held.get(name, 0) for node, held in booked.held.items() if nodes is None or node in nodes)

    def _bounds(self, booked: Booked) -> Iterator[tuple[Document, str, str, str]]:
        """Yield the limits that are about a job: each with the kind and name of its subject, and a resource."""
        for limit in self.limits:
            subject = _subject(limit["consumer"], booked.job)
            if subject is None or limit.get("soft"):
                continue
            resources = [limit["resource"]] if limit["resource"] != "*" else [*self.resources, *self.licenses]
            for resource in resources:
                yield limit, *subject, resource

    def _is_in_force(self, limit: Document, kind: str, name: str, resource: str, time: int) -> bool:
        """Return whether a limit holds for a resource at a second: ``*`` does where the subject has none of its own."""
        if limit["resource"] == "*":
            for other in self.limits:
                is_own = other["resource"] == resource and _subject(other["consumer"], {kind: name}) is not None
                if is_own and self.holds(other.get("validity"), time):
                    return False
        return self.holds(limit.get("validity"), time)

    def _is_ever_in_force(self, bound: tuple[Document, str, str, str], booked: Booked) -> bool:
        """Return whether a limit holds at some second of a job."""
        times = [booked.start, *(time for time in self.borders if booked.start < time < booked.end)]
        return any(self._is_in_force(*bound, time) for time in times)

    def _of_items(self, booked: Booked, jobs: Sequence[Booked], time: int) -> Iterator[str]:
        """Yield limits on the items of a user or group that are exceeded at a moment."""
        for bound in self._bounds(booked):
            limit, kind, name, resource = bound
            if "items" in limit and self._taken(booked, resource) and self._is_in_force(*bound, time):
                most = self._items(limit["items"], self._up(resource))
                has = sum(self._taken(one, resource) for one in jobs if one.job.get(kind) == name)
                if has > most:
                    yield f"at {time}: {kind} {name} has {has} {resource}, of {most}"

    def _of_pools(self, booked: Booked, jobs: Sequence[Booked], time: int) -> Iterator[str]:
        """Yield free pools of which jobs that are not let in use too much at a moment."""
        for pool in self.pools:
            nodes = pool["nodes"].split(",") if "nodes" in pool else None
            name = pool["resource"]
            available = self._up(name, nodes)
            most = max(0, available - self._items(pool["items"], available))
            if not self._taken(booked, name, nodes) or self._is_let_in(pool, booked):
                continue
            others = [one for one in jobs if not self._is_let_in(pool, one)]
            if self.holds(pool.get("validity"), time) and sum(self._taken(one, name, nodes) for one in others) > most:
                yield f"at {time}: more than {most} {name} of a free pool"

    def _is_let_in(self, pool: Document, booked: Booked) -> bool:
        """Return whether a pool is open to a job."""
        job, access = booked.job, pool.get("open_to", {})
        if job.get("user") in access.get("users", []) or job.get("group") in access.get("groups", []):
            return True
        totals = Counter[str](job.get("licenses", {}))
        for chunk in job["request"]:
            totals.update({name: chunk["count"] * amount for name, amount in chunk["resources"].items()})
        if any(totals[name] for name in access.get("asks_for", [])):
            return True
        is_small = all(totals[name] <= most for name, most in access.get("max", {}).items())
        is_short = job["walltime"] <= access.get("max_walltime", inf)
        if ("max" in access or "max_walltime" in access) and is_small and is_short:
            return True
        return bool("otherwise" in pool and job["walltime"] <= pool["otherwise"]["max_walltime"])

    def _of_requests(self, booked: Booked, others: Sequence[Booked]) -> Iterator[str]:
        """Yield limits on the duration and area of one request, and on the outstanding area."""
        for bound in self._bounds(booked):
            limit, kind, name, resource = bound
            amount, seconds = self._taken(booked, resource), booked.end - booked.start
            if not amount or not self._is_ever_in_force(bound, booked):
                continue
            if seconds > limit.get("duration", inf):
                yield f"{seconds} s of {resource}"
            if "area" not in limit:
                continue
            if limit.get("area_scope", "request") == "request":
                if amount * seconds > limit["area"]:
                    yield f"{amount * seconds} {resource} x s"
                continue
            area = sum(
                used["area"]
                for used in self.document.get("usage", [])
                if used["resource"] == resource and used["consumer"] == {kind: name}
            )
            for one in (booked, *others):
                if not one.is_slice and one.job.get(kind) == name and self._is_ever_in_force(bound, one):
                    area += self._taken(one, resource) * (one.end - one.start)
            if area > limit["area"]:
                yield f"{area} {resource} x s outstanding"

    def faults(self, slices: Sequence[Booked], jobs: Sequence[Booked]) -> list[str]:
        """List what is wrong with a plan: some slices, and jobs beside them."""
        everything = [*self.running, *slices, *jobs]
        found = []
        for one in (*slices, *jobs):
            others = [other for other in everything if other is not one]
            found += [f"{one.id}: {objection}" for objection in self.objections(one, others)]
        return found

    def cost(self, job: Document, start: int) -> float:
        """Return what a job adds to the objective, the makespan apart, if it starts at a second."""
        end, queue = start + job["walltime"], self.queue_of(job)
        expected, wait = queue["expected_wait"], start - job["submit"]
        runtime = job["expected"] if job.get("expected") else job["walltime"]
        terms = {
            "weighted_wait": wait / expected,
            "wait": wait,
            "completion": end - job["submit"],
            "slowdown": max(1.0, (wait + runtime) / max(10, runtime)),
            "tardiness": max(0, wait - expected),
        }
        total = sum(weight * terms.get(term, 0.0) for term, weight in self.weights.items())
        if "max_wait" in queue:
            overdue = max(0, wait - queue["max_wait"]["seconds"])
            total += queue["max_wait"].get("price", 10) * overdue / expected
        if "told" in job:
            total += job["told"].get("price", 1) * max(0, start - job["told"]["start"]) / expected
        return float(total)

    @cached_property
    def weights(self) -> dict[str, float]:
        """The terms of the objective with their weights."""
        said = self.document.get("objective", "weighted_wait")
        return {said: 1.0} if isinstance(said, str) else said

    def makespan(self, ends: Sequence[int]) -> float:
        """Return what the last end adds to the objective."""
        return self.weights.get("makespan", 0.0) * (max(ends) - self.now if ends else 0)

    def value(self, jobs: Sequence[Booked]) -> float:
        """Return the value of a plan."""
        return sum(self.cost(one.job, one.start) for one in jobs) + self.makespan([one.end for one in jobs])

    def suffered(self, jobs: Sequence[Booked]) -> float:
        """Return the value if each job started when it could at the earliest."""
        starts = [max(self.now, one.job["submit"]) for one in jobs]
        ends = [start + one.job["walltime"] for start, one in zip(starts, jobs, strict=True)]
        return sum(self.cost(one.job, start) for start, one in zip(starts, jobs, strict=True)) + self.makespan(ends)


def _place(entry: Document) -> tuple[str, bool]:
    """Return the arrangement of a job or reservation, and whether it wants its nodes for itself."""
    words = entry.get("place", "free").split(":")
    return words[0], "excl" in words


def held_by(entry: Document, chunks: Sequence[tuple[str, int, int]]) -> Held:
    """Add up what chunks have on each node."""
    held: Held = {}
    for node, kind, count in chunks:
        for name, amount in entry["request"][kind]["resources"].items():
            on_node = held.setdefault(node, {})
            on_node[name] = on_node.get(name, 0) + count * amount
    return held


def _added(allocation: Sequence[Document]) -> Held:
    """Add up what a running job has on each node."""
    held: Held = {}
    for entry in allocation:
        for name, amount in entry["resources"].items():
            on_node = held.setdefault(entry["node"], {})
            on_node[name] = on_node.get(name, 0) + amount
    return held


def _sum(booked: Sequence[Booked], node: str, name: str) -> int:
    return sum(one.held[node].get(name, 0) for one in booked)


def _without(booked: Booked, node: str, name: str, beneficiary: str) -> int:
    """Return how much of a resource a job has on a node with chunks that do not ask for something.

    A running job's chunks are not known: it is judged by its allocation on the node.
    """
    if booked.is_running:
        held = booked.held[node]
        return 0 if held.get(beneficiary) else held.get(name, 0)
    asked = [(booked.job["request"][kind]["resources"], count) for at, kind, count in booked.chunks if at == node]
    return sum(count * chunk.get(name, 0) for chunk, count in asked if not chunk.get(beneficiary))


def _is_host(host: Booked, guest: Booked) -> bool:
    """Return whether a job runs in a reservation."""
    return host.is_slice and not guest.is_slice and guest.job.get("reservation") == host.id


def _admits(guard: Document, chunk: Document, walltime: int) -> bool:
    """Return whether all parts of a condition of a guard hold."""
    enough = all(chunk["resources"].get(name, 0) >= least for name, least in guard.get("min", {}).items())
    return bool(enough and walltime <= guard.get("max_walltime", inf))


def _is_of(nodes: Any, name: str, has: Document) -> bool:
    """Return whether a node is one of those that a queue has by name or by properties."""
    if isinstance(nodes, str):
        return name in nodes.split(",")
    return all(has.get("properties", {}).get(key) == value for key, value in nodes.items())


def _subject(consumer: Document, job: Document) -> tuple[str, str] | None:
    """Return the kind and name of the user or group of a job that a limit is about, or None."""
    ((key, value),) = consumer.items()
    kind = value if key == "each" else key
    name = job.get(kind)
    return None if name is None or (key != "each" and name != value) else (kind, name)
