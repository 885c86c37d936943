"""Lines of resource managers' logs: Torque records and sbatch events, with what is not said being plain."""

from __future__ import annotations

from pathlib import Path

from cpsched.formats.logs import JobLog, read_sbatch, read_torque

#: Two nodes: 1 runs on both, 2 asks for what only b has, 3 was deleted, 4 still waits and 5 still runs, 6 ended twice.
TORQUE = """\
03/01/2020 00:00:05;Q;1.server;queue=batch
03/01/2020 00:00:06;Q;3.server;queue=batch
03/01/2020 00:00:07;D;3.server;requestor=ann@host
03/01/2020 00:00:08;S;1.server;user=ann ctime=100 start=110 exec_host=a/0-1+b/0-1 Resource_List.nodes=2:ppn=2
03/01/2020 00:00:09;E;1.server;user=ann group=g queue=batch account=p ctime=100 qtime=100 etime=100 start=110 \
exec_host=a/0-1+b/0-1 Resource_List.nodes=2:ppn=2 Resource_List.mem=4gb Resource_List.walltime=01:00:00 end=170 \
Exit_status=0 resources_used.walltime=00:01:00
03/01/2020 00:00:10;Q;4.server;queue=batch
03/01/2020 00:00:11;E;2.server;user=bob ctime=90 etime=120 start=120 exec_host=b/2,3 Resource_List.nodes=1:ppn=2:fast \
Resource_List.vmem=2gb Resource_List.walltime=60 end=180 Exit_status=-11
03/01/2020 00:00:12;S;5.server;user=bob ctime=120 start=130 exec_host=a/2 Resource_List.nodes=1 \
Resource_List.walltime=60
03/01/2020 00:00:13;E;6.server;user=bob ctime=125 start=140 exec_host=a/3 Resource_List.nodes=1 end=150 Exit_status=271
03/01/2020 00:00:14;R;6.server;
03/01/2020 00:00:15;E;6.server;user=bob ctime=125 start=160 exec_host=a/3 Resource_List.nodes=1 end=160 Exit_status=1
"""


def torque(tmp_path: Path, text: str) -> JobLog:
    path = tmp_path / "log.acct"
    path.write_text(text, encoding="utf-8")
    return read_torque(path)


def ended(job: str = "1", **changed: str | None) -> str:
    """Return a record E; keys by their last word, all others plain, those that are None left out."""
    fields = {"user": "ann", "ctime": "100", "start": "110", "end": "170", "exec_host": "a/0"}
    lists = {"nodes": "1:ppn=2", "mem": "2gb", "walltime": "00:02:00"}
    fields |= {f"Resource_List.{key}": value for key, value in lists.items()}
    for key, value in changed.items():
        name = key if key in fields or key in ("etime", "depend", "Exit_status") else f"Resource_List.{key}"
        fields = {other: old for other, old in fields.items() if other != name}
        fields |= {} if value is None else {name: value}
    told = " ".join(f"{key}={value}" for key, value in fields.items())
    return f"03/01/2020 00:00:09;E;{job}.server;{told}\n"


def sbatch(tmp_path: Path, *lines: str) -> JobLog:
    path = tmp_path / "log.events"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_sbatch(path)


def event(arguments: str = "", *, at: str = "5", runs: str | None = "60", name: str = "jobid_1") -> str:
    """Return an event that submits a job."""
    run = "" if runs is None else f"-sim-walltime {runs} "
    return f"-dt {at} -e submit_batch_job | {run}--uid=ann -J {name} {arguments} pseudo.job"
