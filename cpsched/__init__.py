"""Plans the jobs of heterogeneous supercomputers instead of picking them one by one.

What lives here: the public names, fetched when first used, so that ``import cpsched`` loads no heavy library. Begin
reading with `portfolio/recipe.py`, the recipe of `solve`; ``docs/formats.md`` describes the two documents.

Examples
--------
>>> import cpsched
>>> model = cpsched.Model()
>>> model.add_nodes("n[1-2]", cores=4)
>>> model.add_job("2:ncpus=4", walltime=600, id="wide")
'wide'
>>> model.solve(budget=1)["wide"].end
600
>>> instance = cpsched.read_instance("instances/tiny-bridi.json")
>>> plan = cpsched.solve(instance)
>>> cpsched.write_plan(plan, "plan.json")
>>> cpsched.verify_files("instances/tiny-bridi.json", "plan.json")
()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "Answers",
    "CpschedError",
    "DocumentError",
    "EngineError",
    "Instance",
    "Model",
    "Plan",
    "UnsupportedError",
    "__version__",
    "gantt_html",
    "prepare",
    "read_instance",
    "read_plan",
    "replan",
    "simulate",
    "solve",
    "summarise",
    "verify_files",
    "what_if",
    "write_instance",
    "write_plan",
]

if TYPE_CHECKING:
    from cpsched.answers import Answers as Answers
    from cpsched.answers import what_if as what_if
    from cpsched.domain import Instance as Instance
    from cpsched.domain import Plan as Plan
    from cpsched.errors import CpschedError as CpschedError
    from cpsched.errors import DocumentError as DocumentError
    from cpsched.errors import EngineError as EngineError
    from cpsched.errors import UnsupportedError as UnsupportedError
    from cpsched.formats import read_instance as read_instance
    from cpsched.formats import read_plan as read_plan
    from cpsched.formats import write_instance as write_instance
    from cpsched.formats import write_plan as write_plan
    from cpsched.metrics import summarise as summarise
    from cpsched.modelling import Model as Model
    from cpsched.portfolio import prepare as prepare
    from cpsched.portfolio import replan as replan
    from cpsched.portfolio import solve as solve
    from cpsched.report import gantt_html as gantt_html
    from cpsched.sim import simulate as simulate
    from cpsched.verify import verify_files as verify_files

    __version__: str

#: The room of each public name.
_ROOMS = {
    "Answers": "answers",
    "CpschedError": "errors",
    "DocumentError": "errors",
    "EngineError": "errors",
    "Instance": "domain",
    "Model": "modelling",
    "Plan": "domain",
    "UnsupportedError": "errors",
    "gantt_html": "report",
    "prepare": "portfolio",
    "read_instance": "formats",
    "read_plan": "formats",
    "replan": "portfolio",
    "simulate": "sim",
    "solve": "portfolio",
    "summarise": "metrics",
    "verify_files": "verify",
    "what_if": "answers",
    "write_instance": "formats",
    "write_plan": "formats",
}

if not TYPE_CHECKING:  # so that a name that is not there is an error of type

    def __getattr__(name: str) -> Any:
        """Fetch a public name from its room."""
        if name == "__version__":
            return import_module("importlib.metadata").version("cpsched")
        if name not in _ROOMS:
            raise AttributeError(f"module 'cpsched' has no attribute {name!r}")
        return getattr(import_module(f"cpsched.{_ROOMS[name]}"), name)
