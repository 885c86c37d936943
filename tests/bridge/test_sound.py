"""One bad record costs that record: of jobs that hold alike one is read for all, and what is odd about one is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.domain import Arrangement, Job, Place, Request, Running, Segment, Step
from cpsched.site.bridge.sound import Checker
from tests.bridge.small_world import job, on, site

NAMES = tuple(f"n{number}" for number in range(1, 9))
#: Segments with a node that is not there, one node twice, and a begin after now.
ODD = {
    "unknown": Segment(start=0, end=100, allocation=on("n3", "n99")),
    "twice": Segment(start=0, end=100, allocation=on("n3", "n3")),
    "later": Segment(start=20, end=100, allocation=on("n3", "n4")),
}


def running(name: str, segment: Segment, steps: tuple[Step, ...]) -> Job:
    """Make a job that holds what its segment says."""
    return Job(id=name, queue="q", submit=0, steps=steps, running=Running(start=segment.start, segments=(segment,)))


@pytest.mark.parametrize("what", ODD)
def test_an_odd_job_among_those_that_hold_alike(what: str) -> None:
    """It is left out of what is planned; the others stay as they are, and are the same objects."""
    small = site(job("w"), nodes="n[1-8]", now=10)
    request = Request(
        chunks=(replace(small.jobs[0].request.chunks[0], count=2),),
        place=Place(arrangement=Arrangement.SCATTER),
    )
    steps = (Step(walltime=100, request=request),)
    held = on("n1", "n2")
    shared = held[0].resources
    good = [
        running(
            f"r{place}",
            Segment(
                start=0,
                end=100,
                allocation=tuple(
                    replace(one, node=node, resources=shared) for one, node in zip(held, pair, strict=True)
                ),
            ),
            steps,
        )
        for place, pair in enumerate((NAMES[:2], NAMES[4:6], NAMES[6:]))
    ]
    segment = ODD[what]
    odd = running(
        "odd", replace(segment, allocation=tuple(replace(one, resources=shared) for one in segment.allocation)), steps
    )
    sound = Checker().check(replace(small, jobs=(*good[:1], odd, *good[1:])))
    assert [one.id for one in sound.instance.jobs] == ["r0", "r1", "r2"]
    assert all(mine is theirs for mine, theirs in zip(sound.instance.jobs, good, strict=True))
    assert set(sound.left) == {"odd"}
