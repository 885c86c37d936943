"""More of the kinds of `test_reports.py`, with small answers made here. A node has 16 CPUs and 64,000 MiB."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

import cpsched
from cpsched.domain import FrozenMap, Preemption
from cpsched.site.bridge import Snapshot, pbs, slurm
from cpsched.site.bridge.slurm import preflight
from cpsched.site.bridge.slurm.json_reader import read_answer
from cpsched.site.bridge.slurm.preflight import _is_operator, _preemption
from cpsched.site.bridge.slurm.snapshot import SnapshotMaker
from cpsched.site.bridge.slurm.steering import Leaving
from cpsched.site.bridge.slurm.text_reader import read_text
from tests.bridge.pbs.test_pbs_reading import job as pbs_job
from tests.bridge.pbs.test_pbs_reading import node as pbs_node
from tests.bridge.slurm.answers import NOW, node, running, text_2205, waiting
from tests.bridge.test_reports import Seen, planned

HOUR = 3600
#: How the jobs of partitions are preempted, as ``scontrol show partition`` says it.
MODES = {"scavenge": "REQUEUE"}
WEIGHTS = {"PriorityWeightAge": "1000", "PriorityWeightTRES": "CPU=500,Mem=500", "PriorityFlags": ""} | dict.fromkeys(
    (f"PriorityWeight{name}" for name in ("Assoc", "FairShare", "JobSize", "Partition", "QOS")), "0"
)


def part(name: str = "normal", nodes: str = "n[1-2]", **fields: Any) -> dict[str, Any]:
    """Return a partition as 22.05 has it."""
    return {"name": name, "nodes": nodes, "max_time_limit": -1, "priority_tier": 1, "state": "UP", **fields}


def hour(number: int, **fields: Any) -> dict[str, Any]:
    """Return a waiting job of an hour."""
    return waiting(number, **{"time_limit": 60, **fields})


def reserved(name: str, nodes: str, **fields: Any) -> dict[str, Any]:
    """Return a reservation for bob that began a minute ago, and ends in two hours."""
    times = {"start_time": NOW - 60, "end_time": NOW + 2 * HOUR}
    return {"name": name, "node_list": nodes, "users": "bob", "flags": ["SPEC_NODES"], **times, **fields}


def of_slurm(*jobs: dict[str, Any], **answer: Any) -> Seen:
    """Plan some jobs on two nodes, or on what is given."""
    said = {"nodes": [node("n1"), node("n2")], "partitions": [part()], **answer, "jobs": list(jobs)}
    return planned(slurm.make_snapshot(read_answer(said, "test"), NOW, name="kinds"))


def of_configured(
    config: dict[str, str], *jobs: dict[str, Any], only_ranks: bool = False, **answer: Any
) -> dict[str, str]:
    """Return why jobs are left to a Slurm with this configuration."""
    said = {"nodes": [node("n1"), node("n2")], "partitions": [part()], **answer, "jobs": list(jobs)}
    records = replace(read_answer(said, "test"), config=config)
    snapshot = SnapshotMaker(only_ranks=only_ranks).make(records, NOW)
    assert all(one.is_for_manager for one in snapshot.left)
    return {one.id: one.reason for one in snapshot.left}


def of_pbs(nodes: dict[str, Any], resvs: dict[str, Any] | None = None, **jobs: dict[str, Any]) -> Seen:
    """Plan jobs of PBS, named j1 and so on, on some vnodes."""
    qstat = {"timestamp": NOW, "Jobs": {f"{name[1:]}.srv": one for name, one in jobs.items()}}
    answers = (qstat, {"timestamp": NOW, "nodes": nodes}, {"resvs": resvs or {}})
    return planned(pbs.make_snapshot(*answers, zone=UTC, name="kinds"))


@pytest.mark.parametrize(
    "answer",
    [
        {"nodes": [node("n1", gres="tmp:1860G"), node("n2")]},
        {"licenses": [{"LicenseName": name, "Total": 4} for name in ("gpus", "cores", "place", "jobs", "*")]},
        {"nodes": [node("n1", gres="tmp:2"), node("n2")], "licenses": [{"LicenseName": "tmp", "Total": 1}]},
        {"nodes": [node("n1"), node("n2"), node("bad name")]},
        {"nodes": [node("n1"), node("n2"), node("n2")]},
        {"nodes": [node("n1"), node("n2"), node("n3", "HAPPY")]},
        {"nodes": [node("n1"), node("n2"), node("n3", gres="a:b:c:d:2")]},
        {"partitions": [part(), part("x" * 300)]},
        {"reservations": [reserved("r", "n9"), reserved("s", "n["), reserved("t" * 300, "n2")]},
        {"reservations": [{"name": "r", "node_list": "n2"}, reserved("s", "n2", users="ada")]},
        {"reservations": [{"name": "r", "node_list": "n2"}]},
    ],
)
def test_one_bad_record_stops_nobody(answer: dict[str, Any]) -> None:
    """Whatever is odd in one record, the only one of its kind too, the other job starts at once."""
    assert of_slurm(hour(1), **answer).starts["1"] == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"cpus": 2**40, "tasks": 2**40},
        {"node_count": 2**40},
        {"memory_per_node": 2**50},
        {"time_limit": 2**40},
        {"array_job_id": 2, "array_task_string": "0-99999999"},
    ],
)
def test_counts_beyond_all_bounds_cost_their_job(fields: dict[str, Any]) -> None:
    """They are not counted out: the job is left with a reason, and the other one starts."""
    seen = of_slurm(hour(1), hour(2, **fields))
    assert (seen.starts, {*seen.left}) == ({"1": 0}, {"2"})


def test_a_job_may_wait_for_one_with_a_higher_number() -> None:
    """An update can give a job such a dependency; for a circle both are left."""
    after = {"dependency": "afterany:5(unfulfilled)"}
    seen = of_slurm(running(5, "n1", {"n1": (1, 100)}, time_limit=60), hour(1, **after))
    assert seen.starts["1"] == HOUR - 60
    seen = of_slurm(hour(1, **after), hour(5, dependency="afterok:1(unfulfilled)"), hour(7))
    assert ({*seen.left}, seen.starts) == ({"1", "5"}, {"7": 0})


def test_the_first_known_of_several_reservations() -> None:
    """A job that names several runs in one of them, and one that names none that is known is left."""
    jobs = [hour(number, user_name="bob", resv_name=name) for number, name in ((1, "gone,r"), (2, "gone,lost"))]
    seen = of_slurm(*jobs, reservations=[reserved("r", "n2")])
    assert (seen.nodes["1"], seen.starts["1"], {*seen.left}) == (("n2",), 0, {"2"})


def test_a_type_that_only_the_job_is_told_takes_nothing() -> None:
    """A node whose GPUs have no type is not overcommitted by a job that is told one."""
    held = running(9, "n1", {"n1": (1, 100)}, time_limit=60, gres_detail=["gpu:k20:1(IDX:0)"])
    seen = of_slurm(
        held, hour(1, tres_per_node="gres:gpu:1"), nodes=[node("n1", gres="gpu:2")], partitions=[part(nodes="n1")]
    )
    assert seen.starts["1"] == 0


def test_large_counts_are_kept() -> None:
    """Of 1,860 GB two jobs of 1,000 GB each cannot run at the same time."""
    nodes = [node("n1", gres="tmp:1860G")]
    jobs = [hour(number, tres_per_node="gres:tmp:1000G") for number in (1, 2)]
    seen = of_slurm(*jobs, nodes=nodes, partitions=[part(nodes="n1")])
    assert sorted(seen.starts.values()) == [0, HOUR]


def test_a_gres_that_cannot_be_read_costs_itself() -> None:
    """The node has all else, and it is said; of what is not consumed there is enough for each job."""
    nodes = [node("n1", gres="a:b:c:d:2,gpu:2,bandwidth:lustre:no_consume:4G")]
    jobs = [hour(number, tres_per_node="gres:gpu:1,gres:bandwidth:lustre:3G") for number in (1, 2)]
    seen = of_slurm(*jobs, nodes=nodes, partitions=[part(nodes="n1")])
    assert seen.starts == {"1": 0, "2": 0}
    assert "a:b:c:d:2" in seen.notes


def test_a_job_on_a_lost_node_is_left_and_the_others_are_planned() -> None:
    """A running job on a node that cannot be in an instance is left out."""
    nodes = [node("n1"), node("n?")]
    seen = of_slurm(running(1, "n?", {"n?": (16, 100)}), hour(2), nodes=nodes, partitions=[part(nodes="n1")])
    assert (seen.starts, {*seen.left}) == ({"2": 0}, {"1"})
    assert "n?" in seen.notes


@pytest.mark.parametrize(
    ("fields", "totals"),
    [
        ({"tres_per_task": "cpu:3", "tasks": 2, "cpus": 6, "cpus_per_task": 3}, {"cores": 6}),
        ({"tres_per_task": "cpu=2,gres/gpu:k20=1", "tasks": 2, "cpus": 4}, {"cores": 4, "gpus": 2}),
        ({"tasks": 8, "cpus": 2}, {"cores": 2}),  # --overcommit
        ({"tres_per_job": "gres/gpu=6", "tasks": 6, "cpus": 6}, {"cores": 6, "gpus": 6}),
        ({"tres_per_job": "gres/gpu=5", "node_count": 2, "cpus": 2, "tasks": 2}, {"cores": 2, "gpus": 5}),
        ({"tasks": 28, "cpus": 28}, {"cores": 28}),
        ({"tasks": 30, "cpus": 30, "memory_per_cpu": 4000}, {"cores": 30}),
        ({"tasks": 4, "cpus": 4, "threads_per_core": 1}, {"cores": 4}),
        ({"tasks": 4, "cpus": 4, "tasks_per_core": 1}, {"cores": 4}),
    ],
)
def test_amounts_are_what_slurm_gives(fields: dict[str, Any], totals: dict[str, int]) -> None:
    """On two nodes with four GPUs each the job starts at once with these amounts."""
    nodes = [node(name, gres="gpu:k20:4") for name in ("n1", "n2")]
    seen = of_slurm(hour(1, **fields), nodes=nodes)
    assert seen.starts == {"1": 0}
    got = seen.instance.jobs[0].request.totals
    assert {name: got[name] for name in totals} == totals


def test_many_tasks_fill_nodes_of_several_sizes() -> None:
    """Forty tasks on nodes with 16, 16 and 8 CPUs are not evenly divided, and run."""
    nodes = [node("n1"), node("n2"), node("n3", cpus=8)]
    seen = of_slurm(hour(1, tasks=40, cpus=40), nodes=nodes, partitions=[part(nodes="n[1-3]")])
    assert (seen.starts["1"], len(seen.nodes["1"])) == (0, 3)
    assert seen.instance.jobs[0].request.totals["cores"] == 40


def test_limits_of_partitions_are_kept() -> None:
    """MaxNodes, MaxCPUsPerNode over several jobs and nodes, MaxTime where nothing is said, and closed partitions."""
    wide = hour(1, node_count=2, cpus=2, tasks=2)
    for key in ("max_nodes_per_job", "maximum_nodes_per_job"):  # scontrol, and slurmrestd of 22.05
        assert "MaxNodes" in of_slurm(wide, partitions=[part() | {key: 1}]).left["1"]
    assert len(of_slurm(hour(1), partitions=[part() | {"min nodes per job": 2}]).nodes["1"]) == 2
    jobs = [running(9, "n1", {"n1": (4, 100)}, time_limit=60), *(hour(number, cpus=4, tasks=4) for number in (1, 2, 3))]
    seen = of_slurm(*jobs, partitions=[part(max_cpus_per_node=4)])
    assert sorted(seen.starts[name] for name in "123") == [0, HOUR - 60, HOUR]
    seen = of_slurm(hour(1, time_limit=None), partitions=[part(max_time_limit=30)])
    assert seen.instance.jobs[0].walltime == 1800
    for state in ("DOWN", "INACTIVE"):
        assert state in of_slurm(hour(1), partitions=[part(state=state)]).left["1"]
    assert of_slurm(hour(1), partitions=[part(state="DRAIN")]).starts == {"1": 0}


def test_a_node_of_one_user_is_shared_by_nobody_else() -> None:
    """With ExclusiveUser jobs of two users are on two nodes, or one after the other."""
    jobs = [hour(1, user_name="ann"), hour(2, user_name="bob"), hour(3, user_name="cat")]
    seen = of_slurm(*jobs, partitions=[part(flags=["exclusive user"])])
    assert sorted(seen.starts.values()) == [0, 0, HOUR]


def test_licences_in_use_elsewhere_are_not_given() -> None:
    """Of four licences three are used by nobody here: a job for one starts, a job for two is left out."""
    said = [{"LicenseName": "matlab", "Total": 4, "Used": 0, "Free": 1, "Remote": True}]
    seen = of_slurm(hour(1, licenses="matlab"), hour(2, licenses="matlab:2"), hour(3, licenses="matlab"), licenses=said)
    assert sorted(seen.starts.values()) == [0, HOUR]
    assert "elsewhere" in seen.left["2"]
    mine = running(9, "n1", {"n1": (1, 100)}, licenses="matlab:3", time_limit=60)
    assert of_slurm(mine, hour(1, licenses="matlab"), licenses=said).starts["1"] == 0


def test_reservations_of_several_kinds() -> None:
    """FLEX lets jobs in before its begin and elsewhere; OVERLAP shares a node with another one; MAINT is closed."""
    bob = {"user_name": "bob"}
    flex = reserved("f", "n1", flags=["FLEX"], start_time=NOW + HOUR // 2)
    seen = of_slurm(
        hour(1, resv_name="f", **bob), hour(2, cpus=16, tasks=16), hour(3, cpus=16, tasks=16), reservations=[flex]
    )
    assert seen.starts["1"] == 0
    assert all(seen.nodes[name] == ("n2",) or seen.starts[name] >= 2 * HOUR for name in "23")
    two = [reserved("a", "n1"), reserved("b", "n1", flags=["OVERLAP"], users="cat")]
    seen = of_slurm(
        hour(1, resv_name="a", **bob),
        hour(2, resv_name="b", user_name="cat"),
        hour(3, required_nodes="n1"),
        reservations=two,
    )
    assert (seen.starts["1"], seen.starts["2"], seen.starts["3"]) == (0, 0, 2 * HOUR)
    seen = of_slurm(hour(3, required_nodes="n1"), reservations=[reserved("m", "n1", flags=["MAINT"], users="root")])
    assert seen.starts["3"] == 2 * HOUR


def test_cores_of_nodes_with_threads_are_reserved() -> None:
    """Two of eight cores are four of sixteen CPUs, said core by core or in all."""
    parts = {"nodes": [node("n1", threads=2)], "partitions": [part(nodes="n1")]}
    for said in ({"core_specializations": [{"node": "n1", "core": "0-1"}]}, {"core_count": 2}):
        jobs = [hour(1, cpus=12, tasks=12), hour(2, cpus=4, tasks=4)]
        seen = of_slurm(*jobs, **parts, reservations=[reserved("c", "n1", **said)])
        assert sorted(seen.starts.values()) == [0, HOUR]
        assert (
            of_slurm(hour(3, cpus=13, tasks=13), **parts, reservations=[reserved("c", "n1", **said)]).starts["3"]
            == 2 * HOUR
        )
    assert of_slurm(hour(1), **parts, reservations=[reserved("c", "n1", core_count=8)]).starts["1"] == 2 * HOUR


def test_a_reservation_keeps_its_free_node_while_another_is_busy() -> None:
    """Of two reserved nodes one is busy still: the other one is for bob at once, and for nobody else."""
    busy = running(9, "n1", {"n1": (16, 100)}, time_limit=60)
    jobs = [hour(1, resv_name="a", user_name="bob", cpus=16, tasks=16), hour(2)]
    seen = of_slurm(busy, *jobs, reservations=[reserved("a", "n[1-2]")])
    assert (seen.starts["1"], seen.nodes["1"], seen.starts["2"]) == (0, ("n2",), 2 * HOUR)


@pytest.mark.parametrize(
    ("flag", "begin", "seconds", "period", "days"),
    [
        ("DAILY", -7 * HOUR - 60, 20 * HOUR, 24 * HOUR, 7),
        ("DAILY", 15 * HOUR + 59 * 60 + 30, 90 * 60, 24 * HOUR, 7),
        ("WEEKDAY", 2 * HOUR, 3 * HOUR, 24 * HOUR, 5),
        ("WEEKEND", 30 * HOUR, 12 * HOUR, 24 * HOUR, 2),
        ("WEEKLY", 3 * HOUR, 40 * HOUR, 168 * HOUR, 7),
        ("HOURLY", 50 * 60, 15 * 60, HOUR, 7),
        ("HOURLY", 600, HOUR, HOUR, 0),
        ("PURGE_COMP", 2 * HOUR, HOUR, HOUR, 0),
    ],
)
def test_a_reservation_that_comes_again_is_kept_free_each_time(
    flag: str, begin: int, seconds: int, period: int, days: int
) -> None:
    """Others start in the first gap that is long enough for them; its own jobs run the first time.

    The twin goes from time to time, on a Friday morning; in whole minutes, as calendars do.
    """
    start, end, found = NOW + begin, NOW + begin + seconds, []
    for at in range(start, NOW + 15 * 24 * HOUR, period):
        of_week = (at // (24 * HOUR) + 3) % 7  # Monday is 0
        if at == start or days == 7 or (days and (of_week < 5) is (days == 5)):
            found.append((at if at == start else at // 60 * 60, end if at == start else -(-(at + seconds) // 60) * 60))
    for walltime in (30, 800, 4000)[: 2 if period == HOUR else 3]:
        free = NOW
        for first, last in sorted(found):
            if first < free + walltime * 60:
                free = max(free, last)
        others = {"required_nodes": "n1", "time_limit": walltime}
        again = [reserved("a", "n1", flags=[flag, "SPEC_NODES"], start_time=start, end_time=end)]
        seen = of_slurm(waiting(1, **others), hour(2, resv_name="a", user_name="bob"), reservations=again)
        if flag == "HOURLY" and not days:  # always
            free = NOW if walltime * 60 <= begin else NOW + 14 * 24 * HOUR
        assert seen.starts["1"] + NOW == free or min(seen.starts["1"] + NOW, free) >= NOW + 14 * 24 * HOUR, walltime
        assert "2" not in seen.starts or start - NOW <= seen.starts["2"] <= end - NOW - HOUR
        assert ("2" in seen.starts) is (seconds >= HOUR)


def test_a_choice_is_one_inside_a_reservation_and_in_large_counts() -> None:
    """Where no node has room for all of its tasks a job starts at once on two; components of a job make no choice."""
    choice = {"user_name": "bob", "cpus": 16, "tasks": 16, "max_nodes": 2}
    busy = [running(number, f"n{number}", {f"n{number}": (8, 100)}, time_limit=60) for number in (1, 2)]
    seen = of_slurm(*busy, hour(3, resv_name="a", **choice), hour(4), reservations=[reserved("a", "n[1-2]")])
    assert (seen.starts["3"], seen.nodes["3"], seen.starts["4"]) == (0, ("n1", "n2"), 2 * HOUR)
    nodes = [node(name, gres="tmp:1860G") for name in ("n1", "n2")]
    seen = of_slurm(*busy, hour(3, tres_per_node="gres:tmp:1000G", **choice), nodes=nodes)
    assert (seen.starts["3"], seen.nodes["3"]) == (0, ("n1", "n2"))
    parts = [hour(3, het_job_id=3, **choice), hour(4, het_job_id=3, het_job_offset=1)]
    assert of_slurm(*busy, *parts).starts["3"] == HOUR - 60


def test_magnetic_jobs_may_be_elsewhere() -> None:
    """A job of a magnetic reservation's users runs in it and beside it; a job of another user beside it only."""
    jobs = [hour(number, user_name="bob", cpus=16, tasks=16) for number in (1, 2)]
    seen = of_slurm(*jobs, hour(3, cpus=16, tasks=16), reservations=[reserved("a", "n1", flags=["MAGNETIC"])])
    assert (seen.starts["1"], seen.starts["2"]) == (0, 0)
    assert seen.starts["3"] == HOUR
    assert seen.nodes["3"] == ("n2",)


def test_partitions_that_differ_are_tried_in_turn() -> None:
    """A job that is too long for the partition of the higher tier is in the other one; alike ones are one."""
    parts = [part(nodes="n1"), part("short", "n2", max_time_limit=30, priority_tier=9)]
    seen = of_slurm(hour(1, partition="short,normal"), partitions=parts)
    assert (seen.starts, seen.nodes["1"]) == ({"1": 0}, ("n1",))
    alike = [part(nodes="n1"), part("more", "n2")]
    jobs = [hour(number, cpus=16, tasks=16, partition="normal,more") for number in (1, 2)]
    seen = of_slurm(*jobs, hour(3, cpus=16, tasks=16), partitions=alike)
    assert sorted(seen.starts.values()) in ([0, 0, HOUR], [0, HOUR, HOUR])


def test_one_of_several_features() -> None:
    """A node has one of the features, in brackets also beside another one that all have."""
    nodes = [node("n1", active_features="a,x"), node("n2", active_features="b")]
    for text, names in (("a|b", ("n1", "n2")), ("b|c", ("n2",)), ("x&(a|c)", ("n1",)), ("[b|c]", ("n2",))):
        seen = of_slurm(hour(1, features=text), nodes=nodes)
        assert seen.starts == {"1": 0}
        assert set(seen.nodes["1"]) <= set(names), text
    seen = of_slurm(hour(1, features="[a*1&b*1]", node_count=2, cpus=2, tasks=2), nodes=nodes)
    assert (seen.starts["1"], sorted(seen.nodes["1"])) == (0, ["n1", "n2"])
    assert "1" in of_slurm(hour(1, features="a*2", node_count=2, cpus=2, tasks=2), nodes=nodes).waiting_room


#: A partition of the lowest tier, one above it on its node, and one on another node.
TIERS = part("scavenge", "n1"), part("upper", "n1", priority_tier=2), part("apart", "n2", priority_tier=2)
PREEMPTING = {"PreemptType": "preempt/partition_prio"}


@pytest.mark.parametrize("mode", ["SUSPEND", "GANG,SUSPEND", "CANCEL", "REQUEUE", "GANG,REQUEUE"])
@pytest.mark.parametrize("grace", [0, 30])
def test_partitions_that_preempt_are_left_to_slurm_where_it_does_not_requeue_at_once(mode: str, grace: int) -> None:
    """Jobs that may preempt others are not held; those that may be preempted, or are on other nodes, are planned."""
    jobs = [hour(number, partition=one["name"]) for number, one in enumerate(TIERS, 1)]
    parts = [{**one, "preempt_mode": mode, "grace_time": grace} for one in TIERS]
    left = of_configured(PREEMPTING, *jobs, partitions=parts)
    assert {*left} == (set() if mode.endswith("REQUEUE") and not grace else {"2"})
    assert all("scavenge" in reason for reason in left.values())
    assert of_configured(PREEMPTING, *jobs, partitions=parts, only_ranks=True) == {}
    assert of_configured({"PreemptType": "preempt/none"}, *jobs, partitions=parts) == {}


def of_preempting(*jobs: dict[str, Any], only_ranks: bool = False, **more: Any) -> Snapshot:
    """Return the snapshot of a Slurm in which jobs of the lowest tier are requeued for others."""
    every = (*TIERS, part("x" * 300, "n1", priority_tier=3))  # a name that no instance may have
    parts = [{**one, "preempt_mode": MODES.get(one["name"], "OFF")} for one in every]
    said = {"nodes": [node("n1"), node("n2")], "partitions": parts, "jobs": list(jobs)}
    records = replace(read_answer(said, "test"), config={**PREEMPTING, "PreemptExemptTime": "00:02:00"})
    return SnapshotMaker(slurm.SlurmModel(kind="slurm", **more), only_ranks=only_ranks).make(records, NOW)


def test_partitions_whose_jobs_are_requeued_are_planned_as_what_they_are() -> None:
    """The instance says whose jobs may be stopped for whose, and after how long; with ranks alone it does not."""
    there = of_preempting(hour(1, partition="upper")).instance
    assert there.preemption == Preemption(queues=FrozenMap({"upper": ("scavenge",)}), notice=1, exempt=120)
    assert of_preempting(only_ranks=True).instance.preemption is None
    leaving = Leaving(slurm.SlurmModel(kind="slurm"), {}, 0, is_exact=True, preemption=there.preemption)
    (found,) = _preemption(leaving)
    assert found.is_fine
    assert all(name in found.said for name in ("scavenge", "upper"))
    left = of_preempting(hour(1, partition="upper"), leave_partitions=("scavenge",))
    assert (left.instance.preemption, [one.id for one in left.left]) == (None, ["1"])


@pytest.mark.parametrize(
    ("fields", "is_stopped"),
    [
        ({}, True),
        ({"requeue": False}, False),
        ({"batch_flag": False}, False),
        ({"partition": "upper"}, False),
        ({"comment": "no-cpsched"}, False),
        ({"account": "ops"}, False),
        ({"het_job_id": 3}, False),
        ({"job_state": "SUSPENDED"}, False),
        ({"job_state": "COMPLETING"}, False),
    ],
)
def test_running_jobs_that_may_be_requeued(fields: dict[str, Any], *, is_stopped: bool) -> None:
    """Batch jobs that Slurm may queue again, of a partition whose jobs are requeued, unless nobody steers them."""
    asked = {"partition": "scavenge", "requeue": True, "batch_flag": True, **fields}
    seen = of_preempting(running(3, "n1", {"n1": (16, 100)}, time_limit=60, **asked), leave_accounts=("ops",))
    (job,) = seen.instance.jobs
    assert (job.preemptible is not None) is is_stopped


@pytest.mark.parametrize("fields", [{"deadline": NOW + 9999}, {"partition": "upper,apart"}])
def test_jobs_for_which_plans_stop_none_stay_slurms(fields: dict[str, Any]) -> None:
    """One with a deadline or a choice is not held, since Slurm may stop others for it."""
    (left,) = of_preempting(hour(1, **{"partition": "upper", **fields})).left
    assert left.is_for_manager


def test_the_text_of_scontrol_says_what_may_be_requeued() -> None:
    """Of a job by two flags, of a partition by its mode, and by the seconds before which its jobs are told."""
    text = "PartitionName=low\n   Nodes=n1 GraceTime=30 PreemptMode=GANG,REQUEUE\n   State=UP\n"
    (found,) = read_text(text, "test").partitions
    assert (found.preemption, found.grace) == ("GANG,REQUEUE", 30)
    jobs = text_2205()["jobs.txt"]
    assert all(one.can_requeue for one in read_text(jobs, "test").jobs)
    for flag in ("Requeue", "BatchFlag"):
        assert not any(one.can_requeue for one in read_text(jobs.replace(f"{flag}=1", f"{flag}=0"), "test").jobs)


def test_a_planned_stop_is_one_that_the_verifier_allows() -> None:
    """A plan of such a snapshot stops the running job for the waiting one, a second from now."""
    low = running(3, "n1", {"n1": (16, 100)}, time_limit=600, partition="scavenge", requeue=True, batch_flag=True)
    low |= {"start_time": NOW - 200, "end_time": NOW + 9999}
    there = of_preempting(low, hour(4, partition="upper", time_limit=5)).instance
    plan = cpsched.solve(replace(there, has_strict_priorities=True), engine="planner", budget=0)
    assert [(one.id, one.end) for one in plan.attempts] == [("3", NOW + 1)]
    assert next(one.start for one in plan.jobs if one.id == "4") == NOW + 1
    (found,) = of_preempting({**low, "start_time": NOW - 60}, hour(4, partition="upper")).instance.jobs[:1]
    assert found.preemptible is not None


def test_partitions_that_share_their_cpus_are_left_to_slurm() -> None:
    """Slurm may start their jobs on CPUs that others have, which no plan does; what runs so is planned around."""
    text = "PartitionName=normal\n   Nodes=n[1-2] OverSubscribe={}\n   State=UP\n"
    counts = {"NO": 1, "FORCE:1": 1, "YES:4": 1, "EXCLUSIVE": 1, "FORCE:4": 4}
    assert {said: read_text(text.format(said), "test").partitions[0].shares for said in counts} == counts
    most = {"oversubscribe": {"jobs": 4, "flags": ["force"]}}
    newer = {"name": "normal", "nodes": {"configured": "n[1-2]"}, "partition": {"state": ["UP"]}, "maximums": most}
    for shared in (part(shares=4), newer):
        assert {*of_configured({}, hour(1), partitions=[shared])} == {"1"}
        assert of_configured({}, hour(1), partitions=[shared], only_ranks=True) == {}
    both = [running(number, "n1", {"n1": (16, 100)}, time_limit=60) for number in (5, 6)]
    assert of_slurm(*both, hour(1)).nodes["1"] == ("n2",)


@pytest.mark.parametrize(
    ("config", "raised"),
    [
        ({"PriorityType": "priority/multifactor", **WEIGHTS}, True),
        ({"PriorityType": "priority/multifactor", **WEIGHTS, "PriorityFlags": "NO_NORMAL_ALL"}, False),
        ({"PriorityType": "priority/basic"}, False),
        ({"PriorityType": "priority/multifactor"}, False),
    ],
)
def test_a_raised_priority_is_obeyed(config: dict[str, str], raised: bool) -> None:
    """A job whose priority is beyond all that Slurm adds up is Slurm's."""
    left = of_configured(config, hour(1, priority=2000), hour(2, priority=2001))
    assert {*left} == ({"2"} if raised else set())


def test_components_in_several_partitions_are_left() -> None:
    """They cannot be one job; components of several nodes are on different nodes."""
    parts = [part(), part("more", "n2")]
    jobs = [hour(1, het_job_id=1), hour(2, het_job_id=1, partition="more", het_job_offset=1)]
    assert {*of_slurm(*jobs, hour(3), partitions=parts).left} == {"1", "2"}
    jobs = [hour(1, het_job_id=1, cpus=16, tasks=16), hour(2, het_job_id=1, cpus=16, tasks=16)]
    seen = of_slurm(*jobs, hour(3, cpus=16, tasks=16, user_name="x"))
    assert (seen.starts["1"], seen.starts["3"]) == (0, HOUR)
    assert sorted(seen.nodes["1"]) == ["n1", "n2"]


def test_tasks_of_two_arrays_wait_for_each_other_one_by_one() -> None:
    """With aftercorr task 2 waits for task 2, which runs; a task whose counterpart is over starts."""
    first = running(5, "n1", {"n1": (1, 100)}, array_job_id=5, array_task_id=2, time_limit=60)
    second = hour(7, array_job_id=7, array_task_string="1-2", dependency="aftercorr:5_*(unfulfilled)")
    seen = of_slurm(first, second)
    assert (seen.starts["7_1"], seen.starts["7_2"]) == (0, HOUR - 60)


def vnodes(*names: str, **fields: Any) -> dict[str, Any]:
    """Return vnodes with 8 CPUs; what is before a bracket is the host."""
    return {name: pbs_node(ncpus=8, host=name.partition("[")[0]) | fields for name in names}


def asks(select: str, place: str = "free", **fields: Any) -> dict[str, Any]:
    """Return a job of an hour."""
    return pbs_job(listed={"select": select, "place": place}, **fields)


def test_vnodes_of_several_hosts() -> None:
    """Scatter is over hosts and vscatter over vnodes; a chunk larger than a vnode is on one host, packed ones too."""
    nodes = vnodes("uv[13]", "uv[14]", "h2[0]", "h2[1]")
    seen = of_pbs(
        nodes, j1=asks("2:ncpus=4", "scatter"), j2=asks("4:ncpus=2", "vscatter"), j3=asks("3:ncpus=2", "scatter")
    )
    assert (seen.starts["1.srv"], seen.starts["2.srv"]) == (0, 0)
    assert {name.partition("[")[0] for name in seen.nodes["1.srv"]} == {"uv", "h2"}
    assert {*seen.nodes["2.srv"]} == {*nodes}
    assert "3.srv" in seen.waiting_room
    seen = of_pbs(nodes, j1=asks("1:ncpus=16:mem=1gb"), j2=asks("2:ncpus=6", "pack"), j3=asks("2:ncpus=12", "scatter"))
    for name in ("1.srv", "2.srv"):
        assert len({one.partition("[")[0] for one in seen.nodes[name]}) == 1
    assert seen.starts["3.srv"] >= HOUR


def test_sharing_of_vnodes() -> None:
    """A forced vnode is never shared, an ignoring one always; shared jobs share vnodes with default_excl."""

    def starts(sharing: str, place: str) -> list[int]:
        seen = of_pbs(vnodes("n1", sharing=sharing), j1=asks("1:ncpus=2", place), j2=asks("1:ncpus=2", place))
        return sorted(seen.starts.values())

    assert starts("force_excl", "free:shared") == [0, HOUR]
    assert starts("default_exclhost", "pack") == [0, HOUR]
    assert starts("default_shared", "pack:exclhost") == [0, HOUR]
    assert starts("default_excl", "free:shared") == [0, 0]
    assert starts("ignore_excl", "free:excl") == [0, 0]


def test_resources_of_a_site() -> None:
    """Consumables are used up, a boolean that is not set is false, and one value of an array has to match."""
    nodes = {"n1": pbs_node(ncpus=8, scratch="10gb", big="True", q="a,b"), "n2": pbs_node(ncpus=8, q="b")}
    seen = of_pbs(
        nodes,
        j1=asks("1:ncpus=1:scratch=6gb"),
        j2=asks("1:ncpus=1:scratch=6gb:mpiprocs=1"),
        j3=asks("1:ncpus=1:big=False"),
        j4=asks("1:ncpus=1:big=true:q=a"),
        j5=asks("1:ncpus=8:q=b:ompthreads=8", "free:excl"),
    )
    assert sorted(seen.starts[name] for name in ("1.srv", "2.srv")) == [0, HOUR]
    assert (seen.nodes["3.srv"], seen.nodes["4.srv"]) == (("n2",), ("n1",))
    assert "5.srv" in seen.starts


def test_held_jobs_of_pbs() -> None:
    """A job that its user holds too is held; one that waits for an array waits for all of its tasks."""
    array = asks("1:ncpus=1", array="True", array_indices_remaining="1-2")
    array |= {"job_state": "Q"}
    nodes = vnodes("n1")
    jobs = {
        "j2": asks("1:ncpus=1", job_state="H", Hold_Types="us", depend="afterok:1[].srv@srv"),
        "j3": asks("1:ncpus=1", job_state="H", Hold_Types="s", depend="afterany:1[].srv@srv"),
    }
    qstat = {"timestamp": NOW, "Jobs": {"1[].srv": array, **{f"{key[1:]}.srv": one for key, one in jobs.items()}}}
    seen = planned(pbs.make_snapshot(qstat, {"nodes": nodes}, zone=UTC, name="kinds"))
    assert {*seen.left} == {"2.srv"}
    assert seen.starts["3.srv"] == HOUR


def test_reservations_of_pbs_with_times() -> None:
    """Half of a node is reserved from now on: others have the other half until the reservation ends."""
    resv = {"reserve_start": NOW - 60, "reserve_end": NOW + 2 * HOUR, "resv_nodes": "(n1:ncpus=4)"}
    nodes = {"n1": pbs_node(ncpus=8) | {"resv": "R7.srv"}}
    seen = of_pbs(nodes, {"R7.srv": resv}, j1=asks("1:ncpus=4"), j2=asks("1:ncpus=4", queue="R7"), j3=asks("1:ncpus=8"))
    assert (seen.starts["1.srv"], seen.starts["2.srv"], seen.starts["3.srv"]) == (0, 0, 2 * HOUR)
    assert not seen.notes


@pytest.mark.parametrize("resv", [{"reserve_start": "soon"}, {"reserve_end": "Fri Jan 15 x", "reserve_start": NOW}, 7])
def test_a_reservation_of_pbs_that_cannot_be_read(resv: Any) -> None:
    """It costs that reservation, with the reason: its nodes are for its jobs only, and all others are planned."""
    nodes = {"n1": pbs_node(ncpus=8) | {"resv": "R7.srv"}, "n2": pbs_node(ncpus=8)}
    seen = of_pbs(nodes, {"R7.srv": resv}, j1=asks("1:ncpus=4"), j2=asks("1:ncpus=8"))
    assert sorted(seen.starts.values()) == [0, HOUR]
    assert "R7.srv" in seen.notes
    assert "cannot be read" in seen.notes


def test_what_nobody_lists_is_held_for_as_long_as_it_may_take() -> None:
    """Without any job that explains them CPUs are held for a year, and jobs are on the rest."""
    nodes = {"n1": pbs_node(ncpus=8) | {"resources_assigned": {"ncpus": 6, "mem": "0kb"}}}
    held = asks("1:ncpus=2", job_state="R", exec_vnode="(n1:ncpus=2)", stime="Fri Jan 15 08:00:00 2027")
    seen = of_pbs(nodes, j1=held, j2=asks("1:ncpus=2"), j3=asks("1:ncpus=4"))
    assert (seen.starts["2.srv"], seen.starts["3.srv"]) == (0, HOUR)
    assert "4 cores" in seen.notes


def test_one_bad_record_of_pbs_stops_nobody() -> None:
    """A vnode in an unknown state counts as down, a job that cannot be read is left out, and both are said."""
    seen = of_pbs(
        {**vnodes("n1"), "n2": pbs_node("dancing")}, j1=asks("1:ncpus=1"), j2=pbs_job(job_state="Z"), j3=asks("+")
    )
    assert seen.starts == {"1.srv": 0}
    assert {*seen.left} == {"2.srv", "3.srv"}
    assert "n2" in seen.notes


def test_tasks_at_a_time_of_pbs() -> None:
    """With max_run_subjobs at most two tasks of an array run at once; one that no answer lists counts too.

    So it is with what ``qsub -J`` was given.
    """
    array = asks("1:ncpus=1", array="True", array_indices_remaining="3-6", max_run_subjobs=2) | {"job_state": "B"}
    new = asks("1:ncpus=1", array="True", array_indices_submitted="1-4%2")
    qstat = {"timestamp": NOW, "Jobs": {"1[].srv": new}}
    seen = planned(pbs.make_snapshot(qstat, {"nodes": vnodes("n1")}, zone=UTC, name="kinds"))
    assert sorted(seen.starts.values()) == [0, 0, HOUR, HOUR]
    one = asks("1:ncpus=1", job_state="R", exec_vnode="(n1:ncpus=1)", stime="Fri Jan 15 08:00:00 2027")
    unseen = vnodes("n1", resources_assigned={"ncpus": 1}, jobs=["1[2].srv/0"])
    for listed, nodes in (({"1[2].srv": one}, vnodes("n1")), ({}, unseen)):
        qstat = {"timestamp": NOW, "Jobs": {"1[].srv": array, **listed}}
        seen = planned(pbs.make_snapshot(qstat, {"nodes": nodes}, zone=UTC, name="kinds"))
        assert sorted(seen.starts[f"1[{task}].srv"] for task in range(3, 7)) == [0, HOUR, HOUR, 2 * HOUR]


@pytest.mark.parametrize(("assigned", "starts"), [(3, [0, HOUR]), (5, [HOUR, 2 * HOUR]), (None, [0, 0])])
def test_resources_of_the_server_of_pbs(assigned: int | None, starts: list[int]) -> None:
    """Of 5 seats the running job has 3, and one that nobody lists the rest or none; each waiting job wants 2."""
    place = {"job_state": "R", "exec_vnode": "(n1:ncpus=1)", "stime": "Fri Jan 15 08:00:00 2027"}
    running = pbs_job(listed={"select": "1:ncpus=1", "seat": 3}, **place)
    jobs = {f"{number}.srv": pbs_job(listed={"select": "1:ncpus=1", "seat": 2}) for number in (2, 3)}
    qstat = {"timestamp": NOW, "Jobs": {"1.srv": running, **jobs}}
    server = {"srv": {"resources_available": {"seat": 5}, "resources_assigned": {"seat": assigned}}}
    answers = qstat, {"nodes": vnodes("n1")}, None, {"Server": server if assigned is not None else {}}
    seen = planned(pbs.make_snapshot(*answers, zone=UTC, name="kinds"))
    assert sorted(start for job, start in seen.starts.items() if job != "1.srv") == starts
    assert ("resource seat" in seen.notes) == (assigned is None)


def test_vnodes_of_a_queue() -> None:
    """They take its jobs only, and these are nowhere else; where all are of other queues a job is left."""
    nodes = {**vnodes("n1"), "n2": vnodes("n2", queue="gpuq")["n2"]}
    jobs = {"j1": asks("1:ncpus=8", queue="gpuq"), "j2": asks("1:ncpus=8"), "j3": asks("1:ncpus=8")}
    seen = of_pbs(nodes, **jobs)
    assert (seen.nodes["1.srv"], seen.starts["1.srv"]) == (("n2",), 0)
    assert sorted(seen.starts[name] for name in ("2.srv", "3.srv")) == [0, HOUR]
    assert {*of_pbs({"n2": nodes["n2"]}, **jobs).left} == {"2.srv", "3.srv"}


def test_the_preflight_knows_whom_the_script_lets_steer(tmp_path: Path) -> None:
    """Those whose numbers are in OPERATORS; a script of another make, or on another machine, is not judged."""
    script = tmp_path / "job_submit.lua"
    assert _is_operator(script, 64030)
    own = (Path(preflight.__file__).parent / "job_submit.lua").read_text()
    script.write_text(own)
    assert [_is_operator(script, user) for user in (0, 64030)] == [True, False]
    script.write_text(own.replace("[0] = true", "[0] = true, [64030] = true"))
    assert [_is_operator(script, user) for user in (64030, 6403, 4030)] == [True, False, False]
    script.write_text("return slurm.SUCCESS")
    assert _is_operator(script, 64030)


def test_what_pbs_cannot_mean_costs_its_job() -> None:
    """Counts beyond all bounds and walltimes that are none."""
    bomb = asks("1:ncpus=1", array="True", array_indices_remaining="0-999999999999")
    qstat = {
        "timestamp": NOW,
        "Jobs": {
            "1.srv": asks("1:ncpus=8"),
            "2[].srv": bomb,
            "3.srv": asks("99999999999:ncpus=12"),
            "4.srv": pbs_job(listed={"walltime": "soon"}),
            "5.srv": pbs_job(listed={"walltime": "-1"}),
            "6.srv": pbs_job(listed={"walltime": "90:00.5"}),
        },
    }
    seen = planned(pbs.make_snapshot(qstat, {"nodes": vnodes("h[0]", "h[1]")}, zone=UTC, name="kinds"))
    assert (seen.starts["1.srv"], {*seen.left}) == (0, {"2[].srv", "3.srv", "4.srv", "5.srv"})
    assert "01:00:00" in seen.left["4.srv"]
    assert {job.id: job.walltime for job in seen.instance.jobs}["6.srv"] == 5400
