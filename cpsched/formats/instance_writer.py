"""From a checked `Instance` to its canonical document: requests as text, host lists folded, defaults left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cpsched.domain import (
    Access,
    AreaScope,
    Chunk,
    Consumer,
    FreePool,
    Instance,
    Job,
    Limit,
    Malleability,
    MaxWait,
    NodeClass,
    NodeState,
    Objective,
    Outage,
    Place,
    Placement,
    PromisedStart,
    Queue,
    Request,
    Reservation,
    ReservationKind,
    Running,
    RuntimeModel,
    Usage,
    Validity,
    time_on,
)
from cpsched.errors import SyntaxFault
from cpsched.formats.hostlist import fold_hostlist
from cpsched.formats.instance_reader import COUNTABLE
from cpsched.formats.notations import format_indices, format_items, format_place
from cpsched.formats.request_text import format_request, parse_request

__all__ = ["instance_to_document"]

_Object = dict[str, Any]


def instance_to_document(instance: Instance) -> dict[str, Any]:
    """Return the canonical instance document; reading it gives `instance` again."""
    requests = _RequestForms({*COUNTABLE, *instance.cluster.totals})
    document: _Object = {
        "format": "cpsched-instance/1",
        "name": instance.name,
        "epoch": None if instance.epoch is None else instance.epoch.isoformat(),
        "time_zone": instance.time_zone,
        "now": instance.now,
        "cluster": _present(
            nodes=[_write_nodes(node_class) for node_class in instance.cluster.classes],
            licenses=dict(instance.cluster.licenses),
        ),
        "queues": {name: _write_queue(queue) for name, queue in instance.queues.items()},
        "jobs": [_write_job(job, requests) for job in instance.jobs],
        "limits": [_write_limit(limit) for limit in instance.limits],
        "free_pools": [_write_free_pool(pool) for pool in instance.free_pools],
        "reservations": [_write_reservation(reservation, requests) for reservation in instance.reservations],
        "usage": [_write_usage(usage) for usage in instance.usage],
        "objective": _write_objective(instance.objective),
        "priorities": "strict" if instance.has_strict_priorities else None,
        "outages": [_write_outage(outage) for outage in instance.outages],
    }
    return _present(**document)


def _present(**keys: Any) -> _Object:
    """Return an object without the keys that have nothing to say: absent values, and empty lists and objects."""
    return {key: value for key, value in keys.items() if value is not None and value not in ([], {})}


class _RequestForms:
    """How requests are written: as text where the text means the same again, else in parsed form. Mutable: a cache."""

    def __init__(self, countable: Collection[str]) -> None:
        self._countable = countable
        self._written: dict[tuple[Chunk, ...], Any] = {}

    def __getitem__(self, chunks: tuple[Chunk, ...]) -> Any:
        if chunks not in self._written:
            self._written[chunks] = self._write(chunks)
        return self._written[chunks]

    def _write(self, chunks: tuple[Chunk, ...]) -> Any:
        request = Request(chunks=chunks)
        try:
            text = format_request(request)
            if parse_request(text, countable=self._countable).request == request:
                return text
        except (ValueError, SyntaxFault):
            pass
        return [
            _present(count=chunk.count, resources=dict(chunk.resources), where=dict(chunk.where)) for chunk in chunks
        ]


def _write_nodes(nodes: NodeClass) -> _Object:
    return (
        _present(names=fold_hostlist(nodes.names))
        | {"resources": dict(nodes.resources)}
        | _present(
            properties=dict(nodes.properties),
            priority=nodes.priority or None,
            state=None if nodes.state is NodeState.UP else str(nodes.state),
            admits=[
                _present(min=dict(condition.min), max_walltime=condition.max_walltime) or {"min": {}}
                for condition in nodes.admits
            ],
            keep_free=[
                {"resource": kept.resource, "items": kept.items, "for": kept.beneficiary} for kept in nodes.keep_free
            ],
        )
    )


def _write_queue(queue: Queue) -> _Object:
    held = queue.max_wait
    return _present(
        expected_wait=queue.expected_wait,
        priority=queue.priority or None,
        weight=None if queue.weight == 1 else queue.weight,
        max_walltime=queue.max_walltime,
        max_wait=None
        if held is None
        else _present(
            seconds=held.seconds,
            price=None if held.price == MaxWait(seconds=held.seconds).price else held.price,
            hard=held.is_hard or None,
        ),
        nodes=None if queue.nodes is None else fold_hostlist(queue.nodes),
    )


def _write_promised_start(told: PromisedStart) -> _Object:
    return _present(start=told.start, price=None if told.price == PromisedStart(start=told.start).price else told.price)


def _write_job(job: Job, requests: _RequestForms) -> _Object:
    place = job.steps[0].request.place
    is_rigid = not job.is_evolving and job.expand_limit == 1
    document = _present(
        id=job.id,
        user=job.user,
        group=job.group,
        queue=job.queue,
        project=job.project,
        submit=job.submit,
        walltime=job.walltime if is_rigid else None,
        request=requests[job.request.chunks] if is_rigid else None,
        steps=[] if is_rigid else [{"walltime": s.walltime, "request": requests[s.request.chunks]} for s in job.steps],
        place=_write_place(place),
        licenses=dict(job.licenses),
        priority=job.priority,
        weight=job.weight,
        not_before=job.not_before,
        start_at=job.start_at,
        deadline=job.deadline,
        after=[{"job": d.job, "type": str(d.type)} | _present(delay=d.delay or None) for d in job.after],
        told=None if job.told is None else _write_promised_start(job.told),
        array=None if job.array is None else {"indices": format_indices(job.array)},
        malleable=None if job.malleability is None else _write_malleable(job.malleability),
        running=None if job.running is None else _write_running(job, job.running),
        expected=job.expected,
        runtime=job.runtime,
        reservation=job.reservation,
    )
    return document if job.expand_limit == 1 else document | {"expand_limit": job.expand_limit}


def _write_place(place: Place) -> str | None:
    return None if place == Place() else format_place(place)


def _write_malleable(malleability: Malleability) -> _Object:
    return _present(
        shares=list(malleability.shares),
        model=None if malleability.model is RuntimeModel.IDEAL else str(malleability.model),
        stretch={repr(share): factor for share, factor in malleability.stretch.items()},
    )


def _write_running(job: Job, running: Running) -> _Object:
    last = running.segments[-1]
    seconds = job.walltime
    if job.malleability is not None:
        seconds = time_on(job.walltime, job.request, job.malleability, last.allocation)
    if len(running.segments) == 1 and last.end == running.start + seconds:
        return {"start": running.start, "allocation": _write_allocation(last.allocation)}
    segments = [
        {"start": segment.start, "end": segment.end, "allocation": _write_allocation(segment.allocation)}
        for segment in running.segments
    ]
    return {"start": running.start, "segments": segments}


def _write_allocation(allocation: tuple[Placement, ...]) -> list[_Object]:
    return [
        _present(node=held.node, chunk=held.chunk, count=held.count) | {"resources": dict(held.resources)}
        for held in allocation
    ]


def _write_consumer(consumer: Consumer) -> _Object:
    return {"each": str(consumer.kind)} if consumer.name is None else {str(consumer.kind): consumer.name}


def _write_validity(validity: Validity) -> _Object | None:
    return _present(**{"from": validity.from_, "until": validity.until, "cron": validity.cron}) or None


def _write_limit(limit: Limit) -> _Object:
    return _present(
        consumer=_write_consumer(limit.consumer),
        resource=limit.resource,
        items=None if limit.items is None else format_items(limit.items),
        duration=limit.duration,
        area=limit.area,
        area_scope=None if limit.area_scope is AreaScope.REQUEST else str(limit.area_scope),
        validity=_write_validity(limit.validity),
        soft=limit.soft or None,
    )


def _write_free_pool(pool: FreePool) -> _Object:
    walltime = pool.otherwise_max_walltime
    return _present(
        resource=pool.resource,
        items=format_items(pool.items),
        open_to=_write_access(pool.open_to),
        validity=_write_validity(pool.validity),
        nodes=None if pool.nodes is None else fold_hostlist(pool.nodes),
        otherwise=None if walltime is None else {"max_walltime": walltime},
    )


def _write_access(access: Access) -> _Object:
    document = _present(
        users=list(access.users),
        groups=list(access.groups),
        asks_for=list(access.asks_for),
        max_walltime=access.max_walltime,
    )
    return document if access.max is None else document | {"max": dict(access.max)}


def _write_reservation(reservation: Reservation, requests: _RequestForms) -> _Object:
    request = reservation.request
    return _present(
        id=reservation.id,
        start=reservation.start,
        end=reservation.end,
        validity=None if reservation.validity is None else _write_validity(reservation.validity),
        request=None if request is None else requests[request.chunks],
        nodes=None if reservation.nodes is None else fold_hostlist(reservation.nodes),
        allocation=_write_allocation(reservation.allocation),
        place=None if request is None else _write_place(request.place),
        licenses=dict(reservation.licenses),
        users=list(reservation.users),
        kind=None if reservation.kind is ReservationKind.USERS else str(reservation.kind),
    )


def _write_usage(usage: Usage) -> _Object:
    return {"consumer": _write_consumer(usage.consumer), "resource": usage.resource, "area": usage.area}


def _write_objective(objective: Objective) -> str | Mapping[str, float] | None:
    if objective == Objective():
        return None
    weights = {str(term): weight for term, weight in objective.weights.items()}
    return next(iter(weights)) if list(weights.values()) == [1] else weights


def _write_outage(outage: Outage) -> _Object:
    return {"nodes": fold_hostlist(outage.nodes), "start": outage.start, "end": outage.end}
