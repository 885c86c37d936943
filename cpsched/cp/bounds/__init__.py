"""Proven lower bounds on the objective of an instance.

Begin with `bound.py`, the recipe. `packing.py` asks what fits on one node, `surrogates.py` makes aggregated resources
of that, `tasks.py` puts jobs on them, each from when it could start alone, `dual.py` says what prices on them
prove (exactly), `ascent.py` looks for good prices, `cuts.py` for better surrogates; `together.py` has the bounds of the
last end by the sets of jobs that fit together, `costs.py` the cost of a job by its start. `orders.py` solves the
relaxation of a few jobs by all orders.
"""

from cpsched.cp.bounds.bound import Bound, least_seconds, lower_bound
