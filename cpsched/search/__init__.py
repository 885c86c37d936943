"""Decoder search over the planner's insertion: list schedules in several orders, then ruin and recreate with simulated
annealing.

May import: `planner`, `problem`, `booking`, `rusv`, `metrics`, `engine`, `domain`; its kernels are compiled by numba.
Begin with `engine.py`. `plan.py` is a plan that is changed step by step: on a ledger in `chain.py`, with whole nodes
that are only counted in `evolving.py`; `costs.py` is the objective in the kernels' form. All of them share one search,
whose arrays are in `arrays.py`: `kernels.py` has its steps, `ruin_kernels.py` which jobs these remove,
`place_kernels.py` where jobs are inserted again, `change_kernels.py` how they change while they run, `count_kernels.py`
the counts of nodes. `project_kernels.py` breeds lists of projects, `skeleton_kernels.py` searches for schedules of
their widest jobs.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.search.chain import Chain
    from cpsched.search.choices import ChoiceSearch
    from cpsched.search.engine import Search
    from cpsched.search.warmup import warm_up_breeding, warm_up_changing_search

__getattr__ = opener(__name__)
