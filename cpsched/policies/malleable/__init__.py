"""SD-Policy (D'Amico, Jokanovic, Corbalan, ICPP 2019): running malleable jobs lend cores, so that others start earlier.

May import what `policies` may. Begin with `rule.py`, the parameters, and `engine.py`; `event_loop.py` goes from event
to event, `view.py` is the map of future reservations that it uses. `partners.py` decides which jobs may be guests or
mates, `mates.py` chooses the mates of a guest, and `run.py` is a job that changes its cores.
"""

from cpsched.policies.malleable.engine import SdEngine
from cpsched.policies.malleable.mates import Mate, select_mates
from cpsched.policies.malleable.partners import Guest, Lender, guest_of, lender_of
from cpsched.policies.malleable.rule import SD_RULES, PiWeight, SdRule
from cpsched.policies.malleable.run import FULL_PACE, Pace, Run

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
    "SdRule",
    "guest_of",
    "lender_of",
    "select_mates",
]
