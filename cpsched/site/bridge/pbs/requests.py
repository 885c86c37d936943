"""What a job of PBS asks for, ``2:ncpus=4:mem=1gb`` and a place, as a request; or why that cannot be said."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from cpsched.domain import Amounts, Arrangement, Chunk, FrozenMap, Place, Request
from cpsched.site.bridge.answers import Answer
from cpsched.site.bridge.leaving import Inexpressible
from cpsched.site.bridge.pbs.machine import LEAD, YES, Machine, Vnode, amount, is_amount, ours, properties_of

#: What a chunk says of the processes in it: it takes nothing.
_TAKES_NOTHING = frozenset({"mpiprocs", "ompthreads", "nchunk"})
_CHUNK = re.compile(r"(?:(\d+):)?(.+)")
_SHARINGS = ("excl", "exclhost", "shared")


def request_of(listed: Answer, machine: Machine) -> Request:
    """Return the chunks of ``select`` and ``place``; old requests (``nodes=``) have a ``select`` too."""
    text = listed.get("select")
    if not text:
        raise Inexpressible("it has no select statement")
    arrangement, sharing = place_of(listed)
    chunks = [_chunk(part, machine) for part in str(text).split("+")]
    usable = [one for one in machine.vnodes.values() if any(_suits(one, chunk) for chunk in chunks)]
    usable = usable or list(machine.vnodes.values())
    alone = [one for one in usable if one.is_alone(sharing)]
    hosts = machine.hosts
    if any(one.is_whole(sharing) and len(hosts[one.host]) > 1 for one in alone):
        raise Inexpressible("it has hosts of several vnodes for itself (exclhost)")
    place = Place(
        arrangement=Arrangement.SCATTER if arrangement == "vscatter" else Arrangement(arrangement),
        exclusive=bool(alone),
    )
    if len(hosts) == len(machine.vnodes):
        return Request(chunks=tuple(chunks), place=place)
    return _on_vnodes(chunks, place, machine, is_by_host=arrangement == "scatter")


def place_of(listed: Answer) -> tuple[str, str]:
    """Return how the chunks of a job are arranged, and how it shares its vnodes; empty where it does not say."""
    text = str(listed.get("place", "free"))
    words = text.split(":")
    if any(word.startswith("group=") for word in words):
        raise Inexpressible(f"it asks for nodes that are alike ({text})")
    arrangement = next((word for word in words if word in ("free", "pack", "scatter", "vscatter")), "free")
    sharing = next((word for word in words if word in _SHARINGS), "")
    if len(words) > 2 or not {*words} <= {arrangement, sharing}:
        raise Inexpressible(f"its place cannot be read ({text})")
    return arrangement, sharing


def _chunk(text: str, machine: Machine) -> Chunk:
    match = _CHUNK.fullmatch(text.strip())
    if match is None:
        raise Inexpressible("its request cannot be read (a chunk of nothing)")
    count, rest = match[1], match[2]
    if rest.isdecimal():
        count, rest = rest, ""
    amounts: dict[str, int] = {}
    where: dict[str, str] = {}
    for part in rest.split(":") if rest else ():
        key, _, value = part.partition("=")
        value = value.strip("\"'")
        if not key or not value:
            raise Inexpressible(f"its request cannot be read ({text})")
        if key in _TAKES_NOTHING:
            continue
        if ours(key) in machine.countable or (ours(key) in ("cores", "mem", "gpus", "mics") and is_amount(value)):
            try:
                amounts[ours(key)] = amount(key, value, up=True)
            except ValueError as error:
                raise Inexpressible(f"its request cannot be read: {error}") from None
        else:
            where |= dict(properties_of(key, value, machine))
    amounts = {name: count for name, count in amounts.items() if count} or {"cores": 1}
    return Chunk(count=int(count or 1), resources=Amounts(amounts), where=FrozenMap(where))


def _suits(vnode: Vnode, chunk: Chunk, *, is_large: bool = True) -> bool:
    """Tell whether a vnode has the properties that a chunk asks for, and as much as it takes."""
    has = all(vnode.properties.get(key) == value for key, value in chunk.where.items())
    return has and (not is_large or all(vnode.amounts.get(name, 0) >= most for name, most in chunk.resources.items()))


def _on_vnodes(chunks: Sequence[Chunk], place: Place, machine: Machine, *, is_by_host: bool) -> Request:
    """Return the request on hosts that have several vnodes.

    A chunk may be on several vnodes of one host. Where it is larger than each vnode, the host is chosen here, the one
    that has most free, and its cores may be on any of its vnodes.
    """
    large = [chunk for chunk in chunks if not any(_suits(one, chunk) for one in machine.vnodes.values())]
    if place.arrangement is Arrangement.PACK and (large or sum(chunk.count for chunk in chunks) > 1):
        together = Request(chunks=tuple(chunks)).totals
        whole = Chunk(
            count=1, resources=together, where=FrozenMap({k: v for one in chunks for k, v in one.where.items()})
        )
        if not any(_suits(one, whole) for one in machine.vnodes.values()):
            chunks, large = [whole], [whole]
    if not large:
        if is_by_host:
            chunks = [
                Chunk(count=one.count, resources=one.resources, where=FrozenMap({**one.where, LEAD: YES}))
                for one in chunks
            ]
        return Request(chunks=tuple(chunks), place=place)
    if len(large) < len(chunks) and place.arrangement is Arrangement.SCATTER:
        raise Inexpressible("some of its chunks are larger than a vnode, and each is to be on another host")
    free = {host: _free(mine) for host, mine in machine.hosts.items()}
    found: list[Chunk] = [chunk for chunk in chunks if chunk not in large]
    if sum(chunk.count for chunk in large) > len(machine.vnodes):
        raise Inexpressible("more of its chunks are larger than a vnode than there are vnodes")
    for chunk in large:
        for _ in range(chunk.count):
            found += _split(chunk, free, machine, is_by_host=is_by_host)
    return Request(chunks=tuple(found), place=Place(exclusive=place.exclusive))


def _free(vnodes: Sequence[Vnode]) -> dict[str, int]:
    """Return what the vnodes of a host that are up have free together."""
    found = Counter[str]()
    for one in vnodes:
        found.update({name: has - one.assigned.get(name, 0) for name, has in one.amounts.items()})
    return found


def _split(chunk: Chunk, free: dict[str, dict[str, int]], machine: Machine, *, is_by_host: bool) -> Iterator[Chunk]:
    """Yield the pieces of a chunk that is larger than a vnode: one for each core, all on one host."""
    hosts = machine.hosts
    fit = [
        host
        for host in free
        if all(
            sum(one.amounts.get(name, 0) for one in hosts[host] if _suits(one, chunk, is_large=False)) >= most
            for name, most in chunk.resources.items()
        )
    ]
    cores = chunk.resources.get("cores", 0)
    if not fit or not cores or not chunk.resources.keys() <= {"cores", "mem", "gpus"}:
        raise Inexpressible("one of its chunks is larger than each vnode, and cannot be divided")
    host = max(fit, key=lambda one: free[one].get("cores", 0))
    if is_by_host:
        del free[host]
    else:
        free[host] = {name: has - chunk.resources.get(name, 0) for name, has in free[host].items()}
    memory, gpus = -(-chunk.resources.get("mem", 0) // cores), chunk.resources.get("gpus", 0)
    each, more = divmod(gpus, cores)
    for count, mine in ((more, each + 1), (cores - more, each)):
        if count:
            amounts = {"cores": 1, "mem": memory, "gpus": mine}
            where = FrozenMap({**chunk.where, "host": host})
            yield Chunk(count=count, resources=Amounts({k: v for k, v in amounts.items() if v}), where=where)


def takes(pieces: Mapping[str, str]) -> dict[str, int]:
    """Return what ``exec_vnode`` says that a job has on a vnode."""
    return {ours(key): max(1, amount(key, value)) for key, value in pieces.items() if is_amount(value)}
