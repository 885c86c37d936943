"""SD-Policy (D'Amico, Jokanovic, Corbalan, ICPP 2019): running malleable jobs lend cores, so that others start earlier.

May import what `rules` may. Begin with `rule.py`, the parameters, and `engine.py`, for windows; `event_loop.py` goes
from event to event, `view.py` is the map of future reservations that it uses. `partners.py` decides which jobs may be
guests or mates, `mates.py` chooses the mates of a guest, and `run.py` is a job that changes its cores.
"""

from cpsched.rules.sd.engine import SdEngine
from cpsched.rules.sd.mates import Mate, select_mates
from cpsched.rules.sd.partners import Guest, Lender, guest_of, lender_of
from cpsched.rules.sd.rule import SD_RULES, PiWeight, SdRule
from cpsched.rules.sd.run import FULL_PACE, Pace, Run
