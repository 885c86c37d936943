"""The on-line rule `smith`: its reservations, its gate, its patience, its promises, and what it expects."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from cpsched.domain import Amounts, FrozenMap, Instance, Job, MaxWait, Queue
from cpsched.errors import DocumentError
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import BackfillRule, Expectation, Order, QueueRule
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.sim.played import played, starts

pytestmark = pytest.mark.kernels


def job(name: str, cores: int, walltime: int, submit: int = 0, **options: Any) -> Job:
    """Return a job of chunks of one core."""
    return waiting(name, walltime, chunk(cores, cores=1), submit=submit, **options)


def found(cores: int, jobs: list[Job], rule: str = "smith", **parameters: Any) -> dict[str, int]:
    """Return the start of each job on one node; the judge has seen the record."""
    return starts(played(window([nodes("n", cores=cores)], *jobs), make_scheduler(rule, parameters)))


def test_more_jobs_than_the_first_have_reservations() -> None:
    """`b` fits beside the first blocked job, `a`, but not beside the second one, `c`, which has a reservation too."""
    jobs = [job("r", 3, 10), job("a", 2, 10, 1), job("c", 4, 10, 2), job("b", 1, 60, 3)]
    rule: dict[str, Any] = {"gate": None, "expect": "walltime"}
    assert found(4, jobs, reservations=1, **rule) == {"r": 0, "a": 10, "b": 3, "c": 63}
    assert found(4, jobs, reservations=2, **rule) == {"r": 0, "a": 10, "c": 20, "b": 30}


def test_the_gate_keeps_room_for_urgent_jobs() -> None:
    """`long` would fit now and delays nobody, but its index is 25 times that of the blocked job: it waits."""
    jobs = [job("r", 3, 10), job("urgent", 4, 10, 1), job("long", 1, 1000, 2), job("short", 1, 9, 1)]
    assert found(4, jobs, gate=None, expect="walltime") == {"r": 0, "urgent": 10, "long": 20, "short": 1}
    wide = [job("r", 3, 10), job("urgent", 3, 10, 1), job("long", 1, 1000, 2)]
    assert found(4, wide, gate=None, expect="walltime")["long"] == 2
    assert found(4, wide, gate=2.0, expect="walltime")["long"] == 10
    assert found(4, wide, gate=4.0, expect="walltime")["long"] == 2


def test_a_job_that_has_waited_for_long_comes_first() -> None:
    """A wide job waits for ever behind short ones that keep coming, unless patience has an end."""
    jobs = [job("wide", 4, 100, 1), *(job(f"s{n}", 2, 10, 5 * n) for n in range(60))]
    assert found(4, jobs, patience=None, expect="walltime")["wide"] >= 300
    assert found(4, jobs, patience=50, expect="walltime")["wide"] <= 65


def starving(seed: int) -> list[Job]:
    """Return wide jobs and more narrow ones, each with a better index, than the machine of 4 cores can serve."""
    random = Random(seed)
    wide = [job(f"w{n}", 4, random.randint(6, 12), random.randint(1, 40)) for n in range(5)]
    return [*wide, *(job(f"s{n}", 2, 5, 2 * n) for n in range(900))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_nobody_starves(seed: int) -> None:
    """A job waits until it is old, and then for each older one and itself until the machine is empty, and as long as
    5 % of the machine need for the older one. Without patience the wide jobs wait for all others.
    """
    patience, jobs = 50, starving(seed)
    longest = max(one.walltime for one in jobs)
    begun = found(4, jobs, patience=patience, expect="walltime")
    forsaken = found(4, jobs, patience=None, expect="walltime")
    wide = sorted((one for one in jobs if one.id[0] == "w"), key=lambda one: (one.submit, one.id))
    for place, one in enumerate(wide):
        most = patience + sum(longest + other.walltime / 0.05 for other in wide[:place]) + longest
        assert begun[one.id] - one.submit <= most
        assert forsaken[one.id] - one.submit > most


def test_old_jobs_take_a_share_of_the_machine() -> None:
    """When a wide job of 10 s has come first because it is old, the next one does so 200 s later."""
    jobs = [*(job(f"w{n}", 4, 10, 1) for n in range(3)), *(job(f"s{n}", 2, 5, 2 * n) for n in range(400))]
    begun = found(4, jobs, patience=50, expect="walltime")
    first, second, third = (begun[f"w{n}"] for n in range(3))
    assert 51 <= first <= 60
    assert 200 <= second - first <= 210
    assert 200 <= third - second <= 210


def test_promises_come_first_and_are_never_gated() -> None:
    """A job with a deadline starts in time though its index is the worst, and so does one with a hard limit."""
    jobs = [job("r", 2, 10), *(job(f"s{n}", 2, 10, 1) for n in range(9))]
    big = job("big", 4, 100, 2, deadline=160)
    assert found(4, [*jobs, replace(big, deadline=None)], expect="walltime")["big"] == 51
    assert found(4, [*jobs, replace(big, deadline=121)], expect="walltime")["big"] == 11
    queue = Queue(expected_wait=1, max_wait=MaxWait(seconds=30, is_hard=True))
    instance = window([nodes("n", cores=4)], *jobs, replace(big, deadline=None, queue="q"))
    promised = replace(instance, queues=FrozenMap({"q": queue}))
    assert starts(played(promised, make_scheduler("smith", {"expect": "walltime"})))["big"] <= 32


@pytest.mark.parametrize(("walltime", "start"), [(97, 213), (98, 240)])
def test_expected_runtimes_are_for_the_order_alone(walltime: int, start: int) -> None:
    """The wide job is reserved from the end of r's walltime on, though r is expected to end much sooner, and does: a
    job behind it may run until then.
    """
    past = [job(f"p{n}", 1, 100, 0, runtime=1, user="ann") for n in range(4)]
    past += [job(f"q{n}", 1, walltime, 1, user="ben") for n in range(4)]
    jobs = [*past, job("r", 3, 100, 210, runtime=20, user="ann"), job("wide", 4, 10, 211, user="ann")]
    jobs.append(job("behind", 1, walltime, 213, user="ben"))
    begun = found(4, jobs, gate=None, expect="classes", reservations=1)
    assert begun["behind"] == start
    assert begun["wide"] == (310 if start == 213 else 230)


@pytest.mark.parametrize("name", ["sjf", "saf", "wspt", "f1", "wfp3", "unicef"])
def test_every_order_may_expect_other_runtimes_than_walltimes(name: str) -> None:
    """On one core, of two equal jobs that come at once, the one whose user's jobs end soon is served first."""
    past = [job(f"p{n}", 1, 1000, n, runtime=1 + 900 * (n % 2), user=["ann", "ben"][n % 2]) for n in range(8)]
    late = [job("slow", 1, 1000, 2000, user="ben", runtime=900), job("quick", 1, 1000, 2000, user="ann", runtime=1)]
    blocking = job("r", 1, 100_000, 1999)
    jobs = [*past, blocking, *late]
    one = found(1, jobs, rule=name, expect="classes")
    other = found(1, jobs, rule=name, expect="walltime")
    assert other["slow"] < other["quick"]
    assert one["quick"] < one["slow"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"reservations": 17}, "Expected 0 to 16 reservations, got 17"),
        ({"gate": -1.0}, "Expected figures of 0 or more"),
        ({"expect": "hope"}, "expect: Expected walltime or user or classes, got 'hope'"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], said: str) -> None:
    """Each with what is expected."""
    with pytest.raises(DocumentError, match=said):
        make_scheduler("smith", parameters)


@pytest.mark.parametrize(
    "wrong",
    [
        {"backfill": BackfillRule.RESERVING, "depth": 3},
        {"backfill": BackfillRule.RESERVING, "order": Order.WFP3},
        {"backfill": BackfillRule.NOT_DELAYING, "reservations": 2},
        {"backfill": BackfillRule.NOT_DELAYING, "order": Order.SMITH},
    ],
)
def test_figures_of_another_kind_of_rule_are_refused(wrong: dict[str, Any]) -> None:
    """Nobody shall believe that they do something."""
    with pytest.raises(ValueError, match="Expected"):
        QueueRule(name="rule", expect=Expectation.CLASSES, **wrong)


def test_weights_and_licences_count() -> None:
    """Smith's index counts the dominant share, licences too, and the weight of a job."""

    def window_of(*jobs: Job) -> Instance:
        one = window([nodes("n", cores=4)], *jobs)
        return replace(one, cluster=replace(one.cluster, licenses=Amounts({"lic": 2})))

    jobs = [job("r", 4, 10), job("a", 4, 10, 1), job("b", 4, 10, 2, weight=3)]
    assert starts(played(window_of(*jobs), make_scheduler("smith")))["b"] == 10
    licensed = replace(job("a", 1, 10, 1), licenses=Amounts({"lic": 2}))
    jobs = [job("r", 4, 10), licensed, replace(job("b", 2, 10, 2), licenses=Amounts({"lic": 1}))]
    assert starts(played(window_of(*jobs), make_scheduler("smith"))) == {"r": 0, "b": 10, "a": 20}
