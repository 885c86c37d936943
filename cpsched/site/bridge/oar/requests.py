"""What a job of OAR asks for, ``-l "{gpu = 'YES'}/host=2/core=4,walltime=1:0:0"`` once or more often, as choices."""

import re
from collections import Counter
from collections.abc import Iterator
from math import prod

from cpsched.domain import Amounts, Arrangement, Chunk, Place, Request, Step
from cpsched.site.bridge.answers import Answer
from cpsched.site.bridge.leaving import Inexpressible
from cpsched.site.bridge.oar.machine import Machine

_CHOICE = re.compile(r'-l "(.*?),walltime=(\d+):(\d+):(\d+)"')
_GROUP = re.compile(r"(?:\{(.*?)\})?((?:/\w+=[-\w]+)+)(?:\+|$)")


def choices_of(attributes: Answer, machine: Machine) -> tuple[list[Step], list[str]]:
    """Return the choices that a job has, and why others cannot be said; raises `Inexpressible` if none can."""
    text = attributes.get("wanted_resources")
    if not text:
        raise Inexpressible("what it asks for is not known (oarstat -J -f tells)")
    found, reasons = dict[Step, None](), list[str]()
    for wanted, hours, minutes, seconds in _CHOICE.findall(str(text)):
        try:
            request = _request(wanted, str(attributes.get("properties") or "1"), machine)
            walltime = max(1, (int(hours) * 60 + int(minutes)) * 60 + int(seconds))
            found[Step(walltime=walltime, request=request)] = None
        except Inexpressible as error:
            reasons.append(str(error))
    if not found:
        raise Inexpressible(reasons[0] if reasons else f"its request cannot be read ({text})")
    return list(found), reasons


def _request(text: str, properties: str, machine: Machine) -> Request:
    matches = list(_GROUP.finditer(text))
    if "".join(match[0] for match in matches) != text or not text:
        raise Inexpressible(f"its request cannot be read ({text})")
    groups = [_group(f"({properties}) AND ({match[1] or 1})", list(_levels(match[2])), machine) for match in matches]
    places = {place for _, place in groups}
    if len(groups) > 1 and places != {Place()}:
        raise Inexpressible(f"some of its parts are each to be on another node ({text})")
    return Request(chunks=tuple(chunk for chunk, _ in groups), place=places.pop())


def _levels(text: str) -> Iterator[tuple[str, int]]:
    for part in text.split("/")[1:]:
        name, _, count = part.partition("=")
        if not count.isdecimal() or not int(count):
            raise Inexpressible(f"it asks for as many as there are ({part})")
        yield name, int(count)


def _group(condition: str, levels: list[tuple[str, int]], machine: Machine) -> tuple[Chunk, Place]:
    """Return the chunks of ``/host=2/core=4``: levels from the largest to the smallest."""
    nodes = machine.suiting(condition)
    if not nodes:
        raise Inexpressible(f"no node has what it asks for ({condition})")
    are_nodes = [machine.is_node(level) for level, _ in levels]
    if any(are_nodes[1:]):
        raise Inexpressible("it asks for nodes of nodes")
    count, inner = levels[0][1], levels[1:]
    if not inner and are_nodes[0]:
        sizes = {len(mine) for mine in nodes.values()}
        is_alike = len(sizes) == 1
        place = Place() if is_alike else Place(arrangement=Arrangement.SCATTER, exclusive=True)
        return _chunk(count, min(sizes), machine, nodes), place
    last = levels[-1][0]
    size = max(max(Counter(machine.rows[number][last] for number in mine).values()) for mine in nodes.values())
    is_spread = are_nodes[0] and count > 1
    place = Place(arrangement=Arrangement.SCATTER if is_spread else Arrangement.FREE)
    return _chunk(count, prod(number for _, number in inner) * size, machine, nodes), place


def _chunk(count: int, cores: int, machine: Machine, nodes: dict[str, set[int]]) -> Chunk:
    return Chunk(count=count, resources=Amounts({"cores": cores}), where=machine.where(nodes.keys()))
