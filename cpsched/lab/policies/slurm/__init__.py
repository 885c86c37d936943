"""The schedulers of Slurm, on-line: the main one and the backfill scheduler.

May import what `policies` may. Begin with `slurm.py`; `slurm_kernels.py` has its passes over the queue,
`multifactor.py` the priorities.
"""

from cpsched.lab.policies.slurm.slurm import slurm
