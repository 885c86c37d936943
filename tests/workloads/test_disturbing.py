"""Failures of nodes and errors of walltimes, drawn from distributions."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from cpsched.domain import Cluster, Instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.workloads import Failures, eurora_stream, lublin, with_failures, with_walltimes
from cpsched.lab.workloads.disturbing import MODES
from tests.booking.small_windows import chunk, nodes, waiting
from tests.sim.played import played

DAY = 86_400


def idle(days: int, count: int = 50) -> Instance:
    """Return a workload of one job at the end of many days."""
    machine = Cluster(classes=(nodes(" ".join(f"n{number}" for number in range(count)), cores=1),))
    return Instance(name="idle", cluster=machine, jobs=(waiting("a", 10, chunk(1, cores=1), submit=days * DAY),))


@pytest.mark.parametrize(("shape", "most"), [(1.0, 0.42), (0.5, 0.6)])
def test_nodes_fail_as_often_and_as_long_as_asked(shape: float, most: float) -> None:
    """Means are those asked for; below a shape of 1 more of the times between failures are short."""
    failures = Failures(mtbf=5 * DAY, mttr=3600, shape=shape)
    outages = with_failures(idle(2000), 1, failures).outages
    last = dict.fromkeys((f"n{number}" for number in range(50)), 0)
    up = []
    for outage in outages:
        (name,) = outage.nodes
        up.append(outage.start - last[name])
        last[name] = outage.end
    assert min(up) >= 1
    assert fmean(up) == pytest.approx(5 * DAY, rel=0.05)
    assert fmean(outage.end - outage.start for outage in outages) == pytest.approx(3600, rel=0.05)
    short = sum(time < 2.5 * DAY for time in up) / len(up)
    assert most - 0.05 < short < most + 0.05
    assert list(outages) == sorted(outages, key=lambda outage: outage.start)


def test_groups_of_nodes_fail_together() -> None:
    """Of ten nodes four, four and two; the same seed fails the same, another one another way."""
    failures = Failures.of("mtbf=86400 mttr=600 group=4")
    drawn = [with_failures(idle(100, 10), seed, failures).outages for seed in (1, 1, 2)]
    assert {outage.nodes for outage in drawn[0]} == {
        ("n0", "n1", "n2", "n3"),
        ("n4", "n5", "n6", "n7"),
        ("n8", "n9"),
    }
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mtbf=1",
        "mtbf=0 mttr=1",
        "mtbf=1 mttr=x",
        "mtbf=1 mttr=1 mttr=2",
        "mtbf=9 mttr=9 group=1.5",
        "mtbf=9 mttr=.",
        "a",
    ],
)
def test_what_no_failures_are(text: str) -> None:
    """Both means are needed, all numbers are above 0, and each name is there once."""
    with pytest.raises(ValueError, match="Expected"):
        Failures.of(text)


def test_more_failures_than_anybody_reads_are_refused() -> None:
    """They would fill the memory."""
    with pytest.raises(ValueError, match="at most 1000000 failures"):
        with_failures(idle(3000), 0, Failures(mtbf=60, mttr=1))


def test_what_runs_on_a_node_that_fails_is_cut_short() -> None:
    """The judge reads the outages of the workload, and finds no fault with the runs that were cut short."""
    workload = with_failures(eurora_stream(60, 1), 1, Failures.of("mtbf=40000 mttr=2000 shape=0.7 group=8"))
    history = played(workload, make_scheduler("easy", {}))
    assert history.record().attempts


def test_walltimes_are_wrong_as_the_model_says() -> None:
    """Work is the same under all models; nobody asks for less than that, or for more than the longest walltime."""
    jobs = lublin(400, 1, nodes=64)
    longest = max(job.walltime for job in jobs.jobs)
    ran = [min(job.runtime or 0, job.walltime) for job in jobs.jobs]
    asked = {}
    for model in ("accurate", "f=3", "modal"):
        made = with_walltimes(jobs, 5, model)
        assert made == with_walltimes(jobs, 5, model)
        assert [job.runtime for job in made.jobs] == ran
        asked[model] = [job.walltime for job in made.jobs]
        assert all(time <= walltime <= longest for time, walltime in zip(ran, asked[model], strict=True))
    assert asked["accurate"] == ran
    factors = [walltime / time for time, walltime in zip(ran, asked["f=3"], strict=True) if 1000 < time < longest / 4]
    assert fmean(factors) == pytest.approx(2.5, abs=0.2)
    assert 1 < min(factors) < 1.2 < 3.8 < max(factors) <= 4.01
    assert set(asked["modal"]) <= {60 * minutes for minutes in MODES} | {longest}
    assert 0.15 < asked["modal"].count(longest) / 400 < 0.35
    assert with_walltimes(jobs, 6, "f=3") != with_walltimes(jobs, 5, "f=3")


@pytest.mark.parametrize("model", ["exact", "f", "f=", "f=-1", "f=inf", "g=2"])
def test_what_no_model_is(model: str) -> None:
    """A model is one of three."""
    with pytest.raises(ValueError, match="Expected accurate, modal, or f=NUMBER"):
        with_walltimes(idle(1), 0, model)


def test_what_changes_or_runs_keeps_its_walltime() -> None:
    """So does a job of which nobody knows how long it runs."""
    workload = idle(1)
    assert with_walltimes(workload, 0, "modal") == workload
    known = replace(workload, jobs=tuple(replace(job, runtime=5) for job in workload.jobs))
    assert with_walltimes(known, 0, "accurate").jobs[0].walltime == 5
