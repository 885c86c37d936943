"""Schedulers of Batsim as processes: they decide here, on our machines and logs, by Batsim's protocol.

The protocol is that of Batsim 3 and 4 (``docs/protocol.rst`` there): JSON over ZeroMQ. The scheduler binds a REP
socket; we ask it whenever jobs have arrived or ended, and it answers with the jobs to start. A resource of Batsim is a
unit that all jobs ask for: a core, or a whole node. What a scheduler may do beside starting, rejecting and waiting
(killing jobs, power states, dynamic jobs) is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from cpsched.domain import Amounts, Instance, Job, Placement
from cpsched.errors import EngineError
from cpsched.lab.sim import Decision, News, Site
from cpsched.text import how_to_install

if TYPE_CHECKING:
    import zmq

#: The name of the workload, before the names of jobs.
_WORKLOAD = "w0"
#: Where pybatsim listens by default.
_ENDPOINT = "tcp://localhost:28000"
#: Answers that change nothing here.
_IGNORED = ("NOTIFY", "SET_JOB_METADATA")


class Batsim:
    """A scheduler of Batsim that listens at an endpoint; mutable.

    Raises `EngineError` in a simulation if pyzmq is not installed, nobody answers in time, an answer is not of the
    protocol or asks for what there is not, or the jobs do not ask for units of one size.

    `endpoint`: of its socket, as ZeroMQ writes it. `patience`: seconds for which an answer may take.
    """

    name = "batsim"

    def __init__(self, endpoint: str = _ENDPOINT, patience: float = 60.0) -> None:
        self.endpoint, self.patience = endpoint, patience
        self._socket: zmq.Socket[bytes] | None = None

    def begin(self, site: Site) -> None:
        """Connect, and say how large the machine is."""
        jobs = [job for index, job in enumerate(site.jobs) if site.demand[index] >= 0]
        self._nodes = list(_units(site.instance, jobs))
        self._unit = next((job.request.chunks[0].resources for job in jobs), Amounts())
        #: The jobs by their names, how often each was submitted, and the resources of running ones.
        self._jobs: dict[str, int] = {}
        self._runs, self._held = [0] * len(site.jobs), dict[int, str]()
        self._wakes: list[int] = []
        self._left = len(jobs) - len(site.running)
        self._connect()
        resources = [
            {"id": number, "name": node, "state": "idle", "properties": {}} for number, node in enumerate(self._nodes)
        ]
        about = {
            "nb_resources": len(resources),
            "nb_compute_resources": len(resources),
            "nb_storage_resources": 0,
            "allow_compute_sharing": False,
            "allow_storage_sharing": False,
            "config": {
                "redis-enabled": False,
                "profiles-forwarded-on-submission": True,
                "dynamic-jobs-enabled": False,
                "dynamic-jobs-acknowledged": False,
                "profile-reuse-enabled": False,
                "forward-unknown-events": False,
                "sched-config": "",
            },
            "compute_resources": resources,
            "storage_resources": [],
            "workloads": {_WORKLOAD: site.instance.name},
            "profiles": {_WORKLOAD: {}},
        }
        self._ask(site.now, [_event(site.now, "SIMULATION_BEGINS", about)])

    def decide(self, site: Site, news: News) -> Decision:
        """Tell the scheduler what has happened, and start what it starts."""
        if self._socket is None:  # only jobs that it rejected are left
            return Decision()
        try:
            decision = self._decided(site, news)
            if not self._left:
                self._ask(news.now, [_event(news.now, "SIMULATION_ENDS", {})])
                self._close()
        except EngineError:
            self._close()
            raise
        return decision

    def _decided(self, site: Site, news: News) -> Decision:
        """Return the scheduler's decision."""
        events = list(self._told(site, news))
        if self._wakes and self._wakes[0] <= news.now:
            self._wakes = [wake for wake in self._wakes if wake > news.now]
            events.append(_event(news.now, "REQUESTED_CALL", {}))
        starts = []
        for answer in self._ask(news.now, events):
            kind, data = str(answer.get("type")), answer.get("data") or {}
            if kind == "EXECUTE_JOB":
                job = self._job(data)
                start = site.start_on(job, self._placed(site.jobs[job], str(data.get("alloc", ""))))
                if start is None:
                    raise EngineError(
                        f"{self.endpoint} starts job {site.jobs[job].id} on resources {data.get('alloc')!r} at "
                        f"{news.now}, which are not what it asks for"
                    )
                starts.append(start)
                self._held[job] = str(data["alloc"])
                self._left -= 1
            elif kind == "REJECT_JOB":
                self._job(data)
                self._left -= 1
            elif kind == "CALL_ME_LATER":
                self._wakes = sorted({*self._wakes, max(news.now + 1, ceil(float(data["timestamp"])))})
            elif kind not in _IGNORED:
                raise EngineError(f"{self.endpoint} answers with {kind!r:.80}, which simulations here do not have")
        return Decision(starts=tuple(starts), wake=self._wakes[0] if self._wakes else None)

    def _told(self, site: Site, news: News) -> Iterator[dict[str, Any]]:
        """Yield what has happened since the last call, ends first; a job that lost its node comes by another name."""
        waiting, again = set(site.queue.tolist()), list[int]()
        for job in news.gone:
            state = "COMPLETED_SUCCESSFULLY"
            if job in waiting:
                state = "COMPLETED_FAILED"
                again.append(job)
                self._left += 1
            data = {"job_id": self._name(site, job), "job_state": state, "return_code": 0, "alloc": self._held.pop(job)}
            yield _event(news.now, "JOB_COMPLETED", data)
        fresh = [job for job in news.arrived if not self._runs[job]]
        for job in [*again, *fresh]:
            self._runs[job] += 1
            name, walltime = self._name(site, job), int(site.walltime[job])
            self._jobs[name] = job
            profile = {"type": "delay", "delay": walltime}
            submitted = {
                "id": name,
                "subtime": int(site.submit[job]) if job not in again else news.now,
                "walltime": walltime,
                "res": sum(chunk.count for chunk in site.jobs[job].request.chunks),
                "profile": f"p{job}",
            }
            yield _event(news.now, "JOB_SUBMITTED", {"job_id": name, "job": submitted, "profile": profile})

    def _name(self, site: Site, job: int) -> str:
        again = f"#{self._runs[job] - 1}" if self._runs[job] > 1 else ""
        return f"{_WORKLOAD}!{site.jobs[job].id}{again}"

    def _job(self, data: Mapping[str, Any]) -> int:
        """Return the job that an answer names."""
        job = self._jobs.get(str(data.get("job_id")))
        if job is None:
            raise EngineError(f"{self.endpoint} answers with the job {data.get('job_id')!r:.80}, which it was not told")
        return job

    def _placed(self, job: Job, alloc: str) -> list[Placement]:
        """Return the placements of a job on resources, ``0-3 7``."""
        counts: dict[str, int] = {}
        for number in _numbers(alloc):
            if number >= len(self._nodes):
                raise EngineError(f"{self.endpoint} starts job {job.id} on resource {number} of {len(self._nodes)}")
            counts[self._nodes[number]] = counts.get(self._nodes[number], 0) + 1
        return [
            Placement(
                node=node,
                chunk=0,
                count=count,
                resources=Amounts({name: count * amount for name, amount in self._unit.items()}),
            )
            for node, count in counts.items()
        ]

    def _connect(self) -> None:
        """Open the socket."""
        try:
            import zmq
        except ImportError as error:
            raise EngineError(f"Schedulers of Batsim need pyzmq; {how_to_install('batsim')}") from error
        self._close()
        self._socket = zmq.Context.instance().socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, int(1000 * self.patience))
        self._socket.connect(self.endpoint)

    def _close(self) -> None:
        """Close the socket, if it is open."""
        if self._socket is not None:
            self._socket.close(linger=0)
        self._socket = None

    def _ask(self, now: int, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Send what has happened, and return the answer's events."""
        import zmq

        assert self._socket is not None  # noqa: S101 - `decide` asks only where it is there
        try:
            self._socket.send_string(json.dumps({"now": float(now), "events": list(events)}))
            answer = json.loads(self._socket.recv())
            return [dict(event) for event in answer["events"]]
        except zmq.Again:
            self._close()
            raise EngineError(f"Nobody answered at {self.endpoint} within {self.patience:g} s") from None
        except (ValueError, TypeError, KeyError) as error:
            raise EngineError(f"Expected an answer of Batsim's protocol from {self.endpoint}, got: {error}") from error


def _event(now: int, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"timestamp": float(now), "type": kind, "data": data}


def _units(instance: Instance, jobs: Sequence[Job]) -> Iterator[str]:
    """Yield the node of each resource. Raises `EngineError` if jobs do not ask for units of one size."""
    asked = {chunk.resources for job in jobs for chunk in job.request.chunks}
    if len(asked) > 1 or any(len(job.request.chunks) != 1 or job.licenses or job.after for job in jobs):
        raise EngineError(
            "Expected jobs that ask for units of one size (a core, or a whole node), without licences and "
            "dependencies, for a scheduler of Batsim, whose resources are all alike"
        )
    unit = next(iter(asked), Amounts())
    for kind in instance.cluster.classes:
        held = min((kind.resources.get(name, 0) // amount for name, amount in unit.items() if amount), default=0)
        for node in kind.names:
            yield from [node] * held


def _numbers(alloc: str) -> Iterator[int]:
    """Yield the numbers of intervals as Batsim writes them: ``0-3 7`` or ``0-3,7``."""
    try:
        for part in alloc.replace(",", " ").split():
            first, _, last = part.partition("-")
            yield from range(int(first), int(last or first) + 1)
    except ValueError:
        raise EngineError(f"Expected resources such as '0-3 7' from a scheduler of Batsim, got {alloc!r:.80}") from None
