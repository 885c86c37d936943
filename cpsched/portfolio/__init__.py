"""From an instance to a verified plan: the planner first, then solvers that work in parallel, never worse than the
planner.

May import: `arguments`, `planner`, `policies`, `sim`, `search`, `cp`, `mzn`, `formats`, `metrics`, `verify`, `engine`,
`domain`, `errors`. Begin with `recipe.py`; `teams.py` has the solvers of each engine, `lanes.py` runs them in
parallel, `dask_lanes.py` on the workers of a Dask cluster as well. `scoring.py` values plans, `leftovers.py` finds
starts for jobs that engines left out, and `repair.py` judges a plan last of all. `live.py` has the plan that follows
windows and events, `replanning.py` applies events to documents, and `online.py` plans one window after the other, as a
scheduler of a simulation; `schedulers.py` lists these with the rules, and `outside.py` loads those of others.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.portfolio.dask_lanes import with_dask_lanes
    from cpsched.portfolio.judging import verify_plan
    from cpsched.portfolio.live import Happened, LivePlan
    from cpsched.portfolio.online import WindowPlanner, make_engine_scheduler
    from cpsched.portfolio.params import SolveParams
    from cpsched.portfolio.preparing import prepare
    from cpsched.portfolio.recipe import solve
    from cpsched.portfolio.replanning import replan
    from cpsched.portfolio.schedulers import (
        ENGINES,
        factory_of,
        label_of,
        make_any_scheduler,
        parameter_text,
        scheduler_names,
    )
    from cpsched.portfolio.scoring import plan_of
    from cpsched.portfolio.teams import Team, engine_names, team_of

__all__ = [
    "ENGINES",
    "Happened",
    "LivePlan",
    "SolveParams",
    "Team",
    "WindowPlanner",
    "engine_names",
    "factory_of",
    "label_of",
    "make_any_scheduler",
    "make_engine_scheduler",
    "parameter_text",
    "plan_of",
    "prepare",
    "replan",
    "scheduler_names",
    "solve",
    "team_of",
    "verify_plan",
    "with_dask_lanes",
]

__getattr__ = opener(
    __name__,
    {
        "dask_lanes": "with_dask_lanes",
        "judging": "verify_plan",
        "live": "Happened LivePlan",
        "online": "WindowPlanner make_engine_scheduler",
        "params": "SolveParams",
        "preparing": "prepare",
        "recipe": "solve",
        "replanning": "replan",
        "schedulers": "ENGINES factory_of label_of make_any_scheduler parameter_text scheduler_names",
        "scoring": "plan_of",
        "teams": "Team engine_names team_of",
    },
)
