"""Jobs that change their number of chunks while they run, before the judge: one thing changed breaks the rule."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.errors import DocumentError
from cpsched.formats import parse_instance
from cpsched.verify import verify
from cpsched.verify.instance import read_instance
from tests.verify.small_documents import Document, instance, job, on, plan, planned, segment
from tests.verify.test_verify_record import DOWN, record

#: 100 s on two chunks, of which it really takes 80; 160 s on one, 60 on four.
SIZES = [{"walltime": 160, "request": "1:ncpus=2"}, {"walltime": 60, "request": "4:ncpus=2"}]
MALLEABLE = instance(job("a", "2:ncpus=2", alternatives=SIZES, resizable={"cost": 5, "interval": 20}, runtime=80))
ONE, TWO = [on("n1", cores=2)], [on("n1", None, cores=2) | {"chunk": 0, "count": 1}, on("n2", cores=2)]
FOUR = [on("n1", count=2, cores=4), on("n2", count=2, cores=4)]
#: 40 s of work, then 9.375 in 15 s of 20, then 30.625 in 18.375 s after 5.
PARTS = (segment(0, 40, *TWO), segment(40, 60, *ONE), segment(60, 84, *FOUR))


def ran(*segments: Document, alternative: int = 0, **keys: Any) -> Document:
    """Return a record of a job in these segments, with the value that it has."""
    entry = planned("a", *segments) | {"alternative": alternative}
    made = record([entry], **keys)
    made["objective"]["value"] = (segments[-1]["end"] - 100) / 1800
    return made


def test_a_record_may_resize() -> None:
    """On each size it works as fast as the walltimes say, and not for some seconds after a change."""
    assert verify(MALLEABLE, ran(*PARTS)) == ()
    grown = segment(0, 30, *ONE), segment(30, 97, *TWO)
    # 30 s on one chunk are 18.75 of 80 s of work; 61.25 follow after 5
    assert verify(MALLEABLE, ran(*grown, alternative=1)) == ()


@pytest.mark.parametrize(
    ("segments", "rule"),
    [
        ((*PARTS[:2], segment(60, 83, *FOUR)), "malleable"),  # work lost unsaid
        ((*PARTS[:2], segment(60, 85, *FOUR)), "malleable"),  # as if it took longer
        ((segment(0, 80, *TWO), segment(80, 81, *ONE)), "malleable"),  # it is over already
        ((segment(0, 19, *TWO), segment(19, 123, *ONE)), "malleable"),  # too soon: 19 s, then 61 s in 97.6
        ((segment(0, 40, *TWO), segment(40, 85, *reversed(TWO))), "malleable"),  # no change
        ((segment(0, 40, *TWO), segment(40, 109, on("n1", count=2, cores=4), on("n2", cores=2))), "malleable"),
        ((segment(0, 40, *ONE), segment(40, 85, *TWO)), "malleable"),  # starts by another size than it says
        ((segment(0, 40, *TWO), segment(40, 109, on("n1", cores=1))), "request"),
        ((segment(0, 40, *TWO), segment(41, 110, *ONE)), "segments"),
    ],
)
def test_what_no_resize_may_do(segments: tuple[Document, ...], rule: str) -> None:
    """Each mutant is found, and by the rule about it."""
    assert rule in {fault.rule for fault in verify(MALLEABLE, ran(*segments))} - {"objective"}


def test_it_keeps_what_it_had() -> None:
    """A job that shrinks stays on some of its nodes, and one that grows on all of them."""
    right = segment(0, 40, *TWO), segment(40, 109, on("n2", cores=2))
    assert verify(MALLEABLE, ran(*right)) == ()
    packed = segment(0, 40, on("n1", count=2, cores=4)), segment(40, 109, on("n2", cores=2))
    assert {fault.rule for fault in verify(MALLEABLE, ran(*packed))} == {"malleable"}
    moved = segment(0, 40, on("n2", cores=2)), segment(40, 100, on("n1", count=2, cores=4))
    assert "malleable" in {fault.rule for fault in verify(MALLEABLE, ran(*moved, alternative=1))}


def test_a_plan_resizes_nothing() -> None:
    """In a plan it runs by one choice, from its start to its end."""
    whole = planned("a", segment(0, 160, *ONE)) | {"alternative": 1}
    made = plan([whole])
    made["objective"] |= {"value": 60 / 1800, "planner": 0.0}
    assert verify(MALLEABLE, made) == ()
    made["jobs"] = [planned("a", *PARTS)]
    assert {"segments", "walltime"} <= {fault.rule for fault in verify(MALLEABLE, made)}


def test_a_run_that_an_outage_ends_is_lost() -> None:
    """Its sizes are judged as those of others, and it begins anew."""
    fails = {**MALLEABLE, "outages": DOWN}
    attempt = planned("a", segment(0, 25, *TWO), segment(25, 40, *ONE))
    made = ran(segment(40, 168, on("n2", cores=2)), alternative=1, attempts=[attempt])
    made["objective"]["value"] = (40 + 128 - 100) / 1800
    assert verify(fails, made) == ()
    done = planned("a", segment(0, 80, *TWO))
    assert "malleable" in {fault.rule for fault in verify(fails, ran(*PARTS, attempts=[done]))}


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"alternatives": None}, "jobs[0]"),
        ({"deadline": 900}, "jobs[0]"),
        ({"start_at": 5}, "jobs[0]"),
        ({"preemptible": {"by": "requeue"}}, "jobs[0]"),
        ({"alternatives": [{"walltime": 160, "request": "1:ncpus=4"}]}, "jobs[0].resizable"),
        ({"alternatives": [{"walltime": 60, "request": "2:ncpus=2"}]}, "jobs[0].resizable"),
        ({"place": "pack"}, "jobs[0].resizable"),
        ({"resizable": {"cost": -1}}, "jobs[0].resizable.cost"),
        ({"resizable": {"interval": 0}}, "jobs[0].resizable.interval"),
        ({"resizable": {"speed": 0}}, "jobs[0].resizable.speed"),
    ],
)
def test_both_readers_refuse_what_makes_no_sense(keys: Document, path: str) -> None:
    """A job without sizes, with one time only, with other chunks or on one node, and negative seconds."""
    asked: Document = {"alternatives": SIZES, "resizable": {}} | keys
    document = instance(job("a", "2:ncpus=2", **asked))
    with pytest.raises(DocumentError) as refused:
        parse_instance(document)
    assert refused.value.faults[0].path.partition(" ")[0] == path
    with pytest.raises(DocumentError):
        read_instance(document, "x")
