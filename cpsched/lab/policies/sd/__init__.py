"""SD-Policy on-line (D'Amico, Jokanovic, Corbalan, ICPP 2019): running malleable jobs lend cores to those that wait.

May import what `policies` may. Begin with `sd_policy.py`, with `sharing.py` and `owners.py`; `mates.py` has the
parameters and the choice of mates, `partners.py` which jobs may be guests or mates. Beside it is `static_backfill.py`,
which lends nothing, with the map of future reservations.
"""

from cpsched.lab.policies.sd.sd_policy import SdPolicy, malleable_value, sd_5, sd_10, sd_50, sd_dyn, sd_inf
from cpsched.lab.policies.sd.static_backfill import StaticBackfill
