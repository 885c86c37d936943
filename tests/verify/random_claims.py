"""Tiny random instances with every rule, plans that keep them, and jobs in the waiting room whose claims are true or
false; which it is, brute force tells: every start, and every node for every chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from cpsched.verify.case import Case
from cpsched.verify.instance import read_instance
from cpsched.verify.model import Instance
from cpsched.verify.plan import PlanReader
from cpsched.verify.rules import RULES
from cpsched.verify.rules.objective import check_objective
from cpsched.verify.rules.waiting_room import check_waiting_room
from tests.verify.openings import strictly_verified
from tests.verify.small_documents import Document, plan, waiting

__all__ = ["Claim", "judged", "random_claims"]

#: Seconds after everything else has ended, and every job may start: whatever can start at all, can by then.
AFTER_ALL = 5
KEPT = [rule for rule in RULES if rule not in (check_waiting_room, check_objective)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a plan says of one job of its waiting room."""

    job: str
    #: Whether the job fits beside the plan, with all rules.
    is_false: bool
    #: Whether the job would fit on the empty, healthy cluster, without limits and pools; None: not asked for.
    fits_alone: bool | None
    #: Whether the oracle promises to find out: one kind of chunks, one step, one share.
    is_simple: bool
    reason: str


def random_claims(seed: int) -> tuple[Document, Document, list[Claim]]:
    """Return an instance, a plan that keeps all rules apart from what it claims, and the claims."""
    rng = Random(seed)
    document = _instance(rng)
    read = read_instance(document, "random")
    listed = [job for job in document["jobs"] if "running" in job]
    entries = [_repeated(job) for job in listed]
    left = [job for job in document["jobs"] if "running" not in job]
    rng.shuffle(left)
    slices = _slices(rng, read, document, entries)
    missing: list[Document] = []
    for job in left:
        found = list(_places(document, read, job, entries, slices)) if rng.random() < 0.5 else []
        if found:
            entries.append(rng.choice(found))
        else:
            missing.append(job)
    claims, room = [], []
    for job in missing:
        is_false = next(_places(document, read, job, entries, slices), None) is not None
        reason = rng.choice(["not_mapped", "unsatisfiable", *["too_late"] * 3 * _is_bounded(document, job)])
        is_simple = "steps" not in job and "malleable" not in job and len(job["request"].split("+")) == 1
        alone = _fits_alone(document, job) if reason == "unsatisfiable" else None
        claims.append(Claim(job=job["id"], is_false=is_false, fits_alone=alone, is_simple=is_simple, reason=reason))
        room.append(waiting(job["id"], reason))
    return document, _plan(entries, slices, room), claims


def _is_bounded(document: Document, job: Document) -> bool:
    hard = document["queues"].get(job.get("queue"), {}).get("max_wait", {}).get("hard", False)
    return bool({"deadline", "start_at", "reservation"} & job.keys() or hard)


def _instance(rng: Random) -> Document:
    """Return an instance of two or three nodes and up to five jobs, of which one may run."""

    def rarely(members: Document, chance: float = 0.25) -> Document:
        return members if rng.random() < chance else {}

    classes: list[Document] = []
    for letter, count in (("a", rng.randint(1, 2)), ("b", 1)):
        classes.append(
            {
                "names": f"{letter}[1-{count}]",
                "resources": {"cores": rng.randint(1, 3), "gpus": rng.randint(0, 1)},
                "properties": {"arch": letter},
                **rarely({"state": rng.choice(["down", "drain"])}, 0.15),
                **rarely({"keep_free": [{"resource": "cores", "items": 1, "for": "gpus"}]}),
                **rarely({"admits": [{"min": {"cores": 2}}, {"max_walltime": 3}]}, 0.15),
            }
        )
    nodes = [f"{entry['names'][0]}{number}" for entry in classes for number in range(1, int(entry["names"][4]) + 1)]
    resources = {f"{entry['names'][0]}": entry["resources"] for entry in classes}
    jobs = [_job(rng, number, rarely) for number in range(rng.randint(2, 5))]
    if rng.random() < 0.4:
        job = {"id": "r", "submit": 0, "walltime": rng.randint(1, 5), "request": "1:ncpus=1", "user": "u"}
        place: Document = {"place": rng.choice(["free", "free:excl"])}
        node = rng.choice(nodes)
        cores = rng.randint(1, resources[node[0]]["cores"] + (rng.random() < 0.2))
        running = {"start": 0, "allocation": [{"node": node, "resources": {"cores": cores}}]}
        jobs.append({**job, **place, "running": running})
    if len(jobs) > 2 and rng.random() < 0.3:
        jobs[1]["after"] = [
            {"job": jobs[0]["id"], "type": rng.choice(["after", "afterok"]), "delay": rng.randint(0, 2)}
        ]
    reserved = rarely({"id": "s", "start": rng.randint(0, 2), "end": rng.randint(4, 7), "request": "1:ncpus=1"})
    if reserved:
        reserved.update(rarely({"kind": "downtime"}, 0.4))
        if "kind" not in reserved and rng.random() < 0.6:
            jobs[0]["reservation"] = "s"
    limit: Document = {"consumer": {"user": "u"}, "resource": rng.choice(["cores", "jobs", "*"])}
    bound: Document = rng.choice(
        [{"items": rng.choice(["1", "2", "50%"])}, {"area": rng.randint(2, 9)}, {"duration": 2}]
    )
    outstanding: Document = {"area_scope": "outstanding"} if "area" in bound and rng.random() < 0.5 else {}
    pool: Document = {"resource": "cores", "items": "1", "open_to": {"users": ["v"]}}
    return {
        "format": "cpsched-instance/1",
        "name": "tiny",
        "now": 0,
        "cluster": {"nodes": classes, "licenses": {"lic": 1}},
        "queues": {"q": {"expected_wait": 10}, "h": {"expected_wait": 10, "max_wait": {"seconds": 3, "hard": True}}},
        "jobs": jobs,
        "limits": [{**limit, **bound, **outstanding, **_validity(rng)}] if rng.random() < 0.3 else [],
        "free_pools": [{**pool, **_validity(rng)}] if rng.random() < 0.2 else [],
        "reservations": [reserved] if reserved else [],
    }


def _validity(rng: Random) -> Document:
    if rng.random() < 0.5:
        return {}
    start = rng.randint(0, 4)
    return {"validity": {"from": start, "until": start + rng.randint(1, 4)}}


def _job(rng: Random, number: int, rarely: Any) -> Document:
    """Return a waiting job."""

    def request() -> str:
        chunk = f"{rng.randint(1, 3)}:ncpus={rng.randint(1, 2)}" + ":ngpus=1" * (rng.random() < 0.2)
        return chunk + f":arch={rng.choice('ab')}" * (rng.random() < 0.2)

    place: Document = (
        {"place": rng.choice(["pack", "scatter", "free:excl", "scatter:excl"])} if rng.random() < 0.35 else {}
    )
    job = {"id": f"j{number}", "submit": rng.randint(0, 2), "user": rng.choice("uv"), **place, **rarely({"queue": "h"})}
    kind = rng.random()
    if kind < 0.2:
        changed: Document = {
            "steps": [{"walltime": rng.randint(1, 3), "request": request()} for _ in range(rng.randint(1, 2))]
        }
    elif kind < 0.35:
        both = f"{rng.randint(1, 2)}:ncpus=1+1:ncpus={rng.randint(1, 2)}"
        changed = {"walltime": rng.randint(1, 4), "request": both}
    elif kind < 0.45:
        one = f"{rng.randint(1, 2)}:ncpus=2"
        changed = {"walltime": rng.randint(1, 4), "request": one, "malleable": {"shares": [0.5]}}
    else:
        changed = {"walltime": rng.randint(1, 4), "request": request()}
    timed = rng.choice([{}, {}, {"deadline": rng.randint(2, 9)}, {"start_at": rng.randint(0, 4)}])
    return {**job, **changed, **timed, **rarely({"licenses": {"lic": 1}}), **rarely({"not_before": rng.randint(0, 4)})}


def _repeated(job: Document) -> Document:
    """Return a running job as it stands in a plan."""
    running = job["running"]
    end = running["start"] + job["walltime"]
    segment = {"start": running["start"], "end": end, "allocation": running["allocation"]}
    return {"id": job["id"], "start": running["start"], "end": end, "segments": [segment]}


def _slices(rng: Random, read: Instance, document: Document, entries: list[Document]) -> list[Document]:
    """Return the allocation of the reservation, on any nodes that keep the rules; it is dropped if none do."""
    for reservation in document["reservations"]:
        nodes = list(read.nodes)
        rng.shuffle(nodes)
        for node in nodes:
            held = {"node": node, "chunk": 0, "count": 1, "resources": {"cores": 1}}
            slice_ = {"id": reservation["id"], "start": reservation["start"], "end": reservation["end"]}
            found = [{**slice_, "allocation": [held]}]
            if _keeps(read, entries, found):
                return found
    return []


def _plan(entries: list[Document], slices: list[Document], room: list[Document]) -> Document:
    return plan(entries, room, **({"reservations": slices} if slices else {}))


def _keeps(read: Instance, entries: list[Document], slices: list[Document]) -> bool:
    """Return whether entries of a plan keep all rules, apart from those about the jobs that are not among them."""
    reader = PlanReader(_plan(entries, slices, []), "plan", read)
    case = Case(read, reader.read())
    faults = (
        violation for rule in KEPT for violation in rule(case) if violation.rule not in ("presence", "reservation")
    )
    return not reader.violations and next(faults, None) is None


def _places(
    document: Document, read: Instance, job: Document, entries: list[Document], slices: list[Document]
) -> Iterator[Document]:
    """Yield every way in which a job can be added to a plan: starts, nodes, and shares; steps are held for their
    walltime.
    """
    steps = job.get("steps") or [job]
    reserved = next((one for one in slices if one["id"] == job.get("reservation")), None)
    if "reservation" in job and reserved is None:
        return
    ends = [one["end"] for one in (*entries, *slices, *document["reservations"])]
    ends += [
        rule["validity"]["until"] for key in ("limits", "free_pools") for rule in document[key] if "validity" in rule
    ]
    for start in range(max(ends, default=0) + AFTER_ALL):
        for courses in _courses(job, steps):
            for layout in product(*(_allocations(read, request) for _, request in courses)):
                begin, segments = start, []
                for (length, _), allocation in zip(courses, layout, strict=True):
                    segments.append({"start": begin, "end": begin + length, "allocation": allocation})
                    begin += length
                entry = {"id": job["id"], "start": start, "end": begin, "segments": segments}
                if reserved is not None and not reserved["start"] <= start <= begin <= reserved["end"]:
                    continue
                if _keeps(read, [*entries, entry], slices):
                    yield entry


def _courses(job: Document, steps: list[Document]) -> Iterator[list[tuple[int, list[tuple[int, Document]]]]]:
    """Yield lengths and chunks of the steps; of a malleable job also on half of its cores."""
    yield [(step["walltime"], _chunks(step["request"])) for step in steps]
    if "malleable" in job:
        halves = [(count, {**resources, "cores": 1}) for count, resources in _chunks(job["request"])]
        yield [(2 * job["walltime"], halves)]


def _chunks(request: str) -> list[tuple[int, Document]]:
    """Return counts and resources of the chunks of a request."""
    chunks = []
    for text in request.split("+"):
        count, *parts = text.split(":")
        amounts = dict(part.split("=") for part in parts)
        cores = {"cores": int(amounts["ncpus"])}
        chunks.append((int(count), cores | ({"gpus": 1} if "ngpus" in amounts else {})))
    return chunks


def _allocations(read: Instance, chunks: list[tuple[int, Document]]) -> Iterator[list[Document]]:
    """Yield every way to lay chunks on nodes."""
    for choice in product(*(_parted(list(read.nodes), count) for count, _ in chunks)):
        yield [
            {"node": node, "chunk": kind, "count": here, "resources": {name: here * one for name, one in chunk.items()}}
            for kind, (counts, (_, chunk)) in enumerate(zip(choice, chunks, strict=True))
            for node, here in counts
        ]


def _parted(nodes: list[str], count: int) -> Iterator[list[tuple[str, int]]]:
    """Yield every way to part some chunks among nodes."""
    for counts in product(range(count + 1), repeat=len(nodes)):
        if sum(counts) == count:
            yield [(node, here) for node, here in zip(nodes, counts, strict=True) if here]


def _fits_alone(document: Document, job: Document) -> bool:
    """Return whether the empty, healthy cluster could run a job if no rule of the site spoke of it."""
    free = {
        key: value for key, value in job.items() if key in ("id", "walltime", "request", "steps", "place", "malleable")
    }
    free.update({"submit": 0, "licenses": job.get("licenses", {})})
    nodes = [{**entry, "state": "up"} for entry in document["cluster"]["nodes"]]
    cluster = {**document["cluster"], "nodes": nodes}
    empty = {**document, "cluster": cluster, "jobs": [free], "limits": [], "free_pools": [], "reservations": []}
    return next(_places(empty, read_instance(empty, "empty"), free, [], []), None) is not None


def judged(seed: int) -> Iterator[tuple[str, Claim]]:
    """Yield what the oracle of openings makes of each claim of a random plan, beside what brute force says.

    A false claim that it does not promise to refuse counts apart if it is believed.
    """
    document, answer, claims = random_claims(seed)
    refused = {
        violation.subject for violation in strictly_verified(document, answer) if violation.rule == "waiting_room"
    }
    for claim in claims:
        is_refused = claim.job in refused
        if claim.is_false:
            believed = (
                "false claim believed" if claim.is_simple else "false claim believed (several kinds, steps, shares)"
            )
            yield ("false claim refused" if is_refused else believed), claim
        elif claim.fits_alone:
            yield "fits, but not beside the plan", claim
        else:
            yield ("true claim refused" if is_refused else "true claim believed"), claim
