"""SD-Policy where all is known: worked numbers, and each of its rules; the judge sees every record."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from cpsched.domain import (
    AdmitCondition,
    Amounts,
    Chunk,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    KeepFree,
    Malleability,
    NodeClass,
    NodeState,
    Placement,
    PlannedJob,
    Running,
    RuntimeModel,
    Segment,
)
from cpsched.lab.policies.sd.mates import PiWeight, SdRule
from cpsched.lab.policies.sd.partners import Pace, guest_of
from cpsched.lab.policies.sd.sd_policy import SdPolicy
from tests.booking.small_windows import EXCLUSIVE, PACK, chunk, nodes, waiting, window
from tests.sim.played import played

HOUR = 3600
HALF = Malleability(shares=(0.5,))
WORST = Malleability(shares=(0.5,), model=RuntimeModel.WORST)
FREE = SdRule(name="free", max_slowdown=math.inf)


def malleable(job_id: str, walltime: int, count: int = 1, **options: Any) -> Job:
    """Return a waiting job that has whole nodes of 4 cores, and runs on half of them too."""
    chunks = options.pop("chunks", (chunk(count, cores=4),))
    return waiting(job_id, walltime, *chunks, **{"malleability": HALF, **options})


def lending(job_id: str, names: str, *, walltime: int, start: int = 0, waited: int = 0, **options: Any) -> Job:
    """Return a malleable job that has run since `start` on whole nodes of 4 cores."""
    held = Amounts({"cores": 4, **options.pop("beside", {})})
    allocation = tuple(Placement(node=node, resources=held) for node in names.split())
    chunks = (Chunk(count=len(allocation), resources=held),)
    job = malleable(job_id, walltime, submit=start - waited, chunks=chunks, **options)
    segments = (Segment(start=start, end=start + walltime, allocation=allocation),)
    return replace(job, running=Running(start=start, segments=segments))


def planned(instance: Instance, rule: SdRule = FREE) -> dict[str, PlannedJob]:
    """Play an instance without a bound of the queue."""
    return {job.id: job for job in played(instance, SdPolicy(rule, None)).record().jobs}


def cores_of(job: PlannedJob) -> list[tuple[int, int, int]]:
    """Return start, end and cores of each segment."""
    return [
        (part.start, part.end, sum(held.resources.get("cores", 0) for held in part.allocation)) for part in job.segments
    ]


def nodes_of(job: PlannedJob) -> list[str]:
    """Return the nodes of the first segment, sorted."""
    return sorted(placement.node for placement in job.segments[0].allocation)


def is_guest(job: PlannedJob) -> bool:
    """Return whether a job of nodes of 4 cores starts with less than all cores."""
    return any(placement.resources.get("cores", 0) < 4 for placement in job.segments[0].allocation)


# ---- the numbers of the paper ----


@pytest.mark.parametrize(("end", "guest"), [(3 * HOUR, True), (2400, False), (HOUR, False), (HOUR + 1, True)])
def test_when_it_is_tried(end: int, guest: bool) -> None:
    """An hour of request takes two as a guest: it is tried if its reservation ends after that, strictly (SD-2)."""
    rigid = replace(lending("r", "b", walltime=end), malleability=None)
    mate = lending("m", "a", walltime=9 * HOUR)
    job = planned(window([nodes("a b", cores=4)], rigid, mate, malleable("g", HOUR)))["g"]
    assert is_guest(job) is guest
    assert (job.start, job.end) == ((0, 2 * HOUR) if guest else (end, end + HOUR))


#: SD-8: nodes, request, waited and elapsed in hours.
RUNNING = {"A": (2, 4, 1, 1), "B": (2, 8, 4, 2), "C": (4, 2, 0.5, 0.5), "D": (4, 10, 30, 3), "E": (2, 1, 0, 0.75)}


def worked(without: str = "") -> Instance:
    """Return the window of SD-8."""
    names = [f"n{number:02}" for number in range(14)]
    left = iter(names)
    jobs = [
        lending(
            job_id,
            " ".join(next(left) for _ in range(count)),
            walltime=int(request * HOUR),
            start=int(-elapsed * HOUR),
            waited=int(waited * HOUR),
        )
        for job_id, (count, request, waited, elapsed) in RUNNING.items()
        if job_id not in without
    ]
    rest = [replace(lending("rest", " ".join(left), walltime=99 * HOUR), malleability=None)] if without else []
    return window([nodes(" ".join(names), cores=4)], *jobs, *rest, malleable("N", HOUR, 4))


@pytest.mark.parametrize(
    ("rule", "without", "mates"),
    [
        (FREE, "", "C"),
        (FREE, "C", "AB"),
        (FREE, "AC", "D"),
        (replace(FREE, pi_weight=PiWeight.NODES), "", "AB"),
        (SdRule(name="dyn", max_slowdown=None), "", "C"),
        (SdRule(name="four", max_slowdown=4.1), "AC", ""),
        (SdRule(name="four", max_slowdown=4.2), "AC", "D"),
        (SdRule(name="small", max_slowdown=1.75), "", "AB"),
        (SdRule(name="small", max_slowdown=1.625), "", ""),
        (replace(FREE, most_mates=1), "C", "D"),
    ],
)
def test_worked_choice(rule: SdRule, without: str, mates: str) -> None:
    """Plain {C} 1.75, then {A, B} 3.125, then {D} 4.1; by nodes {A, B} 6.25; E would end before the guest (SD-8)."""
    found = planned(worked(without), rule)
    assert "".join(job_id for job_id in RUNNING if job_id in found and len(found[job_id].segments) > 1) == mates
    assert is_guest(found["N"]) is bool(mates)


def test_dynamic_cut_off() -> None:
    """Without A and C the mean slowdown (1.25 + 4 + 1 + 1) / 4 drops D at 4.1, and B alone is too small (SD-5)."""
    assert not is_guest(planned(worked("AC"), SdRule(name="dyn", max_slowdown=None))["N"])


def test_worked_limits() -> None:
    """With A and B as mates the limits are 5 h, 9 h and, for the guest, 2 h (SD-3, SD-11)."""
    found = planned(worked(), replace(FREE, pi_weight=PiWeight.NODES))
    assert [(found[name].end - found[name].start) / HOUR for name in "ABN"] == [5, 9, 2]
    assert nodes_of(found["N"]) == [*nodes_of(found["A"]), *nodes_of(found["B"])]
    assert cores_of(found["A"]) == [(-HOUR, 0, 8), (0, 2 * HOUR, 4), (2 * HOUR, 4 * HOUR, 8)]


def test_containment() -> None:
    """A mate has to have as much left as the guest asks for; then they end together (SD-7)."""
    rigid = replace(lending("r", "b", walltime=9 * HOUR), malleability=None)
    for left, guest in ((HOUR - 1, False), (HOUR, True)):
        mate = lending("m", "a", walltime=left)
        queue = [waiting("first", 5 * HOUR, chunk(cores=4), priority=1), malleable("g", HOUR)]
        found = planned(window([nodes("a b", cores=4)], rigid, mate, *queue))
        assert is_guest(found["g"]) is guest
        if guest:
            assert (found["m"].end, found["g"].end) == (2 * HOUR, 2 * HOUR)


def test_penalty_counts_what_was_lent_before() -> None:
    """A job that lends again is slower still, (0 + 10 + 10 + 100) / 100: it has to be below the limit, strictly
    (SD-4).
    """
    mate = lending("m", "a", walltime=100)
    instance = window([nodes("a", cores=4)], mate, malleable("g", 10), malleable("h", 10, submit=30))
    both = planned(instance, SdRule(name="both", max_slowdown=1.21))
    assert cores_of(both["m"]) == [(0, 20, 2), (20, 30, 4), (30, 50, 2), (50, 120, 4)]
    one = planned(instance, SdRule(name="one", max_slowdown=1.2))
    assert cores_of(one["m"]) == [(0, 20, 2), (20, 110, 4)]
    assert (one["g"].start, one["h"].start) == (0, 110)


# ---- who shares ----


def test_at_most_two_jobs_on_a_node() -> None:
    """A mate has one guest at a time, and a guest is no mate (SD-10)."""
    queue = [malleable(name, 10) for name in "ghi"]
    found = planned(window([nodes("a", cores=4)], lending("m", "a", walltime=100), *queue))
    assert [found[name].start for name in "ghi"] == [0, 20, 40]
    assert cores_of(found["m"]) == [(0, 60, 2), (60, 130, 4)]


def test_a_job_that_has_just_started_can_lend() -> None:
    """Mates are those that run, whether they did so before or start in the plan."""
    queue = [malleable("m", 100, 2), malleable("g", 10, 2)]
    found = planned(window([nodes("a b", cores=4)], *queue))
    assert cores_of(found["m"]) == [(0, 20, 4), (20, 110, 8)]
    assert cores_of(found["g"]) == [(0, 20, 4)]


def test_reservations_follow() -> None:
    """Waiting jobs are planned again beside mates that end later; a mate's nodes stay its own."""
    rigid = waiting("r", 5, chunk(cores=4))
    small = waiting("s", 5, chunk(cores=1))
    found = planned(window([nodes("a", cores=4)], lending("m", "a", walltime=50), malleable("g", 10), rigid, small))
    assert (found["m"].end, found["r"].start, found["s"].start) == (60, 60, 65)


GUESTS: dict[str, tuple[dict[str, Any], bool]] = {
    "another share": ({"malleability": Malleability(shares=(0.25,))}, False),
    "rigid": ({"malleability": None}, False),
    "exclusive": ({"place": EXCLUSIVE}, False),
    "packed": ({"place": PACK}, True),
    "licences": ({"licenses": Amounts({"lic": 1})}, False),
    "deadline": ({"deadline": 10**6}, False),
    "part of a node": ({"chunks": (chunk(cores=2),)}, False),
    "two kinds": ({"chunks": (chunk(cores=4), chunk(mem=1))}, False),
    "no cores": ({"chunks": (chunk(mem=5),)}, False),
    "memory": ({"chunks": (chunk(cores=4, mem=5),)}, False),
    "less memory": ({"chunks": (chunk(cores=4, mem=4),)}, True),
    "gpus": ({"chunks": (chunk(cores=4, gpus=1),)}, False),
    "not before": ({"not_before": 1}, True),
    "ordinary": ({}, True),
}


@pytest.mark.parametrize("case", GUESTS)
def test_who_can_be_a_guest(case: str) -> None:
    """Malleable, whole nodes, the share, and room for all that is not lent."""
    options, is_one = GUESTS[case]
    mate = lending("m", "a", walltime=100, beside={"mem": 4, "gpus": 1})
    classes = [nodes("a", cores=4, mem=8, gpus=1)]
    found = planned(window(classes, mate, malleable("g", 10, **options), licenses={"lic": 1}))["g"]
    assert (len(found.segments) == 1 and found.start < 100) is is_one


MATES: dict[str, tuple[dict[str, Any], bool]] = {
    "another share": ({"malleability": Malleability(shares=(0.25,))}, False),
    "rigid": ({"malleability": None}, False),
    "exclusive": ({"place": EXCLUSIVE}, False),
    "licences": ({"licenses": Amounts({"lic": 1})}, False),
    "deadline": ({"deadline": 100}, False),
    "ordinary": ({}, True),
}


@pytest.mark.parametrize("case", MATES)
@pytest.mark.parametrize("running", [True, False])
def test_who_can_be_a_mate(case: str, running: bool) -> None:
    """The same holds for mates, whether they run already or start in the plan."""
    options, is_one = MATES[case]
    mate = lending("m", "a", walltime=100, **options)
    if not running:
        mate = replace(mate, running=None, priority=1)
    found = planned(window([nodes("a", cores=4)], mate, malleable("g", 10), licenses={"lic": 1}))
    assert (found["g"].start == 0) is is_one


def test_mates_have_whole_nodes() -> None:
    """A job with a part of a node has nothing to lend there, even if no job has the rest."""
    jobs = [malleable("m", 100, chunks=(chunk(cores=2),), priority=1), malleable("g", 10)]
    assert planned(window([nodes("a", cores=4)], *jobs))["g"].start == 100


CLASSES: dict[str, tuple[NodeClass, bool]] = {
    "drained": (nodes("a", cores=4, state=NodeState.DRAIN), False),
    "guarded": (nodes("a", cores=4, admits=(AdmitCondition(max_walltime=5),)), False),
    "larger": (nodes("a", cores=8), False),
    "kept free": (
        nodes("a", cores=4, mem=4, keep_free=(KeepFree(resource="mem", items=1, beneficiary="gpus"),)),
        False,
    ),
    "not kept free": (
        nodes("a", cores=4, mem=5, keep_free=(KeepFree(resource="mem", items=1, beneficiary="gpus"),)),
        True,
    ),
}


@pytest.mark.parametrize("case", CLASSES)
def test_on_which_nodes(case: str) -> None:
    """A guest stands only where it might stand alone, and a node keeps free what it has to."""
    node_class, is_one = CLASSES[case]
    mem: dict[str, Any] = {"mem": 2} if "mem" in node_class.resources else {}
    mate = lending("m", "a", walltime=100, beside=mem)
    guest = malleable("g", 10, chunks=(chunk(cores=4, **mem),))
    others = [nodes("b", cores=4, mem=9, gpus=1)]
    busy = replace(lending("busy", "b", walltime=500), malleability=None)
    found = planned(window([node_class, *others], mate, busy, guest))
    assert (is_guest(found["g"])) is is_one


def test_others_on_the_node() -> None:
    """On a node that another job uses, a third one gets nothing."""
    gpu = waiting("gpu", 30, chunk(gpus=1), priority=1)
    instance = window([nodes("a", cores=4, gpus=1)], lending("m", "a", walltime=100), gpu, malleable("g", 10))
    found = planned(instance)
    assert (found["gpu"].start, found["g"].start) == (0, 30)


def test_dependencies_of_guests() -> None:
    """A job that waits for others becomes a guest when they let it go, and waits on when reservations are made anew."""
    after = (Dependency(job="r", type=DependencyType.AFTERANY, delay=5),)
    late = (Dependency(job="w", type=DependencyType.AFTER, delay=3),)
    jobs = [
        lending("m", "a", walltime=100),
        replace(lending("r", "b", walltime=20), malleability=None),
        waiting("w", 400, chunk(cores=4), array=(1, 2), priority=9),
        malleable("h", 5, priority=2),
        malleable("g", 10, after=after),
        malleable("last", 7, after=late),
    ]
    found = planned(window([nodes("a b", cores=4)], *jobs))
    assert (found["h"].start, found["g"].start) == (0, 25)
    assert found["w[1]"].start == 20
    assert found["last"].start >= found["w[2]"].start + 3


# ---- shares ----


def test_a_core_for_each_rank() -> None:
    """Each chunk of a mate keeps a core; who gets less than its share by that is no guest (SD-9)."""
    classes = [nodes("a", cores=6)]
    guest = malleable("g", 10, chunks=(chunk(cores=6),))
    for kinds, is_one in (
        ((chunk(3, cores=2),), True),
        ((chunk(6, cores=1),), False),
        ((chunk(cores=4), chunk(2, cores=1)), False),
    ):
        mate = malleable("m", 100, chunks=kinds, priority=1)
        assert (planned(window(classes, mate, guest))["g"].start == 0) is is_one


def test_sharing_factor() -> None:
    """A guest gets the factor, and its mates keep the rest: 1 and 3 cores of 4; it runs 40 s, they lose 10 (SD-9)."""
    shares = Malleability(shares=(0.75, 0.25))
    jobs = [lending("m", "a", walltime=100, malleability=shares), malleable("g", 10, malleability=shares)]
    found = planned(window([nodes("a", cores=4)], *jobs), replace(FREE, sharing_factor=Fraction(1, 4)))
    assert cores_of(found["g"]) == [(0, 40, 1)]
    assert cores_of(found["m"]) == [(0, 40, 3), (40, 110, 4)]


def test_odd_cores() -> None:
    """Shares are rounded down: 2 of 5 cores each; 10 s take 25, and the mate does 10 of its 100 s meanwhile."""
    mate = malleable("m", 100, chunks=(chunk(cores=5),), priority=1)
    found = planned(window([nodes("a", cores=5)], mate, malleable("g", 10, chunks=(chunk(cores=5),))))
    assert cores_of(found["g"]) == [(0, 25, 2)]
    assert cores_of(found["m"]) == [(0, 25, 2), (25, 115, 5)]


# ---- the worst case predicts, the job's own model runs ----


def test_stretch_of_a_guest() -> None:
    """A guest that is predicted for 20 s and takes 12 gives the cores back then; those who wait move up (SD-11)."""
    guest = malleable("g", 10, malleability=Malleability(shares=(0.5,), stretch=FrozenMap({0.5: 1.2})))
    rigid = waiting("r", 5, chunk(cores=4))
    found = planned(window([nodes("a", cores=4)], lending("m", "a", walltime=50), guest, rigid))
    assert cores_of(found["g"]) == [(0, 12, 2)]
    assert cores_of(found["m"]) == [(0, 12, 2), (12, 56, 4)]
    assert found["r"].start == 56


def test_a_mate_that_ends_early() -> None:
    """A mate that loses nothing ends before its guest, who has those nodes for itself from then on."""
    free = Malleability(shares=(0.5,), stretch=FrozenMap({0.5: 1}))
    mates = [lending("m", "a", walltime=12, malleability=free), lending("n", "b", walltime=90)]
    for model, end in ((HALF, 18), (WORST, 20)):
        guest = malleable("g", 10, 2, malleability=model)
        found = planned(window([nodes("a b", cores=4)], *mates, guest))
        # 12 s at half speed leave 4 s of work, with 6 cores of 8 by the ideal model, at half speed by the worst one
        assert cores_of(found["m"]) == [(0, 12, 2)]
        assert [cores for _, _, cores in cores_of(found["g"])] == [4, 6]
        assert (found["g"].end, found["n"].end) == (end, 90 + end // 2)


def test_pace_on_uneven_nodes() -> None:
    """With 24 and 48 cores of 48 the ideal model does 3/4 of the work per second, the worst case a half (SD-3)."""
    guest = guest_of(malleable("g", 10, chunks=(chunk(2, cores=48),)), FREE)
    assert guest is not None
    allocation = guest.allocation(["a"], ["b"])
    assert [placement.resources["cores"] for placement in allocation] == [24, 48]
    assert guest.pace_on(allocation) == Pace(real=Fraction(3, 4), cautious=Fraction(1, 2))
    slow = Malleability(shares=(0.5,), stretch=FrozenMap({0.5: 3}))
    guest = guest_of(replace(guest.job, malleability=slow), FREE)
    assert guest is not None
    assert guest.pace_on(allocation) == Pace(real=Fraction(1, 3), cautious=Fraction(1, 3))


def test_slower_than_the_worst_case() -> None:
    """What a user says is believed where it is slower than the worst case: 10 s take 30."""
    slow = Malleability(shares=(0.5,), stretch=FrozenMap({0.5: 3}))
    for reserved, is_one in ((20, False), (21, True)):
        jobs = [
            lending("m", "a", walltime=100),
            replace(lending("r", "b", walltime=reserved), malleability=None),
            malleable("g", 10, malleability=slow),
        ]
        found = planned(window([nodes("a b", cores=4)], *jobs))["g"]
        assert is_guest(found) is is_one


# ---- what ran before ----


def test_a_running_job_that_nobody_can_change() -> None:
    """A running job whose segments do not do its work is a fact: it was given less time than it needs."""
    mate = lending("m", "a", walltime=100)
    assert mate.running is not None
    segment = replace(mate.running.segments[0], end=150)
    mate = replace(mate, running=replace(mate.running, segments=(segment,)))
    assert planned(window([nodes("a", cores=4)], mate, malleable("g", 10)))["g"].start == 150
