"""Slurm: its records read from JSON or text, the snapshot made of them, and the orders given to it.

Begin with `snapshot.py`; `states.py` and `requests.py` say what of Slurm becomes what of ours.
"""

from cpsched.site.bridge.slurm.client import SlurmClient
from cpsched.site.bridge.slurm.directory import read_directory
from cpsched.site.bridge.slurm.manager import SlurmManager
from cpsched.site.bridge.slurm.preflight import findings
from cpsched.site.bridge.slurm.site import QueueModel, SlurmModel, client_of, read_site
from cpsched.site.bridge.slurm.snapshot import make_snapshot
