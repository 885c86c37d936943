"""A catalogue of 90 kinds of submission: each is planned with what Slurm then gives it, or left with a reason."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest

import cpsched
from cpsched.domain import Instance, Job, Placement
from cpsched.site.bridge import HandBack
from tests.bridge.slurm.laboratory import OTHER, Laboratory

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

#: Options of sbatch, one kind on a line.
KINDS = """
-n1
-n4
-n20
-n60
-n100
-N1
-N2
-N8
-N2 -n13
-N2 -n2
-N4 -n8 --ntasks-per-node=2
-N3 --ntasks-per-node=3
-c3
-n4 -c3
-N2 -n4 -c4
-N2 --ntasks-per-node=2 -c3
-n40 --mem=100000
--mem=20000
--mem=0
-n4 --mem-per-cpu=500
-n8 --mem-per-cpu=2G
-n2 -c2 --mem-per-cpu=1G
--exclusive
--exclusive -N3
--exclusive -n20
--exclusive=user -n2
--oversubscribe -n2
--overcommit -n30 -N1
--overcommit -n4 -N2
--gres=gpu:1
--gres=gpu:2 -n4
--gres=gpu:k20:1
--gres=gpu:k40:3 -n3
--gres=gpu:1 -N2
--gres=mic:1
--gres=mic:2 -N2
--gres=gpu:1 --gres-flags=enforce-binding
--gpus=1
--gpus=4
--gpus=6 -n6
--gpus=k40:4
--gpus=2 --exclusive
--gpus-per-node=2 -N2
--gpus-per-node=k40:4
--gpus-per-task=1 -n3
--gpus-per-task=k40:1 -n4
--gpus-per-task=1 -n2 -c4
--cpus-per-gpu=4 --gpus=2
--mem-per-gpu=1000 --gpus=2
--ntasks-per-gpu=2 --gpus=2
--constraint=rack1
--constraint=rack2 -N2
--constraint=gpu&rack1
--constraint=fat|thin
--constraint=mic|gpu -n4
--constraint=rack2&(fat|thin)
--constraint=[rack1*1&rack2*1] -N2
--constraint=rack1*2 -N3
--constraint=[rack1|rack2] -N2
--prefer=rack2
--nodelist=m1
--nodelist=g1,g2 -N2
--nodelist=g1 -N3
--exclude=g[1-4]
--exclude=f1 -n40
--exclude=c1,m[1-2] --constraint=rack2
--licenses=matlab:1
--licenses=matlab:4
--licenses=matlab:1,ansys:2
--licenses=ansys
--partition=urgent
--partition=gpuq
--partition=normal,urgent
--partition=urgent,gpuq -n2
--time=1-0
--time-min=1
--array=1-3
--array=1-4%2
--array=1-2 -n3 --gres=gpu:1
--dependency=singleton --job-name=alone
--nice=100 --no-requeue
--spread-job -N4
--use-min-nodes -N1-4 -n20
-N2-4
-N1-3 -n8
--ntasks-per-core=1 -n2
--hint=nomultithread -n4
--mincpus=4
--distribution=cyclic -N2 -n6
-N2 --contiguous
""".strip().splitlines()
#: Kinds that are Slurm's, each with words of the reason.
LEFT = {"-N2 --contiguous": "neighbouring nodes"}
#: To what 24.11 gives all CPUs that are free there, and fewer CPUs than tasks: plans have one for each task.
OTHERWISE = {"--gres=gpu:1 --gres-flags=enforce-binding", "--ntasks-per-gpu=2 --gpus=2"} if OTHER else set[str]()
#: What is compared.
RESOURCES = ("cores", "gpus", "mics", "mem")
#: Kinds that are alone on their nodes.
ALONE = ("--exclusive", "--mem=0")


class Held(NamedTuple):
    """The nodes that a job has, and what it has there in all."""

    nodes: int
    amounts: Counter[str]

    @classmethod
    def of(cls, allocation: tuple[Placement, ...]) -> Held:
        """Return that of an allocation."""
        amounts = Counter[str]()
        for place in allocation:
            amounts.update({name: (place.count or 1) * place.resources.get(name, 0) for name in RESOURCES})
        return cls(len({place.node for place in allocation}), amounts)


def planned(job: Job, instance: Instance) -> Held:
    """Return the allocation of a job in a plan in which it is alone."""
    plan = cpsched.solve(replace(instance, jobs=(replace(job, after=()),)), engine="planner")
    return Held.of(plan.jobs[0].segments[0].allocation if plan.jobs else ())


def is_wrong(kind: str, job: Job, plan: Held, slurm: Held) -> bool:
    """Tell whether a plan has something else than what Slurm gives.

    A plan is on as few nodes as can be, and Slurm's on those that are free: each more has a CPU at least, and memory of
    a node. Tasks are spread evenly, rounded up. Who is alone on its nodes, has all of them, or all of their memory.
    """
    more = slurm.nodes - plan.nodes
    if not plan.nodes or (more and re.search(r"-N\d+(?!\d*-)", kind)):
        return True
    if any(mark in kind for mark in ALONE):
        return not job.steps[0].request.place.exclusive
    cores = plan.amounts["cores"] - slurm.amounts["cores"]
    is_less = any(plan.amounts[name] < slurm.amounts[name] for name in ("mem", "gpus", "mics"))
    are_others = any(plan.amounts[name] != slurm.amounts[name] for name in ("gpus", "mics"))
    return not -max(0, more) <= cores < max(1, plan.nodes) or are_others or (is_less and more <= 0)


def test_no_kind_is_silently_wrong(lab: Laboratory) -> None:
    """What a job that is alone is planned with is what Slurm gives it; one of 90 is left, with a reason."""
    assert len(KINDS) == len(set(KINDS)) == 90
    lab.close()
    ids = {lab.submit(*shlex.split(kind), seconds=290): kind for kind in KINDS}
    snapshot = lab.manager.snapshot()
    kind_of = {job.id: ids[job.id.partition("_")[0]] for job in snapshot.instance.jobs}
    left = {ids[one.id.partition("_")[0]]: one.reason for one in snapshot.left}
    assert left.keys() == LEFT.keys(), left
    assert {kind: word for kind, word in LEFT.items() if word not in left[kind]} == {}, left
    assert {*kind_of.values(), *left} == {*KINDS}
    wanted = {job.id: planned(job, snapshot.instance) for job in snapshot.instance.jobs}
    lab.manager.apply([HandBack(job=job) for job in wanted])
    given: dict[str, Held] = {}
    while given.keys() != wanted.keys():
        new = {}
        for job in lab.manager.snapshot().instance.jobs:
            if job.running is None or job.id not in wanted or job.id in given:
                continue
            new[job.id] = Held.of(job.running.segments[0].allocation)
        given |= new
        if new:
            lab.run("scancel", *new, is_fine=False)
    wrong = [
        f"{kind_of[job.id]}: {wanted[job.id]}, Slurm gives {given[job.id]}"
        for job in snapshot.instance.jobs
        if kind_of[job.id] not in OTHERWISE and is_wrong(kind_of[job.id], job, wanted[job.id], given[job.id])
    ]
    assert wrong == [], "\n".join(wrong)
