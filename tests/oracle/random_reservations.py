"""Random windows with reservations of every kind: asked for or named, once or recurring, had already, with guests."""

from __future__ import annotations

from random import Random
from typing import Any

__all__ = ["reserved_window"]

Document = dict[str, Any]

_REQUESTS = (
    "ncpus=1", "ncpus=2", "2:ncpus=2", "ncpus=4", "3:ncpus=1", "1:ncpus=2+1:ngpus=1", "2:ncpus=4", "ngpus=1",
    "ncpus=2:mem=3",
)  # fmt: skip
_CALENDARS = ("0-9 * * * *", "*/30 * * * *", "* 2 * * *", "15-40 2-3 * * *", "* * * * sun")
#: The evenings before clocks are put back and forward in Berlin, and a morning.
_EPOCHS = ("2026-10-24T23:30:00+02:00", "2026-03-28T23:30:00+01:00", "2026-06-01T08:00:00+00:00")


def reserved_window(random: Random) -> Document:
    """Draw an instance of two to five nodes with up to three reservations, running jobs and waiting jobs."""
    few = random.randint(1, 4)
    nodes: list[Document] = [
        {"names": f"a[1-{few}]", "resources": {"cores": 4, "mem": 8}},
        {"names": "b1", "resources": {"cores": 2, "gpus": 1}, "properties": {"net": "ib"}},
    ]
    if random.random() < 0.3:
        nodes[0]["keep_free"] = [{"resource": "cores", "items": 1, "for": "gpus"}]
    if random.random() < 0.3:
        nodes[1]["admits"] = [{"max_walltime": 600}]
    names = [*(f"a{number}" for number in range(1, few + 1)), "b1"]
    own = random.choice([{"net": "ib"}, "a1", ",".join(random.sample(names, 2))])
    reservations = [_reservation(random, f"R{number}", names) for number in range(random.randint(0, 3))]
    open_to_jobs = [one["id"] for one in reservations if "kind" not in one]
    document: Document = {
        "format": "cpsched-instance/1",
        "name": "reserved",
        "epoch": random.choice(_EPOCHS),
        "now": 0,
        "cluster": {"nodes": nodes, "licenses": {"lic": 2}},
        "queues": {"q": {"expected_wait": 100, "nodes": own}, "p": {"expected_wait": 50}},
        "jobs": [*_running(random, names, open_to_jobs), *_waiting(random, open_to_jobs)],
        "reservations": reservations,
    }
    if random.random() < 0.4:
        document["cluster"]["states"] = {random.choice(names): random.choice(["down", "drain", "up"])}
    if random.random() < 0.5:
        document["time_zone"] = random.choice(["Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"])
    if random.random() < 0.3:
        times = {"cron": "0-29 * * * *"}
        document["limits"] = [{"consumer": {"user": "u"}, "resource": "cores", "items": "2", "validity": times}]
    return document


def _request(random: Random) -> str:
    place = random.choice(["pack", "scatter", "excl", "scatter:excl"])
    return random.choice(_REQUESTS) + (f",place={place}" if random.random() < 0.3 else "")


def _reservation(random: Random, name: str, names: list[str]) -> Document:
    entry: Document = {"id": name}
    if random.random() < 0.4:
        entry["validity"] = {"cron": random.choice(_CALENDARS), "until": random.choice([9000, 30000])}
    else:
        start = random.choice([-500, 0, 300, 1500, 3600])
        entry |= {"start": start, "end": max(50, start + random.choice([200, 1000, 4000]))}
    if random.random() < 0.4:
        entry["nodes"] = ",".join(random.sample(names, random.randint(1, len(names))))
    else:
        entry["request"] = _request(random)
        if "+" not in entry["request"] and random.random() < 0.4 and entry.get("start", 0) <= 0:
            held = {"node": random.choice(names), "chunk": 0, "count": 1, "resources": {"cores": random.randint(1, 2)}}
            entry["allocation"] = [held]
    if random.random() < 0.4:
        entry["kind"] = "downtime"
    if random.random() < 0.3 and not {"nodes", "kind"} <= entry.keys():
        entry["licenses"] = {"lic": random.randint(1, 3)}
    if random.random() < 0.2:
        entry["users"] = ["u"]
    return entry


def _running(random: Random, names: list[str], open_to_jobs: list[str]) -> list[Document]:
    left = {name: 4 if name.startswith("a") else 2 for name in names}
    jobs = []
    for number in range(random.randint(0, 3)):
        node, cores = random.choice(names), random.randint(1, 4)
        if left[node] >= cores:
            left[node] -= cores
            held = [{"node": node, "chunk": 0, "count": 1, "resources": {"cores": cores}}]
            job: Document = {
                "id": f"r{number}",
                "submit": -100,
                "walltime": random.choice([150, 900, 5000]),
                "request": f"ncpus={cores}",
                "running": {"start": -100, "allocation": held},
            }
            if open_to_jobs and random.random() < 0.3:
                job["reservation"] = random.choice(open_to_jobs)
            jobs.append(job)
    return jobs


def _waiting(random: Random, open_to_jobs: list[str]) -> list[Document]:
    jobs = []
    for number in range(random.randint(1, 6)):
        job: Document = {
            "id": f"j{number}",
            "submit": 0,
            "user": random.choice("uv"),
            "walltime": random.choice([60, 500, 700, 3000]),
            "request": _request(random),
        }
        if random.random() < 0.4:
            job["queue"] = random.choice("qp")
        if open_to_jobs and random.random() < 0.4:
            job["reservation"] = random.choice(open_to_jobs)
        if random.random() < 0.2:
            job["licenses"] = {"lic": 1}
        if random.random() < 0.2:
            job["not_before"] = random.choice([100, 4000])
        if "+" not in job["request"] and random.random() < 0.15:
            job["malleable"] = {"shares": [0.5]}
        jobs.append(job)
    return jobs
