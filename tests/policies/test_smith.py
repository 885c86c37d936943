"""The on-line rule `smith`: its reservations, its gate, when jobs are due, its promises, and what it expects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cpsched.domain import Amounts, FrozenMap, Instance, Job, MaxWait, Queue
from cpsched.errors import DocumentError
from cpsched.formats import read_instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import BackfillRule, Expectation, Order, QueueRule
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.sim.played import played, starts
from tests.sizes import seeds

pytestmark = pytest.mark.kernels

CASES = Path(__file__).parents[1] / "cases"


def job(name: str, cores: int, walltime: int, submit: int = 0, **options: Any) -> Job:
    """Return a job of chunks of one core."""
    return waiting(name, walltime, chunk(cores, cores=1), submit=submit, **options)


def found(cores: int, jobs: list[Job], rule: str = "smith", **parameters: Any) -> dict[str, int]:
    """Return the start of each job on one node; the judge has seen the record."""
    return starts(played(window([nodes("n", cores=cores)], *jobs), make_scheduler(rule, parameters)))


def test_all_blocked_jobs_have_reservations() -> None:
    """`b` fits beside the first blocked job, `a`, but not beside the second one, `c`, which has a reservation too; nor
    beside the last one of forty.
    """
    jobs = [job("r", 3, 10), job("a", 2, 10, 1), job("c", 4, 10, 2), job("b", 1, 60, 3)]
    assert found(4, jobs, expect="walltime", due_after=None) == {"r": 0, "a": 10, "c": 20, "b": 30}
    many = [job("r", 3, 10), *(job(f"c{n}", 4, 10, 1) for n in range(40)), job("b", 1, 401, 2)]
    assert found(4, many, expect="walltime", due_after=None)["b"] == 410
    assert found(4, [*many[:-1], job("b", 1, 8, 2)], expect="walltime", due_after=None)["b"] == 2


def test_the_gate_keeps_room_for_urgent_jobs() -> None:
    """`long` would fit now and delays nobody, but its index is 25 times that of the blocked job: it waits."""
    jobs = [job("r", 3, 10), job("urgent", 4, 10, 1), job("long", 1, 1000, 2), job("short", 1, 9, 1)]
    assert found(4, jobs, gate=None, expect="walltime") == {"r": 0, "urgent": 10, "long": 20, "short": 1}
    wide = [job("r", 3, 10), job("urgent", 3, 10, 1), job("long", 1, 1000, 2)]
    assert found(4, wide, gate=None, expect="walltime")["long"] == 2
    assert found(4, wide, gate=2.0, expect="walltime")["long"] == 10
    assert found(4, wide, gate=4.0, expect="walltime")["long"] == 2


def longest_waits(instance: Instance, policy: str, **parameters: Any) -> tuple[int, int]:
    """Return the longest wait (s) of the jobs of the first half of a workload, and that of all."""
    begun = starts(played(instance, make_scheduler(policy, parameters)))
    waits = [begun[one.id] - one.submit for one in sorted(instance.jobs, key=lambda one: one.submit)]
    return max(waits[: len(waits) // 2]), max(waits)


def adversarial(seed: int, number: int = 600) -> Instance:
    """Return wide jobs, and narrow ones that come one after the other and leave room for the wide ones only if some
    wait: nine tenths of the machine.
    """
    random = Random(seed)
    cores, seconds = random.choice([4, 8]), random.choice([5, 20, 60])
    jobs, now = list[Job](), 0
    for place in range(number):
        is_wide = random.random() < 0.08
        width, walltime = (cores, random.randint(1, 4) * seconds) if is_wide else (random.choice([1, 2]), seconds)
        runtime = walltime if random.random() < 0.5 else random.randint(1, walltime)
        jobs.append(job(f"j{place}", width, walltime, now, runtime=runtime, user=random.choice("abc")))
        now += max(1, round(1.1 * runtime * width / cores))
    return window([nodes("n", cores=cores)], *jobs)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["smith", "portfolio"])
@pytest.mark.parametrize("seed", seeds(60))
def test_nobody_starves(seed: int, policy: str) -> None:
    """Nobody waits for more than twice what EASY makes the unluckiest wait, and until the machine is empty."""
    instance = adversarial(seed)
    most = 2 * longest_waits(instance, "easy")[1] + 2 * max(one.walltime for one in instance.jobs)
    assert longest_waits(instance, policy)[1] <= most


@pytest.mark.slow
def test_adversarial_streams_starve_wide_jobs_where_none_is_due() -> None:
    """Without the promise some of these streams break the bound: it is not kept by chance."""
    broken = 0
    for seed in range(6):
        instance = adversarial(seed)
        most = 2 * longest_waits(instance, "easy")[1] + 2 * max(one.walltime for one in instance.jobs)
        broken += longest_waits(instance, "smith", due_after=None)[1] > most
    assert broken >= 3


@pytest.mark.parametrize("policy", ["smith", "portfolio"])
def test_the_longest_wait_does_not_grow_with_the_log(policy: str) -> None:
    """Jobs of one core and of the whole machine, at a load of 0.8, for eight days: at most three times EASY's wait."""
    instance = read_instance(CASES / "smith-starves.json")
    first, longest = longest_waits(instance, policy)
    assert longest <= 1.2 * first
    assert longest <= 3 * longest_waits(instance, "easy")[1]
    if policy == "smith":
        grown = longest_waits(instance, policy, due_after=None)
        assert grown[1] > 10 * longest


@pytest.mark.parametrize("policy", ["smith", "portfolio"])
def test_a_wide_job_starts_beside_a_stream_of_narrow_ones(policy: str) -> None:
    """It waits for at most twice what it does under EASY, and for its nodes; with `due_after=1` as long as under EASY.
    What it needs itself, 600 s of the whole machine, is no reason to wait. Where none is due it waits until the stream
    is over, after 4,765 s.
    """
    instance = read_instance(CASES / "starve-wide-job.json")

    def wait(name: str, **parameters: Any) -> int:
        (big,) = (one for one in instance.jobs if one.id == "big")
        return starts(played(instance, make_scheduler(name, parameters)))["big"] - big.submit

    assert wait("easy") == 90
    assert wait(policy) <= 2 * 90 + 95
    if policy == "smith":
        assert wait(policy, due_after=1.0) == 90
        assert wait(policy, due_after=None) > 4000


@pytest.mark.parametrize("scarce", ["licence", "gpu"])
def test_jobs_that_ask_for_all_of_something_scarce_do_not_starve(scarce: str) -> None:
    """One licence, or the GPUs of one node, are asked for singly and all at once; most jobs need none, and do not wait
    for them in the replay.
    """
    random, now, jobs = Random(7), 0.0, list[Job]()
    for place in range(400):
        now += random.expovariate(8.3 / 3600)
        amount = random.choices([0, 1, 4], [6.0, 2.0, 0.3])[0]
        licenses = Amounts({"l": amount} if amount and scarce == "licence" else {})
        part = chunk(1, cores=1, gpus=amount) if amount and scarce == "gpu" else chunk(1, cores=1)
        jobs.append(waiting(f"j{place}", 3600, part, submit=int(now), runtime=3600, licenses=licenses))
    instance = window([nodes("n", cores=16, gpus=4)], *jobs, licenses={"l": 4})
    assert longest_waits(instance, "smith")[1] <= 1.25 * longest_waits(instance, "easy")[1]


def test_jobs_that_are_due_come_first_in_the_order_of_submission() -> None:
    """Three wide jobs wait for some 40 s of work: twice that, and they are due, and start one after the other."""
    jobs = [*(job(f"w{n}", 4, 10, 1 + n) for n in range(3)), *(job(f"s{n}", 2, 5, 2 * n) for n in range(400))]
    begun = found(4, jobs, due_after=2.0, expect="walltime")
    assert begun["w0"] < begun["w1"] < begun["w2"] <= 120
    assert found(4, jobs, due_after=None, expect="walltime")["w0"] > 800


def test_promises_come_first_and_are_never_gated() -> None:
    """A job with a deadline starts in time though its index is the worst, and so does one with a hard limit."""
    jobs = [job("r", 2, 10), *(job(f"s{n}", 2, 10, 1) for n in range(9))]
    big = job("big", 4, 100, 2, deadline=160)
    assert found(4, [*jobs, replace(big, deadline=None)], expect="walltime", due_after=None)["big"] == 51
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
    begun = found(4, jobs, expect="classes", due_after=None)
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
        ({"due_after": -2.0}, "Expected figures of 0 or more"),
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
        {"backfill": BackfillRule.RESERVING, "order": Order.SUBMISSION, "due_after": 2.0},
        {"backfill": BackfillRule.NOT_DELAYING, "order": Order.WSPT, "due_after": 2.0},
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
    rule = make_scheduler("smith", {"due_after": None})
    assert starts(played(window_of(*jobs), rule))["b"] == 10
    licensed = replace(job("a", 1, 10, 1), licenses=Amounts({"lic": 2}))
    jobs = [job("r", 4, 10), licensed, replace(job("b", 2, 10, 2), licenses=Amounts({"lic": 1}))]
    assert starts(played(window_of(*jobs), rule)) == {"r": 0, "b": 10, "a": 20}
