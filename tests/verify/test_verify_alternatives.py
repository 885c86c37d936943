"""Jobs with alternatives before the judge: a plan is held to the one that it says, and to no other."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest

from cpsched.errors import DocumentError
from cpsched.formats import parse_instance
from cpsched.problem import refusal, refusals
from cpsched.verify import verify
from cpsched.verify.instance import read_instance
from tests.verify.small_documents import Document, at, cluster, instance, job, on, plan, planned, segment, waiting

FOUR = [{"walltime": 60, "request": "1:ncpus=4"}, {"walltime": 40, "request": "2:ncpus=4"}]
CHOICE = instance(job(alternatives=FOUR), job("b", alternatives=FOUR[:1]))
MOLDABLE = instance(job(request="1:ncpus=4", moldable={"sizes": [2], "model": "amdahl", "serial": 0.5}))
BOTH = on("n1", cores=4), on("n2", cores=4)


def chosen(alternative: int | None, *allocation: Document, seconds: int, stretch: int, start: int = 0) -> Document:
    """Return a plan of the job a by an alternative; the other one waits. `stretch`: what it takes longer."""
    entry = planned("a", segment(start, start + seconds, *allocation))
    entry |= {} if alternative is None else {"alternative": alternative}
    made = plan([entry], [waiting("b", "not_mapped")])
    made["objective"] |= {"value": (start + stretch) / 1800, "planner": 0.0}
    return made


TRIALS: list[tuple[str, Document, set[str]]] = [
    ("its own request", chosen(None, on("n1", cores=2), seconds=100, stretch=0), set()),
    ("its own request, said", chosen(0, on("n1", cores=2), seconds=100, stretch=0), set()),
    ("an alternative is worth what it saves", chosen(1, on("n1", cores=4), seconds=60, stretch=-40), set()),
    ("an alternative on two nodes", chosen(2, *BOTH, seconds=40, stretch=-60), set()),
    ("the time of another one", chosen(1, on("n1", cores=4), seconds=40, stretch=-60), {"walltime"}),
    ("the nodes of another one", chosen(1, *BOTH, seconds=60, stretch=-40), {"request"}),
    (
        "an alternative unsaid",
        chosen(None, on("n1", cores=4), seconds=60, stretch=-40),
        {"walltime", "request"},
    ),
    ("the value of its own request", chosen(1, on("n1", cores=4), seconds=60, stretch=0), {"objective"}),
    (
        "an alternative of another job",
        chosen(3, on("n1", cores=4), seconds=60, stretch=-40),
        {"structure", "objective"},
    ),
]


@pytest.mark.parametrize(("made", "rules"), [trial[1:] for trial in TRIALS], ids=[trial[0] for trial in TRIALS])
def test_a_plan_is_held_to_the_alternative_that_it_says(made: Document, rules: set[str]) -> None:
    """Its time, its nodes and its value are those of the alternative, which is one of the job's own."""
    assert {fault.rule for fault in verify(CHOICE, made)} - {"presence"} == rules


@pytest.mark.parametrize(("seconds", "is_right"), [(75, True), (50, False), (74, False), (76, False)])
def test_a_moldable_job_takes_as_long_as_its_speedup_says(seconds: int, is_right: bool) -> None:
    """On two nodes a job half of which is serial takes three quarters of its time, and not half."""
    entry = planned("a", segment(0, seconds, *BOTH)) | {"alternative": 1}
    made = plan([entry])
    made["objective"] |= {"value": (seconds - 100) / 1800}
    assert (not verify(MOLDABLE, made)) == is_right


def test_a_job_that_fits_by_an_alternative_is_not_unsatisfiable() -> None:
    """That its own request never fits is no reason to wait if another one does."""
    stated = instance(job(request="3:ncpus=4", alternatives=FOUR[:1]))
    (fault,) = verify(stated, plan([], [waiting("a", "unsatisfiable")]))
    assert fault.rule == "waiting_room"
    assert not verify(
        instance(job(request="3:ncpus=4", alternatives=[{"walltime": 5, "request": "4:ncpus=4"}])),
        plan([], [waiting("a", "unsatisfiable")]),
    )


#: Choices by the reason for which none of them starts: two of the four nodes are drained.
HOPELESS: dict[str, dict[str, Any]] = {
    "": {"walltime": 10, "request": "2:ncpus=4"},
    "too_late": {"walltime": 60, "request": "2:ncpus=4"},
    "unavailable": {"walltime": 10, "request": "3:ncpus=4"},
    "walltime": {"walltime": 90, "request": "2:ncpus=4"},
    "unsatisfiable": {"walltime": 10, "request": "5:ncpus=4"},
}


@pytest.mark.parametrize("own", HOPELESS)
def test_a_job_waits_for_the_choice_that_is_nearest_to_a_start(own: str) -> None:
    """Whichever its choices are, a reason is given that the judge believes; it denies others where they are false."""
    nodes = cluster({"names": "n[1-4]"}) | {"states": {"n[3-4]": "drain"}}
    queues = {"q": {"expected_wait": 60, "max_walltime": 80}}
    for others in combinations([reason for reason in HOPELESS if reason != own], 2):
        alternatives = [HOPELESS[one] for one in others]
        entry = job(**HOPELESS[own], queue="q", deadline=50, alternatives=alternatives)
        stated = instance(entry, cluster=nodes, queues=queues)
        read, nearest = parse_instance(stated), min((own, *others), key=list(HOPELESS).index)
        given = refusals(read).get("a")
        assert given == refusal(read, read.jobs[0])
        assert given is None if not nearest else given is not None and given[0] == nearest
        denied = {reason for reason in list(HOPELESS)[1:] if verify(stated, plan([], [waiting("a", reason)]))}
        assert nearest not in denied
        assert ("unsatisfiable" in denied) == any(one in ("", "too_late", "unavailable") for one in (own, *others))


def test_both_readers_read_the_same_choices() -> None:
    """They accept the same alternatives and sizes, and get the same requests, places and walltimes of them."""
    draw, read = random.Random(0), 0
    for _ in range(800):
        document = instance(job(**_drawn(draw)))
        try:
            of_reader = parse_instance(document).jobs[0].choices
            first: list[Any] | None = [
                (one.walltime, _chunks(one.request), str(one.request.place.arrangement), one.request.place.exclusive)
                for one in of_reader
            ]
        except DocumentError:
            first = None
        try:
            (of_judge,) = read_instance(document, "instance").jobs.values()
            other: list[Any] | None = [
                (one.walltime, _chunks(one.request), one.request.arrangement, one.request.exclusive)
                for one in (*of_judge.steps, *of_judge.alternatives)
            ]
        except DocumentError:
            other = None
        assert first == other, document["jobs"]
        read += first is not None
    assert read > 80


def _chunks(request: Any) -> list[Any]:
    return [(chunk.count, dict(chunk.resources), dict(chunk.where)) for chunk in request.chunks]


def _drawn(draw: random.Random) -> dict[str, Any]:
    """Draw the keys of a job with a choice, some of which are wrong."""

    def request() -> str:
        place = draw.choice(["", "", "", ",place=scatter", ",lic=1"])
        return f"{draw.choice(['', '2:', '4:'])}ncpus={draw.randint(1, 2)}{draw.choice(['', '', '+mem=1'])}{place}"

    keys: dict[str, Any] = {"request": request(), "walltime": draw.choice([1, 7, 1000])}
    if draw.random() < 0.3:
        keys["place"] = draw.choice(["scatter", "free:excl", "x"])
    if draw.random() < 0.2:
        keys["expected"] = draw.choice([1, 5])
    if draw.random() < 0.5:
        alternatives = [
            {"walltime": draw.choice([0, 1, 7, 99]), "request": request()} for _ in range(draw.randint(0, 3))
        ]
        for one in alternatives:
            if draw.random() < 0.3:
                one["place"] = draw.choice(["pack", "scatter:excl", "y"])
        keys["alternatives"] = alternatives
    if "alternatives" not in keys or draw.random() < 0.05:
        sizes: dict[str, Any] = {"sizes": draw.sample(range(9), draw.randint(0, 3))}
        if draw.random() < 0.5:
            sizes = {"min": draw.randint(0, 3), "max": draw.randint(1, 70)}
        model = draw.choice(["none", "amdahl", "downey", "table"])
        of_models: dict[str, dict[str, Any]] = {
            "none": {},
            "amdahl": {"serial": draw.choice([0, 0.02, 1, 1.5])},
            "downey": {"parallelism": draw.choice([0.5, 1, 6, 7.5]), "sigma": draw.choice([0, 0.5, 1, 2.5])},
            "table": {"speedups": {str(size): draw.choice([0.5, 1, size + 1]) for size in range(draw.randint(2, 9))}},
        }
        keys["moldable"] = {"model": model, **sizes, **of_models[draw.choice([model, model, model, "none"])]}
    return keys


#: A job and one that has another choice, of six units of gold that do not come back.
GOLD = instance(
    job(licenses={"gold": 4}),
    job("b", licenses={"gold": 4}, alternatives=[{"walltime": 60, "request": "1:ncpus=4", "licenses": {"gold": 2}}]),
    job("c", licenses={"gold": 1}),
    cluster={**cluster({"names": "n[1-2]"}, gold=6), "consumed": ["gold"]},
)


def spent(b: int | None, *, c: bool = False) -> Document:
    """Return a plan of a, then b by its own request or an alternative, then c: never two at a time."""
    jobs, room = [at("a", 0)], []
    if b is None:
        room.append(waiting("b", "unsatisfiable"))
    elif b == 0:
        jobs.append(at("b", 100))
    else:
        jobs.append(planned("b", segment(100, 160, on("n1", cores=4))) | {"alternative": b})
    if c:
        jobs.append(at("c", 200))
    else:
        room.append(waiting("c", "unsatisfiable"))
    return plan(jobs, room)


@pytest.mark.parametrize(
    ("made", "is_right"),
    [(spent(1), True), (spent(0), False), (spent(1, c=True), False), (spent(None), True), (spent(None, c=True), True)],
)
def test_what_is_consumed_does_not_come_back(made: Document, is_right: bool) -> None:
    """All jobs of a plan together, each by its choice, take no more of such a licence than there is."""
    said = [fault for fault in verify(GOLD, made) if fault.rule != "objective"]
    assert [fault.rule for fault in said] == ([] if is_right else ["licenses"])


def test_what_running_jobs_consume_is_a_fact() -> None:
    """Running jobs may have more than there is, and nothing is planned beside them that takes some."""
    held = {"start": 0, "allocation": [on("n1", cores=2)]}
    running = job(licenses={"gold": 9}, running=held)
    stated = {**GOLD, "jobs": [running, job("c", licenses={"gold": 1})]}
    assert "licenses" not in {
        fault.rule for fault in verify(stated, plan([at("a", 0)], [waiting("c", "unsatisfiable")]))
    }
    assert "licenses" in {fault.rule for fault in verify(stated, plan([at("a", 0), at("c", 100)]))}


REFUSED: list[tuple[str, str, Document]] = [
    ("silver is no licence", "cluster.consumed[1]", {"cluster": {**GOLD["cluster"], "consumed": ["gold", "silver"]}}),
    ("the same twice", "cluster.consumed[1]", {"cluster": {**GOLD["cluster"], "consumed": ["gold", "gold"]}}),
    ("a limit", "limits[0].resource", {"limits": [{"consumer": {"user": "u"}, "resource": "gold", "items": "1"}]}),
    (
        "a reservation",
        "reservations[0].licenses",
        {"reservations": [{"id": "r", "start": 5, "end": 9, "request": "1:ncpus=1", "licenses": {"gold": 1}}]},
    ),
    (
        "the same alternative twice",
        "jobs[0].alternatives[0]",
        {
            "jobs": [
                job(licenses={"gold": 1}, alternatives=[{"walltime": 100, "request": "1:ncpus=2"}]),
            ]
        },
    ),
    (
        "a licence in the text and as a key",
        "jobs[0].alternatives[0].request",
        {
            "jobs": [
                job(alternatives=[{"walltime": 9, "request": "1:ncpus=2,gold=1", "licenses": {"gold": 1}}]),
            ]
        },
    ),
]


@pytest.mark.parametrize(("path", "members"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_what_cannot_be_meant_is_refused_by_name(path: str, members: Document) -> None:
    """Both readers refuse what is no licence, and rules about what does not come back; ours names the place."""
    stated = {**GOLD, **members}
    with pytest.raises(DocumentError) as caught:
        parse_instance(stated)
    assert [fault.path for fault in caught.value.faults] == [path]
    with pytest.raises(DocumentError):
        read_instance(stated, "test")
