"""What a question takes away from the plan, and what is left on the nodes."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cpsched.answers import Answers
from cpsched.answers.occupation import Occupation
from cpsched.answers.world import PlanView
from cpsched.domain import Instance
from tests.answers.judged import planned
from tests.answers.test_explain_random import ruled
from tests.oracle.random_instances import instances
from tests.sizes import examples


@examples(40)
@given(instances(), st.data())
def test_timelines_have_the_jobs_that_are_there(instance: Instance, data: st.DataObject) -> None:
    """At whatever depth of a question, the timeline is that on which only the jobs were booked that are there."""
    occupation = PlanView(instance, planned(instance)).occupation
    jobs = st.sets(st.integers(0, len(occupation.ids) - 1)) if occupation.ids else st.just(set())

    def ask(depth: int) -> None:
        with occupation.without(data.draw(jobs)):
            assert_only_present(occupation)
            if depth < 3:
                ask(depth + 1)
            there = sorted(data.draw(jobs) - occupation.away)
            occupation.take_away(there)
            assert_only_present(occupation)
            occupation.put_back(there)
            assert_only_present(occupation)

    for _ in range(2):
        ask(0)
        assert not occupation.away
        assert_only_present(occupation)


def assert_only_present(occupation: Occupation) -> None:
    """Check what is free on all nodes against the timeline without any job, less what those that are there hold."""
    free = occupation.timeline
    for time in free.breakpoints().tolist():
        expected = occupation.bare.free_at(time)[0]
        for job in set(range(len(occupation.ids))) - occupation.away:
            booking = occupation.taken(job, time, time + 1)
            if booking is not None:
                np.subtract.at(expected, booking.columns, booking.amounts)
        assert free.free_at(time)[0].tolist() == expected.tolist()


@examples(40)
@given(instances() | ruled())
def test_jobs_that_are_surely_needed_need_no_trial(instance: Instance) -> None:
    """Explanations are the same if each job in the way is tried, whether or not it is surely needed."""
    plan = planned(instance)
    quick = Answers(instance, plan)
    with patch("cpsched.answers.blockers._surely_needed", return_value=frozenset()):
        slow = Answers(instance, plan)
        tried = {job.id: slow.explain(job.id) for job in instance.elements()}
    assert {job: quick.explain(job) for job in tried} == tried
