"""Random tiny windows, as documents, with every rule of a site: what `brute_force` can still try out.

Jobs are rigid. Host lists are names with commas between them, and requests are in their parsed form.
"""

from __future__ import annotations

from random import Random
from typing import Any

__all__ = ["Document", "features_of", "grouped_window", "ruled_window"]

Document = dict[str, Any]

TERMS = ("weighted_wait", "wait", "slowdown", "completion", "makespan", "tardiness")
CALENDARS = ("{0}-{1} * * * *", "{0}-{1} * * * *", "*/{2} * * * *", "{0}-59/{2} * * * *", "{0}-{1} 8-9 * * *")


def ruled_window(seed: int) -> Document:
    """Draw a window; the same for the same seed."""
    return _Draw(Random(seed)).window(seed)


def grouped_window(seed: int) -> Document:
    """Draw a window with some more nodes, in groups of one or two levels, and jobs most of which are within one."""
    random, document = Random(f"topology {seed}"), ruled_window(seed)
    nodes = document["cluster"]["nodes"]
    if random.random() < 0.7:
        nodes.append({**nodes[0], "names": random.choice(["c1", "c1,c2"])})
    names = [name for entry in nodes for name in entry["names"].split(",")]
    levels: Document = {}
    for level in ("rack", "switch")[: random.choice([1, 1, 2])]:
        groups: Document = {}
        for name in names:
            if (group := random.choice(["g1", "g1", "g2", "g2", None])) is not None:
                groups[group] = f"{groups[group]},{name}" if group in groups else name
        levels[level] = groups or {"g1": names[0]}
    document["cluster"]["topology"] = levels
    waiting = [job for job in document["jobs"] if "running" not in job]
    for job in waiting[3:]:  # more of them are too much to try
        if not any(job["id"] == one["job"] for other in document["jobs"] for one in other.get("after", [])):
            document["jobs"].remove(job)
    for job in waiting[:3]:
        place, counts = job.get("place", "free"), [chunk["count"] for chunk in job["request"]]
        if len(counts) == 1 and not place.startswith("pack") and random.random() < 0.5:
            segment = random.choice([size for size in (1, 2, 3) if counts[0] % size == 0])
            place += random.choice([f":segment={segment}", f":spread={random.choice([1, 1, 2])}"])
        job["place"] = f"{place}:within={random.choice(list(levels))}"
    return document


def features_of(document: Document) -> set[str]:
    """Name the rules of a window, and what else it has."""
    found: set[str] = set()
    for limit in document.get("limits", []):
        (key,) = limit["consumer"]
        found.add(f"limit of {'each' if key == 'each' else 'a'} {limit['consumer'][key] if key == 'each' else key}")
        found |= {f"limit: {name}" for name in ("items", "duration", "area") if name in limit}
        found |= {"limit: outstanding area"} if limit.get("area_scope") == "outstanding" else set()
        found |= {f"limit on {limit['resource']}"} if limit["resource"] in ("*", "jobs", "arrayjobs") else set()
        found |= {"limit: percent"} if "%" in limit.get("items", "") else set()
        found |= {"limit: soft"} if limit.get("soft") else set()
        found |= {"limit: zero"} if limit.get("items") == "0" or limit.get("area") == 0 else set()
    for pool in document.get("free_pools", []):
        found |= {"free pool", *(f"free pool: {key}" for key in pool.get("open_to", {}))}
        found |= {f"free pool: {key}" for key in ("nodes", "otherwise") if key in pool}
    for rule in (*document.get("limits", []), *document.get("free_pools", [])):
        validity = rule.get("validity", "always")
        kind = "always" if validity == "always" else "cron" if "cron" in validity else "interval"
        found.add(f"validity: {kind}")
    for one in document.get("reservations", []):
        found.add("downtime" if one.get("kind") == "downtime" else "reservation")
        found |= {"reservation: users"} if "users" in one else set()
        found |= {"reservation: licences"} if "licenses" in one else set()
        found |= {"reservation: exclusive"} if "excl" in one.get("place", "") else set()
    words = {
        "running": "running jobs",
        "licenses": "licences",
        "after": "dependencies",
        "array": "arrays",
        "deadline": "deadlines",
        "start_at": "fixed starts",
        "not_before": "earliest starts",
        "told": "promised starts",
        "reservation": "jobs in reservations",
    }
    for job in document["jobs"]:
        found |= {word for key, word in words.items() if key in job}
        found |= {
            word for word in ("pack", "scatter", "excl", "within", "segment", "spread") if word in job.get("place", "")
        }
        found |= {"several kinds of chunks"} if len(job["request"]) > 1 else set()
        found |= {"properties"} if any("where" in chunk for chunk in job["request"]) else set()
    for node in document["cluster"]["nodes"]:
        found |= {"drained nodes"} if node.get("state") == "drain" else set()
        found |= {"nodes that are down"} if node.get("state") == "down" else set()
        found |= {"guards"} if "admits" in node else set()
        found |= {"cores kept free"} if "keep_free" in node else set()
    for queue in document["queues"].values():
        if "max_wait" in queue:
            found.add("hard max_wait" if queue["max_wait"].get("hard") else "max_wait")
        found |= {"max_walltime"} if "max_walltime" in queue else set()
    return found


class _Draw:
    """Draws the parts of a window; mutable: it knows what is free for running jobs."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.has_calendars = random.random() < 0.2
        #: Calendars speak of minutes: with one, all times are multiples of five of them.
        self.unit = 300 if self.has_calendars else 1
        self.has_rare_times = random.random() < 0.3
        #: In some windows the rules leave little or nothing.
        self.is_harsh = random.random() < 0.1
        #: In others the machine has room for everything, and only rules are in the way.
        self.is_roomy = random.random() < 0.4
        self.free: dict[str, dict[str, int]] = {}

    def rarely(self, share: float = 0.12) -> bool:
        """Draw True once in a while."""
        return self.random.random() < share

    def seconds(self, least: int, most: int) -> int:
        """Draw some seconds."""
        return self.random.randint(least, most) * self.unit

    def window(self, seed: int) -> Document:
        """Draw a window."""
        random = self.random
        self.now = 0 if self.has_calendars else random.choice([0, 0, 100, -50])
        self.nodes = [self.node_class(names) for names in random.choice(["a1", "a1,a2", "a1 b1", "a1,a2 b1"]).split()]
        self.names = sorted(self.free)
        reservations = [self.reservation(f"s{number}") for number in range(random.choice([0, 0, 0, 1, 1, 2]))]
        self.reserved = [one["id"] for one in reservations if "kind" not in one]
        jobs = [job for number in range(random.choice([0, 0, 1, 2])) if (job := self.running_job(f"r{number}"))]
        for number in range(random.choice([1, 2, 3, 3, 4, 4, 5])):
            jobs.append(self.waiting_job(f"w{number}", jobs))
        random.shuffle(jobs)
        limits = [self.limit() for _ in range(random.choice([0, 1, 1, 2, 3]))]
        pools = [self.pool() for _ in range(random.choice([0, 0, 1, 1, 2]))]
        document: Document = {
            "format": "cpsched-instance/1",
            "name": f"ruled-{seed}",
            "now": self.now,
            "cluster": {"nodes": self.nodes, "licenses": {"lic": random.choice([1, 2])}},
            "queues": {"q": self.queue(), "p": self.queue()},
            "jobs": jobs,
            "objective": self.objective(),
            "limits": limits,
            "free_pools": pools,
            "reservations": reservations,
        }
        if self.has_calendars:
            document["epoch"] = random.choice(["2024-02-29T08:00:00+01:00", "2023-12-31T23:10:00+00:00"])
        outstanding = [one for one in limits if one.get("area_scope") == "outstanding"]
        if outstanding and self.rarely(0.4):
            one = random.choice(outstanding)
            consumer = {"user": "u"} if "each" in one["consumer"] or "user" in one["consumer"] else {"group": "g"}
            resource = "cores" if one["resource"] == "*" else one["resource"]
            if resource not in ("jobs", "arrayjobs"):
                document["usage"] = [{"consumer": consumer, "resource": resource, "area": self.seconds(0, 6)}]
        return {key: value for key, value in document.items() if value or key in ("now", "jobs")}

    def objective(self) -> str | dict[str, float]:
        """Draw a term, or a weighted sum of two."""
        random = self.random
        if random.random() < 0.7:
            return random.choice([*TERMS, "weighted_wait", "weighted_wait"])
        terms = set(random.choices(TERMS, k=2))
        return {term: random.choice([1.0, 0.25, 3.0, 20.0]) for term in TERMS if term in terms}

    def queue(self) -> Document:
        """Draw a queue."""
        queue: Document = {"expected_wait": self.random.choice([5, 20, 1000]), "priority": self.random.randint(0, 3)}
        if self.rarely(0.25):
            queue["max_wait"] = {"seconds": self.seconds(1, 20), "price": self.random.choice([0, 1, 10])}
            queue["max_wait"] |= {"hard": True} if self.rarely(0.5) else {}
        if self.rarely(0.05):
            queue["max_walltime"] = self.seconds(2, 5)
        return queue

    def node_class(self, names: str) -> Document:
        """Draw some equal nodes."""
        random = self.random
        cores = 8 if self.is_roomy else random.choice([1, 2, 3, 3, 4, 4])
        resources = {"cores": cores, "gpus": random.choice([0, 0, 1])}
        node: Document = {"names": names, "resources": resources, "properties": {"arch": names[0]}}
        if self.rarely(0.06):
            node["state"] = random.choice(["drain", "down"])
        if self.rarely():
            node["admits"] = [random.choice([{"min": {"cores": 2}}, {"max_walltime": self.seconds(2, 3)}])]
            node["admits"] += [{"min": {"gpus": 1}}] if self.rarely(0.3) else []
        if self.rarely():
            node["keep_free"] = [{"resource": "cores", "items": random.choice([0, 1, 1, 5]), "for": "gpus"}]
        self.free |= {name: dict(resources) for name in names.split(",")}
        return node

    def request(self) -> list[Document]:
        """Draw one or two kinds of chunks."""
        random = self.random
        found = []
        for _ in range(random.choice([1, 1, 1, 1, 2])):
            resources = {"cores": random.choice([1, 1, 1, 2, 2, 3])} | ({"gpus": 1} if self.rarely(0.1) else {})
            chunk: Document = {"count": random.choice([1, 1, 1, 1, 2, 3]), "resources": resources}
            chunk |= {"where": {"arch": random.choice("aab")}} if self.rarely() else {}
            found.append(chunk)
        return found

    def place(self) -> Document:
        """Draw an arrangement and a sharing."""
        place = self.random.choice(["free"] * 7 + ["pack", "scatter"]) + (":excl" if self.rarely(0.1) else "")
        return {} if place == "free" else {"place": place}

    def consumer(self) -> Document:
        """Draw the user, account and group of a job."""
        user, group = self.random.choice(["u", "u", "v", None]), self.random.choice(["g", "h", None])
        return ({} if user is None else {"user": user}) | ({} if group is None else {"group": group})

    def waiting_job(self, name: str, others: list[Document]) -> Document:
        """Draw a job that has not started."""
        random = self.random
        job: Document = {"id": name, "submit": self.now - self.seconds(0, 9), "walltime": self.seconds(1, 5)}
        job |= {"submit": self.now + self.seconds(0, 3)} if self.rarely() else {}
        job |= self.consumer() | {"request": self.request()} | self.place()
        job |= {"queue": random.choice("qp")} if random.random() < 0.6 else {}
        job |= {"licenses": {"lic": random.choice([1, 1, 2])}} if self.rarely() else {}
        job |= {"priority": random.randint(0, 5)} if self.rarely() else {}
        if self.rarely(0.1):
            job["told"] = {"start": self.now + self.seconds(0, 8), "price": random.choice([0, 1, 5])}
        if self.has_rare_times:
            job |= {"not_before": self.now + self.seconds(0, 6)} if self.rarely(0.2) else {}
            job |= {"deadline": self.now + self.seconds(4, 20)} if self.rarely(0.3) else {}
            job |= {"start_at": self.now + self.seconds(0, 8)} if self.rarely() else {}
        if others and self.rarely():
            awaited = random.choice(others)["id"]
            kind = random.choice(["after", "afterok", "afterany", "afternotok"])
            job["after"] = [{"job": awaited, "type": kind, "delay": random.choice([0, 0, self.unit])}]
        if self.reserved and self.rarely(0.35):
            job["reservation"] = random.choice(self.reserved)
        elif self.rarely(0.07):
            job["array"] = {"indices": "0-1"}
        aside = Random(str(job))  # so that a seed means the same window as before, but for what is expected
        return job | ({"expected": aside.randint(1, job["walltime"])} if aside.random() < 0.3 else {})

    def running_job(self, name: str) -> Document | None:
        """Draw a job that runs on what is free, or None if that is not enough."""
        random = self.random
        node, cores = random.choice(sorted(self.free)), random.randint(1, 2)
        if self.free[node]["cores"] < cores:
            return None
        self.free[node]["cores"] -= cores
        walltime = self.seconds(1, 6)
        asked = {"cores": cores}
        job: Document = {"id": name, "submit": self.now - self.seconds(10, 12), "walltime": walltime}
        job |= self.consumer() | {"request": [{"count": 1, "resources": asked}]} | self.place()
        job |= {"licenses": {"lic": 1}} if self.rarely(0.1) else {}
        start = self.now - random.randint(0, walltime // self.unit - 1) * self.unit
        if self.reserved and self.rarely(0.1):
            job["reservation"] = random.choice(self.reserved)
        return job | {"running": {"start": start, "allocation": [{"node": node, "resources": asked}]}}

    def validity(self) -> Document:
        """Draw when a rule holds."""
        random = self.random
        if self.has_calendars and random.random() < 0.6:
            first = 5 * random.randint(0, 6)
            text = random.choice(CALENDARS).format(
                first, first + 5 * random.randint(1, 4) - 1, random.choice([10, 20, 30])
            )
            return {"validity": {"cron": text}}
        if random.random() < 0.45:
            return random.choice([{}, {"validity": "always"}])
        start = self.now + self.seconds(-2, 8)
        both = {"from": start, "until": start + self.seconds(1, 8)}
        keys = random.choice([("from", "until"), ("from", "until"), ("from",), ("until",)])
        return {"validity": {key: both[key] for key in keys}}

    def items(self) -> str:
        """Draw an amount, a share, or both."""
        mild = ["1", "2", "2", "3", "3", "4", "5", "50%", "50%", "67%", "1/50%", "2/75%", "1/100%"]
        mild += ["20%", "3/25%", "12.5%"] if self.is_roomy else []
        return self.random.choice(["0", "1", "7", "10%"] if self.is_harsh else mild)

    def limit(self) -> Document:
        """Draw a limit."""
        random = self.random
        consumer = random.choice([{"user": "u"}, {"user": "v"}, {"group": "g"}, {"each": "user"}, {"each": "group"}])
        resource = random.choice(["cores"] * 4 + ["gpus", "lic", "jobs", "jobs", "arrayjobs", "*", "*"])
        limit: Document = {"consumer": dict(consumer), "resource": resource}
        kind = random.choice(["items", "items", "items", "duration", "area", "outstanding", "both"])
        if kind in ("items", "both"):
            limit["items"] = self.items()
        if kind in ("duration", "both"):
            limit["duration"] = self.seconds(2, 6)
        if kind == "area":
            limit["area"] = self.seconds(2 - 2 * self.is_harsh, 12)
        if kind == "outstanding":
            limit |= {"area": self.seconds(6 - 6 * self.is_harsh, 24), "area_scope": "outstanding"}
        return limit | self.validity() | ({"soft": True} if self.rarely(0.1) else {})

    def pool(self) -> Document:
        """Draw a free pool."""
        random = self.random
        resource = random.choice(["cores"] * 4 + ["gpus", "lic"])
        pool: Document = {
            "resource": resource,
            "items": self.items() if self.is_harsh else random.choice(["1", "1", "2", "30%"]),
        }
        if self.is_roomy and not self.is_harsh:
            pool["items"] = random.choice(["4", "12", "60%", "8/80%"])
        access: Document = {}
        access |= {"users": [random.choice("uv")]} if self.rarely(0.3) else {}
        access |= {"groups": [random.choice("gh")]} if self.rarely(0.2) else {}
        access |= {"asks_for": [random.choice(["gpus", "lic"])]} if self.rarely(0.25) else {}
        access |= {"max": {"cores": random.randint(0, 2)}} if self.rarely(0.25) else {}
        access |= {"max_walltime": self.seconds(1, 3)} if self.rarely(0.25) else {}
        pool |= {"open_to": access} if access or self.rarely(0.5) else {}
        pool |= (
            {"nodes": ",".join(random.sample(self.names, random.randint(1, len(self.names))))}
            if self.rarely(0.3)
            else {}
        )
        pool |= {"otherwise": {"max_walltime": self.seconds(1, 3)}} if self.rarely(0.2) else {}
        return pool | self.validity()

    def reservation(self, name: str) -> Document:
        """Draw a reservation, or a downtime."""
        random = self.random
        start = self.now + self.seconds(-1, 5)
        one: Document = {"id": name, "start": start, "end": start + self.seconds(2, 8)}
        chunk: Document = {"count": random.choice([1, 1, 2]), "resources": {"cores": random.choice([1, 1, 2, 3])}}
        chunk |= {"where": {"arch": random.choice("ab")}} if self.rarely(0.25) else {}
        one |= {"request": [chunk]} | self.place()
        if self.rarely(0.3):
            return one | {"kind": "downtime"}
        one |= {"users": [random.choice("uv")]} if self.rarely(0.2) else {}
        return one | ({"licenses": {"lic": 1}} if self.rarely(0.2) else {})
