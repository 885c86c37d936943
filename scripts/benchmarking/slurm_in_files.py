"""A Slurm that is some files: commands that print them, and a client that rewrites them as orders say.

Its answers have the form of 22.05. The daemon's side is the real one: commands are run, their text is read from pipes.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpsched.site.bridge.commands import Answer
from cpsched.site.bridge.slurm import SlurmClient
from cpsched.site.bridge.slurm.lines import COLUMNS, END

__all__ = ["GATE", "FiledSlurm", "running", "waiting"]

#: The begin of a job that the submit plugin has gated: 2099-01-01 UTC.
GATE = 4070908800
_COMMAND = """#!/bin/sh
case "$*" in
  *--version) echo "slurm 22.05.8" ;;
  *--json) exec cat {folder}/{name}.json ;;
  *config) exec cat {folder}/config ;;
  *show*) echo "No $3 in the system" ;;
  *--format*) exec cat {folder}/glance ;;
  *--Format*) exec cat {folder}/lines ;;
  *) cat > /dev/null ;;
esac
"""
_CONFIG = "Configuration data as of 2026-01-01\nSelectType = select/cons_tres\nSelectTypeParameters = CR_CORE_MEMORY\n"
#: What a job has besides that cpsched does not read: an answer is as long as a real one.
_UNREAD: dict[str, Any] = {
    **dict.fromkeys(("accrue_time", "last_sched_evaluation", "suspend_time", "preempt_time", "pre_sus_time"), 0),
    **dict.fromkeys(("batch_features", "burst_buffer_state", "cluster", "comment", "container", "wckey", "qos"), ""),
    **dict.fromkeys(("thread_spec", "billable_tres", "cpu_frequency_minimum", "cpu_frequency_maximum", "nice"), None),
    **dict.fromkeys(("cpu_frequency_governor", "profile", "time_minimum", "max_cpus", "resize_time"), None),
    **dict.fromkeys(("federation_origin", "federation_siblings_active", "federation_siblings_viable"), ""),
    **dict.fromkeys(("het_job_id_set", "mcs_label", "prefer", "system_comment", "tres_bind", "tres_freq"), ""),
    **dict.fromkeys(("association_id", "delay_boot", "derived_exit_code", "exit_code", "group_id"), 0),
    "command": "/home/ada/projects/simulation/run.sh",
    "current_working_directory": "/home/ada/projects/simulation",
    "standard_output": "/home/ada/projects/simulation/out-%j.txt",
    "standard_error": "/home/ada/projects/simulation/err-%j.txt",
    "standard_input": "/dev/null",
    "show_flags": ["SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL"],
    "flags": ["JOB_CPUS_SET"],
    "requeue": True,
    "reboot": False,
    "batch_flag": True,
    "batch_host": "",
}
_READ: dict[str, Any] = {
    "state_description": "",
    "name": "job",
    "user_name": "ada",
    "user_id": 1001,
    "group_name": "users",
    "account": "physics",
    "partition": "q",
    "priority": 1000,
    "max_nodes": 0,
    "cpus_per_task": None,
    "minimum_cpus_per_node": 1,
    "memory_per_cpu": 100,
    "memory_per_node": None,
    "array_job_id": 0,
    "array_task_id": None,
    "array_task_string": "",
    "array_max_tasks": 0,
    "shared": None,
    "restart_cnt": 0,
    "admin_comment": "",
    **dict.fromkeys(("features", "required_nodes", "excluded_nodes", "licenses", "dependency", "resv_name"), ""),
    **dict.fromkeys(("tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "cpus_per_tres"), ""),
    **dict.fromkeys(("memory_per_tres", "burst_buffer", "cluster_features", "nodes"), ""),
    **dict.fromkeys(("deadline", "het_job_id", "tasks_per_node", "tasks_per_board"), 0),
    **dict.fromkeys(("core_spec", "cores_per_socket", "sockets_per_node", "threads_per_core"), None),
    "contiguous": False,
    "job_resources": {},
    "gres_detail": [],
}


def waiting(number: int, nodes: int, cores: int, minutes: int, submit: int) -> dict[str, Any]:
    """Return a waiting job that the gate has held back, of some nodes with some cores each."""
    cpus = nodes * cores
    return {
        **_UNREAD,
        **_READ,
        "job_id": number,
        "job_state": "PENDING",
        "state_reason": "BeginTime",
        "submit_time": submit,
        "eligible_time": GATE,
        "start_time": GATE,
        "end_time": 0,
        "time_limit": minutes,
        "node_count": nodes,
        "cpus": cpus,
        "tasks": cpus,
        "tres_req_str": f"cpu={cpus},mem={100 * cpus}M,node={nodes},billing={cpus}",
        "admin_comment": "cpsched:1",
    }


def running(number: int, node: str, cores: int, minutes: int, start: int) -> dict[str, Any]:
    """Return a job that runs on one node."""
    sockets = {"0": {"cores": {str(core): "allocated" for core in range(cores)}}}
    held = {"nodename": node, "cpus": cores, "memory_allocated": 100 * cores, "sockets": sockets}
    return waiting(number, 1, cores, minutes, start) | {
        "job_state": "RUNNING",
        "state_reason": "None",
        "eligible_time": start,
        "start_time": start,
        "end_time": start + 60 * minutes,
        "nodes": node,
        "admin_comment": "",
        "job_resources": {"nodes": node, "allocated_nodes": [held]},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client(SlurmClient):
    """Runs the commands that print the files, and counts what is Slurm's own work."""

    slurm: FiledSlurm | None = None

    def command(self, *arguments: str, given: str = "", codes: Sequence[int] = (0,)) -> Answer:
        """Run a command; then do what it says."""
        answer = SlurmClient.command(self, *arguments, given=given, codes=codes)
        if given and self.slurm is not None:
            self.slurm.obey(given)
        return answer


@dataclass(slots=True)
class FiledSlurm:
    """The files. Mutable."""

    folder: Path
    nodes: Sequence[str]
    cores: int
    now: int
    jobs: dict[str, dict[str, Any]]
    clock: Callable[[], float] = time.perf_counter
    #: Seconds of work that a real Slurm does by itself.
    seconds: float = 0.0
    _texts: dict[str, str] = field(default_factory=dict)
    _lines: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        for name in ("squeue", "sinfo", "scontrol"):
            command = self.folder / name
            command.write_text(_COMMAND.format(folder=self.folder, name=name), encoding="ascii")
            command.chmod(0o755)
        (self.folder / "config").write_text(_CONFIG, encoding="ascii")
        (self.folder / "glance").write_text("", encoding="ascii")
        entries = [self._node(name) for name in self.nodes]
        (self.folder / "sinfo.json").write_text(_answer("nodes", [_text(one) for one in entries]), encoding="utf-8")
        self.change({})

    @property
    def client(self) -> SlurmClient:
        """The client of this Slurm."""
        return _Client(directory=str(self.folder), slurm=self)

    def _node(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "architecture": "x86_64",
            "operating_system": "Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC",
            "state": "idle",
            "state_flags": [],
            "cpus": self.cores,
            "threads": 1,
            "real_memory": 64000,
            "gres": "",
            "features": "",
            "active_features": "",
            "weight": 1,
            "partitions": ["q"],
            "address": name,
            "hostname": name,
            "reason": "",
            "tres": f"cpu={self.cores},mem=64000M,billing={self.cores}",
        }

    def change(self, changed: Mapping[str, dict[str, Any] | None]) -> None:
        """Give jobs other entries; None: it is not known any more."""
        began = self.clock()
        for name, entry in changed.items():
            self._texts.pop(name, None)
            self._lines.pop(name, None)
            if entry is None:
                del self.jobs[name]
            else:
                self.jobs[name] = entry
        for name, entry in self.jobs.items():
            if name not in self._texts:
                self._texts[name], self._lines[name] = _text(entry), _line(entry)
        text = _answer("jobs", [self._texts[name] for name in self.jobs])
        (self.folder / "squeue.json").write_text(text, encoding="utf-8")
        lines = "".join(self._lines[name] for name in self.jobs)
        (self.folder / "lines").write_text(lines, encoding="utf-8")
        self.seconds += self.clock() - began

    def obey(self, lines: str) -> None:
        """Do what lines for scontrol say."""
        began = self.clock()
        changed: dict[str, dict[str, Any] | None] = {}
        for line in lines.splitlines():
            said = dict(word.split("=", 1) for word in line.split() if "=" in word)
            entry = self.jobs.get(said.get("JobId", ""))
            if entry is not None:
                changed[said["JobId"]] = entry | _wanted(entry, said)
        self.seconds += self.clock() - began
        self.change(changed)


def _wanted(entry: Mapping[str, Any], said: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a job that a line changes."""
    found: dict[str, Any] = {"admin_comment": said["AdminComment"]}
    if "ReqNodeList" in said:
        found["required_nodes"] = said["ReqNodeList"]
    if "MinCPUsNode" in said:
        found["minimum_cpus_per_node"] = int(said["MinCPUsNode"])
    if "StartTime" in said:
        found["eligible_time"] = found["start_time"] = int(said["StartTime"].removeprefix("uts"))
    if "NumNodes" in said:
        fewest, most = map(int, said["NumNodes"].split("-"))
        asked = re.sub(r"node=\d+", f"node={fewest}", entry["tres_req_str"])
        found |= {"node_count": fewest, "max_nodes": most, "tres_req_str": asked}
    return found


def _text(entry: Mapping[str, Any]) -> str:
    """Return an entry of a list, indented as Slurm does it."""
    return "\n".join(f"    {line}" for line in json.dumps(entry, indent=2).splitlines())


def _line(entry: Mapping[str, Any]) -> str:
    """Return the line of a job: what an order changes is its own, all else is as long as a real one's."""
    own = {
        "JobID": entry["job_id"],
        "ReqNodes": entry["required_nodes"],
        "NumNodes": entry["node_count"],
        "MinCPUs": entry["minimum_cpus_per_node"],
        "NumCPUs": entry["cpus"],
        "EligibleTime": entry["eligible_time"],
        "Reason": entry["state_reason"],
        "admin_comment": entry["admin_comment"],
        "State": entry["job_state"],
        "NodeList": entry["nodes"],
        "TimeLimit": entry["time_limit"],
    }
    return "".join(f"{own.get(name, 'N/A')}{END}" for name in COLUMNS) + "\n"


def _answer(key: str, entries: Sequence[str]) -> str:
    release = {"Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"}}
    meta = json.dumps(release, indent=2).replace("\n", "\n  ")
    return f'{{\n  "meta": {meta},\n  "errors": [\n  ],\n  "{key}": [\n' + ",\n".join(entries) + "\n  ]\n}\n"
