"""Some hundreds of the cases that ``scripts/random_judges rules`` runs by the thousand; the judge sees faults."""

from __future__ import annotations

from itertools import combinations, product
from math import inf, prod

import pytest

from tests.judges.ruled_windows import features_of, ruled_window
from tests.judges.rules import judge_rules
from tests.judges.shrinking import shrunk
from tests.oracle.brute_force import Window
from tests.oracle.literal_rules import Booked
from tests.sizes import seeds, some
from tests.verify.lenient import without_limits

FEATURES = (
    "arrays, cores kept free, deadlines, dependencies, downtime, drained nodes, earliest starts, excl, fixed starts, "
    "free pool, free pool: asks_for, free pool: groups, free pool: max, free pool: max_walltime, free pool: nodes, "
    "free pool: otherwise, free pool: users, guards, hard max_wait, jobs in reservations, licences, limit of a group, "
    "limit of a user, limit of each group, limit of each user, limit on *, limit on arrayjobs, limit on jobs, limit: "
    "area, limit: duration, limit: items, limit: outstanding area, limit: percent, limit: soft, limit: zero, "
    "max_wait, max_walltime, nodes that are down, pack, promised starts, properties, reservation, reservation: "
    "exclusive, reservation: licences, reservation: users, running jobs, scatter, several kinds of chunks, validity: "
    "always, validity: cron, validity: interval"
)
#: Every rule of the verifier that the changed plans of some windows break first.
BROKEN = (
    "capacity deadline dependency earliest_start exclusive free_pool guard keep_free licenses limit max_wait place "
    "queue reservation start_at state where"
)


@pytest.mark.parametrize("seed", seeds(200))
def test_oracle_and_verifier_agree(seed: int) -> None:
    """The verifier accepts the best plan of a random window, and says of each change of it what the oracle says."""
    case = judge_rules(seed, engines=False)
    assert case.failures == []


#: Windows in which something failed once: words with strange names, a job that a limit shut out from some second on,
#: openings that the engines' window does not have, a bound that took the nodes of a reservation for given, an
#: outstanding area that was given to jobs which the limit never meets, or which could have waited for its end, free
#: pools that did not count jobs in reservations, or some running ones, a job that the search
#: could not have; some that only a soft limit leaves with fewer jobs; a job that only one of all orders of jobs gives a
#: place, one for which a free pool left too little on the only node that another pool leaves to it, and jobs in a
#: reservation beside one that runs since before it, on a node that keeps something free; a job that has to end before a
#: free pool leaves it no room for ever, and one that may not run because of an outstanding area that went to jobs which
#: can never start; a job that wants its node for itself in a reservation of a part of a node.
MENDED = (
    *(5, 9, 27, 93, 102, 138, 5035),
    *(100_327, 100_716, 101_101, 101_616, 102_463, 102_639, 103_124, 104_828, 105_050, 106_640, 107_055, 107_614),
)
#: Trying everything takes a minute there.
LONG = {100_716: pytest.mark.large}


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*seeds(40), *(pytest.param(seed, id=f"mended-{seed}", marks=LONG.get(seed, ())) for seed in MENDED)]
)
def test_engines_keep_the_rules_and_lose_no_job(seed: int) -> None:
    """The plans of all engines keep the rules, have as many jobs as possible, and no value or bound that is false; what
    CP-SAT finds in its window is proven.
    """
    case = judge_rules(seed, has_processes=False)
    assert case.failures == []
    assert not any(outcome == "not proven" for _, outcome in case.proofs)
    assert case.is_too_large or {"planner", "search", "cp"} <= case.engines.keys()


@pytest.mark.slow
def test_the_windows_have_every_rule() -> None:
    """A few hundred windows have every rule, few are too large for the oracle, and changes of plans break all rules."""
    found = set[str]().union(*(features_of(ruled_window(seed)) for seed in range(400)))
    assert found >= set(FEATURES.split(", ")), set(FEATURES.split(", ")) - found
    cases = [judge_rules(seed, engines=False) for seed in range(120)]
    assert sum(case.is_too_large for case in cases) < 3
    broken = set[str]().union(*(case.verdicts for case in cases))
    assert broken >= {"none", *BROKEN.split()}, set(BROKEN.split()) - broken
    assert ruled_window(7) == ruled_window(7)


def test_a_lenient_verifier_is_found() -> None:
    """If the verifier did not know limits, the judge would say so, and name the limit in a small window."""
    with without_limits():
        seed = next(seed for seed in range(100) if judge_rules(seed, engines=False).failures)
        assert "verifier allows it" in judge_rules(seed, engines=False).failures[0]


def test_parts_that_make_no_difference_are_left_out() -> None:
    """A failing document shrinks to the one limit and the one job that matter."""
    document = next(ruled_window(seed) for seed in range(100) if len(ruled_window(seed).get("limits", [])) > 1)
    small = shrunk(document, lambda one: len(one.get("limits", [])) > 0 and len(one["jobs"]) > 0)
    assert (len(small["limits"]), len(small["jobs"])) == (1, 1)
    assert "objective" not in small
    assert small["jobs"][0]["walltime"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", some([seed for seed in range(400) if len(ruled_window(seed)["jobs"]) <= 2][:60], 3))
def test_events_suffice(seed: int) -> None:
    """On the tiniest windows, trying every second finds no better plan than trying the seconds of events."""
    document = ruled_window(seed)
    window = Window(document)
    if "epoch" in document or window.horizon - window.now > 40:
        document = {**document, "reservations": [], "free_pools": []}
        document["limits"] = [{**one, "validity": "always"} for one in document.get("limits", [])]
        document["jobs"] = [{**job, "submit": 0, "walltime": min(6, job["walltime"])} for job in document["jobs"]]
        document["jobs"] = [{key: job[key] for key in job if key not in TIMED} for job in document["jobs"]]
        document = {**document, "now": 0, "queues": {name: {"expected_wait": 20} for name in document["queues"]}}
        window = Window(document)
    while prod(1 + len(list(_places(window, name))) for name in window.waiting) > MANY:
        document["jobs"].pop()
        window = Window(document)
    best = window.best()
    assert (len(best.jobs), -best.value) == pytest.approx(_by_the_second(window))


#: Plans of which each is tried.
MANY = 10_000
#: What can make the horizon of a window far away.
TIMED = ("deadline", "start_at", "not_before", "told", "reservation", "running", "after")


def _by_the_second(window: Window) -> tuple[int, float]:
    """Return the greatest number of planned jobs, and the least value of plans of so many, less than 0."""
    found = (0, -inf)
    slices = window.most_slices()
    places = {name: list(_places(window, name)) for name in window.waiting}
    for names in [names for size in range(len(places) + 1) for names in combinations(places, size)]:
        for jobs in product(*(places[name] for name in names)):
            key = (len(jobs), -window.value(jobs))
            if key > found and any(not window.faults(one, jobs) for one in slices):
                found = key
    return found


def _places(window: Window, name: str) -> list[Booked]:
    layouts = window.layouts(window.jobs[name])
    return [window.booked(name, start, layout) for start in range(window.now, window.horizon + 1) for layout in layouts]
