"""Random small windows, as documents: a few nodes, a few jobs, and every feature that the engines honour."""

from __future__ import annotations

from random import Random
from typing import Any

from cpsched.domain import modes
from cpsched.formats import parse_instance

__all__ = ["MANY", "Document", "features_of", "random_window"]

Document = dict[str, Any]

TERMS = ("weighted_wait", "wait", "slowdown", "completion", "makespan", "tardiness", "waste")
#: Stretching and holding jobs is worth something with slowdown only: it stands in half of all objectives.
LIKELY = ("slowdown", "slowdown", "slowdown", "slowdown", "slowdown", "slowdown", *TERMS)

#: Cores of a node that jobs have as a whole.
WHOLE = 4
#: Beyond so many jobs nobody tries everything.
MANY = 8


def random_window(seed: int) -> Document:
    """Draw a window; the same for the same seed."""
    return _weighed(_Draw(Random(seed)).window(seed), Random(-1 - seed))


def features_of(document: Document) -> set[str]:
    """Name the features of a window."""
    found: set[str] = {"eight jobs or more"} if len(document["jobs"]) >= MANY else set()
    for job in document["jobs"]:
        is_running = "running" in job
        words = {
            "steps": "evolving",
            "malleable": "malleable",
            "licenses": "licences",
            "after": "dependencies",
            "array": "arrays",
            "deadline": "deadlines",
            "start_at": "fixed starts",
            "not_before": "earliest starts",
            "told": "promised starts",
            "weight": "weights of jobs",
        }
        found |= {word for key, word in words.items() if key in job}
        found |= {"running jobs that are malleable"} if is_running and "malleable" in job else set()
        found |= {"held steps"} if job.get("expand_limit", 1) != 1 else set()
        found |= {"stretches"} if "stretch" in job.get("malleable", {}) else set()
        found |= {"running jobs"} if is_running else set()
        found |= {"running jobs with segments"} if "segments" in job.get("running", {}) else set()
        requests = [step["request"] for step in job.get("steps", [job])]
        found |= {"several kinds of chunks"} if any(len(request) > 1 for request in requests) else set()
        found |= {"properties"} if any("where" in chunk for request in requests for chunk in request) else set()
        found |= {word for word in ("pack", "scatter", "excl") if word in job.get("place", "")}
    if all(
        [chunk["resources"] for chunk in step["request"]] == [document["cluster"]["nodes"][0]["resources"]]
        for job in document["jobs"]
        for step in job.get("steps", [job])
    ):
        found.add("whole nodes")
    for node in document["cluster"]["nodes"]:
        found |= {"drained nodes"} if node.get("state") == "drain" else set()
        found |= {"nodes that are down"} if node.get("state") == "down" else set()
        found |= {"guards"} if "admits" in node else set()
        found |= {"cores kept free"} if "keep_free" in node else set()
    for queue in document["queues"].values():
        if "max_wait" in queue:
            found.add("hard max_wait" if queue["max_wait"].get("hard") else "max_wait")
        found |= {"max_walltime"} if "max_walltime" in queue else set()
        found |= {"weights of queues"} if "weight" in queue else set()
    found |= {"fair shares"} if "fair_share" in document else set()
    found |= {"strict priorities"} if "priorities" in document else set()
    objective = document["objective"]
    terms = [objective] if isinstance(objective, str) else list(objective)
    return found | {f"objective: {term}" for term in terms} | ({"objective: a sum"} if len(terms) > 1 else set())


def _weighed(document: Document, random: Random) -> Document:
    """Give weights to some jobs and queues of two windows in five, strict priorities to one in five, and fair shares to
    one in six; all else is as it was.
    """
    if random.random() < 0.4:
        for entry in (*document["jobs"], *document["queues"].values()):
            entry |= {"weight": random.choice([2, 0.1, 10, 0.75])} if random.random() < 0.4 else {}
    document |= {"priorities": "strict"} if random.random() < 0.2 else {}
    if random.random() < 1 / 6:
        for job in document["jobs"]:
            job["user"] = random.choice("abc")
        shares = [{"user": user, "shares": random.randint(1, 3), "usage": random.randint(0, 50)} for user in "ab"]
        document |= {"fair_share": {"half_life": 100, "influence": random.choice([0.5, 1]), "users": shares}}
    return document


class _Draw:
    """Draws the parts of a window; mutable: it knows what is free for running jobs."""

    def __init__(self, random: Random) -> None:
        self.random = random
        #: Long walltimes are beyond the 10 s below which a slowdown does not divide by the duration.
        self.unit = random.choice([1, 1, 1, 8])
        #: Some windows are too large for trying everything.
        self.is_large = random.random() < 0.1
        #: In others all jobs take equal nodes as a whole, and some evolve: the one kind of which CP-SAT proves bounds.
        self.is_whole = random.random() < 0.2
        self.free: dict[str, dict[str, int]] = {}
        self.licenses = 0

    def rarely(self, share: float = 0.12) -> bool:
        """Draw True once in a while."""
        return self.random.random() < share

    def seconds(self, least: int, most: int) -> int:
        """Draw some seconds, short or long as the window has them."""
        return self.random.randint(least * self.unit, most * self.unit)

    def window(self, seed: int) -> Document:
        """Draw a window."""
        random = self.random
        self.now = random.choice([0, 0, 100, -50])
        nodes = [self.node_class(letter) for letter in "ab"[: 1 if self.is_whole else random.choice([1, 1, 2])]]
        self.licenses = 0 if self.is_whole else random.choice([0, 0, 1, 2])
        has_rare_times = not self.is_whole and self.rarely(0.4)
        running = [job for number in range(random.choice([0, 0, 1, 1, 2])) if (job := self.running_job(f"r{number}"))]
        count = random.randint(8, 12) if self.is_large else random.choice([1, 2, 2, 3, 3, 4, 5])
        jobs = list(running)
        for number in range(count):
            jobs.append(self.waiting_job(f"w{number}", jobs, has_rare_times=has_rare_times))
        random.shuffle(jobs)
        cluster: Document = {"nodes": nodes}
        if self.licenses or any("licenses" in job for job in jobs):
            cluster["licenses"] = {"solver": 2}
        return {
            "format": "cpsched-instance/1",
            "name": f"random-{seed}",
            "now": self.now,
            "cluster": cluster,
            "queues": {name: self.queue() for name in ("short", "long")},
            "jobs": jobs,
            "objective": self.objective(),
        }

    def objective(self) -> str | dict[str, float]:
        """Draw a term, or a weighted sum of several."""
        random = self.random
        if random.random() < 0.5:
            return random.choice(LIKELY)
        terms = set(random.choices(LIKELY, k=random.randint(2, 3)))
        return {term: random.choice([1.0, 0.25, 3.0, 0.001, 20.0]) for term in TERMS if term in terms}

    def queue(self) -> Document:
        """Draw a queue."""
        queue: Document = {"expected_wait": self.random.choice([5, 20, 100]), "priority": self.random.randint(0, 3)}
        if self.rarely(0.2):
            queue["max_wait"] = {"seconds": self.seconds(1, 40), "price": self.random.choice([0, 1, 2.5, 10])}
            queue["max_wait"] |= {"hard": True} if not self.is_whole and self.rarely(0.3) else {}
        if self.rarely(0.05):
            queue["max_walltime"] = self.seconds(5, 12)
        return queue

    def node_class(self, letter: str) -> Document:
        """Draw some equal nodes, up to two in a small window."""
        random = self.random
        count = random.choice([3, 4]) if self.is_large or self.is_whole else random.choice([1, 2, 2])
        resources = {"cores": random.choice([2, 4, 4, 6]), "mem": random.choice([4, 8])}
        resources |= {"gpus": 1} if self.rarely(0.25) else {}
        if self.is_whole:
            self.free |= {f"{letter}{number + 1}": {"cores": WHOLE} for number in range(count)}
            return {"names": f"{letter}[1-{count}]", "resources": {"cores": WHOLE}}
        node: Document = {"names": f"{letter}[1-{count}]", "resources": resources}
        node["properties"] = {"arch": random.choice("xy")}
        if self.rarely(0.3):
            node["priority"] = random.choice([1, -1])
        if self.rarely(0.06):
            node["state"] = random.choice(["drain", "down"])
        if self.rarely():
            node["admits"] = [random.choice([{"min": {"cores": 2}}, {"min": {"mem": 1}}, {"max_walltime": 8}])]
        if self.rarely():
            node["keep_free"] = [{"resource": "cores", "items": 1, "for": random.choice(["gpus", "mem"])}]
        if node.get("state") != "down":
            self.free |= {f"{letter}{number + 1}": dict(resources) for number in range(count)}
        return node

    def request(self, most: int = 4) -> list[Document]:
        """Draw one or two kinds of chunks."""
        random = self.random
        if self.is_whole:
            return [{"count": random.choice([1, 2, 2, 3]), "resources": {"cores": WHOLE}}]
        found = []
        for _ in range(random.choice([1, 1, 1, 2])):
            resources = {"cores": random.choice([1, 2, 2, 3, most])}
            resources |= {"mem": random.randint(1, 3)} if self.rarely(0.25) else {}
            resources |= {"gpus": 1} if self.rarely(0.05) else {}
            chunk: Document = {"count": random.choice([1, 1, 1, 2, 3]), "resources": resources}
            chunk |= {"where": {"arch": random.choice("xy")}} if self.rarely() else {}
            found.append(chunk)
        return found

    def place(self) -> str:
        """Draw an arrangement and a sharing."""
        place = self.random.choice(["free"] * 6 + ["pack", "scatter"])
        return place + (":excl" if self.rarely(0.1) else "")

    def malleable(self) -> Document:
        """Draw shares, a model, and factors for some of the shares."""
        random = self.random
        shares = random.choice([[0.5], [0.5, 0.25], [0.75, 0.5], [0.3]])
        found: Document = {"shares": shares, "model": random.choice(["ideal", "worst"])}
        if self.rarely(0.4):
            found["stretch"] = {str(share): random.choice([1, 1.3, 2, 4.5]) for share in shares if self.rarely(0.7)}
        return found if found.get("stretch", True) else {key: found[key] for key in ("shares", "model")}

    def waiting_job(self, name: str, others: list[Document], *, has_rare_times: bool) -> Document:
        """Draw a job that has not started."""
        random = self.random
        job: Document = {"id": name, "submit": self.now - self.seconds(0, 20) if self.rarely(0.7) else self.now}
        job["submit"] += random.choice([0, 0, 0, 3])
        job |= {"queue": random.choice(["short", "long"])} if random.random() < 0.8 else {}
        job |= {"place": "free" if self.is_whole else self.place()}
        kind = random.choice(["rigid", "malleable", "malleable", "evolving"])
        kind = random.choice(["rigid", "evolving"]) if self.is_whole else kind
        if kind == "evolving":
            first = self.request(most=3)[:1]
            job["steps"] = []
            for _ in range(random.choice([2, 2, 3])):
                request = [chunk | {"count": random.randint(1, 3)} for chunk in first]
                job["steps"].append({"walltime": self.seconds(1, 5), "request": request})
            limit = random.choice([1, 1.5, 2, 3, None])
            job |= {"expand_limit": limit} if limit != 1 else {}
        else:
            job |= {"walltime": self.seconds(1, 9), "request": self.request()}
            job |= {"malleable": self.malleable()} if kind == "malleable" else {}
        if self.licenses and self.rarely(0.4):
            job["licenses"] = {"solver": random.randint(1, 2)}
        if self.rarely(0.2):
            job["priority"] = random.randint(0, 5)
        if self.rarely(0.2):
            job["told"] = {"start": self.now + self.seconds(0, 10), "price": random.choice([0, 1, 5])}
        if has_rare_times:
            job |= {"not_before": self.now + self.seconds(0, 6)} if self.rarely(0.2) else {}
            job |= {"deadline": self.now + self.seconds(8, 60)} if self.rarely(0.3) else {}
            job |= {"start_at": self.now + self.seconds(0, 8)} if self.rarely() else {}
        if others and not self.is_whole and self.rarely(0.15):
            kinds = ["after", "afterok", "afterany", "afternotok"]
            awaited = random.choice(others)["id"]
            job["after"] = [{"job": awaited, "type": random.choice(kinds), "delay": random.choice([0, 0, 2])}]
        if self.rarely(0.06):
            job["array"] = {"indices": "0-1"}
        return job

    def running_job(self, name: str) -> Document | None:
        """Draw a job that runs on what is free, or None if that is not enough."""
        random = self.random
        if not self.free:
            return None
        node = random.choice(sorted(self.free))
        cores = WHOLE if self.is_whole else random.randint(1, max(1, self.free[node]["cores"]))
        asked = {"cores": cores} | ({"mem": 1} if not self.is_whole and self.rarely(0.3) else {})
        if any(amount > self.free[node][what] for what, amount in asked.items()):
            return None
        walltime = self.seconds(2, 12)
        job: Document = {
            "id": name,
            "submit": self.now - 20 * self.unit,
            "walltime": walltime,
            "request": [{"count": 1, "resources": asked}],
            "queue": random.choice(["short", "long"]),
        }
        held, runs = asked, walltime
        if not self.is_whole and random.random() < 0.5:
            job["malleable"] = self.malleable()
            parsed = parse_instance(
                {
                    "format": "cpsched-instance/1",
                    "name": "one",
                    "cluster": {"nodes": [{"names": "n1", "resources": asked}]},
                    "jobs": [{key: value for key, value in job.items() if key != "queue"}],
                },
                source="one",
            )
            mode = random.choice(modes(parsed.jobs[0]))
            held, runs = asked | {"cores": mode.request.totals["cores"]}, mode.time_for(walltime)
        for what, amount in held.items():
            self.free[node][what] -= amount
        start = self.now - random.randint(0, runs - 1)
        kinds = {"chunk": 0, "count": 1} if "malleable" in job else {}
        allocation = [{"node": node, "resources": held, **kinds}]
        job["running"] = {"start": start, "allocation": allocation}
        if "malleable" not in job and not self.is_whole and runs > 2 and cores > 1 and self.rarely(0.2):
            change = start + random.randint(1, runs - 1)
            less = [{"node": node, "resources": asked | {"cores": cores - 1}}]
            job["running"] = {
                "start": start,
                "segments": [
                    {"start": start, "end": change, "allocation": allocation},
                    {"start": change, "end": start + runs, "allocation": less},
                ],
            }
        return job
