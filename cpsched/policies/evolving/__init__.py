"""List scheduling of evolving applications (Klein and Pérez), with the published variants as rules.

May import what `policies` may. Begin with `lists.py`; `fit.py` finds the earliest completion of one application,
`compact.py` a later start for it, `nodes.py` says which nodes those are; `whole_nodes.py` says what an instance has
to be like, and `engine.py` makes engines of the variants.
"""

from cpsched.policies.evolving.compact import compact
from cpsched.policies.evolving.engine import EvolvingEngine
from cpsched.policies.evolving.fit import fit
from cpsched.policies.evolving.lists import VARIANTS, Application, Hold, Track, Variant, schedule
from cpsched.policies.evolving.nodes import map_to_nodes

__all__ = [
    "VARIANTS",
    "Application",
    "EvolvingEngine",
    "Hold",
    "Track",
    "Variant",
    "compact",
    "fit",
    "map_to_nodes",
    "schedule",
]
