"""List scheduling of evolving applications (Klein and Pérez), with the published variants as rules.

Begin with `lists.py`; `engine.py` makes engines of the variants.
"""

from cpsched.rules.evolving.engine import EvolvingEngine
from cpsched.rules.evolving.lists import VARIANTS, Track, Variant, compact, fit, schedule
