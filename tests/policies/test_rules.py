"""Each rule on windows that are worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import Amounts, Dependency, DependencyType, FrozenMap, Instance, Job, Queue
from cpsched.engine import Engine
from cpsched.errors import UnsupportedError
from cpsched.policies import POLICIES
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.policies.ruled import RULES, planned, starts

#: The rules that start jobs as time goes on.
TIMED = ["fcfs", "easy", "pbs_fifo_bf10", "pbs_walltime_bf400"]


def cores(job_id: str, amount: int, walltime: int, **options: Any) -> Job:
    """Return a job of a single chunk."""
    return waiting(job_id, walltime, chunk(cores=amount), **options)


def one_node(*jobs: Job) -> Instance:
    """Return a node of 4 cores, of which 3 are in use until 10."""
    return window([nodes("n", cores=4)], running("r", 10, n={"cores": 3}), *jobs)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # a waits for r, b for a, and c and d for b
        ("fcfs", {"a": 10, "b": 20, "c": 25, "d": 25}),
        # c delays b, but not the head a; so that b waits for c, and d finds room when a has ended
        ("easy", {"a": 10, "b": 30, "c": 0, "d": 20}),
        ("pbs_fifo_bf10", {"a": 10, "b": 30, "c": 0, "d": 20}),
        # b has a reservation at 20 with all cores: c has to wait for its end, but d ends before
        ("conservative", {"a": 10, "b": 20, "c": 25, "d": 0}),
        # b, d, a, c
        ("sjf", {"a": 15, "b": 10, "c": 15, "d": 0}),
        ("pbs_walltime_bf400", {"a": 15, "b": 10, "c": 15, "d": 0}),
        # 10 x 3/4, 5 x 4/4, 30 x 1/4, 5 x 1/4: d, b, a, c
        ("wspt", {"a": 15, "b": 10, "c": 15, "d": 0}),
    ],
)
def test_four_jobs_on_a_busy_node(rule: str, expected: dict[str, int]) -> None:
    """One core is free until 10; a takes 3 cores for 10 s, b 4 for 5 s, c 1 for 30 s, d 1 for 5 s."""
    jobs = [cores("a", 3, 10), cores("b", 4, 5), cores("c", 1, 30), cores("d", 1, 5)]
    assert starts(one_node(*jobs), rule) == expected


@pytest.mark.parametrize(
    ("rule", "wide", "start"),
    [
        ("fcfs", 0, 11),
        ("pbs_fifo_bf10", 9, 0),
        ("pbs_fifo_bf10", 10, 31),
        ("pbs_walltime_bf400", 399, 0),
        ("pbs_walltime_bf400", 400, 811),
        ("easy", 400, 0),
    ],
)
def test_how_far_a_rule_looks(rule: str, wide: int, start: int) -> None:
    """Behind the head, which waits for 10, stand wide jobs of 2 s; the narrow job behind them could start now.

    Where it is out of sight it stays so: the wide jobs follow each other without a gap from 11 on.
    """
    jobs = [cores("head", 4, 1), *(cores(f"w{n}", 4, 2) for n in range(wide)), cores("narrow", 1, 5)]
    assert starts(one_node(*jobs), rule)["narrow"] == start


@pytest.mark.parametrize(("walltime", "start"), [(9, 1), (10, 20)])
@pytest.mark.parametrize("rule", ["easy", "pbs_fifo_bf10", "conservative"])
def test_the_head_is_not_delayed_by_a_second(rule: str, walltime: int, start: int) -> None:
    """The head needs both nodes in [10, 20). The next one comes at 1: it runs before that only if it ends by 10."""
    jobs = [
        running("r", 10, a={"cores": 4}),
        waiting("head", 10, chunk(2, cores=4)),
        cores("next", 4, walltime, submit=1),
    ]
    assert starts(window([nodes("a b", cores=4)], *jobs), rule) == {"head": 10, "next": start}


@pytest.mark.parametrize("rule", ["easy", "pbs_fifo_bf10", "pbs_walltime_bf400"])
def test_every_end_lets_somebody_in(rule: str) -> None:
    """The head waits for both nodes until 10; a running job ends at 3, and a filler at 5, each for the next filler."""
    jobs = [
        running("r", 3, a={"cores": 4}),
        running("s", 10, b={"cores": 4}),
        waiting("head", 1, chunk(2, cores=4)),
        cores("one", 4, 2),
        cores("two", 4, 5),
    ]
    assert starts(window([nodes("a b", cores=4)], *jobs), rule) == {"head": 10, "one": 3, "two": 5}


@pytest.mark.parametrize("rule", ["easy", "pbs_fifo_bf10", "pbs_walltime_bf400"])
def test_the_reservation_is_on_nodes(rule: str) -> None:
    """Of 4 free cores at 10 the head takes the 2 on a; who stays for longer can only have b, where 1 core is free."""
    classes = [nodes("a b", cores=2)]
    jobs = [
        running("r", 10, a={"cores": 2}),
        running("s", 10, b={"cores": 1}),
        waiting("head", 5, chunk(cores=2)),
        waiting("long", 20, chunk(cores=1)),
        waiting("later", 21, chunk(cores=1)),
    ]
    assert starts(window(classes, *jobs), rule) == {"head": 10, "long": 0, "later": 10}


@pytest.mark.parametrize("rule", TIMED)
@pytest.mark.parametrize("arrival", [5, 10])
def test_a_new_head_takes_the_reservation_over(rule: str, arrival: int) -> None:
    """The old head would start at 10; a job that stands before it, and comes at 5 or 10, goes first."""
    jobs = [
        cores("old", 4, 10),
        cores("new", 4, 5, submit=-1, priority=1, not_before=arrival),
    ]
    assert starts(one_node(*jobs), rule) == {"old": 15, "new": 10}


@pytest.mark.parametrize("rule", TIMED)
def test_who_has_not_come_does_not_block(rule: str) -> None:
    """A job that may start from 12 on lets those behind it start at 10; then it is the head, and b waits for it."""
    jobs = [cores("late", 4, 1, submit=-1, priority=1, not_before=12), cores("a", 2, 5), cores("b", 3, 6)]
    assert starts(one_node(*jobs), rule) == {"late": 15, "a": 10, "b": 16}


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_moves_who_is_bound_in_time(rule: str) -> None:
    """Fixed starts and deadlines are planned first (OCCS-35), and everybody else around them, at 17 or in one core."""
    jobs = [
        cores("first", 4, 10, submit=-9, priority=9),
        cores("fixed", 4, 5, start_at=12),
        cores("due", 2, 2, deadline=19),
        cores("lost", 4, 5, start_at=5),
        cores("small", 1, 1),
    ]
    small = 27 if rule == "fcfs" else 0
    expected = {"fixed": 12, "due": 10, "lost": None, "first": 17, "small": small}
    assert starts(one_node(*jobs), rule) == expected


@pytest.mark.parametrize("rule", RULES)
def test_who_cannot_run_is_told_so_and_blocks_nobody(rule: str) -> None:
    """A job that is refused, and one whose two chunks never find room beside each other, go to the waiting room."""
    jobs = [
        cores("large", 5, 1),
        waiting("apart", 1, chunk(2, cores=3), chunk(cores=2)),
        cores("small", 1, 10),
    ]
    instance = window([nodes("a b", cores=4)], running("r", 5, a={"cores": 4}), *jobs)
    plan = planned(instance, rule)
    assert [(job.id, job.reason) for job in plan.waiting_room] == [("large", "unsatisfiable"), ("apart", "not_mapped")]
    assert [(job.id, job.start) for job in plan.jobs] == [("r", 0), ("small", 0)]


# ---- orders ----


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("fcfs", "c b a d"),
        ("pbs_fifo_bf10", "c b a d"),
        ("conservative", "a c b d"),
        ("easy", "a c b d"),
        ("sjf", "b d c a"),
        ("pbs_walltime_bf400", "b d c a"),
        ("wspt", "b c a d"),
    ],
)
def test_orders(rule: str, expected: str) -> None:
    """Walltimes 40, 20, 30 and 20 s; shares 1/4 (cores), 1/2 (cores), 1/4 (cores; licences less) and 3/4 (licences).

    With expected waits of 100, 10, 100 and 100 s the products are 1000, 100, 750 and 1500.
    """
    queues = FrozenMap({"slow": Queue(expected_wait=100), "quick": Queue(expected_wait=10)})
    jobs = [
        cores("a", 1, 40, submit=3, queue="slow", priority=1),
        cores("b", 2, 20, submit=2, queue="quick"),
        cores("c", 1, 30, submit=1, queue="slow", licenses=Amounts({"x": 1})),
        cores("d", 2, 20, submit=4, queue="slow", licenses=Amounts({"x": 6})),
    ]
    instance = window([nodes("n", cores=4)], *jobs, licenses={"x": 8}, queues=queues)
    assert [job.id for job in POLICIES[f"policy:{rule}"].policy.order(instance, jobs)] == expected.split()


@pytest.mark.parametrize("rule", RULES)
def test_equal_jobs_keep_their_order(rule: str) -> None:
    """Among equal jobs the document decides."""
    jobs = [cores(name, 1, 5) for name in "bcad"]
    assert POLICIES[f"policy:{rule}"].policy.order(one_node(*jobs), jobs) == jobs


# ---- engines ----


@pytest.mark.parametrize("rule", RULES)
def test_what_cannot_be_honoured_is_refused_by_name(rule: str) -> None:
    """A job that depends on another one is refused; the error names the engine."""
    after = (Dependency(job="a", type=DependencyType.AFTEROK),)
    instance = one_node(cores("a", 1, 5), cores("b", 1, 5, after=after))
    engine: Engine = POLICIES[f"policy:{rule}"]
    assert engine.unsupported(instance) == ("job b: depends on other jobs",)
    with pytest.raises(UnsupportedError, match=f"policy:{rule}"):
        engine.plan(instance, None)


@pytest.mark.parametrize("rule", RULES)
def test_progress_is_told(rule: str) -> None:
    """With kernels prepared, progress ends with all jobs done, and never goes back."""
    calls: list[tuple[int, int]] = []
    POLICIES[f"policy:{rule}"].prepare()
    instance = one_node(cores("a", 4, 5), cores("b", 1, 5), cores("c", 4, 1))
    POLICIES[f"policy:{rule}"].plan(instance, lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1] == (3, 3)
