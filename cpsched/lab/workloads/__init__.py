"""Generated workloads: jobs that arrive over time.

May import: `domain`. Nothing here reads or writes files. Jobs that change while they run are in `evolving.py` and
`changing.py`. A workload is an instance whose jobs have submit times from `now` on and runtimes: begin with `lublin`.
The common parts of generators are in `assembly.py` and `arrivals.py`; `load.py` changes the rate of arrival,
`replicas.py` which job arrives when.
"""

from cpsched.lab.workloads.agents import agent_workload
from cpsched.lab.workloads.changing import with_malleable
from cpsched.lab.workloads.cirne_like import cirne_like
from cpsched.lab.workloads.eurora import eurora_cluster, eurora_stream
from cpsched.lab.workloads.evolving import evolving_window
from cpsched.lab.workloads.job_mix import job_mix
from cpsched.lab.workloads.load import offered_load, scaled
from cpsched.lab.workloads.lublin import lublin
from cpsched.lab.workloads.openccs import oculus_cluster, openccs_workload
from cpsched.lab.workloads.replicas import moved, resampled_users, resampled_weeks
