"""From an instance to a verified plan: the planner first, then solvers that work side by side, never worse than the
planner.

May import: `planner`, `policies`, `search`, `cp`, `mzn`, `formats`, `metrics`, `verify`, `engine`, `domain`, `errors`.
Begin with `recipe.py`; `teams.py` says who works for each engine, `lanes.py` lets them work side by side,
`scoring.py` judges plans and writes down what was found; `replanning.py` brings a plan up to date.
"""

from cpsched.portfolio.recipe import prepare, solve
from cpsched.portfolio.replanning import replan
from cpsched.portfolio.scoring import plan_of
from cpsched.portfolio.teams import ENGINES, Team, team_of

__all__ = ["ENGINES", "Team", "plan_of", "prepare", "replan", "solve", "team_of"]
