"""Windows with rules of a site that are drawn at random: limits, free pools, reservations and calendars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarking.windows import REAL, shipped
from cpsched.domain import Instance
from cpsched.formats import instance_to_document, parse_instance

__all__ = ["queues", "with_rules", "with_shares"]

Document = dict[str, Any]

#: Second 0 of a window without an epoch: a Friday morning, two days before clocks change.
EPOCH, ZONE = "2024-03-29T08:00:00+01:00", "Europe/Berlin"
#: The calendars of the rules: working hours, nights, and the first half of every other hour.
CALENDARS = ("* 8-17 * * mon-fri", "* 22-23,0-5 * * *", "0-29 */2 * * *")
HOUR, DAY = 3600, 86_400


def queues(*, quick: bool) -> Sequence[Path]:
    """Return the real queues that are present, else windows that the repository ships."""
    return shipped()[:1] if quick else sorted((REAL / "snapshots").glob("*.json.gz")) or shipped()


def with_rules(instance: Instance, seed: int, *, limits: int = 50, pools: int = 5, reservations: int = 10) -> Instance:
    """Return a window with limits, free pools and reservations, the same for the same seed.

    Few of its jobs cannot be planned: most limits on items leave each user and group what its largest job asks for.
    """
    random = Random(seed)
    document = instance_to_document(instance)
    document["name"] = f"{instance.name}-ruled"
    if "epoch" not in document:
        document |= {"epoch": EPOCH, "time_zone": ZONE}
    document["limits"] = [_limit(random, instance) for _ in range(limits)]
    document["free_pools"] = [_pool(random, instance, document) for _ in range(pools)]
    document["reservations"] = [_reservation(random, instance, f"r{number}") for number in range(reservations)]
    return parse_instance(document)


def with_shares(instance: Instance, share: int) -> Instance:
    """Return a window in which each user has at most `share` percent of the cores at a time."""
    document = instance_to_document(instance)
    document["name"] = f"{instance.name}-{share}%"
    document["limits"] = [{"consumer": {"each": "user"}, "resource": "cores", "items": f"{share}%"}]
    return parse_instance(document)


def _cores_of(instance: Instance, kind: str, name: str | None) -> int:
    """Return the cores of the largest job of a user or group, or of all."""
    jobs = [job for job in instance.jobs if name is None or getattr(job, kind) == name]
    return max((step.request.totals.get("cores", 0) for job in jobs for step in job.steps), default=1)


def _names(instance: Instance, kind: str) -> Sequence[str]:
    """Return the users or groups of all jobs, those of many jobs as often."""
    return [name for job in instance.jobs if (name := getattr(job, kind)) is not None]


def _validity(random: Random, instance: Instance) -> Document:
    """Draw when a rule holds."""
    kind = random.random()
    if kind < 0.5:
        return {}
    if kind < 0.75:
        return {"validity": {"cron": random.choice(CALENDARS)}}
    start = instance.now + random.randrange(-DAY, 2 * DAY)
    return {"validity": {"from": start, "until": start + random.randrange(HOUR, DAY)}}


def _limit(random: Random, instance: Instance) -> Document:
    """Draw a limit of a user, a group, or each of them."""
    kind = random.choice(["user", "user", "group"])
    name = random.choice(_names(instance, kind) or [None])
    is_of_each = name is None or random.random() < 0.2
    consumer = {"each": kind} if is_of_each else {kind: name}
    limit: Document = {"consumer": consumer, "resource": "cores", **_validity(random, instance)}
    total, largest = instance.cluster.totals["cores"], _cores_of(instance, kind, None if is_of_each else name)
    what = random.random()
    if what < 0.6:
        limit["items"] = f"{largest}/{random.choice([5, 10, 20, 30, 50])}%"
    elif what < 0.75:
        limit |= {"resource": "jobs", "items": str(random.randint(2, 20))}
    elif what < 0.85:
        limit["duration"] = random.choice([12, 24, 48, 96]) * HOUR
    elif what < 0.95:
        limit["area"] = random.choice([1, 2, 5]) * DAY * max(largest, total // 10)
    else:
        limit |= {"area": 20 * DAY * max(largest, total // 4), "area_scope": "outstanding"}
    return limit


def _pool(random: Random, instance: Instance, document: Document) -> Document:
    """Draw a free pool, of the whole machine or of the nodes of one entry."""
    access: Document = {"users": sorted(set(random.choices(_names(instance, "user") or ["nobody"], k=3)))}
    access |= {"max": {"cores": random.choice([1, 4, 16])}, "max_walltime": HOUR} if random.random() < 0.5 else {}
    pool: Document = {"resource": "cores", "items": f"{random.randint(2, 8)}%", "open_to": access}
    pool |= {"otherwise": {"max_walltime": HOUR // 2}} if random.random() < 0.3 else {}
    pool |= {"nodes": random.choice(document["cluster"]["nodes"])["names"]} if random.random() < 0.4 else {}
    return pool | _validity(random, instance)


def _reservation(random: Random, instance: Instance, name: str) -> Document:
    """Draw a reservation or a downtime of up to two percent of the nodes, within two days."""
    node_class = random.choice(instance.cluster.classes)
    count = random.randint(1, max(1, len(node_class.names) // 50))
    start = instance.now + random.randrange(2 * DAY)
    chunk = {"count": count, "resources": {"cores": node_class.resources["cores"]}}
    one: Document = {"id": name, "start": start, "end": start + random.randint(1, 6) * HOUR, "request": [chunk]}
    return one | {"place": "scatter"} | ({"kind": "downtime"} if random.random() < 0.3 else {})
