"""The queue rules by name: a worked example of each, and what is said about names and parameters that do not exist."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cpsched.domain import Amounts, FrozenMap, Job, Queue
from cpsched.errors import DocumentError
from cpsched.lab.policies import SCHEDULERS, make_scheduler, scheduler_names
from cpsched.lab.sim import QueueRule
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.policies.maui_runs import judged
from tests.rules import ruled
from tests.sim.played import starts

HOUR = 3600


def job(name: str, cores: int, walltime: int, submit: int = 0) -> Job:
    """Return a job of chunks of one core."""
    return waiting(name, walltime, chunk(cores, cores=1), submit=submit)


def played(cores: int, jobs: list[Job], rule: str, **parameters: Any) -> dict[str, int]:
    """Return the start of each job on one node."""
    return starts(judged(window([nodes("n", cores=cores)], *jobs), make_scheduler(rule, parameters)))


# --- which jobs are backfilled ---------------------------------------------------------------------------------------

#: The head has to wait for a until 100; short is over by then, long is not, and fits beside a only.
QUEUE = [job("a", 3, 100), job("head", 4, 10), job("long", 1, 101), job("short", 1, 100)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("fcfs", {"long": 110, "short": 110}),
        ("first_fit", {"head": 200, "long": 0, "short": 100}),
        ("easy", {"long": 110, "short": 0}),
        ("pbs_fifo_bf10", {"long": 110, "short": 0}),
        ("pbs_fifo_starve", {"head": 200, "long": 0, "short": 100}),
    ],
)
def test_who_is_let_past_the_head(rule: str, expected: dict[str, int]) -> None:
    """No job, every job that fits, or every job that does not delay its reservation by a second (PBS-1).

    Where long starts at 0 the head does not fit at 100, one second before long is over, and short does.
    """
    assert played(4, QUEUE, rule) == {"a": 0, "head": 100} | expected


@pytest.mark.parametrize(("before", "is_backfilled"), [(9, True), (10, False)])
def test_pbs_fifo_looks_at_ten_behind_the_head(before: int, is_backfilled: bool) -> None:
    """The tenth job behind the head is backfilled, the eleventh is not, though it could be (BRIDI-20)."""
    others = [job(f"wide{n}", 2, 1) for n in range(before)]
    found = played(4, [job("a", 3, 100), job("head", 4, 1), *others, job("small", 1, 50)], "pbs_fifo_bf10")
    assert found["head"] == 100
    assert (found["small"] == 0) == is_backfilled


@pytest.mark.parametrize(("before", "is_backfilled"), [(399, True), (400, False)])
def test_pbs_walltime_looks_at_400_behind_the_head(before: int, is_backfilled: bool) -> None:
    """By walltime, the 400th job behind the head is backfilled, the next one is not (BRIDI-21)."""
    others = [job(f"wide{n}", 2, 20, submit=1) for n in range(before)]
    jobs = [job("a", 3, 1000), job("head", 4, 10, submit=1), *others, job("small", 1, 30, submit=1)]
    found = played(4, jobs, "pbs_walltime_bf400")
    assert found["head"] == 1000
    assert (found["small"] == 1) == is_backfilled


def test_pbs_walltime_serves_the_shortest_first() -> None:
    """One core: by walltime, then by submission (BRIDI-21)."""
    found = played(1, [job("a", 1, 5), job("b", 1, 30), job("c", 1, 10), job("d", 1, 10)], "pbs_walltime_bf400")
    assert found == {"a": 0, "c": 5, "d": 15, "b": 25}


# --- orders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "order"),
    [
        ("sjf", ["short", "wide", "small"]),
        ("saf", ["small", "short", "wide"]),
        # 100 * 1 / 4; 60 * 4 / 4; 90 * 4 / 4; each times 1800
        ("wspt", ["small", "short", "wide"]),
        # (100 / 100)^3 * 1 = 1; (100 / 60)^3 * 4 = 18.5; (100 / 90)^3 * 4 = 5.5
        ("wfp3", ["short", "wide", "small"]),
        # 100 / (log2(1) * 100), taken as without bound; 100 / (2 * 60) = 0.83; 100 / (2 * 90) = 0.56
        ("unicef", ["small", "short", "wide"]),
        # log10(100) * 1 = 2; log10(60) * 4 = 7.1; log10(90) * 4 = 7.8; the same submission
        ("f1", ["small", "short", "wide"]),
    ],
)
def test_in_which_order_jobs_are_served(rule: str, order: list[str]) -> None:
    """Four cores are busy until 101; then three jobs that came at 1 stand in the order of the rule.

    Each must have started when the next one does: one that has to wait blocks those behind it.
    """
    jobs = [job("wide", 4, 90, submit=1), job("short", 4, 60, submit=1), job("small", 1, 100, submit=1)]
    found = played(4, [job("first", 4, 101), *jobs], rule)
    assert sorted(found, key=lambda name: found[name]) == ["first", *order]
    assert found[order[0]] == 101


@pytest.mark.parametrize(("cores", "first"), [(869, "wide"), (871, "late")])
def test_f1_weighs_submission_by_870(cores: int, first: str) -> None:
    """A job that comes ten times as late is served first only if the other one asks for more than 870 cores for 10 s.

    `wide` has the key cores + 870 * 2, and `late` 0 + 870 * 3: it takes no time to speak of, log10(1) = 0.
    """
    jobs = [job("wide", cores, 10, submit=100), job("late", 1, 1, submit=1000)]
    found = played(cores, [job("busy", cores, 2000), *jobs], "f1")
    assert found[first] == 2000
    assert min(found["wide"], found["late"]) < max(found["wide"], found["late"])


@pytest.mark.parametrize("rule", ["sjf", "saf", "wspt", "wfp3", "unicef", "f1"])
def test_orders_are_strict_unless_backfilled(rule: str) -> None:
    """The first in the order does not fit: the others wait, or start past it where they do not delay it."""
    head, small = job("head", 4, 10, submit=1), job("small", 1, 20, submit=2)
    if rule in ("unicef", "saf", "wspt", "f1"):  # who like narrow jobs best: the head is short, or wide and early
        head, small = job("head", 2, 1, submit=1), job("small", 1, 90, submit=2)
    jobs = [job("a", 3, 100), head, small]
    assert played(4, jobs, rule)["small"] >= 100
    assert played(4, jobs, rule, backfill="easy")["small"] == 2


def test_smiths_rule_weighs_the_share_of_the_machine_and_the_queue() -> None:
    """By walltime x largest share of anything x expected wait: a licence may be the largest share, and a queue that
    expects a short wait makes a job more urgent (BRIDI-8).
    """
    cluster = replace(window([nodes("n", cores=4)]).cluster, licenses=Amounts({"matlab": 2}))
    queues = FrozenMap({"debug": Queue(expected_wait=10), "parallel": Queue(expected_wait=30)})
    jobs = [
        job("first", 4, 101),
        replace(job("licensed", 1, 100, submit=1), licenses=Amounts({"matlab": 2}), queue="debug"),  # 100 * 1 * 10
        replace(job("patient", 1, 120, submit=1), queue="parallel"),  # 120 / 4 * 30
        replace(job("urgent", 3, 100, submit=1), queue="debug"),  # 100 * 3 / 4 * 10
    ]
    instance = replace(window([nodes("n", cores=4)], *jobs), cluster=cluster, queues=queues)
    found = starts(judged(instance, make_scheduler("wspt")))
    assert found == {"first": 0, "urgent": 101, "patient": 101, "licensed": 201}


def test_the_engine_orders_as_the_queue_rule() -> None:
    """On one core both serve by Smith's rule, the engine `wspt_list` and the compiled rule `wspt`."""
    queues = FrozenMap({"debug": Queue(expected_wait=10), "parallel": Queue(expected_wait=21)})
    drawn = [(17, "debug"), (8, "parallel"), (9, "debug"), (3, "parallel"), (30, "debug"), (14, "parallel")]
    jobs = [replace(job(f"j{n}", 1, walltime), queue=queue) for n, (walltime, queue) in enumerate(drawn)]
    instance = replace(window([nodes("n", cores=1)], *jobs), queues=queues)
    assert starts(judged(instance, make_scheduler("wspt"))) == ruled.starts(instance, "wspt_list")


def test_who_waits_gets_ahead_by_wfp3() -> None:
    """A long job that has waited for long is served before a short one that has just come; not so by walltime alone."""
    jobs = [job("a", 1, 1000), job("long", 1, 100, submit=1), job("short", 1, 10, submit=995)]
    assert played(1, jobs, "wfp3")["long"] == 1000
    assert played(1, jobs, "sjf")["long"] == 1010


# --- PBS's FIFO ------------------------------------------------------------------------------------------------------


def test_pbs_helps_the_starving() -> None:
    """The scenario of PBS-6 by name: the Cs run beside A for 24 h, then all wait for B, which starts when A ends."""
    names = " ".join(f"n{number}" for number in range(64))
    jobs = [job("A", 40, 30 * HOUR), job("B", 40, HOUR)]
    jobs += [job(f"C{n}", 20, HOUR, submit=n * HOUR // 2) for n in range(1, 70)]
    instance = window([nodes(names, cores=1)], *jobs)
    found = starts(judged(instance, make_scheduler("pbs_fifo_starve")))
    assert (found["A"], found["B"]) == (0, 30 * HOUR)
    assert [start for start in found.values() if 24 * HOUR < start < 30 * HOUR] == []
    unhelped = starts(judged(instance, make_scheduler("pbs_fifo_starve", {"help_starving_jobs": False})))
    assert [start for start in unhelped.values() if 24 * HOUR < start < 30 * HOUR] != []


@pytest.mark.parametrize(("max_starve", "late"), [(99, 210), (100, 100)])
def test_pbs_takes_max_starve_to_the_second(max_starve: int, late: int) -> None:
    """A job starves when it has waited for more than `max_starve`: when b ends at 100, wide has waited for 100 (PBS-2).

    Then late has to wait for wide, which starts when a ends at 200.
    """
    jobs = [job("a", 1, 200), job("b", 1, 100), job("wide", 2, 10), job("late", 1, 100, submit=1)]
    found = played(2, jobs, "pbs_fifo_starve", max_starve=max_starve)
    assert found == {"a": 0, "b": 0, "wide": 200, "late": late}


def test_pbs_sorts_by_walltime() -> None:
    """The option sort_by lets the shortest of the jobs that fit start first (PBS-3)."""
    jobs = [job("a", 1, 10), job("long", 1, 50), job("short", 1, 20)]
    assert played(1, jobs, "pbs_fifo_starve", sort_by="short_walltime") == {"a": 0, "short": 10, "long": 30}
    assert played(1, jobs, "pbs_fifo_starve") == {"a": 0, "long": 10, "short": 60}


# --- by name ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_is_made_by_its_name(name: str) -> None:
    """Without parameters all have their defaults; the name is the one that records carry."""
    assert make_scheduler(name).name == name


def test_a_scheduler_takes_its_parameters() -> None:
    """They are the keywords of what makes it."""
    rule = make_scheduler("pbs_fifo_starve", {"max_starve": 60})
    assert isinstance(rule, QueueRule)
    assert rule.max_starve == 60


@pytest.mark.parametrize(
    ("name", "parameters", "faults"),
    [
        ("esay", {}, ["Expected a scheduler, got 'esay', did you mean easy?"]),
        ("zzz", {}, [f"Expected a scheduler, got 'zzz' (known: {', '.join(scheduler_names())})"]),
        ("fcfs", {"depth": 3}, ["depth: unknown parameter (known: none)"]),
        (
            "sjf",
            {"bakfill": "easy", "backfill": "esay"},
            [
                "bakfill: unknown parameter, did you mean backfill? (known: backfill, expect)",
                "backfill: Expected none or easy, got 'esay'",
            ],
        ),
        ("pbs_fifo_starve", {"max_starve": "1 d"}, ["max_starve: Expected an integer, got '1 d'"]),
        ("pbs_fifo_starve", {"help_starving_jobs": 1}, ["help_starving_jobs: Expected True or False, got 1"]),
        ("conservative_on_nodes", {"depth": True}, ["depth: Expected an integer or None, got True"]),
        ("slurm", {"bf_window": 0}, ["Expected bf_window of 1 or more, got 0"]),
    ],
)
def test_what_no_scheduler_takes_is_refused(name: str, parameters: dict[str, object], faults: list[str]) -> None:
    """Everything that is wrong is said at once, with the name that was probably meant."""
    with pytest.raises(DocumentError) as caught:
        make_scheduler(name, parameters)
    assert [str(fault) for fault in caught.value.faults] == faults
