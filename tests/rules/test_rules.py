"""Each rule on windows that are worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cpsched.domain import Amounts, Dependency, DependencyType, FrozenMap, Instance, Job, Queue
from cpsched.engine import Engine
from cpsched.errors import UnsupportedError
from cpsched.rules import POLICIES
from cpsched.rules.policy import PolicyEngine
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.rules.ruled import RULES, planned, starts

#: The rules that start jobs as time goes on.
TIMED = ["fcfs", "easy", "pbs_fifo_bf10", "pbs_walltime_bf400"]


def cores(job_id: str, amount: int, walltime: int, **options: Any) -> Job:
    """Return a job of a single chunk."""
    return waiting(job_id, walltime, chunk(cores=amount), **options)


def ordered(rule: str, instance: Instance, jobs: list[Job]) -> list[Job]:
    """Sort jobs as a rule does."""
    engine = POLICIES[rule]
    assert isinstance(engine, PolicyEngine)
    return list(engine.policy.order(instance, jobs))


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
        ("sjf_list", {"a": 15, "b": 10, "c": 15, "d": 0}),
        ("pbs_walltime_bf400", {"a": 15, "b": 10, "c": 15, "d": 0}),
        # 10 x 3/4, 5 x 4/4, 30 x 1/4, 5 x 1/4: d, b, a, c
        ("wspt_list", {"a": 15, "b": 10, "c": 15, "d": 0}),
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


# ---- jobs that wait for others ----


def after(name: str, kind: DependencyType = DependencyType.AFTEROK, delay: int = 0) -> tuple[Dependency, ...]:
    """Return the dependencies of a job."""
    return (Dependency(job=name, type=kind, delay=delay),)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # until a ends c is the head and blocks d; at 10 b comes, is the head, and finds all cores free
        ("fcfs", {"a": 0, "b": 10, "c": 12, "d": 12}),
        # beside the reservation of c at 10 there is room for d, for whose end b has to wait when it comes
        ("easy", {"a": 0, "b": 20, "c": 22, "d": 0}),
        ("pbs_fifo_bf10", {"a": 0, "b": 20, "c": 22, "d": 0}),
        ("pbs_walltime_bf400", {"a": 0, "b": 20, "c": 22, "d": 0}),
        # b is before c and d in the list, and has its turn as soon as a has had it
        ("conservative", {"a": 0, "b": 10, "c": 12, "d": 12}),
        ("sjf_list", {"a": 0, "b": 10, "c": 12, "d": 12}),
        ("wspt_list", {"a": 0, "b": 10, "c": 12, "d": 12}),
    ],
)
def test_a_wide_job_waits_for_a_small_one(rule: str, expected: dict[str, int]) -> None:
    """Of 4 cores a takes 2 for 10 s, b all for 2 s after that, c 3 and d 1 for 20 s each."""
    jobs = [
        cores("b", 4, 2, submit=-9, priority=9, after=after("a")),
        cores("a", 2, 10, priority=8),
        cores("c", 3, 20),
        cores("d", 1, 20),
    ]
    assert starts(window([nodes("n", cores=4)], *jobs), rule) == expected


@pytest.mark.parametrize("rule", RULES)
def test_a_chain_moves_on_at_each_event(rule: str) -> None:
    """One that starts lets the next one go in the same second, one that ends the one after it, 3 s later."""
    jobs = [
        cores("third", 1, 5, priority=3, after=after("second", delay=3)),
        cores("second", 1, 5, priority=2, after=after("first", DependencyType.AFTER)),
        cores("first", 1, 5, priority=1, after=after("r")),
        cores("beside", 1, 50, after=after("r", DependencyType.AFTER, 12)),
    ]
    assert starts(one_node(*jobs), rule) == {"first": 10, "second": 10, "third": 18, "beside": 12}


@pytest.mark.parametrize("rule", RULES)
def test_an_array_waits_for_an_array(rule: str) -> None:
    """Two elements run beside r, one after the other; those that wait for both come 5 s after the second has ended."""
    jobs = [
        cores("late", 2, 1, array=(0, 1, 2), submit=-1, priority=1, after=after("early", delay=5)),
        cores("early", 1, 4, array=(0, 1)),
    ]
    expected = {"early[0]": 0, "early[1]": 4, "late[0]": 13, "late[1]": 13, "late[2]": 14}
    assert starts(one_node(*jobs), rule) == expected


@pytest.mark.parametrize("rule", RULES)
def test_who_is_awaited_by_a_bound_job_is_bound(rule: str) -> None:
    """The job with a deadline and the one that it waits for are planned first; who waits for these is not."""
    jobs = [
        cores("large", 4, 50, submit=-9, priority=9),
        cores("due", 4, 10, deadline=30, after=after("first")),
        cores("first", 4, 10, priority=-1),
        cores("then", 1, 5, after=after("due", DependencyType.AFTER, 3)),
    ]
    found = starts(one_node(*jobs), rule)
    assert (found["first"], found["due"]) == (10, 20)
    shortest_first = {"sjf_list", "pbs_walltime_bf400", "wspt_list"}
    assert (found["large"], found["then"]) == ((35, 30) if rule in shortest_first else (30, 80))


@pytest.mark.parametrize("rule", RULES)
def test_who_waits_in_vain_blocks_nobody(rule: str) -> None:
    """Those that wait for jobs without a start are told so, refused ones and others; progress ends with everybody."""
    jobs = [
        cores("b", 4, 5, submit=-9, priority=9, after=after("a")),
        cores("a", 5, 1),
        cores("d", 4, 5, submit=-9, priority=9, after=after("c")),
        waiting("c", 1, chunk(2, cores=2), chunk(2, cores=1)),
        cores("e", 1, 5),
    ]
    instance = one_node(*jobs)
    plan = planned(instance, rule)
    reasons = {job.id: str(job.reason) for job in plan.waiting_room}
    assert reasons == {"a": "unsatisfiable", "b": "dependency", "c": "not_mapped", "d": "dependency"}
    assert [(job.id, job.start) for job in plan.jobs] == [("r", 0), ("e", 0)]
    calls: list[tuple[int, int]] = []
    POLICIES[rule].plan(instance, lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1] == (4, 4)


# ---- orders ----


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("fcfs", "c b a d"),
        ("pbs_fifo_bf10", "c b a d"),
        ("conservative", "a c b d"),
        ("easy", "a c b d"),
        ("sjf_list", "b d c a"),
        ("pbs_walltime_bf400", "b d c a"),
        ("wspt_list", "b c a d"),
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
    assert [job.id for job in ordered(rule, instance, jobs)] == expected.split()


@pytest.mark.parametrize("rule", RULES)
def test_equal_jobs_keep_their_order(rule: str) -> None:
    """Among equal jobs the document decides."""
    jobs = [cores(name, 1, 5) for name in "bcad"]
    assert ordered(rule, one_node(*jobs), jobs) == jobs


# ---- engines ----


@pytest.mark.parametrize("rule", RULES)
def test_what_cannot_be_honoured_is_refused_by_name(rule: str) -> None:
    """An evolving job is refused; the error names the engine."""
    plain = cores("b", 1, 5)
    instance = one_node(cores("a", 1, 5), replace(plain, steps=plain.steps * 2))
    engine: Engine = POLICIES[rule]
    assert engine.unsupported(instance) == ("job b: evolves over several steps",)
    with pytest.raises(UnsupportedError, match=rule):
        engine.plan(instance, None)


@pytest.mark.parametrize("rule", RULES)
def test_progress_is_told(rule: str) -> None:
    """With kernels prepared, progress ends with all jobs done, and never goes back."""
    calls: list[tuple[int, int]] = []
    POLICIES[rule].prepare()
    instance = one_node(cores("a", 4, 5), cores("b", 1, 5), cores("c", 4, 1))
    POLICIES[rule].plan(instance, lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1] == (3, 3)


@pytest.mark.parametrize("rule", ["easy", "pbs_fifo_bf10", "pbs_walltime_bf400"])
def test_who_has_waited_for_another_job_comes_in_at_his_own_place(rule: str) -> None:
    """One core is free until 10: a needs all, and b, which was submitted before, all when c has started, which is at
    once. From then on b is the head.
    """
    after_c = Dependency(job="c", type=DependencyType.AFTER)
    jobs = [cores("a", 4, 10), cores("b", 4, 10, submit=-5, after=(after_c,)), cores("c", 1, 5)]
    assert starts(one_node(*jobs), rule) == {"a": 20, "b": 10, "c": 0}
