"""Proofs: lower bounds on what any plan can reach.

May import: `booking`, `engine`, `domain`; numpy, scipy. Begin with `bounds/bound.py`.
"""

from cpsched.cp.bounds import Bound, lower_bound

__all__ = ["Bound", "lower_bound"]
