"""The independent judge: reads the two documents itself and holds a plan to every rule of ``docs/formats.md``.

May import: `errors` only, and no module from outside the standard library: it is an independent reading of the
contract, so it shares no code with the other rooms. Begin with `judge.py`; the rules are in `rules/`, one function
each.
"""

from cpsched.verify.case import Violation
from cpsched.verify.documents import load
from cpsched.verify.judge import Judge, verify, verify_files
