"""Plans the jobs of heterogeneous supercomputers instead of picking them one by one.

What lives here: the public names, fetched when first used, so that ``import cpsched`` loads no heavy library. Begin
reading with `portfolio/recipe.py`, the recipe of `solve`; ``docs/formats.md`` describes the two documents.

Examples
--------
>>> import cpsched
>>> instance = cpsched.read_instance("instances/tiny-bridi.json")
>>> plan = cpsched.solve(instance)
>>> cpsched.write_plan(plan, "plan.json")
>>> cpsched.verify_files("instances/tiny-bridi.json", "plan.json")
()
"""

from importlib import import_module
from typing import Any

__all__ = [
    "Instance",
    "Plan",
    "gantt_html",
    "read_instance",
    "read_plan",
    "replan",
    "solve",
    "summarise",
    "verify_files",
    "write_instance",
    "write_plan",
]

_ROOMS = {
    "Instance": "domain",
    "Plan": "domain",
    "gantt_html": "report",
    "read_instance": "formats",
    "read_plan": "formats",
    "replan": "portfolio",
    "solve": "portfolio",
    "summarise": "metrics",
    "verify_files": "verify",
    "write_instance": "formats",
    "write_plan": "formats",
}


def __getattr__(name: str) -> Any:
    """Fetch a public name from its room."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'cpsched' has no attribute {name!r}")
    return getattr(import_module(f"cpsched.{_ROOMS[name]}"), name)
