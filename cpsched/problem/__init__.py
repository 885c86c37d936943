"""The rules of a site, compiled once for all engines: an instance without limits, pools, reservations and calendars.

May import: `domain`, `errors`. Begin with `reduction.py`: most rules are counters, licences that only those jobs take
that the rule is about, with amounts set aside (`domain.SetAside`) while it leaves less. No engine knows of rules.
"""

from cpsched.problem.calendar import Intervals, intervals, minus, union
from cpsched.problem.reduction import Reduced, reduced

__all__ = ["Intervals", "Reduced", "intervals", "minus", "reduced", "union"]
