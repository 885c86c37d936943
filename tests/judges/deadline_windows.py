"""Random tiny windows, as documents, in which jobs can be too late: what `brute_force` can still try out.

Jobs are rigid. Host lists are names with commas between them, and requests are in their parsed form.
"""

from __future__ import annotations

from random import Random

from tests.judges.ruled_windows import Document

__all__ = ["deadline_window"]

TERMS = ("weighted_wait", "weighted_wait", "wait", "slowdown", "completion", "makespan", "tardiness")


def deadline_window(seed: int) -> Document:
    """Draw a window of up to five jobs, of which most must start by some time; the same for the same seed."""
    random = Random(seed)
    now = random.choice([0, 0, 50, -20])
    nodes = [{"names": names, "resources": {"cores": random.choice([2, 3, 4])}} for names in _names(random)]
    has_licence = random.random() < 0.2
    jobs: list[Document] = []
    if random.random() < 0.4:
        jobs.append(_running_job(random, now, nodes[0]))
    jobs += [_waiting_job(random, now, number, jobs) for number in range(random.choice([2, 3, 3, 4, 4, 5]))]
    for job in jobs:
        if has_licence and "running" not in job and random.random() < 0.5:
            job["licenses"] = {"lic": 1}
    random.shuffle(jobs)
    term = random.choice(TERMS)
    document: Document = {
        "format": "cpsched-instance/1",
        "name": f"deadlines-{seed}",
        "now": now,
        "cluster": {"nodes": nodes, "licenses": {"lic": 1}},
        "queues": {
            "q": {"expected_wait": 10},
            "hard": {"expected_wait": 7, "max_wait": {"seconds": random.choice([3, 6, 10]), "hard": True}},
        },
        "jobs": jobs,
        "objective": term if random.random() < 0.8 else {term: 1.0, "makespan": 0.5, "wait": 0.25},
    }
    return document


def _names(random: Random) -> list[str]:
    return random.choice(["a1", "a1", "a1,a2", "a1 b1", "a1,a2 b1"]).split()


def _running_job(random: Random, now: int, node: Document) -> Document:
    """Draw a job that holds some cores of the first node for a while."""
    cores = random.randint(1, node["resources"]["cores"])
    name = node["names"].split(",")[0]
    allocation = [{"node": name, "chunk": 0, "count": 1, "resources": {"cores": cores}}]
    start = now - random.randint(1, 5)
    return {
        "id": "r0",
        "submit": start,
        "walltime": now - start + random.randint(1, 8),
        "request": [{"count": 1, "resources": {"cores": cores}}],
        "running": {"start": start, "allocation": allocation},
    }


def _waiting_job(random: Random, now: int, number: int, others: list[Document]) -> Document:
    """Draw a job that waits; two in three must start by some time."""
    submit, walltime = now - random.randint(0, 6), random.randint(1, 8)
    count = random.choice([1, 1, 1, 2])
    job: Document = {
        "id": f"w{number}",
        "queue": random.choice(["q", "q", "q", "hard"]),
        "submit": submit,
        "walltime": walltime,
        "priority": random.choice([0, 0, 1, 2]),
        "request": [{"count": count, "resources": {"cores": random.randint(1, 2 if count > 1 else 4)}}],
    }
    kind = random.random()
    if kind < 0.45:
        job["deadline"] = now + walltime + random.randint(0, 12)
    elif kind < 0.6:
        job["start_at"] = now + random.randint(0, 10)
    if random.random() < 0.15:
        job["not_before"] = now + random.randint(0, 6)
    if random.random() < 0.15:
        job["place"] = random.choice(["scatter", "pack", "excl"])
    if others and random.random() < 0.3:
        types = ["after", "afterok", "afterany", "afternotok"]
        delay = random.choice([0, 0, 0, 1, 3])
        job["after"] = [{"job": random.choice(others)["id"], "type": random.choice(types), "delay": delay}]
    return job
