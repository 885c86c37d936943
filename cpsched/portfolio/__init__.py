"""From an instance to a verified plan: the planner first, then parallel solvers, never worse.

Begin with `recipe.py`; `teams.py` has the solvers of each engine, `lanes.py` runs them in parallel, `dask_lanes.py` on
the workers of a Dask cluster as well. `scoring.py` values plans, `leftovers.py` finds starts for jobs that engines left
out, and `repair.py` judges a plan last of all. `live.py` has the plan that follows windows and events, `replanning.py`
applies events to documents, and `window_planner.py` plans one window after the other; `outside.py` loads engines and
policies of others.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.portfolio.dask_lanes import with_dask_lanes
    from cpsched.portfolio.lanes import OnPlan
    from cpsched.portfolio.live import Happened, LivePlan
    from cpsched.portfolio.outside import ENGINE_GROUP, POLICY_GROUP, announced, is_engine, load_outside
    from cpsched.portfolio.recipe import solve
    from cpsched.portfolio.replanning import replan
    from cpsched.portfolio.scoring import plan_of, verify_plan
    from cpsched.portfolio.teams import ENGINES, Team, engine_names, prepare, team_of
    from cpsched.portfolio.window_planner import WindowPlanner

__getattr__ = opener(__name__)
