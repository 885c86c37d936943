"""The Standard Workload Format: logs of real machines, read and written, and instances made of them.

May import: the room's own modules, `errors` and `domain`. A log is read unchanged: every line becomes a job or a
fault, and none is dropped in silence. The nodes and queues, which a log does not have, come from a cluster file, or
from the log's header with assumptions that are reported. Begin with `read_swf`, `read_machine`, and
`swf_to_instance`, which joins the two.

Source of the format: Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP
1999, and the Parallel Workloads Archive.
"""

from cpsched.formats.swf.conversion import MemoryField, SwfAnomaly, SwfWindow, swf_to_instance
from cpsched.formats.swf.log import SwfJob, SwfLog, read_swf
from cpsched.formats.swf.machine import AssumedMachine, machine_of_log, read_machine
from cpsched.formats.swf.selection import Selection
from cpsched.formats.swf.writing import write_swf

__all__ = [
    "AssumedMachine",
    "MemoryField",
    "Selection",
    "SwfAnomaly",
    "SwfJob",
    "SwfLog",
    "SwfWindow",
    "machine_of_log",
    "read_machine",
    "read_swf",
    "swf_to_instance",
    "write_swf",
]
