"""What the site decided counts: Slurm's priorities, nice, tiers, heterogeneous jobs, preemption, on a real Slurm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cpsched.site.bridge import JobState
from tests.bridge.slurm.laboratory import Laboratory
from tests.bridge.slurm.site import Site
from tests.bridge.slurm.test_slurm_steering import assert_all_run, block, factors, submit, wait_until_held

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

MakeSite = Callable[..., Site]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeSite]:
    """Make sites of a Slurm, planned by Smith's rule; their processes end with the test."""
    made: list[Site] = []

    def one(lab: Laboratory, steering: str, *choices: str, hold: int = 60) -> Site:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        site = Site(lab, folder, steering=steering, engine="wspt_list", hold=hold)
        site.path.write_text(site.path.read_text().replace("[planning]", "\n".join((*choices, "[planning]"))))
        made.append(site)
        return site

    yield one
    for site in made:
        site.end()


def _in_order(lab: Laboratory, jobs: list[str]) -> list[str]:
    """Return jobs in the order of their starts."""
    facts = lab.manager.snapshot().jobs
    return sorted(jobs, key=lambda job: facts[job].start or 0)


def test_nice_counts_and_heterogeneous_jobs_have_a_place(accounting: Laboratory, make: MakeSite) -> None:
    """Of equals the one that is nice is last, whatever came first; a heterogeneous job that is short is first."""
    site = make(accounting, "order")
    blocker = block(site, 6)  # in more than ten minutes starts count roughly
    (nice,) = submit(site, 1, "--nice=9000", "--time=100")
    usual = submit(site, 2, "--time=100")
    part = ("--nodes=4", "--exclusive", "--time=1", "--uid=games", "--chdir=/")
    joined = accounting.submit(*part, ":", *part, seconds=1)
    (later,) = submit(site, 1, "--begin=now+10", "--time=1")
    daemon = site.daemon()
    second = str(int(joined) + 1)
    accounting.wait(lambda: {joined, second} <= factors(accounting).keys())
    accounting.wait(lambda: later in factors(accounting))  # as soon as it may start
    accounting.run("scancel", blocker)
    assert_all_run(site, [nice, *usual, joined, second, later])
    order = _in_order(accounting, [nice, *usual, joined, later])
    assert order[-1] == nice
    assert set(order[:2]) == {joined, later}
    more = submit(site, 4, "--time=100", seconds=30)
    site.stop(daemon)
    assert factors(accounting) == {}
    accounting.run("scancel", *more)


@pytest.mark.parametrize(("influence", "order"), [(0, "bdca"), (0.5, "dbca"), (1, "dcba")])
def test_influence_is_how_far_the_order_of_slurm_is_left(
    accounting: Laboratory, make: MakeSite, influence: float, order: str
) -> None:
    """With 0 nothing is added to any priority and jobs start in Slurm's order, with 1 the shortest first, with a half
    the shortest of each half.
    """
    site = make(accounting, "order", f"influence = {influence}")
    blocker = block(site, 6)  # in more than ten minutes starts count roughly
    ways = {"b": (0, 3), "d": (100, 1), "c": (200, 2), "a": (300, 4)}
    jobs = {name: submit(site, 1, f"--nice={nice}", f"--time={time}")[0] for name, (nice, time) in ways.items()}
    daemon = site.daemon()
    cycles = site.metric("cpsched_cycles_total")
    accounting.wait(lambda: site.metric("cpsched_cycles_total") >= cycles + 2)
    assert bool(factors(accounting)) is (influence > 0)
    accounting.run("scancel", blocker)
    assert_all_run(site, [*jobs.values()])
    names = {job: name for name, job in jobs.items()}
    assert "".join(names[job] for job in _in_order(accounting, [*names])) == order
    site.stop(daemon)


def test_a_raised_priority_frees_a_held_job(accounting: Laboratory, make: MakeSite) -> None:
    """With exact steering too an administrator's Priority says what is next: the job is handed back, and starts."""
    site = make(accounting, "exact")
    blocker = block(site)
    jobs = [*submit(site, 1, "--time=200", seconds=900), *submit(site, 1, "--time=1")]
    daemon = site.daemon()
    wait_until_held(site, jobs)
    accounting.run("scontrol", "update", f"JobId={jobs[0]}", "Priority=1000000")
    accounting.wait(lambda: {job for job, _, note in site.waiting() if not note} == {jobs[0]})
    accounting.run("scancel", blocker)
    accounting.wait(lambda: accounting.facts(jobs[0]).state is not JobState.WAITING)
    assert accounting.facts(jobs[1]).state is JobState.WAITING
    accounting.run("scancel", jobs[0])
    assert_all_run(site, jobs[1:])
    site.stop(daemon)


def test_a_slurm_that_adds_nothing_to_priorities(lab: Laboratory, make: MakeSite) -> None:
    """With priority/basic --check and the daemon say what to do, and Slurm runs its jobs."""
    site = make(lab, "order")
    assert site.start("--check").wait(120) == 1
    site.start()
    jobs = submit(site, 2)
    lab.wait(lambda: "priority/multifactor" in site.log())
    assert_all_run(site, jobs)


@pytest.fixture
def preempting(accounting: Laboratory) -> Iterator[Laboratory]:
    """Return a Slurm in which jobs of one partition are preempted by those of all others."""
    path = accounting.directory / "etc" / "slurm.conf"
    text = path.read_text()
    parts = text.replace("State=UP PriorityTier", "State=UP PreemptMode=OFF PriorityTier")
    parts += "PartitionName=scavenge Nodes=ALL DefaultTime=10 State=UP PriorityTier=1 PreemptMode=REQUEUE\n"
    for new in (f"PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n{parts}", text):
        accounting.script("kill", "slurmctld")
        path.write_text(new)
        accounting.script("revive", "slurmctld")
        accounting.wait(lambda: "idle" in accounting.run("sinfo", "-h", is_fine=False))
        if new is not text:
            yield accounting
            accounting.run("scancel", *accounting.run("squeue", "--noheader", "--format=%A").split(), is_fine=False)
            accounting.wait(lambda: not accounting.run("squeue", "--noheader", "--format=%A").split())


def test_slurm_preempts_where_only_the_order_is_planned(preempting: Laboratory, make: MakeSite) -> None:
    """A job that may preempt starts at once, by Slurm's doing; one that may be preempted is planned, and loses."""
    site = make(preempting, "order")
    (low,) = submit(site, 1, "--partition=scavenge", "--time=20", "--requeue", seconds=60)
    daemon = site.daemon()
    preempting.wait(lambda: preempting.facts(low).state is JobState.RUNNING)
    (high,) = submit(site, 1, "--time=5")
    preempting.wait(lambda: preempting.facts(high).state is not JobState.WAITING)
    preempting.wait(lambda: preempting.facts(high).state is JobState.COMPLETED)
    assert preempting.facts(low).restarts == 1
    assert "JobStopped" not in site.log()
    site.stop(daemon)


def _run_all(site: Site, *jobs: tuple[str, ...]) -> list[str]:
    """Submit long jobs that have their nodes for themselves, each once the one before runs, and return their ids."""
    found = []
    for one in jobs:
        found.append(site.submit("--exclusive", "--time=20", *one, seconds=600))
        site.lab.wait(lambda: site.lab.facts(found[-1]).state is JobState.RUNNING)
    return found


def test_exact_steering_requeues(preempting: Laboratory, make: MakeSite) -> None:
    """For an urgent job the daemon stops one that may be requeued, and no other; that one runs again afterwards."""
    site = make(preempting, "exact")
    daemon = site.daemon()
    jobs = ("-pscavenge", "-N3", "--requeue"), ("-pscavenge", "-N3", "--no-requeue"), ("-pnormal", "-N2")
    low, never, off = _run_all(site, *jobs)
    assert preempting.raw(low)["required_nodes"]
    high = site.submit("-purgent", "-N2", "--exclusive", "--time=1", seconds=8)
    preempting.wait(lambda: preempting.facts(high).state is JobState.RUNNING)
    facts = preempting.manager.snapshot().jobs
    assert [facts[job].restarts for job in (low, never, off)] == [1, 0, 0]
    assert preempting.raw(low)["required_nodes"] == ""
    preempting.wait(lambda: preempting.facts(high).state is JobState.COMPLETED)
    preempting.wait(lambda: preempting.facts(low).state is JobState.RUNNING)
    assert preempting.facts(low).restarts == 1
    assert site.runs() == {low: 2, never: 1, off: 1, high: 1}
    (said,) = [line for line in site.log().splitlines() if "JobStopped" in line]
    assert f'"{low}"' in said
    assert f'"{high}"' in said
    preempting.run("scancel", low, never, off)
    site.stop(daemon)


def test_a_daemon_that_is_killed_when_it_has_requeued(preempting: Laboratory, make: MakeSite) -> None:
    """Nobody starts the urgent job by an order: its hold ends, and both jobs run by Slurm's own rules."""
    site = make(preempting, "exact", hold=12)
    daemon = site.daemon()
    (low,) = _run_all(site, ("-pscavenge", "-N8", "--requeue"))
    high = site.submit("-purgent", "-N8", "--exclusive", "--time=1", seconds=1)
    preempting.wait(lambda: preempting.facts(low).restarts == 1)
    daemon.kill()
    preempting.wait(lambda: preempting.facts(high).state is JobState.COMPLETED)
    preempting.wait(lambda: preempting.facts(low).state is JobState.RUNNING)
    preempting.run("scancel", low)
