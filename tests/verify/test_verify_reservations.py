"""The judge on reservations: of named nodes, recurring, had already, and such that could not be had."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.errors import DocumentError
from cpsched.verify import verify
from tests.verify.openings import strictly_verified
from tests.verify.small_documents import Document, at, cluster, instance, job, on, plan, planned, segment, waiting

EPOCH = "2026-06-01T00:00:00+02:00"  # a Monday
HOUR, DAY = 3600, 86_400
WHOLE_1, WHOLE_2 = (on(node, None, None, cores=4, mem=1024, gpus=1) for node in ("n1", "n2"))
ON_2 = on("n2", cores=2)
CLOSED = {"id": "m", "kind": "downtime", "start": 50, "end": 150, "nodes": "n1"}
OWN = {"id": "r", "start": 50, "end": 150, "nodes": "n1"}
FACT = {"start": -50, "allocation": [{"node": "n1", "resources": {"cores": 2}}]}
RUNS = planned("f", segment(-50, 100, on("n1", None, None, cores=2)))
RUNNING = job("f", walltime=150, running=FACT)


def _slice(name: str, start: int, end: int, *allocation: Document, reason: str | None = None) -> Document:
    entry: Document = {"id": name, "start": start, "end": end}
    return entry | ({"allocation": list(allocation)} if reason is None else {"reason": reason})


def _rules(document: Document, answer: Document) -> list[str]:
    return [violation.rule for violation in verify(document, answer)]


def test_a_downtime_of_named_nodes() -> None:
    """Nothing is planned on a node in its time: before it, after it and elsewhere all is free."""
    document = instance(job(walltime=50), job("b"), job("c"), reservations=[CLOSED])
    closed = [_slice("m", 50, 150, WHOLE_1)]
    assert _rules(document, plan([at("a", 0, walltime=50), at("b", 150), at("c", 0, ON_2)], reservations=closed)) == []
    assert _rules(document, plan([at("a", 0, walltime=50), at("b", 149), at("c", 0, ON_2)], reservations=closed)) == [
        "reservation"
    ]


@pytest.mark.parametrize(
    "allocation",
    [
        [WHOLE_2],
        [WHOLE_1, WHOLE_2],
        [on("n1", None, None, cores=4, mem=1024)],
        [on("n1", 0, 1, cores=4, mem=1024, gpus=1)],
    ],
)
def test_named_nodes_are_had_as_a_whole(allocation: list[Document]) -> None:
    """The plan states the nodes that are named, with all that they have."""
    document = instance(reservations=[CLOSED])
    assert _rules(document, plan(reservations=[_slice("m", 50, 150, WHOLE_1)])) == []
    assert set(_rules(document, plan(reservations=[_slice("m", 50, 150, *allocation)]))) == {"request"}


def test_what_runs_goes_on_in_a_downtime() -> None:
    """A downtime of nodes is had whatever runs there, also beside another one; that it is not is refused."""
    document = instance(RUNNING, reservations=[CLOSED, {**CLOSED, "id": "n"}])
    both = [_slice("m", 50, 150, WHOLE_1), _slice("n", 50, 150, WHOLE_1)]
    assert _rules(document, plan([RUNS], reservations=both)) == []
    refused = [both[0], _slice("n", 50, 150, reason="not free")]
    assert _rules(document, plan([RUNS], reservations=refused)) == ["reservation"]
    exclusive = instance({**RUNNING, "place": "excl"}, reservations=[CLOSED])
    assert _rules(exclusive, plan([RUNS], reservations=both[:1])) == []


def test_no_other_reservation_is_on_closed_nodes() -> None:
    """A reservation of users cannot be had on nodes that are closed in its time, and need not be."""
    document = instance(reservations=[CLOSED, OWN])
    closed = _slice("m", 50, 150, WHOLE_1)
    assert _rules(document, plan(reservations=[closed, _slice("r", 50, 150, WHOLE_1)])) == ["reservation"]
    assert _rules(document, plan(reservations=[closed, _slice("r", 50, 150, reason="closed")])) == []


@pytest.mark.parametrize(
    ("entries", "nodes", "rules"),
    [
        ([], {}, ["reservation"]),
        ([RUNNING], {}, []),
        ([job("f", walltime=100, running=FACT)], {}, ["reservation"]),
        ([], {"states": {"n1": "drain"}}, []),
        ([], {"states": {"n2": "down"}}, ["reservation"]),
    ],
)
def test_claims_about_named_nodes(entries: list[Document], nodes: Document, rules: list[str]) -> None:
    """That nodes cannot be had is false if they are up and no running job is there in that time."""
    document = instance(*entries, reservations=[OWN], cluster={**cluster({"names": "n[1-2]"}), **nodes})
    runs = [planned("f", segment(-50, -50 + entry["walltime"], on("n1", None, None, cores=2))) for entry in entries]
    assert _rules(document, plan(runs, reservations=[_slice("r", 50, 150, reason="not free")])) == rules
    if not rules:
        expected = {"state"} if nodes else {"capacity"}
        answer = plan(runs, reservations=[_slice("r", 50, 150, WHOLE_1)])
        assert {one.rule for one in verify(document, answer) if one.rule != "exclusive"} == expected


@pytest.mark.parametrize(
    ("request_", "entries", "rules"),
    [
        ("2:ncpus=3", [], ["reservation"]),
        ("2:ncpus=3", [RUNNING], []),
        ("2:ncpus=2", [RUNNING], ["reservation"]),
        ("3:ncpus=3", [], []),
        ("2:ncpus=2,place=scatter:excl", [RUNNING], []),
        ("1:ncpus=2,place=excl", [RUNNING], ["reservation"]),
        ("1:ncpus=1,sim=2", [], []),
        ("1:ncpus=1,sim=1", [], ["reservation"]),
        ("1:ncpus=4+1:ncpus=2", [], ["reservation"]),
        ("1:ncpus=4+1:ncpus=2", [RUNNING], ["reservation"]),
        ("1:ncpus=4+1:ncpus=3", [RUNNING], []),
    ],
)
def test_claims_about_requests(request_: str, entries: list[Document], rules: list[str]) -> None:
    """That a request cannot be had is false if it fits beside what runs; planned jobs do not count."""
    asked = {"id": "r", "start": 50, "end": 150, "request": request_}
    document = instance(
        *entries, job("p", "1:ncpus=4"), reservations=[asked], cluster=cluster({"names": "n[1-2]"}, sim=1)
    )
    jobs = [RUNS] if entries else []
    answer = plan([*jobs, at("p", 200, on("n2", cores=4))], reservations=[_slice("r", 50, 150, reason="not free")])
    assert _rules(document, answer) == rules


KEPT = {"id": "r", "start": -10, "end": 150, "request": "1:ncpus=2", "allocation": [on("n1", cores=2)]}


def test_what_a_reservation_has_already_it_keeps() -> None:
    """It is on the same nodes in the plan, whatever runs there and whatever their state is, and cannot be lost."""
    document = instance(reservations=[KEPT])
    assert _rules(document, plan(reservations=[_slice("r", -10, 150, on("n1", cores=2))])) == []
    assert _rules(document, plan(reservations=[_slice("r", -10, 150, on("n2", cores=2))])) == ["reservation"]
    assert _rules(document, plan(reservations=[_slice("r", -10, 150, reason="lost")])) == ["reservation"]
    full = {"start": -50, "allocation": [{"node": "n1", "resources": {"cores": 4}}]}
    document = instance(
        job("f", "1:ncpus=4", walltime=150, running=full),
        reservations=[KEPT, {**CLOSED, "start": 0}],
        cluster={**cluster({"names": "n[1-2]"}), "states": {"n1": "drain"}},
    )
    had = [_slice("r", -10, 150, on("n1", cores=2)), _slice("m", 0, 150, WHOLE_1)]
    runs = planned("f", segment(-50, 100, on("n1", None, None, cores=4)))
    assert _rules(document, plan([runs], reservations=had)) == []


def test_jobs_run_in_what_was_had_already() -> None:
    """A job of the reservation is on what it has, and other jobs are beside it."""
    document = instance(job(reservation="r"), job("b"), reservations=[KEPT])
    had = [_slice("r", -10, 150, on("n1", cores=2))]
    assert _rules(document, plan([at("a", 50), at("b", 0)], reservations=had)) == []
    assert _rules(document, plan([at("a", 51), at("b", 0)], reservations=had)) == ["reservation"]
    assert _rules(document, plan([at("a", 0, ON_2), at("b", 0)], reservations=had)) == ["capacity"]


WEEKLY = {"id": "w", "nodes": "n1", "validity": {"cron": "* 8-9 * * mon", "until": 30 * DAY}}
WEEKS = [
    _slice("w", start, end, WHOLE_1)
    for week in range(5)
    for start, end in [(week * 7 * DAY + 8 * HOUR, week * 7 * DAY + 10 * HOUR)]
]


def _recurring(*jobs: Document, **members: Any) -> Document:
    return instance(*jobs, **({"epoch": EPOCH, "time_zone": "Europe/Berlin", "reservations": [WEEKLY]} | members))


def test_a_recurring_reservation() -> None:
    """Each occurrence is in the plan, once, with its own times."""
    document = _recurring()
    assert _rules(document, plan(reservations=WEEKS)) == []
    assert _rules(document, plan(reservations=WEEKS[:4])) == ["reservation"]
    assert _rules(document, plan(reservations=[*WEEKS, WEEKS[0]])) == ["structure"]
    shifted = [*WEEKS[:4], {**WEEKS[4], "end": WEEKS[4]["end"] - 1}]
    assert _rules(document, plan(reservations=shifted)) == ["reservation"]
    more = [*WEEKS, _slice("w", 35 * DAY + 8 * HOUR, 35 * DAY + 10 * HOUR, WHOLE_1)]
    assert _rules(document, plan(reservations=more)) == ["reservation"]


def test_an_occurrence_that_has_begun_begins_now() -> None:
    """Its entry begins at now and ends where the calendar says; what has ended has no entry."""
    now = 8 * HOUR + 60
    document = _recurring(now=now)
    answer = {**plan(reservations=[{**WEEKS[0], "start": now}, *WEEKS[1:]]), "now": now}
    assert _rules(document, answer) == []
    assert "reservation" in _rules(document, {**answer, "reservations": WEEKS})
    later = {**plan(reservations=WEEKS[1:]), "now": 10 * HOUR}
    assert _rules(_recurring(now=10 * HOUR), later) == []


def test_the_first_hundred_occurrences_are_known() -> None:
    """Of a daily reservation a hundred days are in the plan; in autumn one of them begins an hour later than usual."""
    daily = {"id": "d", "nodes": "n1", "validity": {"cron": "* 8 * * *"}}
    document = _recurring(reservations=[daily], epoch="2026-09-01T00:00:00+02:00")
    starts = [day * DAY + 8 * HOUR + (HOUR if day >= 54 else 0) for day in range(101)]
    days = [_slice("d", start, start + HOUR, WHOLE_1) for start in starts]
    assert _rules(document, plan(reservations=days[:100])) == []
    assert _rules(document, plan(reservations=days[:99])) == ["reservation"]
    assert _rules(document, plan(reservations=days)) == ["reservation"]


def test_what_recurs_for_ever_is_known_for_ten_years() -> None:
    """An occurrence without end is cut where it is not known any more; rare ones are found within these years."""
    far = 3660 * DAY
    always = {"id": "d", "nodes": "n1", "validity": {"cron": "* * * * *"}}
    assert _rules(_recurring(reservations=[always]), plan(reservations=[_slice("d", 0, far, WHOLE_1)])) == []
    leap = {"id": "d", "nodes": "n1", "validity": {"cron": "* * 29 2 *"}}
    days = [day * DAY + HOUR for day in (638, 638 + 1461, 638 + 2 * 1461)]  # an hour later than in summer
    slices = [_slice("d", start, start + DAY, WHOLE_1) for start in days]
    assert _rules(_recurring(reservations=[leap]), plan(reservations=slices)) == []


def test_jobs_of_a_recurring_reservation() -> None:
    """A job runs inside one of the occurrences, in any of them, and claims are held against all of them."""
    document = _recurring(job(reservation="w"), job("b", walltime=100))
    second = 7 * DAY + 9 * HOUR
    beside = at("b", 0, ON_2)
    assert _rules(document, plan([at("a", 8 * HOUR), beside], reservations=WEEKS)) == []
    assert _rules(document, plan([at("a", second), beside], reservations=WEEKS)) == []
    assert _rules(document, plan([at("a", 10 * HOUR - 50), beside], reservations=WEEKS)) == ["reservation"]
    said = strictly_verified(document, plan([beside], [waiting("a", "not_mapped")], reservations=WEEKS))
    assert [violation.rule for violation in said] == ["waiting_room"]
    full = _recurring(job("f", "1:ncpus=4", 2 * HOUR, reservation="w"), job(reservation="w"), job("b", walltime=100))
    first = at("f", 8 * HOUR, on("n1", cores=4), walltime=2 * HOUR)
    claims = strictly_verified(full, plan([first, beside], [waiting("a", "reservation")], reservations=WEEKS))
    assert [one.message for one in claims] == [
        f"it is said to be reservation, but it could start at {7 * DAY + 8 * HOUR} on n1, beside all that is planned"
    ]
    blocked = [WEEKS[0], *(_slice("w", one["start"], one["end"], reason="full") for one in WEEKS[1:])]
    answer = plan([first, beside], [waiting("a", "reservation")], reservations=blocked)
    assert [one.rule for one in strictly_verified(full, answer)] == [
        "reservation"
    ] * 4  # the weeks could be had, but nothing is said of the job


def test_two_jobs_in_two_occurrences_share_nothing() -> None:
    """What a job takes in one occurrence is free in the next, and not twice in the same."""
    document = _recurring(job("a", "1:ncpus=4", reservation="w"), job("b", "1:ncpus=4", reservation="w"))
    whole = on("n1", cores=4)
    apart = [at("a", 8 * HOUR, whole), at("b", 7 * DAY + 8 * HOUR, whole)]
    assert _rules(document, plan(apart, reservations=WEEKS)) == []
    together = [at("a", 8 * HOUR, whole), at("b", 8 * HOUR + 50, whole)]
    assert _rules(document, plan(together, reservations=WEEKS)) == ["capacity"]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"start": 5}, "reservations[0]"),
        ({"validity": {"from": 5}}, "reservations[0]"),
        ({"request": "ncpus=1"}, "reservations[0]"),
        ({"place": "pack"}, "reservations[0]"),
        ({"kind": "downtime", "licenses": {}}, "reservations[0]"),
        ({"nodes": "n3"}, "reservations[0].nodes"),
        ({"validity": {"cron": "* 25 * * *"}}, "reservations[0].validity.cron"),
    ],
)
def test_faults(changed: Document, path: str) -> None:
    """What is wrong is named with its path."""
    with pytest.raises(DocumentError) as caught:
        verify(_recurring(reservations=[{**WEEKLY, **changed}]), plan(reservations=WEEKS))
    assert [fault.path for fault in caught.value.faults] == [path]
