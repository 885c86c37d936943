"""SD-Policy (D'Amico, Jokanovic, Corbalan, ICPP 2019): running malleable jobs lend cores, so that others start earlier.

May import what `policies` may. Begin with `rule.py`, the parameters, and `engine.py`, for windows; `event_loop.py` goes
from event to event, `view.py` is the map of future reservations that it uses. `partners.py` decides which jobs may be
guests or mates, `mates.py` chooses the mates of a guest, and `run.py` is a job that changes its cores. On-line it is
`sd_policy.py`, with `sharing.py` and `owners.py`, beside `static_backfill.py`, which lends nothing, and
`malleable_value.py`, which lends where the objective gains.
"""

from cpsched.policies.sd.engine import SdEngine
from cpsched.policies.sd.malleable_value import malleable_value
from cpsched.policies.sd.mates import Mate, select_mates
from cpsched.policies.sd.partners import Guest, Lender, guest_of, lender_of
from cpsched.policies.sd.rule import SD_RULES, PiWeight, SdRule
from cpsched.policies.sd.run import FULL_PACE, Pace, Run
from cpsched.policies.sd.sd_policy import SdPolicy, sd_5, sd_10, sd_50, sd_dyn, sd_inf
from cpsched.policies.sd.static_backfill import static_backfill

__all__ = [
    "FULL_PACE",
    "SD_RULES",
    "Guest",
    "Lender",
    "Mate",
    "Pace",
    "PiWeight",
    "Run",
    "SdEngine",
    "SdPolicy",
    "SdRule",
    "guest_of",
    "lender_of",
    "malleable_value",
    "sd_5",
    "sd_10",
    "sd_50",
    "sd_dyn",
    "sd_inf",
    "select_mates",
    "static_backfill",
]
