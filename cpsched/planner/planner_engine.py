"""The planner as an engine."""

from cpsched.domain import Instance
from cpsched.engine import Outcome, Progress
from cpsched.planner.admission_result import unsupported
from cpsched.planner.compiling import warmup
from cpsched.planner.planner import NAME, Planner


class PlannerEngine:
    """The planner as an engine: what everything else falls back on."""

    name = NAME

    def prepare(self) -> None:
        """Compile or load the planner's kernels."""
        warmup()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the planner cannot honour yet."""
        return unsupported(instance)

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs in the planner's order."""
        planner = Planner(instance)
        planner.plan(progress)
        return planner.outcome()
