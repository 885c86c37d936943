"""Large-neighbourhood search: some jobs of a plan are planned anew by CP-SAT, all others stay where they are.

Begin with `improver.py`, the solver as others know it, and `descent.py`, the loop in its worker process.
`occupation.py` has the plan and what is free beside it, `restriction.py` the window that some of its jobs are,
`kinds.py` chooses the jobs and the nodes.
"""

from cpsched.cp.neighbourhoods.positions import Positions, positions_in
