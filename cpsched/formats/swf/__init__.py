"""The Standard Workload Format: logs of real machines, read and written.

May import: the room's own modules, `errors` and `domain`. A log is read unchanged: every line becomes a job or a
fault, and none is dropped in silence. The nodes and queues, which a log does not have, come from a cluster file, or
from the log's header with assumptions that are reported. Begin with `read_swf` and `read_machine`;
`cpsched.formats.logs` makes instances from logs of all kinds.

Source of the format: Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP
1999, and the Parallel Workloads Archive.
"""

from cpsched.formats.swf.log import SwfJob, SwfLog, read_swf, write_swf
from cpsched.formats.swf.machine import (
    LAST_DATE,
    AssumedMachine,
    BadCalendar,
    date_of,
    machine_of_log,
    most_at_once,
    read_machine,
)
