"""Jobs of a log in Standard Workload Format, made into windows and workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cpsched.domain import Amounts, Chunk, Queue
from cpsched.formats.logs import LogAnomaly, LogOptions, MemoryField, Selection, log_to_instance
from cpsched.formats.swf import read_swf
from tests.formats.swf_logs import LOG, line, log_of, machine, write
from tests.sizes import some


def test_window_has_all_that_a_planner_needs(tmp_path: Path) -> None:
    """Job 7 asks for 8 processors of 4096 KB for 600 s; of job 9 only what it got and its run time (SD-13)."""
    log = read_swf(write(tmp_path / "log.swf", LOG))
    window = log_to_instance(log, machine("q1", "q2"))
    first, second, third = window.instance.jobs
    assert (first.id, first.user, first.group, first.queue, first.submit) == ("7", "u12", "g3", "q1", 0)
    assert (first.walltime, first.runtime) == (600, 300)
    (chunk,) = first.request.chunks
    assert chunk == Chunk(count=8, resources=Amounts({"cores": 1, "mem": 4}))
    assert (second.queue, second.submit, second.group, second.runtime) == ("q2", 60, None, None)
    assert (third.queue, third.walltime, third.request.chunks[0].count) == ("short", 90, 3)
    assert window.instance.now == 120
    assert window.instance.queues["short"].expected_wait == 1800
    assert window.left_out == ()
    assert [str(fault) for fault in window.adjusted] == [
        "line 8: job 8: nothing says how long it runs: runtime is left out",
        "line 10: job 9: field 8 (requested processors), unknown, is no size: the 3 that it got are",
        "line 10: job 9: requests no walltime: the run time 90 is",
    ]
    assert window.counts == {
        LogAnomaly.RUNTIME_UNKNOWN: 1,
        LogAnomaly.WALLTIME_IS_RUNTIME: 1,
        LogAnomaly.SIZE_IS_WHAT_IT_GOT: 1,
    }


def test_queue_classes_follow_the_walltime(tmp_path: Path) -> None:
    """Up to an hour is short, up to six hours medium, beyond long, with 1800, 21600 and 86400 s of expected wait."""
    walltimes = (3600, 3601, 21600, 21601)
    log = log_of(tmp_path, *(line(number=number, time=time, queue=3) for number, time in enumerate(walltimes)))
    instance = log_to_instance(log, machine("q1")).instance
    assert [job.queue for job in instance.jobs] == ["short", "medium", "medium", "long"]
    assert [instance.expected_wait(job) for job in instance.jobs] == [1800, 21600, 21600, 86400]


def test_declared_class_keeps_its_expected_wait(tmp_path: Path) -> None:
    """Where the cluster file declares ``short``, its own figure holds."""
    instance = log_to_instance(log_of(tmp_path, line()), machine("short")).instance
    assert instance.queues == {"short": Queue(expected_wait=99)}


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"procs": 0, "got": -1}, "field 8 (requested processors), 0 and field 5 (processors), unknown are no size"),
        ({"time": -1, "run": 0}, "requests no walltime, and has no run time"),
        (
            {"status": 3},
            "field 11 (status), 3, is that of a part of a job that was swapped or checkpointed, not of a job",
        ),
        (
            {"procs": 2_000_000},
            "field 8 (requested processors), 2000000, is 2000000 chunks, of which there are at most 10^6",
        ),
        (
            {"mem": 10**14},
            "field 10 (requested memory), 100000000000000, is 97656250000 MiB for a chunk, of which there are at most "
            "2147483647",
        ),
    ],
)
def test_unusable_jobs_are_left_out_in_words(tmp_path: Path, columns: dict[str, int], reason: str) -> None:
    """A job without size or time, or beyond the bounds of the documents, is reported; the others are taken."""
    window = log_to_instance(log_of(tmp_path, line(number=1, **columns), line(number=2)), machine())
    assert [job.id for job in window.instance.jobs] == ["2"]
    assert list(window.instance.queues) == ["short"]
    assert [str(fault) for fault in window.left_out] == [f"line 1: job 1: {reason}"]
    assert window.adjusted == ()


def test_job_far_beyond_the_others_is_left_out(tmp_path: Path) -> None:
    """Submit times that lie 10^13 s apart cannot stand in one document."""
    window = log_to_instance(log_of(tmp_path, line(), line(number=2, submit=10**13)), machine())
    assert [job.id for job in window.instance.jobs] == ["1"]
    assert "more than 10^12 s after the first one" in window.left_out[0].message


def test_second_job_of_a_number_is_left_out(tmp_path: Path) -> None:
    """Ids are unique in an instance, so the second line of a number is reported."""
    window = log_to_instance(log_of(tmp_path, line(), line(submit=5)), machine())
    assert [job.submit for job in window.instance.jobs] == [0]
    assert str(window.left_out[0]) == "line 2: job 1: occurs twice; the first one is taken"
    assert window.counts == {LogAnomaly.TWICE: 1}


def test_whole_node_chunks_hold_all_processors(tmp_path: Path) -> None:
    """9 processors at 4 cores per chunk are 3 chunks; 1000 KB per processor are 4000 KB per chunk, 4 MiB rounded up."""
    window = log_to_instance(log_of(tmp_path, line(procs=9, mem=1000)), machine(), LogOptions(cores_per_chunk=4))
    (chunk,) = window.instance.jobs[0].request.chunks
    assert chunk == Chunk(count=3, resources=Amounts({"cores": 4, "mem": 4}))


def test_memory_as_bytes_per_job(tmp_path: Path) -> None:
    """64 GiB for 64 processors are 1024 MiB for each; on nodes without ``mem`` memory does not count."""
    log = log_of(tmp_path, line(procs=64, mem=64 * 2**30))
    window = log_to_instance(log, machine(), LogOptions(memory_field=MemoryField.BYTES_PER_JOB))
    assert window.instance.jobs[0].request.chunks[0].resources == {"cores": 1, "mem": 1024}
    without = log_to_instance(log, machine(mem=None), LogOptions(memory_field=MemoryField.BYTES_PER_JOB))
    assert without.instance.jobs[0].request.chunks[0].resources == {"cores": 1}


def test_window_is_chosen_by_index_and_by_submit_time(tmp_path: Path) -> None:
    """Of submits 0, 10, …, 90 the range [20, 80) has 20 … 70; three of them from the second on are 30, 40, 50."""
    log = log_of(tmp_path, *(line(number=number, submit=10 * number) for number in range(10)))
    window = log_to_instance(log, machine(), LogOptions(selection=Selection(submitted=(20, 80), first=1, jobs=3)))
    assert [job.id for job in window.instance.jobs] == ["3", "4", "5"]
    assert [job.submit for job in window.instance.jobs] == [0, 10, 20]
    assert window.instance.now == 20
    assert window.kept_out == {"submitted": 4, "first and jobs": 3}
    assert log_to_instance(log, machine(), LogOptions(selection=Selection(jobs=2)), now=100).instance.now == 100
    assert log_to_instance(log, machine(), LogOptions(selection=Selection(first=10))).instance.jobs == ()


def test_senseless_choices_are_refused(tmp_path: Path) -> None:
    """Negative indices, empty ranges and a machine with jobs are a programmer's mistakes."""
    log = log_of(tmp_path, line())
    for choice in ({"first": -1}, {"jobs": 0}, {"submitted": (5, 5)}):
        with pytest.raises(ValueError, match="need"):
            Selection(**choice)
    with pytest.raises(ValueError, match="need"):
        log_to_instance(log, machine(), LogOptions(cores_per_chunk=0))
    with pytest.raises(ValueError, match="already has jobs"):
        log_to_instance(log, log_to_instance(log, machine()).instance)


#: Jobs of the logs here, none of them faulty, and how many of the first thousand cannot be taken.
REAL = {
    "CEA-Curie-2011-2.1-cln.firsthalf": 99765,
    "CTC-SP2-1996-3.1-cln.firsthalf": 39791,
    "HPC2N-2002-2.2-cln.firsthalf": 90204,
    "KTH-SP2-1996-2.1-cln.firsthalf": 13651,
    "MetaCentrum-wagap-2013.firsthalf": 5801,
    "RICC-2010-2.firsthalf": 150328,
    "SDSC-SP2-1998-4.2-cln.firsthalf": 37201,
    "Theta-2023-jan": 2849,
    "Theta-2023.firsthalf": 8978,
    "lublin_256": 10000,
}


@pytest.mark.large
@pytest.mark.parametrize("name", REAL)
def test_real_logs_are_read_whole(shared_data: Path, name: str) -> None:
    """Every line is a job, and of a thousand consecutive jobs each is taken or left out with a reason."""
    log = read_swf(shared_data / "logs" / f"{name}.swf.gz")
    assert (len(log.jobs), log.faults) == (REAL[name], ())
    metacentrum = name.startswith("MetaCentrum")
    memory_field = MemoryField.BYTES_PER_JOB if metacentrum else MemoryField.KB_PER_PROCESSOR
    window = log_to_instance(
        log, machine(), LogOptions(selection=Selection(first=500, jobs=1000), memory_field=memory_field)
    )
    assert len(window.instance.jobs) + len(window.left_out) == 1000
    assert len(window.instance.jobs) >= 990
    assert window.instance.now == max(job.submit for job in window.instance.jobs)


def test_filters_have_names_and_count(tmp_path: Path) -> None:
    """Status, queue and partition choose jobs; -1 is what is unknown, and each filter says how many it kept out."""
    log = log_of(
        tmp_path,
        line(number=1, status=1, queue=2, part=1),
        line(number=2, status=5, queue=2, part=1),
        line(number=3, status=-1, queue=1, part=1),
        line(number=4, status=1, queue=2, part=3),
    )

    def taken(**filters: Any) -> tuple[list[str], dict[str, int]]:
        window = log_to_instance(log, machine(), LogOptions(selection=Selection(**filters)))
        return [job.id for job in window.instance.jobs], dict(window.kept_out)

    assert taken(statuses=(1, -1)) == (["1", "3", "4"], {"status": 1})
    assert taken(queues=(2,), partitions=(1,)) == (["1", "2"], {"queue": 1, "partition": 1})
    assert taken() == (["1", "2", "3", "4"], {})


def test_a_workload_is_still_to_come(tmp_path: Path) -> None:
    """All jobs arrive from now on, with a runtime: 0 s are one, a job of which none is known is left out."""
    log = log_of(
        tmp_path,
        line(number=1, submit=50, run=20),
        line(number=2, submit=70, run=0),
        line(number=3, submit=80, run=-1),
        line(number=4, submit=90, run=99),
    )
    workload = log_to_instance(log, machine(), arriving=True)
    jobs = workload.instance.jobs
    assert workload.instance.now == 0
    assert [(job.id, job.submit, job.walltime, job.runtime) for job in jobs] == [
        ("1", 0, 60, 20), ("2", 20, 60, 1), ("4", 40, 60, 99)]  # fmt: skip
    assert [str(fault) for fault in workload.left_out] == ["line 3: job 3: nothing says how long to simulate it"]
    assert [str(fault) for fault in workload.adjusted] == [
        "line 2: job 2: runs for less than a second: its runtime is 1"
    ]


def test_submits_out_of_order_are_sorted_in(tmp_path: Path) -> None:
    """Jobs stand by their submit times, those of one time by their lines, and who was late in the log is named."""
    submits = (50, 70, 50, 60)
    log = log_of(tmp_path, *(line(number=number, submit=submit) for number, submit in enumerate(submits)))
    window = log_to_instance(log, machine())
    assert [(job.id, job.submit) for job in window.instance.jobs] == [("0", 0), ("2", 0), ("3", 10), ("1", 20)]
    assert [str(fault) for fault in window.adjusted] == [
        "line 3: job 2: is submitted at 50, before 70, as a job above is: sorted in",
        "line 4: job 3: is submitted at 60, before 70, as a job above is: sorted in",
    ]


def test_jobs_larger_than_the_machine_are_named(tmp_path: Path) -> None:
    """Of 64 cores and 4096 MiB a node: who asks for more is taken all the same, and will never run."""
    log = log_of(tmp_path, line(number=1, procs=64), line(number=2, procs=65), line(number=3, mem=4097 * 1024))
    window = log_to_instance(log, machine())
    assert len(window.instance.jobs) == 3
    assert [str(fault) for fault in window.oversized] == [
        "line 2: job 2: asks for 65 chunks of cores=1, of which 64 have room",
        "line 3: job 3: asks for 2 chunks of cores=1:mem=4097, of which 0 have room",
    ]
    assert window.counts == {LogAnomaly.TOO_LARGE: 2}


def test_jobs_that_are_alike_share_what_they_ask_for(tmp_path: Path) -> None:
    """A whole log has few different requests, users and queues: each stands in memory once."""
    log = log_of(tmp_path, line(number=1), line(number=2), line(number=3, time=70))
    first, second, third = log_to_instance(log, machine()).instance.jobs
    assert first.steps is second.steps
    assert first.steps[0].request is third.steps[0].request
    assert first.user is second.user
    assert first.queue is third.queue


@pytest.mark.slow
@pytest.mark.parametrize("name", some([*REAL], 3))
def test_real_logs_become_workloads(shared_data: Path, name: str) -> None:
    """Every job of a whole log is taken or left out with a reason, and is given as many cores as it asked for."""
    log = read_swf(shared_data / "logs" / f"{name}.swf.gz")
    assert (len(log.jobs), log.faults) == (REAL[name], ())
    workload = log_to_instance(log, machine(mem=None), arriving=True)
    jobs = workload.instance.jobs
    assert len(jobs) + len(workload.left_out) == len(log.jobs)
    assert len(workload.left_out) == {"SDSC-SP2-1998-4.2-cln.firsthalf": 3426, "MetaCentrum-wagap-2013.firsthalf": 2,
                                      "CEA-Curie-2011-2.1-cln.firsthalf": 17}.get(name, 0)  # fmt: skip
    assert all(job.runtime is not None for job in jobs)
    assert [job.submit for job in jobs] == sorted(job.submit for job in jobs)


def test_jobs_wait_for_their_preceding_jobs_if_asked_to(tmp_path: Path) -> None:
    """Fields 17 and 18: the job before that is known, and the seconds after its end; others are done without."""
    lines = [
        line(number=1, prev=1),
        line(number=2, submit=5, prev=1, think=30),
        line(number=3, submit=6, prev=2),
        line(number=4, submit=7, prev=1, think=-1),
        line(number=5, submit=8, prev=9, think=5),
    ]
    log = log_of(tmp_path, *lines)
    assert not any(job.after for job in log_to_instance(log, machine()).instance.jobs)
    window = log_to_instance(log, machine(), LogOptions(dependencies=True))
    assert [[(link.job, link.type, link.delay) for link in job.after] for job in window.instance.jobs] == [
        [],
        [("1", "afterany", 30)],
        [("2", "afterany", 0)],
        [("1", "afterany", 0)],
        [],
    ]
    assert window.counts == {LogAnomaly.WAITS: 3, LogAnomaly.NOT_SIMULATED: 1}
    assert "line 2: job 2: waits for job 1, and 30 s more" in map(str, window.adjusted)
