"""Random tiny windows, as documents, of jobs that change while they run on a machine of many kinds of nodes.

Jobs are malleable or evolving, of several kinds of chunks; nodes have guards, cores kept free, GPUs, MICs and other
resources, and some are drained or down. What a job asks for on all its cores can be refused on fewer of them.
"""

from __future__ import annotations

from random import Random
from typing import Any

__all__ = ["changing_window"]

Document = dict[str, Any]


def changing_window(seed: int) -> Document:
    """Draw a window; the same for the same seed."""
    random = Random(seed)
    classes = random.choice([1, 2, 2, 2, 3, 3, 4, 10])
    nodes = [_nodes(random, number) for number in range(classes)]
    if classes > 1 and random.random() < 0.4:  # what only one kind of nodes has is guarded by cores
        special = random.choice(["gpus", "mics"])
        for node in nodes:
            node["resources"].pop(special, None)
        nodes[-1]["resources"] |= {special: 2, "cores": 4}
        nodes[-1]["admits"] = [{"min": {"cores": 2}}]
    jobs = [_running(random, nodes, number) for number in range(random.choice([0, 0, 1, 2]))]
    found = [job for job in jobs if job is not None]
    found += [_waiting(random, number) for number in range(random.choice([1, 1, 2, 3]))]
    found.append({"id": "plain", "submit": 0, "walltime": 3, "request": [{"count": 1, "resources": {"cores": 1}}]})
    for job in found:
        if "running" not in job and random.random() < 0.1:
            job["after"] = [{"job": random.choice(found)["id"], "type": "afterany"}]
            job["after"] = [one for one in job["after"] if one["job"] != job["id"]]
    for job in found:  # no cycle
        names = [one["id"] for one in found[: found.index(job)]]
        job |= {"after": [one for one in job["after"] if one["job"] in names]} if "after" in job else {}
    document: Document = {
        "format": "cpsched-instance/1",
        "name": f"changing-{seed}",
        "now": 0,
        "cluster": {"nodes": nodes, "licenses": {"lic": 1}},
        "queues": {"q": {"expected_wait": 20}},
        "jobs": found,
        "objective": random.choice(["weighted_wait", "weighted_wait", "slowdown", {"wait": 1.0, "makespan": 2.0}]),
    }
    return document | ({"priorities": "strict"} if random.random() < 0.1 else {})


def _nodes(random: Random, number: int) -> Document:
    """Draw some equal nodes."""
    resources = {"cores": random.choice([1, 2, 4, 4, 6])}
    for name, share in (("mem", 0.6), ("gpus", 0.4), ("mics", 0.3), ("disk", 0.15)):
        resources |= {name: random.choice([1, 2, 4])} if random.random() < share else {}
    node: Document = {"names": f"n{number}[1-{random.choice([1, 1, 2])}]", "resources": resources}
    node |= {"properties": {"arch": random.choice("xy")}} if random.random() < 0.3 else {}
    node |= {"state": random.choice(["drain", "down"])} if random.random() < 0.12 else {}
    if random.random() < 0.5:
        guards: list[Document] = [
            {"min": {"cores": random.choice([2, 3])}},
            {"min": {"gpus": 1}},
            {"min": {"mem": 2}},
            {"max_walltime": random.choice([3, 8])},
        ]
        node["admits"] = random.sample(guards, random.choice([1, 1, 2]))
    if random.random() < 0.3:
        node["keep_free"] = [
            {"resource": "cores", "items": random.choice([1, 2]), "for": random.choice(["gpus", "mics"])}
        ]
    return node


def _request(random: Random, most: int = 3) -> list[Document]:
    """Draw some kinds of chunks."""
    chunks = []
    for _ in range(random.choice([1, 2, 2, most])):
        resources = {"cores": random.choice([1, 2, 2, 3, 4])}
        for name, share in (("mem", 0.4), ("gpus", 0.35), ("mics", 0.25), ("disk", 0.1)):
            resources |= {name: 1} if random.random() < share else {}
        if len(resources) > 1 and random.random() < 0.1:
            del resources["cores"]
        chunk: Document = {"count": random.choice([1, 1, 1, 2]), "resources": resources}
        chunks.append(chunk | ({"where": {"arch": random.choice("xy")}} if random.random() < 0.1 else {}))
    return chunks


def _malleable(random: Random) -> Document:
    """Draw shares, and how fast a job is on them."""
    shares = random.choice([[0.5], [0.1], [0.5, 0.25], [0.3, 0.1]])
    found: Document = {"shares": shares, "model": random.choice(["ideal", "worst"])}
    return {"shares": shares, "stretch": {str(shares[0]): 1.5}} if random.random() < 0.2 else found


def _waiting(random: Random, number: int) -> Document:
    """Draw a job that changes, or can change, while it runs."""
    job: Document = {"id": f"w{number}", "submit": -random.randint(0, 5)}
    if random.random() < 0.65:
        job |= {"walltime": random.randint(1, 10), "request": _request(random), "malleable": _malleable(random)}
    else:
        first = _request(random, most=2)
        steps = [[chunk | {"count": random.randint(1, 2)} for chunk in first] for _ in range(random.choice([2, 3]))]
        job["steps"] = [{"walltime": random.randint(1, 4), "request": request} for request in steps]
        job |= {"expand_limit": random.choice([1.5, 2, None])} if random.random() < 0.5 else {}
    place = random.choice(["free"] * 5 + ["pack", "scatter"]) + (":excl" if random.random() < 0.15 else "")
    job |= {"place": place, "queue": "q"} if random.random() < 0.7 else {"place": place}
    job |= {"licenses": {"lic": random.choice([1, 1, 2])}} if random.random() < 0.15 else {}
    job |= {"priority": random.randint(0, 2)} if random.random() < 0.3 else {}
    job |= {"deadline": random.randint(5, 40)} if random.random() < 0.1 else {}
    return job | ({"array": {"indices": "0-1"}} if random.random() < 0.1 else {})


def _running(random: Random, nodes: list[Document], number: int) -> Document | None:
    """Draw a malleable job that runs on the first node of a class, of one or two kinds of chunks; or None."""
    place = random.randrange(len(nodes))
    node = nodes[place]
    if number != 0 or node.get("state") == "down" or node["resources"]["cores"] < 2:
        return None
    kinds = [{"cores": node["resources"]["cores"] // 2}]
    kinds += [{"cores": 1} | ({"gpus": 1} if "gpus" in node["resources"] else {})] if random.random() < 0.5 else []
    allocation = [
        {"node": f"n{place}1", "chunk": kind, "count": 1, "resources": resources}
        for kind, resources in enumerate(kinds)
    ]
    return {
        "id": f"r{number}",
        "submit": -9,
        "walltime": 12,
        "request": [{"count": 1, "resources": resources} for resources in kinds],
        "malleable": _malleable(random),
        "running": {"start": -random.randint(1, 8), "allocation": allocation},
    }
