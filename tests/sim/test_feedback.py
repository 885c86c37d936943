"""Users who submit jobs after the ends of earlier ones: dependencies of a log, and submissions in the simulation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.domain import Dependency, DependencyType, FrozenMap, Instance, MaxWait, Queue
from cpsched.errors import DocumentError, UnsupportedError
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.formats.logs import LogOptions, read_workload
from cpsched.formats.swf import write_swf
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import Checkpoint, History, simulate
from cpsched.metrics import Ending, log_rows
from cpsched.verify import verify
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.sim.test_textbook import crowd_of_equals
from tests.sizes import some

FEEDBACK = LogOptions(feedback=True)


def log_under_easy(seed: int, path: Path) -> None:
    """Write the log of a crowd of five users under EASY."""
    crowd = crowd_of_equals(seed, "cores")
    jobs = tuple(replace(job, user=f"user{number * seed % 5}") for number, job in enumerate(crowd.jobs, start=seed))
    runs = simulate(replace(crowd, jobs=jobs), make_scheduler("easy", {})).runs
    cores = crowd.cluster.totals["cores"]
    write_swf(path, log_rows(runs), header={"MaxNodes": str(cores // 4), "MaxProcs": str(cores)})


def played(workload: Instance, policy: str) -> History:
    """Play a workload with feedback; the judge finds no fault in what happened."""
    history = simulate(workload, make_scheduler(policy, {}), feedback=True)
    assert not verify(instance_to_document(history.workload), plan_to_document(history.record()))
    return history


@pytest.mark.parametrize("seed", some(range(1, 21), 5))
def test_under_the_policy_that_made_the_log_feedback_changes_nothing(seed: int, tmp_path: Path) -> None:
    """Under EASY jobs of a log of EASY are submitted and start in the seconds of the log."""
    log = tmp_path / "log.swf"
    log_under_easy(seed, log)
    workload, notes = read_workload(log, FEEDBACK)
    assert any(job.after for job in workload.jobs)
    runs = played(workload, "easy").runs
    assert runs.submit.tolist() == [job.submit for job in workload.jobs]
    assert dict(zip(runs.ids, runs.start.tolist(), strict=True)) == notes.starts


@pytest.mark.parametrize("policy", ["fcfs", "smith", "slurm", "conservative", "conservative_on_nodes", "planner"])
def test_jobs_are_submitted_after_the_ends_of_others(policy: str, tmp_path: Path) -> None:
    """Under every kind of scheduler a job follows the simulated end, and waits only from then on."""
    log = tmp_path / "log.swf"
    log_under_easy(3, log)
    workload, _ = read_workload(log, FEEDBACK)
    history = played(workload, policy)
    runs = history.runs
    end, submit = (dict(zip(runs.ids, times.tolist(), strict=True)) for times in (runs.end, runs.submit))
    assert runs.over.all()
    for job in workload.jobs:
        expected = [end[link.job] + link.delay for link in job.after] or [job.submit]
        assert submit[job.id] == expected[0]
    assert [job.submit for job in history.workload.jobs] == runs.submit.tolist()
    if policy == "fcfs":
        in_order = sorted(range(len(runs)), key=lambda job: (runs.submit[job], job))
        assert sorted(runs.start.tolist()) == [runs.start[job] for job in in_order]
        assert submit != {job.id: job.submit for job in workload.jobs}
        open_system = simulate(workload, make_scheduler(policy, {})).runs
        assert open_system.submit.tolist() == [job.submit for job in workload.jobs]


def swf(*jobs: tuple[int, int, int, int]) -> str:
    """Return a log of jobs of one core: submission, wait, run time, user."""
    lines = (
        f"{number} {s} {w} {r} 1 -1 -1 1 {r} -1 1 {u} -1 -1 -1 -1 -1 -1" for number, (s, w, r, u) in enumerate(jobs, 1)
    )
    return "\n".join(["; MaxNodes: 4", "; MaxProcs: 4", *lines, ""])


def test_what_follows_what(tmp_path: Path) -> None:
    """A batch follows the job of the one before that ended last; a long break, another user, or overlap is no cause."""
    log = tmp_path / "log.swf"
    log.write_text(
        swf(
            (0, 0, 100, 1),  # a batch of two, of which the first one ends last, at 100
            (10, 5, 20, 1),
            (50, 0, 10, 2),
            (130, 0, 50, 1),  # 30 s later the next batch, of two
            (140, 0, 10, 1),
            (1380, 0, 10, 1),  # 1200 s after its end at 180: still the same session
            (2591, 0, 10, 1),  # 1201 s later
        )
    )
    jobs = read_workload(log, FEEDBACK)[0].jobs
    follows = {job.id: [(link.job, link.delay) for link in job.after] for job in jobs if job.after}
    assert follows == {"4": [("1", 30)], "5": [("1", 40)], "6": [("4", 1200)]}
    assert not any(job.after for job in read_workload(log)[0].jobs)


def test_what_no_feedback_can_be_had_of(tmp_path: Path) -> None:
    """A log that does not say when jobs started is refused; so are a hard max_wait, and a checkpoint."""
    log = tmp_path / "log.swf"
    log.write_text(swf((0, -1, 100, 1)))
    with pytest.raises(DocumentError, match="when jobs started"):
        read_workload(log, FEEDBACK)
    first = waiting("a", 10, chunk(1, cores=1))
    link = Dependency(job="a", type=DependencyType.AFTERANY)
    one = window([nodes("n", cores=1)], first, replace(first, id="b", after=(link,)))
    with pytest.raises(UnsupportedError, match="checkpoint"):
        simulate(
            one, make_scheduler("easy", {}), feedback=True, checkpoint=Checkpoint(path=tmp_path / "c", scheduler="easy")
        )
    hard = FrozenMap({"q": Queue(expected_wait=10, max_wait=MaxWait(seconds=100, is_hard=True))})
    bound = replace(one, queues=hard, jobs=tuple(replace(job, queue="q") for job in one.jobs))
    with pytest.raises(UnsupportedError, match="hard max_wait"):
        simulate(bound, make_scheduler("easy", {}), feedback=True)


def test_what_follows_a_job_that_never_runs_is_never_submitted() -> None:
    """It is not started, and does not wait."""
    big, small = waiting("a", 10, chunk(1, cores=2)), waiting("c", 10, chunk(1, cores=1))
    link = Dependency(job="a", type=DependencyType.AFTERANY)
    one = window([nodes("n", cores=1)], big, replace(small, id="b", after=(link,)), small)
    runs = played(one, "easy").runs
    assert [Ending(ending) for ending in runs.ending.tolist()] == [Ending.REFUSED, Ending.WAITING, Ending.COMPLETED]
    assert runs.submit[1] > runs.end[2]
