"""Generated workloads: jobs that arrive over time.

May import: `domain`. Nothing here reads or writes files. A workload is an instance whose jobs have submit times from
`now` on and runtimes: begin with `lublin`. The common parts of generators are in `assembly.py`; `changing.py` and
`disturbing.py` make one workload of another.
"""

from cpsched.lab.workloads.agents import agent_workload
from cpsched.lab.workloads.changing import (
    moved,
    offered_load,
    resampled_users,
    resampled_weeks,
    scaled,
    with_malleable,
    with_moldable,
)
from cpsched.lab.workloads.cirne_like import cirne_like
from cpsched.lab.workloads.disturbing import Failures, check_walltimes, with_failures, with_walltimes
from cpsched.lab.workloads.eurora import eurora_cluster, eurora_stream
from cpsched.lab.workloads.evolving import evolving_window
from cpsched.lab.workloads.job_mix import job_mix
from cpsched.lab.workloads.lublin import lublin
from cpsched.lab.workloads.openccs import oculus_cluster, openccs_workload
