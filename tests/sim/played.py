"""Workloads played by the compiled event loop, each record looked at by the judge."""

from __future__ import annotations

from dataclasses import astuple

from cpsched.domain import Instance, PlannedJob
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.lab.sim import History, Prediction, QueueRule, Scheduler, simulate
from cpsched.metrics import Ending
from cpsched.verify import verify
from tests.booking.small_windows import where_it_stands
from tests.oracle.naive_simulator import Run, Story


def played(instance: Instance, rule: QueueRule | Scheduler, *, predicts: Prediction | None = None) -> History:
    """Play a workload by a rule; the judge finds no fault with what happened."""
    history = simulate(instance, rule, predict=predicts)
    violations = verify(instance_to_document(history.workload), plan_to_document(history.record()))
    assert not violations, "\n".join(map(str, violations))
    return history


def story_of(instance: Instance, history: History) -> Story:
    """Return the history in the terms of the naive simulator."""
    record = history.record()
    is_on = {job.id for job in instance.jobs if job.running is not None}

    def run(planned: PlannedJob) -> tuple[str, Run]:
        """Return a run; the first one of those who ran at the beginning was no choice, nor is one on the same nodes."""
        is_fact = planned.id in is_on or planned.segments[0].allocation[0].chunk is None
        mapped = None if is_fact else where_it_stands(instance, planned)[1]
        is_on.discard(planned.id)
        return planned.id, Run(planned.start, planned.end, mapped)

    attempts = sorted(run(one) for one in record.attempts)
    endings = zip(history.runs.ids, map(Ending, history.runs.ending.tolist()), strict=True)
    lost = dict(zip(history.runs.ids, history.runs.lost.tolist(), strict=True))
    easy = None if history.as_easy is None else astuple(history.as_easy)
    return Story(dict(endings), dict(map(run, record.jobs)), attempts, lost, easy)


def starts(history: History) -> dict[str, int]:
    """Return the start of each job that has run to its end."""
    runs = history.runs
    return {name: start for name, start, over in zip(runs.ids, runs.start.tolist(), runs.over, strict=True) if over}


def keeps_aside(instance: Instance, history: History) -> bool:
    """Return whether jobs that were started have nothing that is set aside, in any second in which they run."""
    facts = {job.id for job in instance.jobs if job.running is not None}
    licenses = {job.id: job.licenses for job in instance.elements()}
    cluster, record = instance.cluster, history.record()
    held: list[tuple[int, int, str | None, str, int, bool]] = []
    first = set(facts)
    for run in (*record.attempts, *record.jobs):
        is_fact = run.id in first
        first.discard(run.id)
        for segment in run.segments:
            held += [
                (segment.start, segment.end, one.node, name, amount, not is_fact)
                for one in segment.allocation
                for name, amount in one.resources.items()
            ]
        held += [(run.start, run.end, None, name, amount, not is_fact) for name, amount in licenses[run.id].items()]
    for aside in instance.set_aside:
        held += [
            (aside.start, aside.end, one.node, name, amount, False)
            for one in aside.allocation
            for name, amount in one.resources.items()
        ]
        held += [(aside.start, aside.end, None, name, amount, False) for name, amount in aside.licenses.items()]
    for time in {row[0] for row in held}:
        taken: dict[tuple[str | None, str], int] = {}
        chosen = set()
        for start, end, node, name, amount, is_chosen in held:
            if start <= time < end and amount:
                taken[node, name] = taken.get((node, name), 0) + amount
                chosen |= {(node, name)} if is_chosen else set()
        for node, name in chosen:
            has = cluster.licenses[name] if node is None else cluster.class_of[node].resources[name]
            if taken[node, name] > has:
                return False
    return True
