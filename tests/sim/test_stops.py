"""Jobs that are stopped for others in simulations: worked examples, and records of every policy under the judge."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from cpsched.domain import Instance, PlannedJob
from cpsched.errors import UnsupportedError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import (
    BackfillRule,
    Checkpoint,
    Decision,
    History,
    News,
    Order,
    QueueRule,
    Scheduler,
    Site,
    simulate,
    unkept,
)
from tests.oracle.naive_simulator import play_naively
from tests.sim.charged import Clock, charged
from tests.sim.played import played, story_of
from tests.sizes import seeds

pytestmark = pytest.mark.kernels

EASY = QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING)
LOST, SAVED = {"by": "requeue"}, {"by": "checkpoint", "cost": 5, "interval": 30}
#: It keeps its memory, and has to ask for it.
ASLEEP, WITH_MEMORY = {"by": "suspend"}, "ncpus=4:mem=2mb"


def job(name: str, submit: int, runtime: int, queue: str = "low", request: str = "ncpus=4", **keys: Any) -> Any:
    """Return a job that asks for twice its runtime."""
    asks = {"walltime": 2 * runtime, "request": request} | keys
    return {"id": name, "submit": submit, "runtime": runtime, "queue": queue, **asks}


def workload(*jobs: Any, nodes: int = 1, **rules: Any) -> Instance:
    """Return a workload on nodes of four cores, with a queue whose jobs may stop those of another one."""
    document = {
        "format": "cpsched-instance/1",
        "name": "stops",
        "cluster": {"nodes": [{"names": f"n[1-{nodes}]", "resources": {"cores": 4, "mem": 8}}]},
        "queues": {"high": {"expected_wait": 60, "priority": 9}, "low": {"expected_wait": 3600}},
        "jobs": list(jobs),
        "preemption": {"queues": {"high": ["low"]}, **rules},
    }
    return parse_instance(document)


def story(history: History) -> tuple[dict[str, tuple[int, int]], list[tuple[str, int, int]]]:
    """Return when each job ran to its end, and the runs that were cut short."""
    record = history.record()
    return {one.id: (one.start, one.end) for one in record.jobs}, [
        (one.id, one.start, one.end) for one in record.attempts
    ]


URGENT = job("u", 100, 50, "high")


@pytest.mark.parametrize(
    ("way", "rules", "urgent", "again", "lost"),
    [
        (LOST, {}, (100, 150), (150, 350), 100),
        # three checkpoints are written, of which the last one saves 90 s; 5 s to begin again
        (SAVED, {}, (100, 150), (150, 265), 15),
        # it writes one more before it stops at 110: 105 s are saved
        (SAVED, {"notice": 10}, (110, 160), (160, 260), 10),
        # nothing else happens at 101
        (SAVED, {"exempt": 101}, (101, 151), (151, 266), 16),
        (SAVED, {"exempt": 201}, (200, 250), None, 0),
    ],
)
def test_what_a_stop_costs(way: Any, rules: Any, urgent: Any, again: Any, lost: int) -> None:
    """A stopped job begins anew, or continues from its last checkpoint; the seconds that it lost are counted."""
    history = played(workload(job("a", 0, 200, preemptible=way), URGENT, **rules), EASY)
    runs, cut = story(history)
    assert (runs["u"], runs["a"]) == (urgent, again or (0, 200))
    assert cut == ([("a", 0, urgent[0])] if again else [])
    assert history.summary().total.lost_core_seconds == 4 * lost


def test_the_cheapest_are_stopped_and_none_too_many() -> None:
    """Of jobs that make room those are stopped that lose least; what starts on free cores stops nobody."""
    jobs = [job(name, at, 500, request="ncpus=2", preemptible=LOST) for name, at in (("a", 0), ("b", 10), ("c", 20))]
    runs, cut = story(played(workload(*jobs, job("u", 60, 50, "high"), nodes=2), EASY))
    assert [name for name, *_ in cut] == ["c"]
    assert runs["u"] == (60, 110)
    assert runs["b"] == (10, 510)


@pytest.mark.parametrize("seed", range(5))
def test_all_that_are_stopped_are_needed(seed: int) -> None:
    """On whole nodes: beside the free nodes no smaller part of what was stopped would have been enough."""
    draw = Random(seed)
    low = [job(str(k), 0, draw.randint(100, 900), request=f"{draw.randint(1, 4)}:ncpus=4") for k in range(12)]
    low = [one | {"submit": draw.randint(0, 300), "preemptible": draw.choice([LOST, SAVED])} for one in low]
    need = draw.randint(2, 6)
    record = played(workload(*low, job("u", 400, 50, "high", f"{need}:ncpus=4"), nodes=8), EASY).record()

    def size(run: PlannedJob) -> int:
        return sum(held.count or 0 for held in run.segments[0].allocation)

    runs = (*record.attempts, *record.jobs)
    free = 8 - sum(
        size(run) for run in runs if run.start < 400 < run.end or (run.start < 400 and run in record.attempts)
    )
    cut = [size(run) for run in record.attempts if run.end == 400]
    assert next(run.start for run in record.jobs if run.id == "u") == 400
    assert free + sum(cut) >= need
    assert all(free + sum(cut) - one < need for one in cut)


def test_nothing_starts_while_jobs_have_notice() -> None:
    """The nodes on which jobs have notice, and free ones that the urgent job needs, are left to it."""
    jobs = [job("a", 0, 500, preemptible=LOST), job("u", 60, 50, "high", "2:ncpus=4"), job("z", 65, 30)]
    runs, _ = story(played(workload(*jobs, nodes=2, notice=20), EASY))
    assert runs["u"] == (80, 130)
    assert runs["z"][0] == 130


class Slow:
    """Starts what fits, in the order of the queue, after five seconds."""

    name = "slow"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def begin(self, site: Site) -> None:
        """Know nothing."""

    def decide(self, site: Site, news: News) -> Decision:
        """Start what fits."""
        self._clock.seconds += 5
        draft = site.draft()
        for one in site.queue.tolist():
            draft.start(one)
        return draft.decision()


def test_a_decision_waits_for_the_end_of_a_notice() -> None:
    """What a slow scheduler has decided has no effect while jobs have notice, and time goes on."""
    jobs = [job("a", 0, 500, preemptible=LOST), job("z", 60, 30), job("u", 62, 50, "high", "2:ncpus=4")]
    clock = Clock()
    runs, cut = story(charged(workload(*jobs, nodes=2, notice=20), Slow(clock), clock))
    assert (runs["u"], cut) == ((82, 132), [("a", 5, 82)])
    assert runs["z"][0] == 137


def test_levels_without_jobs_count() -> None:
    """A job may stop others however many queues without jobs are between theirs."""
    between = {"high": ["a", "low"], "a": ["b"], "b": ["c"], "c": ["low"]}
    document = _with(workload(job("x", 0, 500, preemptible=LOST), job("u", 60, 50, "high")))
    document["queues"] |= {name: {"expected_wait": 60} for name in "abc"}
    document["preemption"] = {"queues": between}
    runs, _ = story(played(parse_instance(document), EASY))
    assert runs["u"] == (60, 110)


def test_a_job_is_not_stopped_too_often() -> None:
    """After so many stops a job runs to its end."""
    jobs = [job("a", 0, 100, preemptible=LOST), job("u", 10, 20, "high"), job("v", 50, 20, "high")]
    runs, cut = story(played(workload(*jobs, stops=1), EASY))
    assert cut == [("a", 0, 10)]
    assert runs["v"][0] == runs["a"][1] == 130


def test_an_evolving_job_that_may_stop_others_is_refused() -> None:
    """Urgent jobs start apart from the scheduler, which alone knows of steps; one that may stop nobody evolves."""
    steps = [{"walltime": 10, "request": "ncpus=4"}, {"walltime": 20, "request": "ncpus=2"}]
    low = job("a", 0, 200, preemptible=LOST)
    for queue, is_played in (("high", False), ("low", True)):
        evolving = {"id": "e", "submit": 5, "queue": queue, "steps": steps, "expand_limit": None}
        if is_played:
            simulate(workload(low, evolving), make_scheduler("planner"))
        else:
            with pytest.raises(UnsupportedError, match="job e: evolves over several steps, and may stop others"):
                simulate(workload(low, evolving), make_scheduler("planner"))


def test_no_job_is_stopped_to_make_room_in_a_limit() -> None:
    """An urgent job whose user has as much as he may waits, as the judge says."""
    low = job("a", 0, 200, user="ann", preemptible=LOST)
    limit = {"consumer": {"each": "user"}, "resource": "cores", "items": "4"}
    document = instance_to_document(workload(low, URGENT | {"user": "ann"}, nodes=2)) | {"limits": [limit]}
    runs, cut = story(played(parse_instance(document), EASY))
    assert (runs["u"], cut) == ((200, 250), [])


def test_a_job_at_the_end_of_its_walltime_is_not_stopped() -> None:
    """A running job whose walltime is over at the beginning ends in the next second, whatever its runtime."""
    held = {"start": 0, "allocation": [{"node": "n1", "resources": {"cores": 4, "mem": 2}}]}
    late = job("a", 0, 90, walltime=100, request=WITH_MEMORY, preemptible=ASLEEP, running=held)
    document = _with(workload(late, URGENT), now=100)
    assert story(played(parse_instance(document), EASY)) == ({"a": (0, 101), "u": (101, 151)}, [])


@pytest.mark.parametrize(("mode", "again"), [("requeue", (150, 350)), ("suspend", (150, 250))])
def test_slurm_stops_small_jobs_first(mode: str, again: tuple[int, int]) -> None:
    """With a PreemptMode every job that can be is stopped in that way, those with few cores first, not the cheapest.
    What the jobs say themselves is not kept, which is told.
    """
    jobs = [job("a", 0, 200, request="ncpus=2:mem=2mb"), job("b", 90, 200, request=WITH_MEMORY, preemptible=LOST)]
    jobs += [job("c", 0, 300, request=WITH_MEMORY, deadline=900), URGENT]
    given, scheduler = workload(*jobs, nodes=3), make_scheduler("slurm", {"preempt_mode": mode})
    assert len(unkept(given, scheduler)) == 1 + len(unkept(given, make_scheduler("slurm")))
    runs, cut = story(played(given, scheduler))
    assert (runs["u"], cut, runs["a"]) == ((100, 150), [("a", 0, 100)], again)


def test_a_walltime_wastes_no_checkpoint() -> None:
    """Where jobs resume, one that its walltime ends continues from its last checkpoint, until it is done."""
    long = job("a", 0, 200, walltime=100, preemptible=SAVED)
    lost, _ = story(played(workload(long), EASY))
    assert lost["a"] == (0, 100)  # it is killed
    history = played(workload(long, resume=True), EASY)
    runs, cut = story(history)
    # of 100 s 85 are kept, and of the next 100 again
    assert cut == [("a", 0, 100), ("a", 100, 200)]
    assert runs["a"] == (200, 230)
    assert history.summary().total.killed == 0


def test_checkpoints_survive_outages() -> None:
    """A job whose node fails continues from its last checkpoint, too."""
    document = workload(job("a", 0, 200, preemptible=SAVED), nodes=2)
    document = parse_instance(_with(document, outages=[{"nodes": "n[1-2]", "start": 100, "end": 110}]))
    assert story(played(document, EASY)) == ({"a": (110, 225)}, [("a", 0, 100)])


def _with(instance: Instance, **keys: Any) -> Any:
    return instance_to_document(instance) | keys


def test_a_checkpoint_of_the_simulation_is_refused(tmp_path: Any) -> None:
    """What the state of stops is is not kept in a file yet, and is refused by its name."""
    with pytest.raises(UnsupportedError, match="preemptible"):
        simulate(
            workload(job("a", 0, 9, preemptible=LOST)),
            EASY,
            checkpoint=Checkpoint(path=tmp_path / "x", scheduler="easy"),
        )


def drawn(seed: int) -> Instance:
    """Return a random workload with stops, outages and walltimes that are too short."""
    draw = Random(seed)
    jobs, draws = [], draw.choice
    for number in range(25):
        queue, walltime = draws(["high", "low", "low", "best"]), draw.randint(20, 400)
        saved = {"by": "checkpoint", "cost": draw.randint(0, 9), "interval": draw.randint(10, 60)}
        ways = [LOST, saved, ASLEEP, ASLEEP]
        can_stop = {"preemptible": draws(ways)} if queue != "high" and draw.random() < 0.8 else {}
        request = f"{draw.randint(1, 3)}:ncpus={draws([2, 4])}:mem={draws([1, 1, 2, 4])}mb"
        runtime = draw.randint(1, 3 * walltime // 2)
        jobs.append(job(str(number), draw.randint(0, 900), runtime, queue, request, walltime=walltime, **can_stop))
    who = draws([{"high": ["low", "best"], "low": ["best"]}, {"high": ["best"]}, {}])
    rules = {"notice": draws([0, 0, 5, 12]), "exempt": draws([0, 0, 30]), "resume": draw.random() < 0.5, "queues": who}
    rules |= {"stops": draw.randint(1, 2)} if draw.random() < 0.5 else {}
    outages: list[Any] = [{"nodes": "n1", "start": draw.randint(10, 900), "end": 950}] if draw.random() < 0.4 else []
    now = draws([0, 0, 200])
    if now:
        held = {"start": draw.randint(0, now), "allocation": [{"node": "n2", "resources": {"cores": 2, "mem": 1}}]}
        keys = {"preemptible": draws([LOST, {"by": "checkpoint", "cost": 3, "interval": 20}, ASLEEP]), "walltime": 600}
        jobs.append(job("on", 0, draw.randint(1, 800), "best", "ncpus=2:mem=1mb", running=held, **keys))
        outages = [one | {"start": now + one["start"], "end": now + 950} for one in outages]
    document = _with(workload(nodes=3), jobs=jobs, outages=outages, preemption=rules, now=now)
    document["queues"]["best"] = {"expected_wait": 3600, "priority": -5, "weight": 0.1}
    return parse_instance(document)


@pytest.mark.parametrize("seed", seeds(200))
def test_stops_are_played_as_by_the_naive_twin(seed: int) -> None:
    """Starts, ends, nodes, what is cut short when, and the work that is lost are the same."""
    ways, orders = list(BackfillRule)[:3], [Order.SUBMISSION, Order.WALLTIME]
    rule = QueueRule(name="drawn", backfill=ways[seed % 3], order=orders[seed // 3 % 2])
    instance = drawn(seed)
    assert story_of(instance, played(instance, rule)) == play_naively(instance, rule, predicts=None)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "policy",
    [EASY, QueueRule(name="sjf", backfill=BackfillRule.NOBODY, order=Order.WALLTIME), "smith", "slurm", "conservative"],
    ids=lambda policy: getattr(policy, "name", policy),
)
def test_every_record_is_valid(policy: QueueRule | str, seed: int) -> None:
    """Whatever the policy, work is conserved and only such jobs are stopped as may be: the judge finds no fault."""
    scheduler: QueueRule | Scheduler = make_scheduler(policy) if isinstance(policy, str) else policy
    assert len(played(drawn(seed), scheduler).runs)


def test_a_suspended_job_continues_where_it_was() -> None:
    """It loses nothing, and what is free of its cores meanwhile is for jobs only that may stop it."""
    jobs = [job("a", 0, 200, request="2:" + WITH_MEMORY, preemptible=ASLEEP), job("z", 10, 20, request="ncpus=2")]
    urgent = [job("u", 100, 50, "high", "ncpus=2"), job("v", 120, 30, "high", "ncpus=4:mem=6mb")]
    history = played(workload(*jobs, *urgent, nodes=2), EASY)
    runs, cut = story(history)
    assert (runs["u"], runs["v"], runs["a"], cut) == ((100, 150), (120, 150), (150, 250), [("a", 0, 100)])
    assert runs["z"] == (250, 270)
    assert history.summary().total.lost_core_seconds == 0


def test_a_suspended_job_keeps_its_memory() -> None:
    """An urgent job that needs the memory, too, waits until the job has ended."""
    jobs = [job("a", 0, 200, request=WITH_MEMORY, preemptible=ASLEEP), job("u", 100, 50, "high", "ncpus=4:mem=7mb")]
    assert story(played(workload(*jobs), EASY)) == ({"a": (0, 200), "u": (200, 250)}, [])


def test_the_last_that_was_suspended_continues_first() -> None:
    """Where jobs of three levels have lent the same cores, the highest gets them back first."""
    document = _with(workload(job("c", 20, 30, "high", WITH_MEMORY)))
    low = [("a", 0, 100, "low"), ("b", 10, 50, "mid")]
    document["jobs"] += [job(*one, WITH_MEMORY, preemptible=ASLEEP) for one in low]
    document["queues"]["mid"] = {"expected_wait": 60}
    document["preemption"] = {"queues": {"high": ["mid"], "mid": ["low"]}}
    runs, cut = story(played(parse_instance(document), EASY))
    assert runs == {"c": (20, 50), "b": (50, 90), "a": (90, 180)}
    assert cut == [("a", 0, 10), ("b", 10, 20)]


@pytest.mark.parametrize(("fails", "again"), [(130, 150), (170, 180)])
def test_a_failure_takes_what_a_suspended_job_has_done(fails: int, again: int) -> None:
    """A node that fails takes the work in its memory, whether the job is suspended or has continued."""
    jobs = [job("a", 0, 200, request=WITH_MEMORY, preemptible=ASLEEP), URGENT]
    document = _with(workload(*jobs), outages=[{"nodes": "n1", "start": fails, "end": again}])
    history = played(parse_instance(document), EASY)
    runs, _ = story(history)
    assert runs["a"][1] - runs["a"][0] == 200
    assert runs["a"][0] >= again


def test_nothing_is_suspended_beside_a_reservation() -> None:
    """A job that may be suspended, and amounts that are set aside for a time, are refused by name."""
    asleep = job("a", 0, 100, request=WITH_MEMORY, preemptible=ASLEEP)
    with pytest.raises(UnsupportedError, match="job a: may be suspended"):
        simulate(workload(asleep, job("z", 0, 10, start_at=50)), EASY)
