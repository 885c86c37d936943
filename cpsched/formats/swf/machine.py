"""The machine of a log: from a cluster file, or from what the log's header says, with what had to be assumed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NoReturn

from cpsched.domain import MAX_AMOUNT, Amounts, Cluster, Instance, NodeClass
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import shown
from cpsched.formats.files import load_document
from cpsched.formats.hostlist import MAX_NODES
from cpsched.formats.instance_reader import parse_instance
from cpsched.formats.swf.log import SwfLog

#: A figure of the header, that of each part of the machine in brackets, and words that a site may put behind it.
_FIGURE = re.compile(r"([0-9]{1,15}|-1)\s*(?:\(([0-9,\s]{1,1000})\))?(?:\s.*)?")


@dataclass(frozen=True, slots=True)
class AssumedMachine:
    """A machine for a log without a cluster file.

    `machine`: without jobs. `assumed`: what was taken for granted, a sentence each.
    """

    machine: Instance
    assumed: tuple[str, ...]


def read_machine(source: str | Path) -> Instance:
    """Read a cluster file: an instance document without jobs, in which all but ``cluster`` may be missing.

    By default its name is the file's, without suffixes. An ``epoch`` will be the time of a window's first submission.

    Raises `DocumentError` with all faults of the file.
    """
    document = load_document(source)
    name = Path(source).name.removesuffix(".gz").removesuffix(".json")
    defaults = {"format": "cpsched-instance/1", "name": name, "now": 0, "jobs": []}
    machine = parse_instance(defaults | document, source=str(source))
    if machine.jobs:
        raise DocumentError(
            str(source), [Fault("jobs", f"Expected no jobs in a cluster file, got {len(machine.jobs)}")]
        )
    return machine


def machine_of_log(log: SwfLog) -> AssumedMachine:
    """Return the machine that a log's header speaks of: ``MaxNodes`` nodes of ``MaxProcs`` cores in all.

    Both may say in brackets what each part of the machine has: ``184 (6, 171, 7)``. Else nodes are equal, as far as
    the cores can be shared out so. ``-1`` is unknown.

    Raises `DocumentError` if the header says neither figure, or figures that no nodes can have: then a cluster file is
    needed.
    """
    nodes, processors = _figure(log, "MaxNodes"), _figure(log, "MaxProcs")
    if nodes is None and processors is None:
        _refuse(log, "MaxProcs", "Expected MaxNodes or MaxProcs in the header, got neither")
    assumed = []
    if nodes is None or processors is None:
        missing = "MaxNodes" if nodes is None else "MaxProcs"
        assumed.append(f"each node has one core, for the header has no {missing}")
    nodes = nodes or processors or _Figure(0)
    processors = processors or nodes
    if nodes.whole > MAX_NODES:
        _refuse(log, "MaxNodes", f"Expected at most {MAX_NODES} nodes, got {nodes.whole}")
    cores, rest = divmod(processors.whole, nodes.whole)
    if not 0 < cores < MAX_AMOUNT:
        message = f"Expected a number of cores that {nodes.whole} equal nodes can share, got {processors.whole}"
        _refuse(log, "MaxProcs", message)
    kinds = [(nodes.whole - rest, cores), *([(rest, cores + 1)] if rest else ())]
    if nodes.are_parts and processors.are_parts and len(nodes.parts) == len(processors.parts):
        shares = [divmod(cores, count) for cores, count in zip(processors.parts, nodes.parts, strict=True)]
        if all(cores and not rest for cores, rest in shares):
            kinds = [(count, cores) for count, (cores, _) in zip(nodes.parts, shares, strict=True)]
    words = ", ".join(f"{count} equal nodes of {cores} cores each" for count, cores in kinds)
    assumed.insert(0, f"{words}, without memory, as the header's figures say")
    ends, width = list(accumulate((count for count, _ in kinds), initial=1)), len(str(nodes.whole))
    classes = tuple(
        NodeClass(
            names=tuple(f"n{number:0{width}d}" for number in range(begin, end)), resources=Amounts({"cores": cores})
        )
        for (_, cores), (begin, end) in zip(kinds, pairwise(ends), strict=True)
    )
    name = Path(log.source).name.removesuffix(".gz").removesuffix(".swf")
    return AssumedMachine(Instance(name=name, cluster=Cluster(classes=classes)), tuple(assumed))


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure of the header: of the whole machine, and of each of its parts where they are told."""

    whole: int
    parts: tuple[int, ...] = ()

    @property
    def are_parts(self) -> bool:
        """Whether the parts make up the whole."""
        return all(self.parts) and sum(self.parts) == self.whole


def _figure(log: SwfLog, key: str) -> _Figure | None:
    """Return a figure of the header, None where it is unknown; sites write remarks behind it
    (``338 (batch partition; 512 total)``).
    """
    if key not in log.header:
        return None
    value = log.header[key][0]
    match = _FIGURE.fullmatch(value)
    if match is None or int(match[1]) == 0:
        _refuse(log, key, f"Expected a number above 0, got {shown(value)}")
    parts = tuple(int(part) for part in (match[2] or "").replace(",", " ").split())
    return None if match[1] == "-1" else _Figure(int(match[1]), parts)


def _refuse(log: SwfLog, key: str, message: str) -> NoReturn:
    raise DocumentError(log.source, [Fault(f"header {key}", f"{message}; a cluster file can describe the machine")])
