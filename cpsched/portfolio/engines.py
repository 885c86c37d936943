"""The engines as users name them."""

from __future__ import annotations

from cpsched.portfolio.teams import PLANNER_FIRST
from cpsched.rules import POLICIES

#: Those that begin with the planner's plan, and the rules for windows.
ENGINES = (*PLANNER_FIRST, *POLICIES)
