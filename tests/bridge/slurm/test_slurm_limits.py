"""Limits of QOS and associations: read from slurmctld's own text, kept by plans, and told where they cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cpsched
from cpsched.domain import Plan
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.site.bridge import HandBack, JobState, Result, Snapshot, Start
from cpsched.site.bridge.slurm import make_snapshot, read_directory
from cpsched.site.bridge.slurm.limits import read_limits
from cpsched.verify import verify
from tests.bridge.slurm.answers import NOW, answers_2205, running, waiting, write_answers
from tests.bridge.slurm.conftest import USER
from tests.bridge.slurm.laboratory import Laboratory

#: One QOS or association as scontrol of 22.05 shows it.
SHOWN = """\
    GrpJobs={grp_jobs} GrpJobsAccrue=N(0)
    GrpSubmitJobs=N(0) GrpWall={grp_wall}
    GrpTRES={grp}
    GrpTRESMins={spent}
    GrpTRESRunMins={ahead}
    MaxJobs={jobs} MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ={wall}
    MaxTRESPJ={job}
    MaxTRESPN={node}
    MaxTRESMinsPJ={area}
    MinPrioThresh=
    MinTRESPJ={least}
"""
#: What a QOS shows of accounts and users that have jobs.
EACH = """\
    Account Limits
      physics
        MaxJobsPA={account_jobs} MaxJobsAccruePA=N(0) MaxSubmitJobsPA=N(0)
        MaxTRESPA={account}
    User Limits
      1001
        MaxJobsPU={user_jobs} MaxJobsAccruePU=N(0) MaxSubmitJobsPU=N(0)
        MaxTRESPU={user}
      1002
        MaxJobsPU={user_jobs} MaxJobsAccruePU=N(0) MaxSubmitJobsPU=N(0)
        MaxTRESPU={user}
"""
NONE = dict.fromkeys(("grp_jobs", "account_jobs", "user_jobs"), "N(0)") | {"grp_wall": "N(0.00)"}
FREE = dict.fromkeys(("grp", "spent", "ahead", "account", "user"), "cpu=N(0),mem=N(0),billing=N(0),gres/gpu=N(0)")


def shown(head: str, **fields: str) -> str:
    """Return one record with some limits."""
    given = {**dict.fromkeys(("jobs", "wall", "job", "node", "area", "least"), ""), **NONE, **FREE, **fields}
    is_qos = head.startswith("QOS=")
    return f"{head}\n" + (SHOWN + EACH * is_qos).format(**given)


def account(name: str, parent: str = "root(1)", **fields: str) -> str:
    """Return the association of an account."""
    said = f"ClusterName=lab Account={name} UserName= Partition= Priority=0 ID=6\n    ParentAccount={parent} Lft=2"
    return shown(said, **fields)


def user(name: str, of: str, partition: str = "", **fields: str) -> str:
    """Return the association of a user."""
    said = (
        f"ClusterName=lab Account={of} UserName={name}(1001) Partition={partition} Priority=0 ID=7\n    ParentAccount="
    )
    return shown(said, **fields)


def text(*records: str) -> str:
    """Return what `scontrol show assoc_mgr` prints."""
    associations = "".join(one for one in records if not one.startswith("QOS="))
    qos = "".join(one for one in records if one.startswith("QOS="))
    first = "Current Association Manager state\n\nAssociation Records\n\n"
    names = {one.partition("(")[0] for one in records}
    others = "".join(shown(f"{head}(1)") for head in ("QOS=normal", "QOS=long") if head not in names)
    return f"{first}{account('root', '')}{associations}\nQOS Records\n\n{others}{qos}"


def snapshot(folder: Path, jobs: list[dict[str, Any]], *records: str, partition_qos: str = "") -> Snapshot:
    """Return the snapshot of the small cluster with these jobs and limits; its instance passes the reader."""
    answers = answers_2205()
    answers["squeue.json"] = {**answers["squeue.json"], "jobs": jobs}
    partitions = [{**one, "qos": partition_qos} for one in answers["partitions.json"]["partitions"]]
    answers["partitions.json"] = {**answers["partitions.json"], "partitions": partitions}
    answers["reservations.json"] = {**answers["reservations.json"], "reservations": []}
    write_answers(folder, answers)
    (folder / "limits.txt").write_text(text(*records))
    taken = make_snapshot(read_directory(folder).records, NOW)
    parse_instance(instance_to_document(taken.instance))
    return taken


def planned(taken: Snapshot) -> Plan:
    """Return a verified plan."""
    plan = cpsched.solve(taken.instance, engine="planner")
    assert verify(instance_to_document(taken.instance), plan_to_document(plan)) == ()
    return plan


def takes(taken: Snapshot) -> Mapping[str, Mapping[str, int]]:
    """Return the licences of each job."""
    return {job.id: dict(job.licenses) for job in taken.instance.jobs}


def ada(number: int, **fields: Any) -> dict[str, Any]:
    """Return a job of ada in the account optics, which is below physics."""
    return waiting(number, **{"account": "optics", "qos": "normal", **fields})


ADA, NORMAL = user("ada", "optics"), "QOS=normal(1)"
CHAIN = (account("physics", grp_jobs="3(1)"), account("optics", "physics(6)"))


def test_accounts_hold_with_all_below_them(tmp_path: Path) -> None:
    """A limit of an account counts the running and waiting jobs of the accounts below it, and of no other."""
    jobs = [
        running(1, "m1", {"m1": (4, 400)}, account="optics"),
        *(ada(number, cpus=4, tasks=4) for number in (2, 3)),
        waiting(4, user_name="bob", account="physics", cpus=4, tasks=4),
        waiting(5, user_name="bob", account="staff", cpus=4, tasks=4),
    ]
    records = (account("physics", grp="cpu=8(4),mem=N(400)"), account("optics", "physics(6)"), account("staff"))
    users = (user("ada", "optics"), user("bob", "physics"), user("bob", "staff"))
    taken = snapshot(tmp_path, jobs, *records, *users)
    limit = {"GrpTRES cpu of account physics": 4}
    assert takes(taken) == {"1": limit, "2": limit, "3": limit, "4": limit, "5": {}}
    assert taken.instance.cluster.licenses["GrpTRES cpu of account physics"] == 8
    assert not taken.left
    starts = sorted((job.start - NOW, job.id) for job in planned(taken).jobs if job.id != "1")
    assert [start for start, _ in starts[:2]] == [0, 0]
    assert dict(zip((job for _, job in starts), (start for start, _ in starts), strict=True))["5"] == 0
    assert starts[2][0] >= 540  # job 1 ends then


def test_what_all_jobs_keep_together_is_no_licence(tmp_path: Path) -> None:
    """A limit that the jobs cannot exceed changes nothing; one more job makes it count."""
    records = (*CHAIN, user("ada", "optics"))
    few = takes(snapshot(tmp_path, [ada(number) for number in range(1, 4)], *records))
    assert few == {"1": {}, "2": {}, "3": {}}
    more = takes(snapshot(tmp_path, [ada(number) for number in range(1, 5)], *records))
    assert {tuple(one.items()) for one in more.values()} == {(("GrpJobs of account physics", 1),)}


def test_running_jobs_beyond_a_limit_are_a_fact(tmp_path: Path) -> None:
    """Where a limit was lowered below what runs, nothing else starts before it ends, and the instance can be read."""
    jobs = [running(1, "m1", {"m1": (12, 400)}, account="optics"), ada(2), ada(3)]
    taken = snapshot(tmp_path, jobs, *CHAIN, user("ada", "optics", grp="cpu=2(12)"))
    assert taken.instance.cluster.licenses["GrpTRES cpu of user ada in account optics"] == 12
    assert min(job.start for job in planned(taken).jobs if job.id != "1") == NOW + 540


@pytest.mark.parametrize(
    ("records", "partition_qos", "expected"),
    [
        ((user("ada", "optics", jobs="2(0)"),), "", {"MaxJobs of user ada in account optics": 2}),
        ((user("ada", "optics", jobs="2(0)"), user("ada", "optics", "normal", jobs="1(0)")), "",
         {"MaxJobs of user ada in account optics and partition normal": 1}),
        ((user("ada", "optics", jobs="2(0)"), shown("QOS=long(2)", user_jobs="1(0)")), "",
         {"MaxJobsPerUser of QOS long for user ada": 1}),
        ((user("ada", "optics"), shown("QOS=long(2)", user="cpu=2(0),mem=150(0)", account="gres/gpu=1(0)")), "",
         {"MaxTRESPerUser cpu of QOS long for user ada": 2, "MaxTRESPerUser mem of QOS long for user ada": 150}),
        ((user("ada", "optics"), shown("QOS=long(2)", account_jobs="2(0)", grp="node=1(0)")), "",
         {"MaxJobsPerAccount of QOS long for account optics": 2, "GrpTRES node of QOS long": 1}),
        ((user("ada", "optics"), shown("QOS=long(2)", grp_jobs="1(0)"), shown("QOS=part(3)", grp_jobs="2(0)")), "part",
         {"GrpJobs of QOS part": 2}),
        ((user("ada", "optics", jobs="N"),), "", {"GrpJobs of account physics": 3}),
    ],
)  # fmt: skip
def test_the_first_that_has_a_limit_counts(
    tmp_path: Path, records: tuple[str, ...], partition_qos: str, expected: dict[str, int]
) -> None:
    """The partition's QOS comes before the job's, and that before associations, for each kind of limit by itself."""
    jobs = [ada(number, qos="long") for number in range(1, 5)]
    taken = snapshot(tmp_path, jobs, *CHAIN, *records, partition_qos=partition_qos)
    found = {name: amount for name, amount in taken.instance.cluster.licenses.items() if name != "matlab"}
    no_jobs_of_qos = {} if any("GrpJobs" in name for name in expected) else {
        "GrpJobs of account physics": 3
    }  # fmt: skip
    assert found == no_jobs_of_qos | expected
    planned(taken)


def test_each_choice_is_held_against_the_limits(tmp_path: Path) -> None:
    """A choice beyond a limit by itself is none; of a limit at a time a job takes the most of its other choices."""
    by_partition = (user("ada", "optics", node="cpu=5"), user("ada", "optics", "gpuq", node="cpu=3", grp="node=2(0)"))
    asked = {"partition": "normal,gpuq", "max_nodes": 4, "tasks": 8, "cpus": 8}
    taken = snapshot(tmp_path, [ada(1, **asked), ada(2, **asked)], *CHAIN, *by_partition)
    sizes = [(one.request.chunks[0].count, set(one.request.chunks[0].where)) for one in taken.instance.jobs[0].choices]
    assert sizes == [(count, {"partition.normal"}) for count in (2, 3, 4)]
    assert not taken.left
    planned(taken)


@pytest.mark.parametrize(
    ("records", "fields", "reason", "is_for_manager"),
    [
        ((user("ada", "optics", wall="9"),), {}, "MaxWall of user ada in account optics is 540", False),
        ((user("ada", "optics", wall="9"), shown("QOS=normal(1)", wall="10")), {}, "", False),
        ((user("ada", "optics", job="cpu=3,mem=10240"),), {"cpus": 4, "tasks": 4}, "takes 4, and MaxTRES cpu", False),
        ((user("ada", "optics", node="mem=99"),), {}, "takes 100, and MaxTRESPerNode mem of", False),
        ((user("ada", "optics", area="cpu=39"),), {"cpus": 4, "tasks": 4}, "takes 40, and MaxTRESMins cpu of", False),
        ((user("ada", "optics", grp="gres/gpu=0(0)"),), {"tres_per_node": "gres:gpu:1"}, "GrpTRES gres/gpu of", False),
        ((ADA, shown(NORMAL, least="cpu=2"),), {}, "takes 1, and MinTRES cpu of QOS normal is 2", False),
        ((ADA, shown(NORMAL, spent="cpu=90(90)"),), {}, "all of GrpTRESMins cpu of QOS normal is used up", False),
        ((ADA, shown(NORMAL, spent="cpu=9(1)"),), {}, "takes 10, and GrpTRESMins cpu of QOS normal is 9", False),
        ((ADA, shown(NORMAL, grp_wall="60(60.50)"),), {}, "all of GrpWall of QOS normal is used up", False),
        ((ADA, shown(NORMAL, ahead="cpu=90(0)"),), {}, "GrpTRESRunMins cpu of QOS normal cannot be said", True),
        ((ADA, shown(NORMAL, user="billing=9(0)"),), {}, "MaxTRESPerUser billing of QOS normal", True),
        ((), {}, "the association of user ada in account optics, whose limits hold, is not shown", True),
        ((ADA,), {"qos": "new"}, "its QOS new, whose limits hold for it, is not shown", True),
        ((user("ada", "optics", grp="cpu=20(0)"),), {"shared": "none"}, "", False),
        ((user("ada", "optics", grp="cpu=15(0)"),), {"shared": "none"}, "takes 16, and GrpTRES cpu of", False),
    ],
)  # fmt: skip
def test_what_is_beyond_a_limit_by_itself_waits_with_a_reason(
    tmp_path: Path, records: tuple[str, ...], fields: dict[str, Any], reason: str, is_for_manager: bool
) -> None:
    """A job that Slurm would not start either is left, nobody's; one whose limit cannot be said is Slurm's."""
    taken = snapshot(tmp_path, [ada(1, **fields)], account("physics"), account("optics", "physics(6)"), *records)
    assert bool(taken.left) is bool(reason)
    for left in taken.left:
        assert reason in left.reason
        assert left.is_for_manager is is_for_manager


def test_limits_that_are_not_enforced_do_not_count(tmp_path: Path) -> None:
    """Where AccountingStorageEnforce has no limits, Slurm keeps none, and no plan does."""
    jobs, records = [ada(number) for number in range(1, 5)], (*CHAIN, user("ada", "optics"))
    snapshot(tmp_path, jobs, *records)
    read = read_directory(tmp_path).records
    for said, count in (("none", 0), ("associations,qos", 0), ("associations,limits", 4), ("associations,safe", 4)):
        taken = make_snapshot(replace(read, config={"AccountingStorageEnforce": said}), NOW)
        assert sum(bool(one) for one in takes(taken).values()) == count, said


def test_garbage_is_told() -> None:
    """A limit that is no number is a fault of the text."""
    with pytest.raises(DocumentError, match=r"Expected a limit such as 40\(8\), got 'many'"):
        read_limits(text(account("physics", grp="cpu=many")), "scontrol")


@pytest.mark.slow
@pytest.mark.slurm
def test_a_real_slurm_starts_what_was_planned_within_its_limits(accounting: Laboratory) -> None:
    """All starts of a plan within the limits are carried out at once; one beyond them Slurm refuses to carry out."""
    lab = accounting
    lab.run("sacctmgr", "-i", "add", "account", "physics", "GrpTRES=cpu=12,gres/gpu=2", "MaxWall=60")
    lab.run("sacctmgr", "-i", "add", "account", "optics", "parent=physics")
    lab.run("sacctmgr", "-i", "add", "user", USER, "account=optics", "MaxJobs=3")
    lab.run("sacctmgr", "-i", "add", "qos", "few", "MaxJobsPerUser=1", "GrpTRES=mem=1000")
    lab.run("sacctmgr", "-i", "modify", "user", USER, "set", "qos+=few")
    lab.close()

    def submit(*arguments: str) -> str:
        command = ("sbatch", "--parsable", f"--uid={USER}", "--chdir=/", "--output=/dev/null", "--account=optics")
        return lab.run(*command, "--time=5", *arguments, "--wrap", "exec sleep 60").strip()

    jobs = [submit("-n5") for _ in range(4)]
    gpus = [submit("-n1", "--gres=gpu:2") for _ in range(2)]
    few = [submit("-n1", "--qos=few") for _ in range(2)]
    long = submit("-n1", "--time=90")
    taken = lab.manager.snapshot()
    assert [(left.id, "MaxWall" in left.reason) for left in taken.left] == [(long, True)]
    plan = planned(taken)
    due = [job for job in plan.jobs if job.start <= taken.taken_at]
    assert 2 <= len(due) <= 4
    orders = [
        Start(job=job.id, at=job.start, allocation=job.segments[0].allocation, revision=taken.jobs[job.id].revision)
        for job in due
    ]
    assert {receipt.result for receipt in lab.manager.apply(orders)} == {Result.DONE}
    lab.wait(lambda: {lab.facts(order.job).state for order in orders} == {JobState.RUNNING})
    # what runs takes of the limits now, and nothing that waits has room before it ends
    again = lab.manager.snapshot()
    later = planned(again)
    ends = {job.running.segments[-1].end for job in again.instance.jobs if job.running is not None}
    assert min(job.start for job in later.jobs if job.id not in {order.job for order in orders}) >= min(ends)
    beyond = next(job for job in (*jobs, *gpus) if job not in {order.job for order in orders})
    lab.manager.apply([HandBack(job=beyond), HandBack(job=long)])
    lab.wait(lambda: {lab.raw(job)["state_reason"][:5] for job in (beyond, long)} == {"Assoc"})
    assert lab.facts(beyond).state is JobState.WAITING
    lab.run("scancel", *jobs, *gpus, *few, long)
