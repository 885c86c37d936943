"""The graph of dependencies behind a plan: which job waits for which, what it can slip, and the critical path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cpsched.domain import DependencyType, Instance, Plan

if TYPE_CHECKING:
    from networkx import DiGraph

#: What starts jobs: a job, or an event of a job or an array, (its name, whether it is the end that counts).
_Node = str | tuple[str, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowJob:
    """A job that waits for others, or for which others wait; times on the instance's clock."""

    id: str
    #: The jobs and arrays that it waits for.
    after: tuple[str, ...]
    #: In the plan; None: it has no start.
    start: int | None
    end: int | None
    #: The seconds by which it can start later before the last job of its workflow ends later; None: it has no start.
    slack: int | None

    @property
    def is_critical(self) -> bool:
        """Whether the end of its workflow moves with it."""
        return self.slack == 0


def dependency_graph(instance: Instance) -> DiGraph:
    """Return the dependencies of an instance as a graph, an edge for each distance, with its ``seconds``.

    An array that waits for an array has an event between both: edges are as many as elements, not as pairs of them.
    Jobs without dependencies are no nodes.
    """
    from networkx import DiGraph

    graph, entries, members = DiGraph(), {job.id: job for job in instance.elements()}, instance.members()
    for job in entries.values():
        for dependency in job.after:
            event = dependency.job, dependency.type is not DependencyType.AFTER
            if event not in graph:
                for name in members[event[0]]:
                    graph.add_edge(name, event, seconds=entries[name].walltime if event[1] else 0)
            before = graph.edges[event, job.id]["seconds"] if graph.has_edge(event, job.id) else 0
            graph.add_edge(event, job.id, seconds=max(before, dependency.delay))
    return graph


def workflow_of(instance: Instance, plan: Plan) -> tuple[WorkflowJob, ...]:
    """Return the jobs of all workflows of a plan, each workflow together, in the order of their starts.

    A *workflow* is what dependencies connect. Jobs count as long as they are in the plan.
    """
    from networkx import topological_sort, weakly_connected_components

    graph = dependency_graph(instance)
    entries, planned = {job.id: job for job in instance.elements()}, {job.id: job for job in plan.jobs}
    lengths = {job.id: job.end - job.start for job in plan.jobs}
    for name, event, edge in graph.edges(data=True):
        if isinstance(name, str) and event[1] and name in lengths:
            edge["seconds"] = lengths[name]
    number_of = {node: number for number, one in enumerate(weakly_connected_components(graph)) for node in one}
    workflows: dict[int, list[_Node]] = {}
    for node in topological_sort(graph):
        workflows.setdefault(number_of[node], []).append(node)
    rows: list[WorkflowJob] = []
    for nodes in workflows.values():
        names = [node for node in nodes if isinstance(node, str)]
        end = max((planned[name].end for name in names if name in planned), default=instance.now)
        # the latest second of each node with which the workflow still ends then
        latest: dict[_Node, int] = {}
        for node in reversed(nodes):
            own = end - lengths.get(node, 0) if isinstance(node, str) else end
            after = [latest[one] - edge["seconds"] for _, one, edge in graph.out_edges(node, data=True)]
            latest[node] = min([own, *after])
        rows += (
            WorkflowJob(
                id=name,
                after=tuple(dict.fromkeys(dependency.job for dependency in entries[name].after)),
                start=planned[name].start if name in planned else None,
                end=planned[name].end if name in planned else None,
                slack=latest[name] - planned[name].start if name in planned else None,
            )
            for name in sorted(names, key=lambda one: (planned[one].start if one in planned else end, one))
        )
    return tuple(rows)
