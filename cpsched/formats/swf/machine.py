"""The machine of a log: from a cluster file, or from what the log's header says, with what had to be assumed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from cpsched.domain import MAX_AMOUNT, Amounts, Cluster, Instance, NodeClass
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import shown
from cpsched.formats.files import load_document
from cpsched.formats.hostlist import MAX_NODES
from cpsched.formats.instance_reader import parse_instance
from cpsched.formats.swf.log import SwfLog

#: A figure of the header, and the words that a site may put behind it.
_FIGURE = re.compile(r"([0-9]{1,15})(?:\s.*)?")


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
    """Return the machine of equal nodes that a log's header speaks of: ``MaxNodes`` nodes of ``MaxProcs`` cores in all.

    Raises `DocumentError` if the header says neither figure, or figures that equal nodes cannot have: then a cluster
    file is needed.
    """
    nodes, processors = _figure(log, "MaxNodes"), _figure(log, "MaxProcs")
    if nodes is None and processors is None:
        _refuse(log, "MaxProcs", "Expected MaxNodes or MaxProcs in the header, got neither")
    assumed = []
    if nodes is None or processors is None:
        missing = "MaxNodes" if nodes is None else "MaxProcs"
        assumed.append(f"each node has one core, for the header has no {missing}")
    num_nodes = (processors or 0) if nodes is None else nodes
    num_cores = num_nodes if processors is None else processors
    if num_nodes > MAX_NODES:
        _refuse(log, "MaxNodes", f"Expected at most {MAX_NODES} nodes, got {num_nodes}")
    if num_cores % num_nodes or num_cores // num_nodes > MAX_AMOUNT:
        _refuse(log, "MaxProcs", f"Expected a number of cores that {num_nodes} equal nodes can share, got {num_cores}")
    cores, width = num_cores // num_nodes, len(str(num_nodes))
    assumed.insert(0, f"{num_nodes} equal nodes of {cores} cores each, without memory, as the header's figures say")
    names = tuple(f"n{number:0{width}d}" for number in range(1, num_nodes + 1))
    cluster = Cluster(classes=(NodeClass(names=names, resources=Amounts({"cores": cores})),))
    name = Path(log.source).name.removesuffix(".gz").removesuffix(".swf")
    return AssumedMachine(Instance(name=name, cluster=cluster), tuple(assumed))


def _figure(log: SwfLog, key: str) -> int | None:
    """Return a figure of the header; sites write remarks behind it (``338 (batch partition; 512 total)``)."""
    if key not in log.header:
        return None
    value = log.header[key][0]
    match = _FIGURE.fullmatch(value)
    if match is None or int(match[1]) == 0:
        _refuse(log, key, f"Expected a number above 0, got {shown(value)}")
    return int(match[1])


def _refuse(log: SwfLog, key: str, message: str) -> NoReturn:
    raise DocumentError(log.source, [Fault(f"header {key}", f"{message}; a cluster file can describe the machine")])
