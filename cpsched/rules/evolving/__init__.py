"""List scheduling of evolving applications (Klein and Pérez), with the published variants as rules.

May import what `rules` may. Begin with `lists.py`; `fit.py` finds the earliest completion of one application,
`compact.py` a later start for it; `engine.py` makes engines
of the variants.
"""

from cpsched.rules.evolving.compact import compact
from cpsched.rules.evolving.engine import EvolvingEngine
from cpsched.rules.evolving.fit import fit
from cpsched.rules.evolving.lists import VARIANTS, Track, Variant, schedule
