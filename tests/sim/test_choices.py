"""Jobs with alternatives in simulations: by rules the first choice that fits, by engines the one that is planned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cpsched.domain import Consumer, ConsumerKind, FrozenMap, Instance, ItemBound, Job, Limit, Outage, Step
from cpsched.errors import DocumentError, UnsupportedError
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import (
    BackfillRule,
    Checkpoint,
    Decision,
    Expectation,
    History,
    Interrupted,
    Moment,
    News,
    Order,
    QueueRule,
    Site,
    simulate,
    unkept,
)
from cpsched.metrics import Ending
from cpsched.verify import verify
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle.naive_simulator import play_naively
from tests.sim.interrupted import forged, looking_often, written
from tests.sim.played import played, story_of

RULES = (
    QueueRule(name="fcfs", backfill=BackfillRule.NOBODY),
    QueueRule(name="first_fit", backfill=BackfillRule.ANYBODY, max_starve=30),
    QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING),
    QueueRule(name="sjf", backfill=BackfillRule.NOT_DELAYING, order=Order.WALLTIME, expect=Expectation.CLASSES),
    QueueRule(name="in_order", backfill=BackfillRule.RESERVING),
    QueueRule(
        name="smith",
        backfill=BackfillRule.RESERVING,
        order=Order.SMITH,
        due_after=2.0,
        gate=2.0,
        expect=Expectation.CLASSES,
    ),
)


def step(walltime: int, count: int, cores: int = 1) -> Step:
    """Return an alternative of so many chunks."""
    return replace(waiting("x", walltime, chunk(count, cores=cores)).steps[0], walltime=walltime)


def job(name: str, submit: int, own: Step, *others: Step, runtime: int | None = None) -> Job:
    """Return a job that runs by its own request or by others."""
    return replace(waiting(name, 1, chunk(cores=1), submit=submit, runtime=runtime), steps=(own,), alternatives=others)


def near(job: Job, level: str | None, random: Random) -> Job:
    """Return a job whose own request is within groups of a level: one, or several of segments or with few chunks."""
    own = job.steps[0]
    place, count = replace(own.request.place, within=level), own.request.chunks[0].count
    if level is not None and random.random() < 0.3:
        place = replace(place, spread=random.choice([1, 2]))
    elif level is not None and random.random() < 0.4:
        place = replace(place, segment=random.choice([size for size in (1, 2, 3) if count % size == 0]))
    return replace(job, steps=(replace(own, request=replace(own.request, place=place)),))


def busy(seed: int, *, fails: bool = False) -> Instance:
    """Return a workload of a few nodes of two kinds, on which most jobs have several choices, some of them too large;
    nodes may fail, and jobs across groups of nodes may be slower.
    """
    random = Random(seed)
    machine = [nodes("a1 a2 a3", cores=2), nodes("b1", cores=4)][: random.choice([1, 2])]
    jobs, submit = [], 0
    for number in range(14):
        submit += random.choice([0, 0, 1, 5, 20])
        drawn = [step(random.randint(1, 40), random.randint(1, 4), random.choice([1, 2, 2, 5])) for _ in range(3)]
        own, *others = list(dict.fromkeys(drawn))[: random.choice([1, 2, 3])]
        others = [replace(one, cost=random.choice([0, 0, 3, 30])) for one in others]
        runtime = random.choice([None, random.randint(1, own.walltime + 5)])
        jobs.append(replace(job(f"j{number}", submit, own, *others, runtime=runtime), user=random.choice(["u", "v"])))
    found = window(machine, *jobs)
    if random.random() < 0.5:
        racks: dict[str, tuple[str, ...]] = {"r1": ("a1", "a2", "a3")}
        switches: dict[str, tuple[str, ...]] = {"s1": ("a1", "a2"), "s2": ("a3",)}
        topology = FrozenMap({"rack": FrozenMap(racks), "switch": FrozenMap(switches)})
        slowdown = FrozenMap({"rack": random.choice([10, 150]), "switch": 33})
        found = replace(found, cluster=replace(found.cluster, topology=topology, slowdown=slowdown))
        places = [random.choice([None, "rack", "switch"]) for _ in found.jobs]
        found = replace(found, jobs=tuple(near(*pair, random) for pair in zip(found.jobs, places, strict=True)))
    if fails:
        start = random.randint(1, 60)
        found = replace(found, outages=(Outage(nodes=("a1",), start=start, end=start + random.randint(1, 30)),))
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rules_take_the_first_that_fits_as_the_naive_twin(rule: QueueRule) -> None:
    """Each job has the start, the end and the nodes of the twin; the judge accepts the record.

    In the last window a choice opens to a job that runs already: nothing happens then.
    """
    for seed in (*range(11), 255):
        instance = busy(seed, fails=seed % 3 == 2)
        history = played(instance, rule)
        assert story_of(instance, history) == play_naively(instance, rule, predicts=None), f"seed {seed}"


FOUR = nodes("n1 n2 n3 n4", cores=1)
FCFS = QueueRule(name="fcfs", backfill=BackfillRule.NOBODY)


def outcomes(history: History) -> list[tuple[str, int, int, int]]:
    """Return the id, start, end and choice of each job."""
    return [(one.id, one.start, one.end, one.alternative) for one in history.record().jobs]


def test_what_a_job_takes_by_its_alternative() -> None:
    """Of four nodes a has two until 20. b asks for four for 10 s, of which it takes 5, or two for 16 s: it runs by
    these at once, for 5/10 of 16 s. c, killed at its walltime, is so by its alternative, too.
    """
    jobs = (
        job("a", 0, step(20, 2)),
        job("b", 1, step(10, 4), step(16, 2), runtime=5),
        job("c", 9, step(10, 4), step(16, 2), runtime=11),
    )
    history = played(window([FOUR], *jobs), FCFS)
    assert outcomes(history) == [("a", 0, 20, 0), ("b", 1, 9, 1), ("c", 9, 25, 1)]
    runs = history.runs
    assert runs.cores.tolist() == runs.asked["cores"].tolist() == [2, 2, 2]
    assert (runs.walltime.tolist(), runs.runtime.tolist()) == ([20, 16, 16], [-1, 8, 18])
    assert [Ending(ending) for ending in runs.ending] == [Ending.COMPLETED, Ending.COMPLETED, Ending.KILLED]


def test_a_job_that_cannot_start_by_its_own_request_waits_by_the_first_that_could() -> None:
    """Five nodes are not there; three are when a has ended."""
    jobs = job("a", 0, step(5, 2)), job("b", 0, step(1, 5), step(4, 3), step(7, 4))
    assert outcomes(played(window([FOUR], *jobs), FCFS)) == [("a", 0, 5, 0), ("b", 5, 9, 1)]


def test_rules_of_the_site_leave_the_first_that_is_possible() -> None:
    """Where cores of a user are limited, b runs by three nodes, since five are not there, and c has no choice."""
    choosing = job("b", 0, step(3, 5), step(6, 3), runtime=2), job("c", 1, step(3, 4), step(7, 2), runtime=3)
    jobs = [replace(one, user="ann") for one in (job("a", 0, step(5, 2)), *choosing)]
    consumer = Consumer(kind=ConsumerKind.USER, name="ann")
    limit = Limit(consumer=consumer, resource="cores", items=ItemBound(least=4))
    history = played(replace(window([FOUR], *jobs), limits=(limit,)), FCFS)
    assert outcomes(history) == [("a", 0, 5, 0), ("b", 5, 9, 1), ("c", 9, 12, 0)]
    assert history.runs.asked["cores"].tolist() == [2, 3, 4]


PAIR = [job(name, 0, step(10, 4), step(12, 2)) for name in "ab"]


def test_engines_choose() -> None:
    """The first that fits is all four nodes for a, and then for b; the planner runs both on two nodes at once."""
    instance = window([FOUR], *PAIR)
    by_rule, planned = (played(instance, make_scheduler(name)) for name in ("easy", "planner"))
    assert outcomes(by_rule) == [("a", 0, 10, 0), ("b", 10, 20, 0)]
    assert outcomes(planned) == [("a", 0, 12, 1), ("b", 0, 12, 1)]
    assert planned.record().objective.value < by_rule.record().objective.value


def test_an_engine_goes_on_with_what_was_chosen() -> None:
    """Both run on two nodes; a ends early, and c, which comes then, has its nodes."""
    jobs = job("a", 0, step(30, 4), step(16, 2), runtime=15), PAIR[1]
    later = job("c", 8, step(6, 4), step(9, 2))
    history = played(window([FOUR], *jobs, later), make_scheduler("planner"))
    assert outcomes(history) == [("a", 0, 8, 1), ("b", 0, 12, 1), ("c", 8, 17, 1)]


class Drafting:
    """Starts what fits, in the order of submission."""

    name = "drafting"

    def begin(self, site: Site) -> None:
        """Remember nothing."""

    def decide(self, site: Site, news: News) -> Decision:
        """Start what fits now."""
        draft = site.draft()
        for one in site.queue.tolist():
            draft.start(one)
        return draft.decision()


def test_a_draft_takes_the_first_that_fits() -> None:
    """As a rule without reservations does; other schedulers start jobs by their own requests, which is told."""
    for seed in range(4):
        instance = busy(seed)
        rule = QueueRule(name="first_fit", backfill=BackfillRule.ANYBODY)
        assert outcomes(played(instance, Drafting())) == outcomes(played(instance, rule))
    instance = window([FOUR], *PAIR)
    assert outcomes(played(instance, make_scheduler("conservative"))) == [("a", 0, 10, 0), ("b", 10, 20, 0)]
    assert "alternatives (2 jobs)" in unkept(instance, make_scheduler("conservative"))[0]
    assert unkept(instance, make_scheduler("easy")) == unkept(instance, make_scheduler("planner")) == ()


def test_an_interrupted_simulation_goes_on_by_what_was_chosen(tmp_path: Path) -> None:
    """A checkpoint has the choices; one with others is refused."""
    instance, rule = busy(5, fails=True), RULES[2]
    whole = simulate(instance, rule)

    def stop(moment: Moment) -> None:
        if moment.done >= 4:
            raise KeyboardInterrupt

    checkpoint = Checkpoint(path=tmp_path / "state", scheduler="easy")
    with looking_often(1), pytest.raises(Interrupted):
        simulate(instance, rule, progress=stop, checkpoint=checkpoint)
    resumed = simulate(instance, rule, checkpoint=replace(checkpoint, resume=True))
    assert outcomes(resumed) == outcomes(whole)
    arrays = written(checkpoint.path)
    for name in ("state.choice", "state.demand", "state.cores"):
        forged({**arrays, name: arrays[name] + 1}, checkpoint.path)
        with pytest.raises(DocumentError, match=name):
            simulate(instance, rule, checkpoint=replace(checkpoint, resume=True))


def test_the_judge_finds_a_wrong_choice() -> None:
    """A record that says another choice than that by which a job has run, or an end by another speed-up, is refused."""
    instance = window([FOUR], job("a", 0, step(20, 2)), job("b", 1, step(10, 4), step(16, 2), runtime=5))
    document = plan_to_document(played(instance, FCFS).record())
    ran = document["jobs"][1]
    assert not verify(instance_to_document(instance), document)
    for change in (
        {"alternative": 0},
        {"end": ran["end"] - 3, "segments": [ran["segments"][0] | {"end": ran["end"] - 3}]},
    ):
        wrong = document | {"jobs": [document["jobs"][0], ran | change]}
        assert verify(instance_to_document(instance), wrong)


@pytest.mark.parametrize("times", [{"deadline": 99}, {"start_at": 5}])
def test_a_choice_beside_a_last_start_is_refused(times: dict[str, Any]) -> None:
    """By which of its choices it keeps that is nothing that a rule knows."""
    with pytest.raises(UnsupportedError, match="job a: has alternatives, and a deadline or one start"):
        simulate(window([FOUR], replace(PAIR[0], **times)), FCFS)
