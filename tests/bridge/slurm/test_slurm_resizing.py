"""Running jobs of a real Slurm that become smaller: what Slurm can do, and what plans make of it."""

from __future__ import annotations

import subprocess

import pytest

import cpsched
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.site.bridge import JobState, Result, Start
from cpsched.verify import verify
from tests.bridge.slurm.laboratory import Laboratory

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


def said(lab: Laboratory, job: str, change: str) -> str:
    """Return what scontrol says of a change that it refuses."""
    answer = lab.client.command("scontrol", "update", f"JobId={job}", change, codes=(1,))
    return answer.err.strip() or answer.out.strip()


def held(lab: Laboratory, job: str) -> dict[str, int]:
    """Return the cores that a running job of the snapshot has, by node."""
    (found,) = (one for one in lab.manager.snapshot().instance.jobs if one.id == job)
    assert found.running is not None
    return {place.node: place.resources["cores"] for place in found.running.segments[-1].allocation}


def test_whole_nodes_that_a_job_gives_back_are_planned_at_once(accounting: Laboratory) -> None:
    """A job gives nodes back twice, never that of its script; a job that waited for them starts there by an order."""
    lab = accounting
    lab.close()
    lab.gate.unlink()
    wide = lab.submit("--nodes=8", "--exclusive")
    lab.wait(lambda: lab.facts(wide).state is JobState.RUNNING)
    lab.close()
    waiting = lab.submit("-N2", "-n20")
    snapshot = lab.manager.snapshot()
    first = cpsched.solve(snapshot.instance, engine="planner")
    assert min(job.start for job in first.jobs if job.id == waiting) > snapshot.taken_at
    before = held(lab, wide)
    batch = lab.run("squeue", "--noheader", f"--jobs={wide}", "--Format=BatchHost:20").strip()
    for kept in (sorted(before.keys() - {"g3"}), [batch]):
        lab.run("scontrol", "update", f"JobId={wide}", f"ReqNodeList={','.join(kept)}")
        lab.wait(lambda: held(lab, wide) == {node: before[node] for node in kept})  # noqa: B023 - it is called here
    snapshot = lab.manager.snapshot()
    plan = cpsched.solve(snapshot.instance, engine="planner")
    assert verify(instance_to_document(snapshot.instance), plan_to_document(plan)) == ()
    (job,) = (one for one in plan.jobs if one.id == waiting)
    assert job.start == snapshot.taken_at
    order = Start(
        job=waiting,
        at=job.start,
        allocation=job.segments[0].allocation,
        revision=snapshot.jobs[waiting].revision,
    )
    assert [one.result for one in lab.manager.apply([order])] == [Result.DONE]
    lab.wait(lambda: lab.facts(waiting).state is JobState.RUNNING)
    assert set(lab.facts(waiting).nodes).isdisjoint({batch})
    assert lab.facts(wide).state is JobState.RUNNING


def test_what_slurm_cannot_do_to_a_running_job(accounting: Laboratory) -> None:
    """It takes no cores of a node from a running job, nor the node of its script, and gives it none back."""
    lab = accounting
    job = lab.submit("-N2", "-n12")
    lab.wait(lambda: lab.facts(job).state is JobState.RUNNING)
    before = held(lab, job)
    batch = lab.run("squeue", "--noheader", f"--jobs={job}", "--Format=BatchHost:20").strip()
    (other,) = before.keys() - {batch}
    for change in ("NumCPUs=6", "MinCPUsNode=3", "NumTasks=6"):
        assert "Job is no longer pending execution" in said(lab, job, change)
    assert "Invalid node name" in said(lab, job, f"ReqNodeList={other}")
    assert "Requested operation not supported" in said(lab, job, "NumNodes=4")
    assert held(lab, job) == before
    lab.run("scontrol", "update", f"JobId={job}", f"ReqNodeList={batch}")
    assert "Invalid node name" in said(lab, job, f"ReqNodeList={batch},{other}")
    donor = subprocess.run(  # noqa: S603 - a test's own command
        [f"{lab.commands}/salloc", "--no-shell", "-N1", f"--dependency=expand:{job}", "--time=1"],
        env={"SLURM_CONF": str(lab.directory / "etc" / "slurm.conf")},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "Requested operation not supported" in donor.stderr
    assert held(lab, job) == {batch: before[batch]}
