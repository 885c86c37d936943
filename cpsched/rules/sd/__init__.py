"""SD-Policy (D'Amico, Jokanovic, Corbalan, ICPP 2019): running malleable jobs lend cores, so that others start earlier.

Begin with `rule.py`, the parameters and the choice of mates, and `event_loop.py`, the engine for windows. `partners.py`
decides which jobs may be guests or mates, and how they run.
"""

from cpsched.rules.sd.event_loop import SdEngine
from cpsched.rules.sd.partners import FULL_PACE, Guest, Lender, Pace, Run, guest_of, lender_of
from cpsched.rules.sd.rule import SD_RULES, Mate, PiWeight, SdRule, select_mates
