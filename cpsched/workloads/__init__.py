"""Generated windows, workloads of jobs that arrive over time, tiny instances with known optima, projects as windows.

May import: `domain`, `errors`. Nothing here reads or writes files; scripts do. Begin with `eurora_window`; the tiny
instances are in `tiny.py`, jobs that change while they run in `evolving.py` and `changing.py`, jobs with deadlines in
`deadlines.py`, projects of PSPLIB in `psplib.py`. A workload is an instance whose jobs have submit times from `now` on
and runtimes: begin with `lublin`. The common parts of generators are in `assembly.py` and `arrivals.py`; `load.py`
changes the rate of arrival, `replicas.py` who comes when.
"""

from cpsched.workloads.agents import agent_workload
from cpsched.workloads.changing import changing_windows, made_rigid, with_evolving, with_malleable
from cpsched.workloads.cirne_like import cirne_like
from cpsched.workloads.deadlines import with_deadlines
from cpsched.workloads.eurora import eurora_cluster, eurora_stream, eurora_window
from cpsched.workloads.evolving import evolving_window
from cpsched.workloads.job_mix import job_mix
from cpsched.workloads.load import offered_load, scaled
from cpsched.workloads.lublin import lublin
from cpsched.workloads.openccs import oculus_cluster, openccs_workload
from cpsched.workloads.psplib import project_window
from cpsched.workloads.replicas import moved, resampled_users, resampled_weeks
from cpsched.workloads.tiny import TinyCase, tiny_cases

__all__ = [
    "TinyCase",
    "agent_workload",
    "changing_windows",
    "cirne_like",
    "eurora_cluster",
    "eurora_stream",
    "eurora_window",
    "evolving_window",
    "job_mix",
    "lublin",
    "made_rigid",
    "moved",
    "oculus_cluster",
    "offered_load",
    "openccs_workload",
    "project_window",
    "resampled_users",
    "resampled_weeks",
    "scaled",
    "tiny_cases",
    "with_deadlines",
    "with_evolving",
    "with_malleable",
]
