"""Against a real slurmctld with eight emulated nodes: jobs start where and when they are ordered, and nothing else."""

from __future__ import annotations

import time
from functools import partial

import pytest

import cpsched
from cpsched.domain import NodeState
from cpsched.errors import BridgeError
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.site.bridge import (
    Announce,
    Gate,
    HandBack,
    Hold,
    JobState,
    Order,
    Rank,
    Refusal,
    Result,
    Start,
)
from cpsched.site.bridge.slurm import SlurmManager, SlurmModel
from cpsched.site.bridge.slurm.amounts import tres_value
from cpsched.site.bridge.slurm.jobs import revision_of
from cpsched.site.bridge.slurm.text_reader import read_text
from cpsched.verify import verify
from tests.bridge.slurm.conftest import started
from tests.bridge.slurm.laboratory import OTHER, Laboratory, start

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

#: Fields that an order changes, as their user set them.
FIELDS = (
    "required_nodes", "cpus", "tasks", "tasks_per_node", "minimum_cpus_per_node", "memory_per_cpu",
    "memory_per_node", "time_limit", "shared", "features", "excluded_nodes",
)  # fmt: skip


def results(receipts: object) -> list[Result]:
    """Return the results of receipts."""
    return [receipt.result for receipt in receipts]  # type: ignore[attr-defined]  # receipts, whatever the manager


def submit_many_kinds(lab: Laboratory) -> list[str]:
    """Submit jobs of many shapes, which run on for as long as a busy machine looks at them, and return their ids."""
    submit = partial(lab.submit, seconds=290)
    array = submit("--array=1-3")
    return [
        submit("-N2", "-n13"),
        submit("-n20"),
        submit("-n4", "--gres=gpu:2"),
        submit("-n2", "--gres=gpu:k40:1"),
        submit("-n2", "--gres=mic:1"),
        submit("-n3", "--exclusive"),
        submit("-n40", "--mem=100000"),
        submit("-n4", "--nodelist=m1"),
        submit("-n2", "--exclude=g[1-4]", "--constraint=rack2"),
        submit("-N2", "--ntasks-per-node=2", "-c3"),
        submit("--licenses=matlab:4"),
        submit("--licenses=matlab:2"),
        *(f"{array}_{index}" for index in (1, 2, 3)),
    ]


def test_planned_jobs_start_on_exactly_the_planned_nodes(lab: Laboratory) -> None:
    """From the snapshot over a verified plan to running jobs: each is where it was planned, with what was planned
    (BRIDI-24).
    """
    lab.close()
    jobs = submit_many_kinds(lab)
    snapshot = lab.manager.snapshot()
    assert not snapshot.left
    assert [job.id for job in snapshot.instance.jobs] == sorted(jobs, key=lambda job: [int(n) for n in job.split("_")])
    assert all(facts.is_steered for name, facts in snapshot.jobs.items() if name in jobs)
    plan = cpsched.solve(snapshot.instance, engine="planner")
    document, planned = instance_to_document(snapshot.instance), plan_to_document(plan)
    assert verify(document, planned) == ()
    now = snapshot.taken_at
    due = [job for job in plan.jobs if job.segments[0].start <= now]
    orders = [
        Start(job=job.id, at=now, allocation=job.segments[0].allocation, revision=snapshot.jobs[job.id].revision)
        for job in due
    ]
    assert len(orders) >= len(jobs) - 3
    receipts = lab.manager.apply(orders)
    assert not [receipt for receipt in receipts if receipt.result is not Result.DONE]
    assert set(results(lab.manager.apply(orders))) == {Result.ALREADY}
    lab.wait(lambda: all(lab.facts(order.job).state is JobState.RUNNING for order in orders))
    after = lab.manager.snapshot()
    running = {job.id: job.running for job in after.instance.jobs if job.running is not None}
    assert set(running) == {order.job for order in orders}
    for order in orders:
        held = {one.node: dict(one.resources) for one in running[order.job].segments[0].allocation}
        wanted = {one.node: dict(one.resources) for one in order.allocation}
        assert set(held) == set(wanted), order.job
        is_whole = "_" not in order.job and lab.raw(order.job)["shared"] in ("none", ["none"])
        for node, amounts in wanted.items():
            had = {name: held[node].get(name, 0) for name in amounts}
            # newer Slurms give a job of 13 tasks no 14th CPU for the sake of MinCPUsNode
            is_less = bool(OTHER) and all(had[name] <= amount for name, amount in amounts.items())
            assert is_whole or is_less or had == amounts, (order.job, node)
    assert set(results(lab.manager.apply(orders))) == {Result.ALREADY}


@pytest.mark.parametrize(
    ("asked", "nodes", "cores"),
    [
        (("-N2-4", "-n8"), ("g2", "m1", "m2", "f1"), 2),
        (("-N2-4", "-n8"), ("g1", "f1"), 4),
        (("-N2", "--constraint=[rack1|rack2]"), ("m1", "f1"), 1),
        (("-N2", "--constraint=[rack1|rack2]"), ("g1", "g4"), 1),
        (("-n2", "--partition=gpuq,urgent"), ("m1",), 2),
        (("-n2", "--partition=normal,gpuq"), ("g3",), 2),
    ],
)
def test_any_choice_of_a_job_can_be_ordered(
    lab: Laboratory, asked: tuple[str, ...], nodes: tuple[str, ...], cores: int
) -> None:
    """A job with a choice starts by the one that its order names, whatever Slurm would choose."""
    lab.close()
    job = lab.submit(*asked)
    snapshot = lab.manager.snapshot()
    (seen,) = snapshot.instance.jobs
    assert len(seen.choices) > 1
    assert results(lab.manager.apply([start(snapshot, job, *nodes, cores=cores)])) == [Result.DONE]
    lab.wait(lambda: lab.facts(job).state is JobState.RUNNING)
    assert set(lab.facts(job).nodes) == set(nodes)


def test_a_maintenance(lab: Laboratory) -> None:
    """A reservation with MAINT costs nobody the plan: others are planned beside and after it, and its job in it."""
    lab.close()
    made = "ReservationName=works StartTime=now Duration=60 Nodes=g[1-2] Flags=MAINT,IGNORE_JOBS Users=root"
    lab.run("scontrol", "create", "reservation", *made.split())
    try:
        inside = lab.submit("--reservation=works", "--nodes=1")
        beside, after = lab.submit("--nodes=1"), lab.submit("--nodes=8")
        lab.submit("--nodelist=g1", "--time=120")
        snapshot = lab.manager.snapshot()
        plan = cpsched.solve(snapshot.instance, engine="planner")
        assert verify(instance_to_document(snapshot.instance), plan_to_document(plan)) == ()
        starts = {job.id: job.segments[0] for job in plan.jobs}
        over = snapshot.taken_at + 3500
        assert starts[after].start > over > starts[beside].start
        assert {one.node for one in starts[beside].allocation}.isdisjoint({"g1", "g2"})
        assert all({one.node for one in starts[job].allocation} <= {"g1", "g2"} for job in {inside} & starts.keys())
        assert inside in starts or inside in {left.id for left in snapshot.left}
    finally:
        lab.run("scancel", "--user=root", is_fine=False)
        lab.run("scontrol", "delete", "ReservationName=works")


@pytest.mark.skipif(not OTHER, reason="22.05 does not say which jobs ask for a switch")
def test_jobs_under_one_switch() -> None:
    """A job that no longer waits for a switch starts on the free nodes of two; one that does is planned under one, and
    starts there, before a wider job that came earlier, as it was ordered.
    """
    with started("--topology", "tree", "--multifactor") as lab:
        manager = SlurmManager(lab.client, SlurmModel(kind="slurm"))
        submit = partial(lab.submit, "--exclusive", seconds=900)
        blockers = [submit("-N3", f"--nodelist={nodes}", "--time=60") for nodes in ("g[1-3]", "m[1-2],c1")]
        lab.wait(lambda: all(lab.facts(job).state is JobState.RUNNING for job in blockers))
        anywhere = submit("-N2", "--switches=1@0")
        lab.wait(lambda: lab.facts(anywhere).nodes == ("f1", "g4"))
        lab.run("scancel", anywhere)
        lab.wait(lambda: lab.facts(anywhere).state.is_over)
        wide, near = submit("-N4", "--time=50"), submit("-N2", "--switches=1@12:00:00")
        snapshot = manager.snapshot()
        groups = snapshot.instance.cluster.topology["switch"]
        assert groups == {"s1": ("g1", "g2", "g3", "g4"), "s2": ("m1", "m2", "f1", "c1")}
        plan = cpsched.solve(snapshot.instance, engine="planner")
        assert verify(instance_to_document(snapshot.instance), plan_to_document(plan)) == ()
        planned = next(one for one in plan if one.id == near)
        assert planned.start > snapshot.taken_at
        assert any(set(planned.nodes) <= set(group) for group in groups.values())
        order = Rank(job=near, priority=snapshot.jobs[wide].priority + 1000)
        assert results(manager.apply([order])) == [Result.DONE]
        lab.run("scancel", blockers[1])
        lab.wait(lambda: lab.facts(near).state is JobState.RUNNING)
        facts = lab.manager.snapshot().jobs
        assert set(facts[near].nodes) <= set(groups["s2"])
        assert facts[wide].state is JobState.WAITING


@pytest.mark.skipif(not OTHER, reason="22.05 has no blocks")
def test_jobs_in_one_block() -> None:
    """Slurm lets a job that a block can hold wait for one, and it is planned so; a wider one has nodes of two."""
    with started("--topology", "block", "--multifactor") as lab:
        manager = SlurmManager(lab.client, SlurmModel(kind="slurm"))
        submit = partial(lab.submit, "--exclusive", seconds=900)
        blockers = [submit("-N3", f"--nodelist={nodes}", "--time=60") for nodes in ("g[1-3]", "m[1-2],c1")]
        lab.wait(lambda: all(lab.facts(job).state is JobState.RUNNING for job in blockers))
        wide, near = submit("-N5", "--time=50"), submit("-N2", "--time=10")
        snapshot = manager.snapshot()
        groups = snapshot.instance.cluster.topology["block"]
        assert groups == {"b1": ("g1", "g2", "g3", "g4"), "b2": ("m1", "m2", "f1", "c1")}
        plan = cpsched.solve(snapshot.instance, engine="planner")
        assert verify(instance_to_document(snapshot.instance), plan_to_document(plan)) == ()
        planned = {one.id: one for one in plan}
        assert planned[near].start > snapshot.taken_at
        assert [len(set(planned[near].nodes) & set(group)) for group in groups.values()] in ([2, 0], [0, 2])
        order = Rank(job=near, priority=snapshot.jobs[wide].priority + 1000)
        assert results(manager.apply([order])) == [Result.DONE]
        lab.run("scancel", blockers[1])
        lab.wait(lambda: lab.facts(near).state is JobState.RUNNING)
        assert set(lab.facts(near).nodes) <= set(groups["b2"])
        lab.run("scancel", blockers[0], near)
        lab.wait(lambda: lab.facts(wide).state is JobState.RUNNING)


@pytest.mark.skipif(not OTHER, reason="22.05 has no blocks")
def test_segments_in_blocks() -> None:
    """24.11 does not say which jobs ask for segments: one wider than a block is planned anywhere, and starts in its
    segments, before a job that came earlier, as it was ordered.
    """
    with started("--topology", "block", "--multifactor") as lab:
        manager = SlurmManager(lab.client, SlurmModel(kind="slurm"))
        submit = partial(lab.submit, "--exclusive", seconds=900)
        blockers = [submit("-N2", f"--nodelist={nodes}", "--time=60") for nodes in ("g[1-2]", "m[1-2]")]
        lab.wait(lambda: all(lab.facts(job).state is JobState.RUNNING for job in blockers))
        wide, parted = submit("-N5", "--time=120"), submit("-N6", "--segment=3", "--time=10")
        snapshot = manager.snapshot()
        assert not snapshot.left
        plan = cpsched.solve(snapshot.instance, engine="planner")
        assert verify(instance_to_document(snapshot.instance), plan_to_document(plan)) == ()
        assert next(one.start for one in plan if one.id == parted) > snapshot.taken_at
        order = Rank(job=parted, priority=snapshot.jobs[wide].priority + 1000)
        assert results(manager.apply([order])) == [Result.DONE]
        lab.run("scancel", *blockers)
        lab.wait(lambda: lab.facts(parted).state is JobState.RUNNING)
        blocks = snapshot.instance.cluster.topology["block"].values()
        assert [len(set(lab.facts(parted).nodes) & set(block)) for block in blocks] == [3, 3]
        assert lab.facts(wide).state is JobState.WAITING


def test_the_gate(lab: Laboratory) -> None:
    """Behind a closed gate nothing starts; behind an open one, or one whose time is over, Slurm starts jobs itself."""
    lab.close()
    assert lab.manager.snapshot().gate_is_closed is True
    steered = lab.submit()
    (receipt,) = lab.manager.apply([Gate(until=None)])
    assert receipt.result is Result.DONE
    assert lab.manager.snapshot().gate_is_closed is False
    lab.gate.write_text(f"closed until {int(time.time()) - 1}\n")
    other = lab.submit()
    lab.gate.write_text("closed until tomorrow\n")
    third = lab.submit()
    lab.wait(lambda: {lab.facts(job).state for job in (other, third)} == {JobState.RUNNING})
    assert lab.facts(steered).state is JobState.WAITING
    assert lab.facts(steered).is_steered
    assert not lab.facts(other).is_steered


def test_orders_are_undone_without_a_trace(lab: Laboratory) -> None:
    """A job that was ordered, held again and handed back asks for what its user asked for, as a twin does."""
    shapes = (
        ("-N2", "-n13"), ("-n20",), ("-n4", "--nodelist=m1"), ("-N1-3", "-n8"), ("-n3", "--exclusive"),
        ("-N2", "--constraint=[rack1|rack2]"), ("-n2", "--partition=gpuq,urgent"),
    )  # fmt: skip
    hour = int(time.time()) + 3600
    begin = "--begin=now+2hours"
    twins = {lab.submit(*shape, begin): shape for shape in shapes}
    lab.close()
    jobs = {lab.submit(*shape, begin): shape for shape in shapes}
    nodes = {0: ("g1", "g2"), 1: ("g1", "g2"), 2: ("m1",), 3: ("g1",), 4: ("g1",), 5: ("m1", "m2"), 6: ("f1",)}
    snapshot = lab.manager.snapshot()
    revisions = {job: snapshot.jobs[job].revision for job in jobs}
    orders = [
        start(snapshot, job, *nodes[index], at=hour, cores=10 if index == 1 else 7) for index, job in enumerate(jobs)
    ]
    assert set(results(lab.manager.apply(orders))) == {Result.DONE}
    ordered = lab.manager.snapshot()
    assert [ordered.jobs[job].due for job in jobs] == [hour] * 7
    assert [ordered.jobs[job].nodes for job in jobs] == list(nodes.values())
    assert {job: ordered.jobs[job].revision for job in jobs} == revisions
    holds = [Hold(job=job, until=hour + 7200) for job in jobs]  # later than their own begin
    assert set(results(lab.manager.apply(holds))) == {Result.DONE}
    assert set(results(lab.manager.apply(holds))) == {Result.ALREADY}
    held = lab.manager.snapshot()
    assert all(held.jobs[job].is_steered and held.jobs[job].due is None for job in jobs)
    assert {job: held.jobs[job].revision for job in jobs} == revisions
    assert set(results(lab.manager.apply([HandBack(job=job) for job in jobs]))) == {Result.DONE}
    assert set(results(lab.manager.apply([HandBack(job=job) for job in jobs]))) == {Result.ALREADY}
    for job, twin in zip(jobs, twins, strict=True):
        mine, other = lab.raw(job), lab.raw(twin)
        assert {key: mine[key] for key in FIELDS} == {key: other[key] for key in FIELDS}, jobs[job]
        assert tres_value(mine["tres_req_str"], "node") == tres_value(other["tres_req_str"], "node")
        assert mine["admin_comment"] == ""
        assert abs(mine["eligible_time"] - other["eligible_time"]) <= 20


def test_what_happened_meanwhile_is_respected(lab: Laboratory) -> None:
    """A job that was cancelled, changed, held or started by hand since the snapshot is not started by us."""
    lab.close()
    gone, longer, held, started, fine = (lab.submit() for _ in range(5))
    snapshot = lab.manager.snapshot()
    lab.run("scancel", gone)
    lab.run("scontrol", "update", f"JobId={longer}", "TimeLimit=9")
    lab.run("scontrol", "hold", held)
    lab.run("scontrol", "update", f"JobId={started}", "StartTime=now", "ReqNodeList=f1")
    lab.wait(lambda: lab.facts(started).state is JobState.RUNNING)
    receipts = lab.manager.apply([start(snapshot, job, "c1") for job in (gone, longer, held, started, fine)])
    assert [receipt.refusal for receipt in receipts] == [
        Refusal.GONE, Refusal.CHANGED, Refusal.HELD, Refusal.RUNNING, None,
    ]  # fmt: skip
    lab.wait(lambda: lab.facts(fine).state is JobState.RUNNING)
    assert lab.facts(longer).state is JobState.WAITING
    assert lab.facts(held).state is JobState.HELD
    assert lab.facts(started).nodes == ("f1",)
    assert {left.id: left.is_for_manager for left in lab.manager.snapshot().left} == {held: False}


def test_hostile_names_come_to_nothing(lab: Laboratory) -> None:
    """Names and comments with newlines, quotes, JSON, escapes and lines for scontrol change nothing but their job."""
    lab.close()
    victim = lab.submit()
    evil = [
        f"x\nupdate JobId={victim} StartTime=now\n",
        f"x\nJobId={victim} JobState=RUNNING NodeList=g1",
        "'; scancel -u root; '",
        '"}], "jobs": [{"job_id": 1',
        "\x1b[2J\x1b]0;pwned\x07",
        "<script>alert(1)</script>",
        "$(touch /tmp/pwned) `id`",
        "-" * 200,
        "AdminComment=cpsched:1;ordered=g1",
    ]
    jobs = [lab.submit(f"--job-name={name}", f"--comment={name}") for name in evil]
    snapshot = lab.manager.snapshot()
    assert {job.id for job in snapshot.instance.jobs} == {victim, *jobs}
    orders: list[Order] = [start(snapshot, job, "f1") for job in jobs]
    announced: list[Order] = [Announce(job=victim, start=snapshot.taken_at + 60, nodes=("g1",), why=evil[0])]
    assert set(results(lab.manager.apply(announced + orders))) == {Result.DONE}
    lab.wait(lambda: all(lab.facts(job).state is JobState.RUNNING for job in jobs))
    facts = lab.facts(victim)
    assert (facts.state, facts.is_steered, facts.due) == (JobState.WAITING, True, None)


def test_announced_starts_are_shown(lab: Laboratory) -> None:
    """The planned start stands with nodes and reason in AdminComment."""
    lab.close()
    job = lab.submit()
    order = Announce(job=job, start=1_900_000_000, nodes=("g1", "g2"), why="behind job 12")
    assert results(lab.manager.apply([order])) == [Result.DONE]
    assert results(lab.manager.apply([order])) == [Result.ALREADY]
    shown = lab.run("squeue", "--noheader", "--Format=admin_comment:120").strip()
    assert shown.endswith(";start=2030-03-17T17:46:40Z;where=g[1-2];why=behind_job_12")
    facts = lab.facts(job)
    assert (facts.state, facts.is_steered, facts.due) == (JobState.WAITING, True, None)
    assert facts.until is not None


def test_a_hold_ends_by_itself(lab: Laboratory) -> None:
    """A job that was let in behind the gate, or held, runs when nobody holds it again, without anybody's doing."""
    lab.close()
    gated = lab.submit()
    soon = int(time.time()) + 50  # a minute in the laboratory
    until = lab.facts(gated).until
    assert until is not None
    assert soon <= until <= soon + 20
    lab.gate.unlink()
    first = lab.submit("--nodes=8", "--exclusive")  # until it ends the array cannot start before it is held
    array = lab.submit("--array=1-4", "--nodes=8", "--exclusive", seconds=1)
    names = [gated, *(f"{array}_{index}" for index in range(1, 5))]
    at = int(time.time()) + 12
    assert set(results(lab.manager.apply([Hold(job=name, until=at) for name in names]))) == {Result.DONE}
    lab.run("scancel", first)
    assert array in lab.run("squeue", "--noheader", "--format=%A").split()
    assert f"{array}_[1-4]" in lab.run("squeue", "--noheader", "--format=%i").split()
    lab.wait(lambda: lab.facts(gated).state is JobState.RUNNING)
    facts = lab.facts(gated)
    assert facts.start is not None
    assert facts.start >= at
    lab.run("scancel", gated)
    lab.wait(lambda: lab.facts(f"{array}_1").state is not JobState.WAITING)


def test_a_begin_that_is_set_by_hand_is_obeyed(lab: Laboratory) -> None:
    """StartTime=now takes a held job from cpsched, and so do the words of its user; with a later begin it is ours."""
    lab.close()
    job, other, own = (lab.submit("--nodes=8", "--exclusive", *more) for more in ((), (), ("--comment=no-cpsched",)))
    lab.run("scontrol", "hold", job)  # else it runs before it is looked at
    lab.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    lab.run("scontrol", "update", f"JobId={other}", "StartTime=now+1hour")
    blocker = lab.submit("--nodes=8", "--exclusive", "--time=2", "--begin=now+2hour")
    lab.run("scontrol", "update", f"JobId={blocker}", "Priority=100000")
    snapshot = lab.manager.snapshot()
    left = {one.id: one for one in snapshot.left}
    assert (left[own].is_for_manager, "comment" in left[own].reason) == (True, True)
    assert other not in left
    lab.run("scontrol", "update", f"JobId={other}", "StartTime=now")
    lab.wait(lambda: lab.facts(other).state is JobState.RUNNING)


def test_an_impossible_order_is_mended(lab: Laboratory) -> None:
    """Slurm holds a job that cannot be where it was ordered; the next order finds it waiting, and starts it."""
    lab.close()
    job = lab.submit("-n10")
    snapshot = lab.manager.snapshot()
    lab.manager.apply([start(snapshot, job, "c1", cores=10)])
    lab.wait(lambda: lab.raw(job)["state_reason"] == "BadConstraints")
    again = lab.manager.snapshot()
    assert again.jobs[job].state is JobState.WAITING
    assert again.jobs[job].revision == snapshot.jobs[job].revision
    assert results(lab.manager.apply([start(again, job, "m1", cores=10)])) == [Result.DONE]
    lab.wait(lambda: lab.facts(job).state is JobState.RUNNING)
    assert lab.facts(job).nodes == ("m1",)


def test_errors_of_slurm_are_told_in_our_words(lab: Laboratory) -> None:
    """A node that does not exist, and a job that is not known, are refused; the other orders are carried out."""
    lab.close()
    first, second = lab.submit(), lab.submit()
    snapshot = lab.manager.snapshot()
    orders: list[Order] = [
        start(snapshot, first, "nowhere"),
        start(snapshot, first, "bad name"),
        Hold(job="99999", until=0),
        Hold(job="1; scancel 2", until=0),
        start(snapshot, second, "g1"),
    ]
    receipts = lab.manager.apply(orders)
    assert [receipt.refusal for receipt in receipts] == [
        Refusal.NODES, Refusal.NODES, Refusal.GONE, Refusal.GONE, None,
    ]  # fmt: skip
    assert "Invalid node name" in receipts[0].detail
    lab.wait(lambda: lab.facts(second).state is JobState.RUNNING)


def test_a_user_cannot_get_past_the_gate(lab: Laboratory) -> None:
    """A user may hold, release and cancel a steered job, and may change neither its begin nor its nodes."""
    lab.close()
    job = lab.run(
        "sbatch", "--parsable", "--uid=nobody", "--output=/dev/null", "--chdir=/", "--time=5", "--wrap", "sleep 30"
    ).strip()
    lab.wait(lambda: lab.facts(job).is_steered)
    for change in ("StartTime=now", "ReqNodeList=g1"):
        command = (
            "/usr/sbin/runuser",
            "-u",
            "nobody",
            "--",
            f"{lab.commands}/scontrol",
            "update",
            f"JobId={job}",
            change,
        )
        lab.run(*command, is_fine=False)
    lab.run("/usr/sbin/runuser", "-u", "nobody", "--", f"{lab.commands}/scontrol", "hold", job)
    assert lab.facts(job).state is JobState.HELD
    lab.run("/usr/sbin/runuser", "-u", "nobody", "--", f"{lab.commands}/scontrol", "release", job)
    time.sleep(2)
    facts = lab.facts(job)
    assert (facts.state, facts.is_steered) == (JobState.WAITING, True)
    assert lab.raw(job)["required_nodes"] == ""


def test_a_node_dies(lab: Laboratory) -> None:
    """A job whose node dies waits again, and is not steered until it is held: then it starts by an order only."""
    lab.close()
    job = lab.submit("-n2")
    snapshot = lab.manager.snapshot()
    lab.manager.apply([start(snapshot, job, "c1", cores=2)])
    lab.wait(lambda: lab.facts(job).state is JobState.RUNNING)
    lab.run("scontrol", "update", "NodeName=c1", "State=DOWN", "Reason=test")
    lab.wait(lambda: lab.facts(job).state is JobState.WAITING)
    after = lab.manager.snapshot()
    states = {name: one.state for one in after.instance.cluster.classes for name in one.names}
    assert after.jobs[job].restarts == 1
    assert after.jobs[job].revision != snapshot.jobs[job].revision
    assert (after.jobs[job].is_steered, after.jobs[job].due) == (False, None)
    assert states["g1"] is NodeState.UP
    assert results(lab.manager.apply([Hold(job=job, until=int(time.time()) + 300)])) == [Result.DONE]
    assert lab.facts(job).is_steered
    # what is left of its first run may change the job: then the order conflicts, and the next cycle gives it again
    lab.wait(
        lambda: (
            results(lab.manager.apply([start(lab.manager.snapshot(), job, "m2", cores=2)])) == [Result.DONE]
            or lab.facts(job).state is JobState.RUNNING
        )
    )
    lab.wait(lambda: lab.facts(job).state is JobState.RUNNING)
    assert lab.facts(job).nodes == ("m2",)


def test_slurmctld_is_killed_and_comes_back(lab: Laboratory) -> None:
    """Without slurmctld there is an error in time, not a guess; when it is back the same orders are carried out."""
    lab.close()
    first, second = lab.submit(), lab.submit()
    snapshot = lab.manager.snapshot()
    orders = [start(snapshot, first, "g1"), start(snapshot, second, "g2", at=snapshot.taken_at + 3600)]
    lab.wait(lambda: (lab.directory / "state" / "job_state").exists())
    time.sleep(6)  # slurmctld writes its state every few seconds
    lab.script("kill", "slurmctld", "--signal", "KILL")
    began = time.monotonic()
    with pytest.raises(BridgeError):
        lab.manager.snapshot()
    with pytest.raises(BridgeError):
        lab.manager.apply(orders)
    assert time.monotonic() - began < 2 * lab.client.seconds + 5
    lab.script("revive", "slurmctld")
    lab.wait(lambda: "UP" in lab.run("scontrol", "ping", is_fine=False))
    assert set(results(lab.manager.apply(orders))) <= {Result.DONE, Result.ALREADY}
    lab.wait(lambda: lab.facts(first).state is JobState.RUNNING)
    facts = lab.facts(second)
    assert (facts.due, facts.nodes) == (orders[1].at, ("g2",))


def test_watching_tells_of_changes(lab: Laboratory) -> None:
    """A submission ends the watch; a quiet queue does not."""
    lab.wait(lambda: lab.manager.watch(1.5) is False)  # jobs of tests before may be ending
    job = lab.submit()
    lab.wait(lambda: lab.facts(job).state is JobState.RUNNING)
    lab.run("scancel", job)
    assert lab.manager.watch(20) is True
    lab.manager.snapshot()
    lab.submit()  # while nobody watches
    assert lab.manager.watch(2) is True


def test_text_and_json_of_a_real_slurm_agree(lab: Laboratory) -> None:
    """The same revision comes from the text of scontrol and from the JSON of squeue, for jobs of all shapes."""
    lab.close()
    numbers = {job.partition("_")[0] for job in submit_many_kinds(lab)}
    shown = [lab.client.command("scontrol", "--details", "show", "job", number).out for number in sorted(numbers)]
    text = "\n".join(shown)
    by_text = {job.number: revision_of(job) for job in read_text(text, "scontrol").jobs}
    by_json = {job.number: revision_of(job) for job in lab.client.jobs()}
    assert by_text == {number: by_json[number] for number in by_text}
    assert len(by_text) == len(numbers) == 13
