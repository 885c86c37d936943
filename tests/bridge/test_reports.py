"""Answers of Slurm and PBS made after public reports: each is planned, and what the report says must hold does.

The answers are in `tests/cases/reports`. Starts are seconds after the moment of the snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from itertools import pairwise
from pathlib import Path

import cpsched
from cpsched.domain import Instance
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.site.bridge import Snapshot, pbs, slurm
from cpsched.verify import verify

CASES = Path(__file__).parents[1] / "cases" / "reports"
NOW = 1_800_000_000


@dataclass(frozen=True)
class Seen:
    """What became of the jobs of one snapshot."""

    instance: Instance
    #: Of the jobs that the plan starts or that run: the second, and the nodes.
    starts: dict[str, int]
    nodes: dict[str, tuple[str, ...]]
    #: The reasons of all others.
    left: dict[str, str]
    waiting_room: dict[str, str]
    notes: str


def planned(snapshot: Snapshot) -> Seen:
    """Plan the instance of a snapshot, which the reader of documents accepts, and verify the plan."""
    document = instance_to_document(snapshot.instance)
    parse_instance(document, source="test")
    plan = cpsched.solve(snapshot.instance, engine="planner", budget=1)
    assert verify(document, plan_to_document(plan)) == ()
    return Seen(
        snapshot.instance,
        {job.id: job.start - NOW for job in plan.jobs},
        {job.id: tuple(place.node for place in job.segments[0].allocation) for job in plan.jobs},
        {left.id: left.reason for left in snapshot.left},
        {job.id: job.detail for job in plan.waiting_room},
        "\n".join(map(str, snapshot.notes)),
    )


def case(name: str) -> Seen:
    """Plan the answers of one report."""
    return planned(pbs_of(CASES / name) if name.startswith("pbs") else slurm_of(CASES / name))


def slurm_of(directory: Path) -> Snapshot:
    """Return the snapshot of a directory with answers of Slurm."""
    records = slurm.read_directory(directory, UTC).records
    return slurm.make_snapshot(records, NOW, name="report")


def pbs_of(directory: Path) -> Snapshot:
    """Return the snapshot of a directory with answers of PBS."""
    return pbs.make_snapshot(*pbs.read_directory(directory), zone=UTC, name="report")


def overlap(seen: Seen, *names: str, length: int = 3600) -> bool:
    """Tell whether two of some jobs, all of one length, run at the same time."""
    starts = sorted(seen.starts[name] for name in names)
    return any(after - before < length for before, after in pairwise(starts))


def test_a_job_of_a_maintenance_costs_nobody_else() -> None:
    """A job that names a reservation with MAINT runs in it or is left out; the other job is planned."""
    seen = case("slurm-job-in-maint-reservation.in")
    assert seen.nodes["2"] == ("n2",)
    assert seen.starts["2"] == 0
    assert "1" in seen.left or (seen.starts["1"], seen.nodes["1"]) == (0, ("n1",))


def test_a_licence_may_have_the_name_of_a_resource() -> None:
    """A licence named mem, and the job that asks for it, stop nobody."""
    seen = case("slurm-licence-named-mem.in")
    assert seen.starts == {"1": 0, "3": 0}


def test_reserved_licences_are_for_their_users() -> None:
    """Of four licences three are reserved: their user has two of them at once, the other job waits for the end."""
    seen = case("slurm-licence-reservation.in")
    assert seen.starts == {"1": 7200, "2": 0}


def test_a_doubled_field_costs_its_job() -> None:
    """A name or a submit line that reads like fields costs at most that job."""
    seen = case("slurm-text-doubled-field.in")
    assert seen.starts["3"] == 0
    assert {*seen.starts, *seen.left} == {"1", "2", "3"}


def test_cpus_per_task_may_be_a_tres() -> None:
    """From 23.11 on the CPUs of a task are in TresPerTask, alone or with GPUs."""
    seen = case("slurm-tres-per-task-cpu.in")
    assert not seen.left
    amounts = {job.id: dict(job.request.totals) for job in seen.instance.jobs}
    assert [amounts[name]["cores"] for name in "12345"] == [4, 4, 14, 2, 1]
    assert (amounts["3"]["gpus"], amounts["4"]["gpus"]) == (2, 2)


def test_gpus_of_a_job_are_spread() -> None:
    """Six GPUs on two nodes of four are three on each, or four and two."""
    seen = case("slurm-gpus-of-a-job-on-several-nodes.in")
    assert seen.nodes["1"] == ("n1", "n2")
    job = next(job for job in seen.instance.jobs if job.id == "1")
    assert job.request.totals["gpus"] == 6
    assert {*seen.starts} == {"1", "2", "3", "4"}


def test_without_multithreading_a_task_has_a_core() -> None:
    """Eight tasks on one thread of each core have the node with eight cores for themselves."""
    seen = case("slurm-nomultithread.in")
    assert not overlap(seen, "1", "2")
    assert not seen.left


def test_jobs_have_the_time_of_their_partition() -> None:
    """A job without a time limit has the partition's default time, else its longest."""
    seen = case("slurm-partition-limit-time.t1")
    walltimes = {job.id: job.walltime for job in seen.instance.jobs}
    assert walltimes["2"] == 1800
    assert "3" not in seen.starts
    seen = case("slurm-partition-limit-time.unlimited")
    assert {job.id: job.walltime for job in seen.instance.jobs if job.running is None} == {"2": 1800, "4": 3600}
    assert {*seen.left, *seen.waiting_room} == {"1", "4"}


def test_a_partition_has_so_many_cpus_of_a_node() -> None:
    """With MaxCPUsPerNode=4 the job of eight cannot run, and of the others one at a time."""
    seen = case("slurm-max-cpus-per-node.in")
    assert "1" not in seen.starts
    assert not overlap(seen, "2", "3")


def test_a_partition_that_is_down_starts_nothing() -> None:
    """Jobs of partitions that are DOWN or INACTIVE are left out with the reason."""
    seen = case("slurm-partition-down.in")
    assert {*seen.left} == {"1", "2"}
    assert all("partition" in reason for reason in seen.left.values())
    assert seen.starts == {"3": 0}


def test_what_runs_when_a_reservation_begins_keeps_its_node() -> None:
    """When the running job ends, the node is for the user of the reservation; others wait for its end."""
    seen = case("slurm-reservation-begun-over-running-jobs.in")
    assert (seen.starts["2"], seen.starts["3"]) == (3000, 7200)


def test_a_reservation_keeps_what_a_drained_node_leaves() -> None:
    """The job of the reservation has the node that is left at once, the others share the third."""
    seen = case("slurm-reservation-with-drained-node.in")
    assert (seen.starts["1"], seen.nodes["1"]) == (0, ("n2",))
    assert [seen.nodes[name] for name in "23"] == [("n3",), ("n3",)]


def test_cores_are_reserved() -> None:
    """Four of sixteen cores are reserved: eight are free for another job."""
    seen = case("slurm-core-reservation.in")
    assert seen.starts == {"1": 0, "2": 0}


def test_a_magnetic_reservation_takes_jobs_that_do_not_name_it() -> None:
    """The job of its account starts in it at once; one of another account waits."""
    seen = case("slurm-magnetic-reservation.in")
    assert seen.starts == {"1": 0, "2": 0, "3": 7200}


def test_an_array_has_a_throttle() -> None:
    """At most two tasks run at once, that one included which runs already."""
    seen = case("slurm-array-throttle.in")
    assert {*seen.starts} == {"10_1", "10_5", "10_6", "10_7", "10_8"}
    ends = sorted((start, start + 3600) for start in seen.starts.values())
    assert all(sum(first <= at < end for first, end in ends) <= 2 for at, _ in ends)


def test_tasks_wait_for_their_counterparts() -> None:
    """With aftercorr each task waits for its own counterpart; a job that is no array waits for all."""
    seen = case("slurm-aftercorr.in")
    assert not seen.left
    last = max(start for name, start in seen.starts.items() if name.startswith("10_"))
    assert seen.starts["20"] >= last + 3600


def test_components_start_together() -> None:
    """The components of a heterogeneous job start at the same time, and another job waits for their end."""
    seen = case("slurm-het-job.in")
    assert {*seen.left} == {"31"}
    assert sum(chunk.resources["cores"] for chunk in seen.instance.jobs[0].request.chunks) == 5
    assert (seen.starts["30"], seen.starts["32"]) == (0, 3600)


def test_a_job_of_several_partitions_is_planned() -> None:
    """It starts in one of them."""
    seen = case("slurm-multi-partition.in")
    assert seen.starts == {"1": 0, "2": 0}


def test_groups_of_sinfo_are_read() -> None:
    """From 23.11 on `sinfo --json` has groups of nodes."""
    seen = case("slurm-sinfo-json-groups.in")
    assert seen.instance.cluster.node_names == ("n1", "n2")
    assert dict(seen.instance.cluster.classes[0].resources) == {"cores": 16, "mem": 64000}
    assert seen.instance.queues["work"].max_walltime == 7200


def test_names_of_vnodes_have_brackets() -> None:
    """Vnodes keep their names; a chunk that is too large for one of them may span those of one host."""
    seen = case("pbs-vnode-names-with-brackets.in")
    assert seen.instance.cluster.node_names == ("h1[0]", "h1[1]")
    assert {*seen.nodes["2.pbs"]} == {"h1[0]", "h1[1]"}
    assert {*seen.nodes["1.pbs"]} == {"h1[0]", "h1[1]"}


def test_scatter_is_over_hosts() -> None:
    """Two chunks that are scattered need two hosts, and there is one."""
    assert "1.pbs" in case("pbs-scatter-on-vnodes-of-one-host.in").waiting_room


def test_a_job_has_a_vnode_alone_by_default() -> None:
    """On vnodes with default_excl a job without place=shared shares with nobody."""
    seen = case("pbs-default-excl.in")
    assert {seen.nodes[name] for name in ("2.pbs", "3.pbs") if seen.starts[name] < 3000} <= {("n2",)}
    assert not overlap(seen, "2.pbs", "3.pbs") or seen.nodes["2.pbs"] != seen.nodes["3.pbs"]


def test_held_by_a_dependency_is_waiting() -> None:
    """PBS holds a job whose dependency is not met: it starts when the other one ends."""
    assert case("pbs-dependent-jobs-are-held.in").starts["2.pbs"] == 3000


def test_resources_of_the_site_are_read() -> None:
    """Processes and threads take nothing; consumables count; of a string array one value has to match."""
    seen = case("pbs-mpiprocs-and-own-resources.in")
    jobs = {job.id: job for job in seen.instance.jobs}
    assert jobs["1.pbs"].request.totals["scratch_local"] == 10 * 1024
    assert seen.nodes["1.pbs"] == ("n1",)
    assert seen.starts["1.pbs"] == seen.starts["3.pbs"] == 0
    # three hosts are needed, and two are up
    assert dict(jobs["2.pbs"].request.totals) == {"cores": 3}


def test_reserved_nodes_of_pbs_are_for_their_queue() -> None:
    """The reserved node is not given to other jobs; the job in the reservation's queue has it."""
    seen = case("pbs-reservation-ignored.in")
    assert "1.pbs" not in seen.starts
    assert (seen.starts["2.pbs"], seen.nodes["2.pbs"]) == (0, ("n1",))


def test_what_nobody_lists_is_held() -> None:
    """CPUs that are assigned to subjobs which qstat does not list are not free, and that is said."""
    seen = case("pbs-running-subjobs-unseen.in")
    at_once = [name for name, start in seen.starts.items() if start == 0 and name.startswith("10[")]
    assert len(at_once) <= 4
    assert "n1" in seen.notes
