"""Conservative backfilling (OCCS-52): each job has a reservation, which no job behind it delays.

May import what `policies` may. Begin with `conservative.py`, the on-line form where nodes are interchangeable and
reservations are counts, and `conservative_on_nodes.py`, where they are on nodes; `counting.py` is the form for windows.
`units.py` says what is counted, and `count_kernels.py` finds the starts.
"""

from cpsched.lab.policies.conservative.conservative import Conservative
from cpsched.lab.policies.conservative.conservative_on_nodes import ConservativeOnNodes
