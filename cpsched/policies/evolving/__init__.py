"""List scheduling of evolving applications (Klein and Pérez), with the published variants as rules.

May import what `policies` may. Begin with `lists.py`; `fit.py` finds the earliest completion of one application,
`compact.py` a later start for it; `engine.py` makes engines of the variants, `online.py` schedulers
of simulations.
"""

from cpsched.policies.evolving.compact import compact
from cpsched.policies.evolving.engine import EvolvingEngine
from cpsched.policies.evolving.fit import fit
from cpsched.policies.evolving.lists import VARIANTS, Track, Variant, schedule
from cpsched.policies.evolving.online import EvolvingOnline

__all__ = [
    "VARIANTS",
    "EvolvingEngine",
    "EvolvingOnline",
    "Track",
    "Variant",
    "compact",
    "fit",
    "schedule",
]
