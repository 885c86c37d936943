"""PBS (OpenPBS, PBS Professional): its answers in JSON, read as a snapshot.

`reader.py` reads ``qstat -f -F json``, ``pbsnodes -a -F json``, ``pbs_rstat -F json`` and ``qstat -Bf -F json``, by
`machine.py` (vnodes) and `requests.py` (chunks and places). Orders are not given to PBS: ``docs/bridges.md`` says what
is missing for that.
"""

from cpsched.site.bridge.pbs.machine import NODE_STATES
from cpsched.site.bridge.pbs.reader import JOB_STATES, make_snapshot, read_directory
