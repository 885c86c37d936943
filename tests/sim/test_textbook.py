"""The rules beside the textbook's, which count equal processors and know no nodes: all start times are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cpsched.domain import Amounts, Arrangement, Chunk, Cluster, Instance, Job, NodeClass, Place, Request, Step
from cpsched.formats.logs import log_to_instance
from cpsched.formats.swf import machine_of_log, read_swf
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import BackfillRule, Order, QueueRule, rule_choice, simulate
from cpsched.lab.sim.load import Load
from cpsched.lab.sim.rule_choice import is_counted
from cpsched.lab.sim.world import SimWorld
from cpsched.rusv import EqualNodes
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.textbook import Item, conservative_by_counts, easy_by_counts, items_of, reserving_by_counts
from tests.policies.maui_runs import judged
from tests.rules import ruled
from tests.sim.played import starts
from tests.sizes import seeds, some

Textbook = Callable[[Sequence[Item], int], list[int]]


def sjf_by_counts(items: Sequence[Item], size: int) -> list[int]:
    """Return the starts of EASY backfilling with the shortest walltime first."""
    return easy_by_counts(items, size, lambda item: item.walltime)


RULES: dict[str, tuple[str, dict[str, object], Textbook]] = {
    "easy": ("easy", {}, easy_by_counts),
    "sjf": ("sjf", {"backfill": "easy"}, sjf_by_counts),
    "conservative": ("conservative", {}, conservative_by_counts),
}


def crowd_of_equals(seed: int, kind: str) -> Instance:
    """Draw a workload on equal nodes, on which every job asks for chunks of one size, and most jobs have to wait.

    ``cores``: of one core, on nodes of four; ``nodes``: of four, on the same nodes; ``exclusive``: of three or four, on
    nodes that they have alone; ``parts``: of two; ``classes``: of four, on two kinds of nodes.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    size = int(rng.integers(2, 9))
    submit, jobs = 0, []
    for number in range(60):
        submit += int(rng.exponential(20)) if rng.random() < 0.7 else 0
        cores = {"cores": 1, "nodes": 4, "exclusive": int(rng.integers(3, 5)), "parts": 2, "classes": 4}[kind]
        count = int(rng.integers(1, size * {"cores": 4, "parts": 2}.get(kind, 1) + 1))
        walltime = int(rng.choice([20, 60, 61, 119, 300]))
        request = Request(
            chunks=(Chunk(count=count if rng.random() < 0.3 else 1 + count // 4, resources=Amounts({"cores": cores})),),
            place=Place(exclusive=kind == "exclusive", arrangement=Arrangement.FREE),
        )
        runtime = walltime if rng.random() < 0.3 else int(rng.integers(1, walltime + 1))
        step = Step(walltime=walltime, request=request)
        jobs.append(Job(id=f"j{number}", submit=submit, steps=(step,), runtime=runtime))
    names = [f"n{number}" for number in range(size)]
    classes = [NodeClass(names=tuple(names), resources=Amounts({"cores": 4}))]
    if kind == "classes":
        classes = [
            NodeClass(names=tuple(names[:1]), resources=Amounts({"cores": 4})),
            NodeClass(names=tuple(names[1:]), resources=Amounts({"cores": 4, "gpus": 1})),
        ]
    return Instance(name=kind, cluster=Cluster(classes=tuple(classes)), jobs=tuple(jobs))


def counted(instance: Instance) -> tuple[list[Item], int]:
    """Return jobs and machine in the units that are counted: nodes where each job takes whole ones, else cores."""
    items, size = items_of(instance), instance.cluster.totals["cores"]
    if instance.name in ("exclusive", "classes"):
        jobs = sorted(instance.jobs, key=lambda job: job.submit)
        widths = [job.request.chunks[0].count for job in jobs]
        items = [item._replace(width=width) for item, width in zip(items, widths, strict=True)]
        size = len(instance.cluster.node_names)
    return items, size


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cores", "nodes", "exclusive", "parts", "classes"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("first", seeds(10))
def test_jobs_on_equal_nodes_start_as_in_the_textbook(first: int, rule: str, kind: str) -> None:
    """So they do where cores, parts of nodes or whole nodes are interchangeable, even if the nodes are of two kinds."""
    name, parameters, textbook = RULES[rule]
    for seed in range(10 * first, 10 * first + 10):
        instance = crowd_of_equals(seed, kind)
        history = judged(instance, make_scheduler(name, parameters))
        assert history.runs.start.tolist() == textbook(*counted(instance)), seed


@pytest.mark.parametrize("kind", ["cores", "nodes", "parts"])
def test_several_reservations_on_equal_nodes_are_of_counts(kind: str) -> None:
    """The jobs with reservations and all others start as where processors have no names, smallest areas first."""
    rule = QueueRule(name="all", backfill=BackfillRule.RESERVING, order=Order.AREA)
    for seed in range(8):
        instance = crowd_of_equals(seed, kind)
        assert is_counted(SimWorld(Load(instance)), rule)
        items, size = counted(instance)
        expected = reserving_by_counts(items, size, lambda item: item.walltime * item.width)
        assert judged(instance, rule).runs.start.tolist() == expected, seed


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("log", some(["SDSC-SP2-1998-4.2-cln", "KTH-SP2-1996-2.1-cln", "CTC-SP2-1996-3.1-cln"], 3))
def test_jobs_of_real_logs_start_as_in_the_textbook(log: str, rule: str, shared_data: Path) -> None:
    """So do the first 1,000 jobs of each log; `scripts/bench sim --textbook` compares whole ones."""
    read = read_swf(shared_data / "logs" / f"{log}.firsthalf.swf.gz")
    instance = log_to_instance(read, machine_of_log(read).machine, arriving=True).instance
    instance = replace(instance, jobs=tuple(sorted(instance.jobs, key=lambda job: job.submit)[:1000]))
    name, parameters, textbook = RULES[rule]
    runs = simulate(instance, make_scheduler(name, parameters)).runs
    assert runs.start.tolist() == textbook(items_of(instance), instance.cluster.totals["cores"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cores", "nodes", "exclusive", "parts", "classes"])
def test_where_jobs_are_counted_one_look_through_the_queue_is_enough(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EASY starts the same jobs on the same nodes if it looks through the queue again after each start."""
    instances = [crowd_of_equals(seed, kind) for seed in range(10)]
    histories = [simulate(instance, make_scheduler("easy")) for instance in instances]
    looks: list[bool] = []

    def never(world: SimWorld, rule: QueueRule) -> bool:
        looks.append(is_counted(world, rule))
        return False

    monkeypatch.setattr(rule_choice, "is_counted", never)
    for instance, once in zip(instances, histories, strict=True):
        again = simulate(instance, make_scheduler("easy"))
        assert again.record().jobs == once.record().jobs
    assert all(looks)


def one_by_one(name: str, width: int, walltime: int, submit: int) -> Job:
    """Return a job of single cores that runs for its walltime."""
    return waiting(name, walltime, chunk(width, cores=1), submit=submit, runtime=walltime)


def test_a_filler_takes_what_the_head_does_not_need() -> None:
    """As on the KTH's SP2 at 91,529: 10 of 100 nodes are free; the head needs 80 at 105,233, when 90 are: 10 are extra.

    A job of 10 nodes that runs on then starts at once, on whichever nodes; one more of a node finds none.
    """
    jobs = [
        one_by_one("other", 10, 127_544, 0),
        one_by_one("wide", 80, 105_233, 0),
        one_by_one("head", 80, 5_000, 91_000),
        one_by_one("filler", 10, 50_000, 91_529),
        one_by_one("last", 1, 50_000, 91_530),
    ]
    instance = window([nodes(" ".join(f"n{number}" for number in range(100)), cores=1)], *jobs)
    expected = {"other": 0, "wide": 0, "head": 105_233, "filler": 91_529}
    for rule in ("easy", "pbs_fifo_bf10", "conservative"):
        found = starts(judged(instance, make_scheduler(rule)))
        assert {job: found[job] for job in expected} == expected
        assert found["last"] > 105_233


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cores", "nodes", "exclusive", "parts", "classes"])
def test_a_window_of_equal_nodes_is_planned_as_in_the_textbook(kind: str) -> None:
    """The rules that plan a window start each job as the textbook's do, if all jobs run for their walltimes; the plan
    names nodes that are free for all of that time.
    """
    for seed in range(8):
        drawn = crowd_of_equals(seed, kind)
        instance = replace(drawn, jobs=tuple(replace(job, runtime=None) for job in drawn.jobs))
        jobs = sorted(instance.jobs, key=lambda job: job.submit)
        together = replace(instance, jobs=tuple(replace(job, submit=0) for job in jobs))
        for rule, textbook in (("easy", easy_by_counts), ("conservative", conservative_by_counts)):
            found = ruled.starts(together, rule)
            assert [found[job.id] for job in jobs] == textbook(*counted(together)), (seed, rule)


def test_running_jobs_are_counted_as_they_end() -> None:
    """Of three nodes two are busy, until 5 and until 10: two nodes are free from 5 on, and three from 10 on."""
    jobs = [
        running("r", 5, a={"cores": 4}),
        running("s", 10, b={"cores": 4}),
        waiting("two", 5, chunk(2, cores=4)),
        waiting("late", 5, chunk(2, cores=4), not_before=7),
        waiting("one", 20, chunk(1, cores=4)),
    ]
    instance = window([nodes("a b c", cores=4)], *jobs)
    assert ruled.starts(instance, "conservative") == {"two": 5, "late": 10, "one": 10}


def test_reservations_on_nodes_are_another_rule() -> None:
    """Some job waits for longer if the nodes of a reservation must be free, the same ones, in all of its time."""
    instances = [crowd_of_equals(seed, "nodes") for seed in range(10)]
    rules = [make_scheduler(name) for name in ("conservative", "conservative_on_nodes")]
    counts, on_nodes = ([judged(instance, rule).runs.start.tolist() for instance in instances] for rule in rules)
    assert counts != on_nodes


def test_the_head_takes_nodes_that_are_not_free_yet() -> None:
    """Weak node a is free, b and strong c are busy until 10; the head needs two of them then, takes b and c, and leaves
    a to one that runs on.
    """
    machine = [nodes("a b", cores=4), nodes("c", cores=4, gpus=1)]
    jobs = [
        running("r", 10, b={"cores": 4}),
        running("s", 10, c={"cores": 4}),
        waiting("head", 10, chunk(2, cores=4)),
        waiting("long", 50, chunk(cores=4)),
        waiting("parts", 50, chunk(cores=2)),
    ]
    instance = window(machine, *jobs)
    expected = {"r": 0, "s": 0, "head": 10, "long": 0, "parts": 20}
    assert starts(judged(instance, make_scheduler("easy"))) == expected
    assert ruled.starts(instance, "easy") == {name: start for name, start in expected.items() if name not in "rs"}


def test_nodes_that_are_shared_are_reserved_in_parts() -> None:
    """Two of four cores of a and all of c are busy until 10, b is free; the head needs two chunks of three cores, which
    are on a and c then: one that runs on has b, and of a's two cores one is left.
    """
    jobs = [
        running("r", 10, a={"cores": 2}),
        running("s", 10, c={"cores": 4}),
        waiting("head", 10, chunk(2, cores=3)),
        waiting("long", 50, chunk(cores=4)),
        waiting("two", 50, chunk(cores=2)),
        waiting("one", 50, chunk(cores=1)),
    ]
    instance = window([nodes("a b c", cores=4)], *jobs)
    expected = {"r": 0, "s": 0, "head": 10, "long": 0, "two": 20, "one": 0}
    assert starts(judged(instance, make_scheduler("easy"))) == expected
    assert ruled.starts(instance, "easy") == {name: start for name, start in expected.items() if name not in "rs"}


def units_of(*classes: NodeClass, jobs: Sequence[Job]) -> EqualNodes | None:
    """Return the units in which these jobs can be counted."""
    return EqualNodes.of(Load(window(list(classes), *jobs)).columns.demands)


def test_what_cannot_be_counted() -> None:
    """Chunks of two sizes that fit beside each other, chunks of two kinds in one job, and chunks that must be apart."""
    node = nodes("a b", cores=4)
    one, two, three = (waiting(f"j{cores}", 5, chunk(2, cores=cores)) for cores in (1, 2, 3))
    both = waiting("both", 5, chunk(1, cores=1), chunk(1, cores=4))
    apart = waiting("apart", 5, chunk(2, cores=1), place=Place(arrangement=Arrangement.SCATTER))
    whole = waiting("whole", 5, chunk(2, cores=1), place=Place(exclusive=True))
    assert units_of(node, jobs=[one]) is not None
    assert units_of(node, jobs=[three]) is not None
    assert units_of(node, jobs=[three, whole]) is not None
    for jobs in ([one, two], [one, three], [both], [apart], [one, whole]):
        assert units_of(node, jobs=jobs) is None, jobs
