"""List scheduling of evolving applications (Klein and Pérez), with the published variants as rules.

`lists.py` has the variants and their engines.
"""

from cpsched.rules.evolving.lists import VARIANTS, EvolvingEngine, Track, Variant, compact, fit, schedule
