"""Logs of all kinds and the instances made of them: Standard Workload Format, Torque and Slurm, sbatch lines, Batsim.

May import: the room's own modules, `errors` and `domain`. Every line becomes a job or a fault, and none is dropped in
silence. Each kind of log has a reader; all make the same `LogJob`, and the rest does not know the kind of log. Begin
with `workload.py`, the recipe: `read_workload` reads an instance document or any log, `take_jobs` a window of a log;
`conversion.py` has the one converter, `log_to_instance`.
"""

from cpsched.formats.logs.conversion import LogOptions, LogWindow, log_to_instance
from cpsched.formats.logs.jobs import Held, JobLog, LogAnomaly, LogJob, LogKind
from cpsched.formats.logs.kinds import kind_of, read_log
from cpsched.formats.logs.machine import machine_of_jobs
from cpsched.formats.logs.sbatch import read_sbatch
from cpsched.formats.logs.selection import Selection
from cpsched.formats.logs.swf_jobs import MemoryField
from cpsched.formats.logs.torque import read_torque
from cpsched.formats.logs.workload import WorkloadNotes, is_log, read_workload, take_jobs
