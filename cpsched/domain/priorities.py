"""Strict priorities: the classes of jobs of which no higher one yields to a lower one."""

from __future__ import annotations

from graphlib import TopologicalSorter

from cpsched.domain.instance import Instance


def priority_classes(instance: Instance) -> dict[str, int]:
    """Return the class of each job, array and element of an array, by its id: higher classes go first.

    The class of a job is its priority, or that of the highest job that waits for it, directly or not, if that is more:
    a job that waits for one of a lower class would be later because of it.
    """
    classes = {job.id: instance.priority(job) for job in instance.jobs}
    entry_of = {name: job.id for job in instance.jobs for name in (job.id, *job.element_ids)}
    if any(job.after for job in instance.jobs):
        awaited = {job.id: {entry_of.get(one.job, one.job) for one in job.after} for job in instance.jobs}
        arrays = {name: {*elements} for name, elements in instance.members().items() if name not in entry_of}
        classes |= dict.fromkeys(arrays, min(classes.values()))
        awaited |= arrays
        for waiting in reversed(list(TopologicalSorter(awaited).static_order())):
            for name in awaited[waiting]:
                classes[name] = max(classes[name], classes[waiting])
    return {name: classes[entry] for name, entry in entry_of.items()}
