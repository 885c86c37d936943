"""Decoder search over the planner's insertion: lists in several orders, then ruin and recreate with simulated
annealing.

May import: `planner`, `booking`, `rusv`, `metrics`, `engine`, `domain`; its kernels are compiled by numba. Begin with
`engine.py`; `chain.py` is one walk through the plans, `kernels.py` its steps, `costs.py` the objective as the kernels
see it. `evolving.py` and `evolving_kernels.py` are the same where jobs evolve over whole nodes of one kind,
`ledger_chain.py` where they do over any.
"""

from cpsched.search.engine import Search, SearchParams
from cpsched.search.warmup import warm_up_evolving_search

__all__ = ["Search", "SearchParams", "warm_up_evolving_search"]
