"""Logs of resource managers: Torque's accounting, and sbatch lines of the Slurm simulator; instances made of them.

May import: the room's own modules, `errors` and `domain`. As with the Standard Workload Format (`cpsched.formats.swf`,
whose filters serve here too) every line becomes a job or a fault, and none is dropped in silence. Both readers make
the same `LogJob`; the rest does not know the kind of log. Begin with `read_log`, `machine_of_jobs`, and
`log_to_instance`, which joins the two.
"""

from cpsched.formats.logs.conversion import LogWindow, log_to_instance
from cpsched.formats.logs.jobs import Held, JobLog, LogAnomaly, LogJob, LogKind
from cpsched.formats.logs.kinds import kind_of, read_log
from cpsched.formats.logs.machine import machine_of_jobs
from cpsched.formats.logs.sbatch import read_sbatch
from cpsched.formats.logs.torque import read_torque

__all__ = [
    "Held",
    "JobLog",
    "LogAnomaly",
    "LogJob",
    "LogKind",
    "LogWindow",
    "kind_of",
    "log_to_instance",
    "machine_of_jobs",
    "read_log",
    "read_sbatch",
    "read_torque",
]
