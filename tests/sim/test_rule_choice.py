"""The rule that gives way to another one where that wins on the past, and the portfolio on-line, made of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from cpsched.domain import Instance, Step
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import (
    BackfillRule,
    Decision,
    Expectation,
    News,
    Order,
    QueueRule,
    RuleChoice,
    Site,
    contests,
    rule_choice,
    simulate,
)
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.sim.played import played, starts

pytestmark = pytest.mark.kernels


class Refusing:
    """A scheduler that nobody is to ask."""

    name = "refusing"

    def begin(self, site: Site) -> None:
        """Refuse."""
        raise AssertionError(self.name)

    def decide(self, site: Site, news: News) -> Decision:
        """Refuse."""
        raise AssertionError(self.name)


def smith(gate: float | None) -> QueueRule:
    """Return the rule with a gate."""
    rule = make_scheduler("smith", {"gate": gate})
    assert isinstance(rule, QueueRule)
    return rule


def chosen(usual: float | None, other: float | None) -> RuleChoice:
    """Return a rule with one gate, or another one where that wins."""
    rules = smith(usual), replace(smith(other), name="other")
    return RuleChoice(name="tested", rules=rules, otherwise=Refusing())


def busy(seed: int, number: int = 200) -> Instance:
    """Return a workload in which jobs of very different indices wait: a strict gate is bad for it."""
    random = Random(seed)
    jobs = []
    for place in range(number):
        cores, walltime = random.choice([1, 1, 1, 2, 4]), random.choice([10, 10, 60, 600])
        runtime = random.randint(1, walltime)
        jobs.append(waiting(f"j{place}", walltime, chunk(cores, cores=1), submit=20 * place, runtime=runtime))
    return window([nodes("n", cores=4)], *jobs)


def figures(instance: Instance, rule: QueueRule | RuleChoice) -> float:
    """Return the sum of waits under a rule; the judge has seen the record."""
    begun = starts(played(instance, rule))
    return sum(begun[job.id] - job.submit for job in instance.jobs)


def frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have rules compared often."""
    monkeypatch.setattr(contests, "_MOVED", 30)
    for name, number in {"_FIRST": 40, "_NEXT": 40, "_LEAST": 0, "_BETWEEN": 10}.items():
        monkeypatch.setattr(rule_choice, name, number)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_usual_rule_stays_where_the_other_one_loses(seed: int) -> None:
    """Each job starts when it starts under the usual rule."""
    instance = busy(seed)
    assert starts(played(instance, chosen(None, 0.0))) == starts(played(instance, smith(None)))


@pytest.mark.parametrize("seed", [1, 5])
def test_the_other_rule_is_used_where_it_wins(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the usual rule and the other one exchanged the sum of waits falls, from the first comparison on."""
    frequent(monkeypatch)
    instance = busy(seed)
    worse, better, found = (figures(instance, rule) for rule in (smith(0.0), smith(None), chosen(0.0, None)))
    assert better < worse
    assert found < 0.8 * worse + 0.2 * better


def test_no_decision_knows_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts before the first second at which a workload differs from another one are the same in both, though by then
    the rules have been compared many times.
    """
    monkeypatch.setattr(contests, "_MOVED", 30)
    for name, number in {"_FIRST": 10, "_NEXT": 10, "_BETWEEN": 5}.items():
        monkeypatch.setattr(rule_choice, name, number)
    instance = busy(3, 120)
    begun = starts(played(instance, chosen(0.0, None)))
    # the runtimes of jobs that start after the middle, and all that comes after it
    middle = instance.jobs[60].submit
    longer = tuple(
        job
        if begun[job.id] < middle
        else replace(job, runtime=job.walltime, submit=job.submit + 3 * (job.submit > middle))
        for job in instance.jobs
    )
    other = starts(played(replace(instance, jobs=longer), chosen(0.0, None)))
    assert {name: start for name, start in other.items() if start < middle} == {
        name: start for name, start in begun.items() if start < middle
    }


def test_changing_jobs_are_the_third_scheduler_s() -> None:
    """A workload with an evolving job is played by the scheduler that can do that."""
    instance = busy(1, 3)
    first, *others = instance.jobs
    steps = tuple(Step(walltime=10, request=chunk_of) for chunk_of in (first.request, first.request))
    evolving = replace(instance, jobs=(replace(first, steps=steps, runtime=None), *others))
    with pytest.raises(AssertionError, match="refusing"):
        played(evolving, chosen(None, 2.0))


def test_the_portfolio_is_smith_where_nothing_wins() -> None:
    """On a small workload it starts each job when `smith` does."""
    instance = busy(4, 60)
    assert starts(played(instance, make_scheduler("portfolio", {}))) == starts(played(instance, smith(None)))


def test_the_history_says_which_rule_was_used_when(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the beginning the usual one; after the change the other one for a day, whatever happens, with its
    evidence.
    """
    frequent(monkeypatch)
    instance = busy(1)
    history = simulate(instance, chosen(0.0, None))
    uses = history.rules
    assert [use.rule for use in uses] == ["smith", "other"]
    said = history.as_run("tested").remarks
    assert len(said) == 2
    assert f"{uses[1].jobs:,} jobs" in said[1]
    assert (uses[0].since, uses[0].jobs, uses[0].ratio) == (instance.now, 0, 1.0)
    assert uses[1].since > instance.jobs[39].submit
    assert uses[1].jobs >= 40
    assert uses[1].ratio < 0.98
    assert simulate(instance, smith(None)).rules == ()


def test_a_rule_stays_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two workloads one after the other each is another rule's: it changes only when a day is over."""
    frequent(monkeypatch)
    monkeypatch.setattr(rule_choice, "_MOST", 200)
    monkeypatch.setattr(rule_choice, "_DAY", 5_000)
    second = busy(4, 400)
    calm = tuple(
        replace(job, id=f"c{place}", runtime=1, submit=second.jobs[-1].submit + 2_000 * place)
        for place, job in enumerate(second.jobs[:100], 1)
    )
    uses = simulate(replace(second, jobs=(*second.jobs, *calm)), chosen(0.0, None)).rules
    assert [use.rule for use in uses[:3]] == ["smith", "other", "smith"]
    assert all(after.since >= before.since + 5_000 for before, after in pairwise(uses[1:]))


def test_a_rule_of_another_order_takes_the_queue_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one core jobs start in the order of their lengths, and when all are due at once as they came, those too that
    wait by then.
    """
    frequent(monkeypatch)
    monkeypatch.setattr(rule_choice, "_best", lambda rules, *_: (rules[1], 0.9))
    random = Random(1)
    jobs = [waiting(f"j{n}", random.randint(1, 30), chunk(1, cores=1), submit=10 * n) for n in range(120)]
    shortest = QueueRule(name="sjf", backfill=BackfillRule.RESERVING, order=Order.WALLTIME, due_after=9.0)
    in_order = replace(shortest, name="in_order", due_after=0.0)
    instance = window([nodes("n", cores=1)], *jobs)
    history = simulate(instance, RuleChoice(name="tested", rules=(shortest, in_order), otherwise=Refusing()))
    change = history.rules[1].since
    begun = {job.id: job.start for job in history.record().jobs}
    late = [begun[job.id] for job in jobs if begun[job.id] > change]
    early = [begun[job.id] for job in jobs if begun[job.id] <= change]
    assert len(late) > 60
    assert late == sorted(late)
    assert early != sorted(early)


@pytest.mark.parametrize(
    "other",
    [
        QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING),
        QueueRule(name="other", backfill=BackfillRule.RESERVING, order=Order.SMITH, expect=Expectation.WALLTIME),
    ],
)
def test_rules_under_which_jobs_may_starve_are_refused(other: QueueRule) -> None:
    """No choice may break the promise, and all rules have reservations."""
    with pytest.raises(ValueError, match="nobody starves"):
        RuleChoice(name="tested", rules=(smith(None), other), otherwise=Refusing())
