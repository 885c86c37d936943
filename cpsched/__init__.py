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

from typing import TYPE_CHECKING, Any

__all__ = [
    "Answers",
    "BridgeError",
    "CampaignError",
    "CpschedError",
    "DiskFullError",
    "DocumentError",
    "EngineError",
    "Fault",
    "Instance",
    "Model",
    "Plan",
    "ReportError",
    "SolverWarning",
    "StoreError",
    "SyntaxFault",
    "UnsupportedError",
    "UnverifiedError",
    "WhatIf",
    "__version__",
    "explain",
    "gantt_html",
    "gym",
    "make_scheduler",
    "prepare",
    "read_instance",
    "read_plan",
    "replan",
    "simulate",
    "solve",
    "summarise",
    "verify_files",
    "verify_plan",
    "whatif",
    "write_instance",
    "write_plan",
]

if TYPE_CHECKING:
    from cpsched.answers import Answers, WhatIf, explain
    from cpsched.answers import what_if as whatif
    from cpsched.domain import Instance, Plan
    from cpsched.errors import (
        BridgeError,
        CampaignError,
        CpschedError,
        DiskFullError,
        DocumentError,
        EngineError,
        Fault,
        ReportError,
        SolverWarning,
        StoreError,
        SyntaxFault,
        UnsupportedError,
        UnverifiedError,
    )
    from cpsched.formats import read_instance, read_plan, write_instance, write_plan
    from cpsched.lab import gym
    from cpsched.lab.policies import make_scheduler
    from cpsched.lab.sim import simulate
    from cpsched.metrics import summarise
    from cpsched.modelling import Model
    from cpsched.portfolio import prepare, replan, solve, verify_plan
    from cpsched.report import gantt_html
    from cpsched.verify import verify_files

    __version__: str

if not TYPE_CHECKING:  # so that a name that is not there is an error of type

    def __getattr__(name: str) -> Any:
        """Fetch a public name from its room."""
        if name == "__version__":
            from importlib.metadata import version

            return version("cpsched")
        from cpsched.doors import opener  # not before: the verifier is imported alone

        return opener(__name__)(name)

    def __dir__() -> list[str]:
        """List the public names, for those who complete them."""
        return sorted(__all__)
