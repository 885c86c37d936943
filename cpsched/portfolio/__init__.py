"""From an instance to a verified plan: the planner first, then solvers that work side by side, never worse than the
planner.

May import: `planner`, `policies`, `sim`, `search`, `cp`, `mzn`, `formats`, `metrics`, `verify`, `engine`, `domain`,
`errors`. Begin with `recipe.py`; `teams.py` says who works for each engine, `lanes.py` lets them work side by side,
`scoring.py` judges plans and writes down what was found; `replanning.py` brings a plan up to date, and `online.py`
plans one window after the other, as a scheduler of a simulation; `schedulers.py` has these beside the rules.
"""

from cpsched.portfolio.online import make_engine_scheduler
from cpsched.portfolio.recipe import prepare, solve
from cpsched.portfolio.replanning import replan
from cpsched.portfolio.schedulers import ALL_SCHEDULERS, label_of, make_any_scheduler, parameter_text
from cpsched.portfolio.scoring import plan_of
from cpsched.portfolio.teams import ENGINES, Team, team_of

__all__ = [
    "ALL_SCHEDULERS",
    "ENGINES",
    "Team",
    "label_of",
    "make_any_scheduler",
    "make_engine_scheduler",
    "parameter_text",
    "plan_of",
    "prepare",
    "replan",
    "solve",
    "team_of",
]
