"""Orders as lines for scontrol, without a Slurm: what is sent, what is not, and what the answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, Placement
from cpsched.site.bridge import Announce, HandBack, Hold, JobState, Note, Rank, Refusal, Requeue, Result, Start
from cpsched.site.bridge.slurm.jobs import revision_of
from cpsched.site.bridge.slurm.manager import _receipt
from cpsched.site.bridge.slurm.marker import GATE, Marker, marked, noted_forecast, prefix_of, read_marker, user_view
from cpsched.site.bridge.slurm.orders import ERRORS, Refused, change_of, refusal_of
from cpsched.site.bridge.slurm.records import JobRecord, Share

NOW = 1_800_000_000
STEERED = JobRecord(number=7, state=JobState.WAITING, begin=GATE, admin_comment="cpsched:1", cpus=13, tasks=13, nodes=2)
HOLD = Hold(job="7", until=NOW + 300)


def start(job: JobRecord, *nodes: str, at: int = NOW, cores: int = 7) -> Start:
    """Return the order to start a job on some nodes."""
    allocation = tuple(Placement(node=node, resources=Amounts({"cores": cores})) for node in nodes)
    return Start(job="7", at=at, allocation=allocation, revision=revision_of(user_view(job)[0]))


def sent(order: Start | Hold | Requeue | Rank | Announce | Note | HandBack, job: JobRecord) -> tuple[str, ...]:
    """Return the lines for an order; none where the job is so already."""
    change = change_of(order, job, NOW, "host:1:2")
    return () if change is None else change.lines()


def test_a_start_is_one_line() -> None:
    """A start gives nodes, their number, an even part of the CPUs for each, the second and the note."""
    (line,) = sent(start(STEERED, "g1", "g2"), STEERED)
    assert line == (
        f"update JobId=7 ReqNodeList=g[1-2] NumNodes=2-2 MinCPUsNode=7 StartTime=uts{NOW} "
        f"AdminComment=cpsched:1;nodes=2;cpus=13;pernode=1;ordered=g[1-2];at={NOW};given={NOW};by=host:1:2;start=2027-01-15T08:00:00Z"
    )


def test_a_start_whose_second_has_passed() -> None:
    """It begins now, and keeps its second in the note; given again, it is so already."""
    order = start(STEERED, "g1", "g2", at=NOW - 30)
    (line,) = sent(order, STEERED)
    assert f"StartTime=uts{NOW} " in line
    note = line.rpartition("AdminComment=")[2]
    done = STEERED._replace(
        begin=NOW, required_nodes="g[1-2]", max_nodes=2, cpus=14, cpus_per_node=7, admin_comment=note
    )
    assert change_of(order, done, NOW + 5, "host:1:2") is None


def test_what_an_order_did_is_undone() -> None:
    """Held again or handed back, a job has the nodes, CPUs and begin that its user gave it."""
    ordered = STEERED._replace(
        begin=NOW + 60,
        required_nodes="g[1-2]",
        cpus=14,
        cpus_per_node=7,
        max_nodes=2,
        admin_comment=f"cpsched:1;begin={NOW + 5};nodes=2;cpus=13;pernode=1;ordered=g[1-2];given={NOW + 60}",
    )
    undone = "ReqNodeList= NumNodes=2-500000 MinCPUsNode=1 NumCPUs=13"
    assert sent(HOLD, ordered) == (
        f"update JobId=7 {undone} StartTime=uts{NOW + 300} "
        f"AdminComment=cpsched:1;begin={NOW + 5};until={NOW + 300};by=host:1:2",
    )
    assert sent(HandBack(job="7"), ordered) == (f"update JobId=7 {undone} StartTime=uts{NOW + 5} AdminComment=",)


RUNS = JobRecord(number=7, state=JobState.RUNNING, can_requeue=True, shares=(Share(node="g1", cpus=2),), restarts=1)
STOP = Requeue(job="7", urgent="9", revision=revision_of(RUNS), nodes=("g1",))


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"state": JobState.COMPLETED}, Refusal.GONE),
        ({"state": JobState.WAITING, "restarts": 2}, Refusal.CHANGED),
        ({"is_completing": True}, Refusal.CHANGED),
        ({"is_suspended": True}, Refusal.CHANGED),
        ({"restarts": 2}, Refusal.CHANGED),
        ({"shares": (Share(node="g2", cpus=2),)}, Refusal.CHANGED),
        ({"can_requeue": False}, Refusal.UNSUPPORTED),
    ],
)
def test_only_the_planned_run_is_stopped(fields: dict[str, Any], refusal: Refusal) -> None:
    """One line, which does nothing to a job that has ended; a job that runs anew, elsewhere or no more is refused."""
    assert change_of(STOP, RUNS, NOW) is not None
    assert sent(STOP, RUNS) == ("requeue Incomplete 7",)
    with pytest.raises(Refused) as caught:
        change_of(STOP, RUNS._replace(**fields), NOW)
    assert caught.value.refusal is refusal


def test_a_stopped_job_has_no_order_any_more() -> None:
    """Queued again, it may run on all nodes that its user left it, and has the number that its user gave it."""
    note = "ticket;cpsched:1;nodes=1;cpus=2;pernode=1;ordered=g1"
    ran = RUNS._replace(required_nodes="g1", max_nodes=1, cpus=2, cpus_per_node=2, admin_comment=note)
    order = Requeue(job="7", urgent="9", revision=revision_of(user_view(ran)[0]), nodes=("g1",))
    undone = "ReqNodeList= NumNodes=1-500000 MinCPUsNode=1 NumCPUs=2 AdminComment=ticket;"
    assert sent(order, ran) == ("requeue Incomplete 7", f"update JobId=7 {undone}")
    own = ran._replace(required_nodes="g2")  # set by somebody else since
    assert sent(Requeue(job="7", urgent="9", revision=revision_of(own), nodes=("g1",)), own) == (
        "requeue Incomplete 7",
    )


@pytest.mark.parametrize(
    ("after", "said", "result"),
    [
        ({"restarts": 2, "is_completing": True}, "", Result.DONE),
        ({"restarts": 2, "state": JobState.WAITING}, "", Result.DONE),
        ({"state": JobState.COMPLETED}, "", Result.REFUSED),
        ({}, "Requested operation is presently disabled for job 7", Result.REFUSED),
        ({}, "", Result.UNKNOWN),
    ],
)
def test_a_stop_is_done_when_the_job_was_queued_again(after: dict[str, Any], said: str, result: Result) -> None:
    """Slurm counts it at once, while the job still has its nodes."""
    change = change_of(STOP, RUNS, NOW)
    assert change is not None
    assert _receipt(STOP, change, RUNS._replace(**after), said, NOW).result is result


def test_what_is_so_already_is_not_sent() -> None:
    """A steered job is not held again, and one that is Slurm's is not handed back."""
    own = STEERED._replace(begin=NOW - 5, admin_comment="")
    note = f"cpsched:1;until={NOW + 300};by=host:1:2"
    assert sent(HOLD, STEERED._replace(begin=NOW + 300, admin_comment=note)) == ()
    assert sent(HandBack(job="7"), own) == ()
    assert sent(HOLD, own) == (f"update JobId=7 StartTime=uts{NOW + 300} AdminComment={note}",)


def test_a_job_is_held_for_some_minutes() -> None:
    """A hold is a begin that comes by itself, and the note says until when and by whom; the user's begin is kept."""
    (line,) = sent(HOLD, STEERED)
    note = f"cpsched:1;until={NOW + 300};by=host:1:2"
    assert line == f"update JobId=7 StartTime=uts{NOW + 300} AdminComment={note}"
    held = STEERED._replace(begin=NOW + 300, admin_comment=note)
    assert sent(HOLD, held) == ()
    assert user_view(held)[0].begin is None
    assert sent(HandBack(job="7"), held) == (f"update JobId=7 StartTime=uts{NOW} AdminComment=",)
    assert "until=" not in sent(start(held, "g1", "g2"), held)[0]
    own = STEERED._replace(begin=NOW + 100, admin_comment="")
    assert sent(HOLD, own)[0].endswith(f";begin={NOW + 100};until={NOW + 300};by=host:1:2")


def test_an_announced_start_is_in_the_note() -> None:
    """The start, the nodes and the reason stand in the note, and the begin is as it was."""
    (line,) = sent(Announce(job="7", start=NOW + 601, nodes=("g1", "g2"), why="a b"), STEERED)
    note = "cpsched:1;by=host:1:2;start=2027-01-15T08:10:01Z;where=g[1-2];why=a_b"
    assert line == f"update JobId=7 AdminComment={note}"
    assert "start=" in sent(HOLD, STEERED._replace(admin_comment=note))[0]


def test_a_forecast_is_noted_and_read_again() -> None:
    """Users read it, and cpsched does; a hold keeps it; a start, the hand-back and an order of its own take it away."""
    own, order = STEERED._replace(begin=None, admin_comment=""), Note(job="7", forecast=(NOW, NOW + 6300))
    (line,) = sent(order, own)
    note = "cpsched:1;forecast=most_likely_2027-01-15T08:00:00Z,_by_2027-01-15T09:45:00Z_with_80_percent"
    assert line == f"update JobId=7 AdminComment={note}"
    noted = own._replace(admin_comment=note)
    assert noted_forecast(read_marker(note)) == order.forecast
    assert sent(order, noted) == ()
    likely = sent(Note(job="7", forecast=(NOW, None)), own)[0].rpartition("=")[2]
    assert noted_forecast(Marker(forecast=likely)) == (NOW, None)
    assert sent(HOLD, noted)[0].endswith(f";until={NOW + 300};by=host:1:2;{note.partition(';')[2]}")
    assert "forecast=" not in sent(start(noted, "g1", "g2"), noted)[0]
    gone = Note(job="7", forecast=None)
    for job in (noted, noted._replace(state=JobState.RUNNING)):
        assert sent(gone, job) == ("update JobId=7 AdminComment=",)
    assert sent(HandBack(job="7"), noted) == ("update JobId=7 AdminComment=",)
    assert sent(gone, own) == ()


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"admin_comment": "ticket-12"}, Refusal.UNSUPPORTED),
        ({"admin_comment": "ticket-12 cpsched:1"}, Refusal.UNSUPPORTED),
        ({"state": JobState.RUNNING}, Refusal.RUNNING),
        ({"state": JobState.COMPLETED}, Refusal.GONE),
    ],
)
def test_what_others_wrote_and_jobs_that_have_begun_are_not_noted_on(fields: dict[str, Any], refusal: Refusal) -> None:
    """Where somebody else writes, and where nothing is to be forecast, nothing is written."""
    with pytest.raises(Refused) as caught:
        change_of(Note(job="7", forecast=(NOW, None)), STEERED._replace(**fields), NOW)
    assert caught.value.refusal is refusal


def test_a_place_is_a_factor_that_is_taken_back() -> None:
    """What Slurm adds up stays; where nothing can be added, nothing is ordered."""
    ranked = STEERED._replace(begin=None, admin_comment="", priority=5000, site_factor=-20)
    assert sent(Rank(job="7", priority=6000), ranked) == ("update JobId=7 SiteFactor=980",)
    assert sent(HandBack(job="7"), ranked) == ("update JobId=7 SiteFactor=0",)
    with pytest.raises(Refused) as caught:
        change_of(Rank(job="7", priority=6000), ranked._replace(site_factor=None), NOW)
    assert caught.value.refusal is Refusal.UNSUPPORTED


@pytest.mark.parametrize(
    ("state", "ran_on", "result"),
    [
        (JobState.COMPLETED, "g[1-2]", Result.DONE),
        (JobState.COMPLETED, "g[2-3]", Result.REFUSED),
        (JobState.CANCELLED, "", Result.REFUSED),
    ],
)
def test_a_job_may_be_over_when_it_is_looked_at(state: JobState, ran_on: str, result: Result) -> None:
    """It was started if it has run where it was ordered."""
    order = start(STEERED, "g1", "g2")
    change = change_of(order, STEERED, NOW)
    assert change is not None
    receipt = _receipt(order, change, STEERED._replace(state=state, ran_on=ran_on), "", NOW)
    assert (receipt.result, receipt.refusal) == (result, None if result is Result.DONE else Refusal.GONE)


def test_a_job_that_slurm_holds_for_our_order_is_released() -> None:
    """BadConstraints after an order of ours is our fault: the next order releases the job."""
    bad = STEERED._replace(
        state=JobState.HELD,
        reason="BadConstraints",
        begin=NOW - 9,
        required_nodes="c1",
        admin_comment=f"cpsched:1;nodes=2;ordered=c1;at={NOW - 9};given={NOW - 9}",
    )
    assert sent(start(bad, "g1", "g2"), bad)[1] == "release 7"
    assert sent(HOLD, bad)[1] == "release 7"
    with pytest.raises(Refused) as caught:
        change_of(start(bad, "g1", "g2"), bad._replace(reason="JobHeldUser"), NOW)
    assert caught.value.refusal is Refusal.HELD


@pytest.mark.parametrize(
    ("job", "refusal"),
    [
        (None, Refusal.GONE),
        (STEERED._replace(state=JobState.CANCELLED), Refusal.GONE),
        (STEERED._replace(state=JobState.RUNNING), Refusal.RUNNING),
        (STEERED._replace(state=JobState.HELD), Refusal.HELD),
        (STEERED._replace(time_limit=60), Refusal.CHANGED),
        (STEERED._replace(restarts=1), Refusal.CHANGED),
        (STEERED._replace(admin_comment="a\nb cpsched:1"), Refusal.UNSUPPORTED),
    ],
)
def test_what_must_not_be_sent(job: JobRecord | None, refusal: Refusal) -> None:
    """A job that is over, runs, is held or has changed is not started; nor one with a comment that cannot be sent."""
    with pytest.raises(Refused) as caught:
        change_of(start(STEERED, "g1", "g2"), job, NOW)
    assert caught.value.refusal is refusal


def test_strange_nodes_and_numbers_of_nodes_are_refused() -> None:
    """A name that could be read as something else is no node; more or fewer nodes than asked for are impossible."""
    for nodes, refusal in (
        (("g1 g2", "g3"), Refusal.NODES),
        (("g1\nupdate JobId=8", "g3"), Refusal.NODES),
        (("-x", "g3"), Refusal.NODES),
        ((), Refusal.NODES),
        (("g1",), Refusal.IMPOSSIBLE),
    ):
        with pytest.raises(Refused) as caught:
            change_of(start(STEERED, *nodes), STEERED, NOW)
        assert caught.value.refusal is refusal


@pytest.mark.slow
@given(
    st.builds(
        Marker,
        **dict.fromkeys(("begin", "at", "given", "until"), st.integers(0, 10**12)),
        **dict.fromkeys(("nodes", "most", "cpus", "pernode", "restarts"), st.integers(0, 10**6)),
        **dict.fromkeys(("required", "ordered", "start", "where", "why", "by", "forecast"), st.text(max_size=60)),
    ),
    st.sampled_from(["", "ticket-12 ", '{"a": 1} ']),
)
def test_a_note_survives_any_text(marker: Marker, prefix: str) -> None:
    """A note is read as it was written, in signs that neither scontrol nor a shell takes for something else."""
    text = marked(prefix, marker)
    assert read_marker(text) == marker
    assert prefix_of(text) == prefix
    note = text[len(prefix) :]
    assert note.isascii()
    assert note.isprintable()
    assert not set(note) & set(" '\"\\$`|&<>()!#")


@pytest.mark.parametrize("text", ["", "something else", "cpsched:1;at=soon"])
def test_what_is_no_note(text: str) -> None:
    """Another comment is no note, and neither is one with a number that is none."""
    assert read_marker(text) is None


def test_a_change_by_hand_counts_as_the_users_wish() -> None:
    """Where an administrator gave an ordered job other nodes or another begin, it has these."""
    ordered = STEERED._replace(
        begin=NOW,
        required_nodes="g1",
        admin_comment=f"cpsched:1;nodes=2;cpus=13;ordered=g1;at={NOW};given={NOW}",
    )
    assert user_view(ordered)[0].required_nodes == ""
    assert user_view(ordered._replace(required_nodes="g4"))[0].required_nodes == "g4"
    assert user_view(ordered._replace(begin=NOW + 7))[0].begin == NOW + 7


def test_every_error_has_a_meaning() -> None:
    """Each text of the table means what it says, and one that is in no table is another reason."""
    assert {refusal_of(f"{words} for job 7") for words, _ in ERRORS} == {refusal for _, refusal in ERRORS}
    assert refusal_of("The moon is full for job 7") is Refusal.OTHER
