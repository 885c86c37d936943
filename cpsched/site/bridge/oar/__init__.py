"""OAR (2.5): its answers in JSON, read as a snapshot.

`reader.py` reads ``oarstat -J -f`` and ``oarnodes -J``, by `machine.py` (resources, nodes) and `requests.py` (what
is asked for). Orders are not given to OAR.
"""

from cpsched.site.bridge.oar.reader import JOB_STATES, make_snapshot, read_directory
