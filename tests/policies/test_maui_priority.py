"""The order of jobs in Maui: expansion factors, components, fairshare and qualities of service (MAUI-3 to MAUI-6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cpsched.domain import FrozenMap
from cpsched.lab.policies.maui.params import Fairshare, MauiParams, Qos, Target, Weights
from cpsched.lab.policies.maui.priority import Priorities, UsageHistory, expansion_factor, qos_name, target_factor
from tests.policies.maui_runs import HOUR, job, machine, played

MINE, OTHERS = np.array([0]), np.array([], dtype=np.int64)


def table(**names: Any) -> FrozenMap[str, Any]:
    return FrozenMap(names)


def priority(weights: Weights, *, wait: int = 90, times_bypassed: int = 0, **params: Any) -> float:
    """Return the priority of a job of ann's, of 4 cores and 8 MiB for 30 minutes, that has waited for a while."""
    one = job("one", 4, HOUR // 2, user="ann", group="g", project="p", queue="short")
    chunk = replace(one.request.chunks[0], count=4, resources=FrozenMap({"cores": 1, "mem": 2}))
    one = replace(one, steps=(replace(one.steps[0], request=replace(one.request, chunks=(chunk,))),))
    found = Priorities(
        MauiParams(weights=weights, **params), [one], np.array([0]), np.array([HOUR // 2]), np.array([4.0]), origin=0
    )
    for _ in range(times_bypassed):
        found.bypass([0])
    return float(found.of(np.array([0]), wait)[0])


def test_the_expansion_factor() -> None:
    """After an hour of waiting it is 3.0 for half an hour and 1.1 for ten hours (MAUI-3's numbers)."""
    factors = expansion_factor(np.array([3600.0, 3600.0]), np.array([1800, 36000]))
    assert factors.tolist() == [3.0, 1.1]


def test_by_default_only_queue_time_counts() -> None:
    """The priority is the minutes of waiting (MAUI-4)."""
    assert priority(Weights()) == 1.5


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        ("user", 7),
        ("group", 5),
        ("account", 3),
        ("queue", -2),
        ("qos", 100),
        ("nodes", 4),
        ("processors", 4),
        ("memory", 8),
        ("processor_seconds", 4 * 1800),
        ("walltime", 1800),
        ("queue_time", 30),
        ("xfactor", 2),
        ("bypass", 3),
        ("target_queue_time", 4),
        ("target_xfactor", 1 / (1 - 2 / 8) ** 2),
    ],
)
def test_each_component_counts_with_its_weight(component: str, expected: float) -> None:
    """A weight of 10 adds ten times the component (MAUI-4); after 30 minutes, and having been bypassed three times."""
    weights = Weights(**{"queue_time": 0, component: 10})
    priorities = table(user=table(ann=7, bob=9), group=table(g=5), account=table(p=3), queue=table(short=-2))
    qos = table(gold=Qos(users=("ann",), priority=100, target_queue_time=HOUR, target_xfactor=8))
    found = priority(weights, wait=1800, times_bypassed=3, priorities=priorities, qos=qos)
    assert found == pytest.approx(10 * expected)


def test_a_target_counts_the_more_the_nearer_it_is() -> None:
    """It grows from 1 to 10,000 where 1 % is left, stays there, and is 0 without a target."""
    values, targets = np.array([0.0, 50, 99, 200, 50]), np.array([100, 100, 100, 100, np.nan])
    assert target_factor(values, targets).tolist() == pytest.approx([1, 4, 10_000, 10_000, 0])


def test_credentials_decide_who_starts() -> None:
    """The user with the higher priority goes first, though all came at the same time."""
    jobs = [job("a", 1, 10, user="bob"), job("b", 1, 10, user="ann")]
    starts, _ = played(machine(1), jobs, weights=Weights(user=1), priorities=table(user=table(ann=1)))
    assert starts == {"a": 10, "b": 0}


def test_the_expansion_factor_lets_short_jobs_overtake() -> None:
    """By expansion factor a short job goes before a longer one that came a little earlier."""
    jobs = [job("now", 1, 100), job("long", 1, 1000, submit=1), job("tiny", 1, 10, submit=2)]
    starts, _ = played(machine(1), jobs, weights=Weights(queue_time=0, xfactor=1))
    assert starts == {"now": 0, "tiny": 100, "long": 110}


@pytest.mark.parametrize(("weight", "expected"), [(0, {"wide": 110, "new": 100}), (1, {"wide": 100, "new": 110})])
def test_who_was_bypassed_rises(weight: float, expected: dict[str, int]) -> None:
    """A job that two others were backfilled before goes before a newcomer, whose user is worth one bypass."""
    jobs = [
        job("a", 1, 100),
        job("wide", 2, 10, submit=1),
        job("f1", 1, 40, submit=2),
        job("f2", 1, 40, submit=42),
        job("new", 2, 10, submit=43, user="ann"),
    ]
    weights = Weights(queue_time=0, bypass=weight, user=1)
    starts, _ = played(machine(2), jobs, weights=weights, priorities=table(user=table(ann=1)))
    assert starts == {"a": 0, "f1": 2, "f2": 42} | expected


# --- fairshare --------------------------------------------------------------------------------------------------------


def test_the_share_of_past_usage() -> None:
    """With decay 0.5, 40, 10 and 30 of 100 each are (40 + 5 + 7.5) / 175 = 30 % (MAUI-5's example) (PBS-4)."""
    history = UsageHistory(origin=0, interval=200, depth=3, decay=0.5, count=1)
    for begin, own in ((0, 30), (200, 10), (400, 40)):  # the youngest window last; all of each is in its first half
        for who, since, until in ((MINE, begin, begin + own), (OTHERS, begin + own, begin + 100)):
            history.advance(since)
            history.change(who, 1.0, since)
            history.advance(until)
            history.change(who, -1.0, until)
    assert history.percentages() == pytest.approx([30])


def test_usage_is_counted_where_it_was_though_it_is_told_later() -> None:
    """What began and ended before now is counted in the windows in which it was, and old windows are forgotten."""
    history = UsageHistory(origin=0, interval=10, depth=2, decay=0.5, count=2)
    history.advance(25)
    history.change(np.array([0]), 3.0, 5)  # of which [5, 10) is too old
    history.change(np.array([0]), -3.0, 22)
    history.change(np.array([1]), 1.0, 20)
    # 0: 10 s x 3 in the older window, 2 s x 3 in this one; 1: 5 s in this one
    assert history.percentages().tolist() == pytest.approx([100 * 21 / 26, 100 * 5 / 26])
    history.advance(45)
    assert history.percentages().tolist() == pytest.approx([0, 100])


def test_the_distance_to_a_target() -> None:
    """At 30 % a target of 25 with weight 10 is worth -50 (MAUI-5's example), a floor nothing, a ceiling as much."""
    assert [10 * Target.of(text).distance(30) for text in ("25", "25+", "25-")] == [-50, 0, -50]
    assert [10 * Target.of(text).distance(10) for text in (25, "25+", "25-")] == [150, 150, 0]


@pytest.mark.parametrize("text", ["", "x", "25*", "101", "-5", "25+-", "nan"])
def test_a_target_that_is_none_is_refused(text: str) -> None:
    """What stands for no percentage is refused as it was given."""
    with pytest.raises(ValueError, match="Expected a fairshare target like 25, 25\\+ or 25-"):
        Target.of(text)


@pytest.mark.parametrize(
    ("target", "exempt", "first"),
    [("50", (), "b"), ("50-", (), "b"), ("50+", (), "a"), ("50", ("fairshare",), "a")],
)
def test_fairshare_decides_who_starts(target: str, exempt: tuple[str, ...], first: str) -> None:
    """Ann, who has used everything, goes behind bob, but not by a floor, nor if her quality of service is exempt."""
    jobs = [
        job("past", 1, 100, user="ann"),
        job("a", 1, 10, submit=1, user="ann"),
        job("b", 1, 10, submit=2, user="bob"),
    ]
    starts, _ = played(
        machine(1),
        jobs,
        weights=Weights(fairshare_user=1),
        fairshare=Fairshare(targets=table(user=table(ann=target))),
        qos=table(ann=Qos(users=("ann",), exempt=exempt)),
    )
    assert starts[first] == 100


def test_usage_of_accounts_and_queues_counts_by_their_targets() -> None:
    """A job has a term for each of its credentials with a target."""
    jobs = [
        job("past", 1, 100, project="p", queue="long"),
        job("a", 1, 10, submit=1, project="p", queue="short"),
        job("b", 1, 10, submit=2, queue="long"),
        job("c", 1, 10, submit=3),
    ]
    targets = table(account=table(p=50), queue=table(long=80))
    weights = Weights(fairshare_account=1, fairshare_queue=1)
    starts, _ = played(machine(1), jobs, weights=weights, fairshare=Fairshare(targets=targets))
    assert starts == {"past": 0, "c": 100, "b": 110, "a": 120}


# --- quality of service -----------------------------------------------------------------------------------------------


def test_the_users_quality_comes_before_the_groups_and_the_accounts() -> None:
    """A job has the first that its user, its group or its account has (MAUI-6)."""
    qos = table(acc=Qos(accounts=("p",)), grp=Qos(groups=("g",)), usr=Qos(users=("ann",)))
    params = MauiParams(qos=qos)
    known = [
        job("1", 1, 1, user="ann", group="g", project="p"),
        job("2", 1, 1, user="bob", group="g", project="p"),
        job("3", 1, 1, project="p"),
        job("4", 1, 1),
    ]
    assert [qos_name(params, one) for one in known] == ["usr", "grp", "acc", None]


def test_a_quality_can_be_exempt_from_the_reservation_depth() -> None:
    """The third job that waits gets a reservation only if its quality is exempt from the depth."""
    jobs = [job("a", 1, 100), job("b", 2, 10), job("c", 2, 10), job("d", 2, 10, user="ann")]
    _, plain = played(machine(2), jobs)
    _, exempt = played(machine(2), jobs, qos=table(ann=Qos(users=("ann",), exempt=("depth",))))
    assert (plain.promised[3], exempt.promised[3]) == (120, 110)
