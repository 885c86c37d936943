"""Explanations of random plans are true: asked again of the verifier, second by second."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cpsched.answers import Answers, Blocked, CauseKind
from cpsched.domain import (
    Access,
    Consumer,
    ConsumerKind,
    DependencyType,
    FreePool,
    Instance,
    ItemBound,
    Job,
    Limit,
    Plan,
    Validity,
)
from tests.answers.judged import could_start, planned
from tests.oracle.random_instances import instances
from tests.sizes import examples

BY_JOBS = (CauseKind.LIMIT, CauseKind.FREE_POOL, CauseKind.LICENSE, CauseKind.RESOURCE, CauseKind.PROMISE)


@st.composite
def ruled(draw: st.DrawFn) -> Instance:
    """Draw an instance with limits and a free pool, some of which hold for a time only."""
    instance = draw(instances())
    now = instance.now
    spans = st.tuples(st.integers(now - 5, now + 10), st.integers(1, 15)).map(
        lambda pair: Validity(from_=pair[0], until=pair[0] + pair[1])
    )
    validities = st.just(Validity()) | spans
    consumers = st.sampled_from([None, "ann", "bob"]).map(lambda name: Consumer(kind=ConsumerKind.USER, name=name))
    items = st.integers(1, 8).map(lambda least: ItemBound(least=least))
    limits = st.one_of(
        st.builds(
            Limit, consumer=consumers, resource=st.sampled_from(["cores", "jobs", "*"]), items=items,
            validity=validities,
        ),
        st.builds(
            Limit, consumer=consumers, resource=st.just("cores"), duration=st.integers(2, 8), validity=spans,
        ),
    )  # fmt: skip
    pools = st.builds(
        FreePool,
        resource=st.just("cores"),
        items=items,
        open_to=st.just(Access(users=("ann",))) | st.just(Access(max_walltime=3)),
        validity=validities,
    )
    return replace(
        instance,
        limits=tuple(draw(st.lists(limits, max_size=2))),
        free_pools=tuple(draw(st.lists(pools, max_size=1))),
    )


@examples(60)
@given(instances() | ruled())
def test_causes_are_true_at_every_second(instance: Instance) -> None:
    """The intervals cover all seconds up to the start, and what each says is what the judge finds at both its ends."""
    plan = planned(instance)
    answers = Answers(instance, plan)
    for job in instance.elements():
        told = answers.explain(job.id)
        if job.running is not None or told.start is None:
            continue
        if told.is_whole:
            ends = [instance.now, *(blocked.end for blocked in told.blocked)]
            assert [blocked.start for blocked in told.blocked] == ends[:-1]
            assert ends[-1] == told.start
        for blocked in told.blocked:
            for second in {blocked.start, blocked.end - 1}:
                check(instance, plan, job, blocked, second)


def check(instance: Instance, plan: Plan, job: Job, blocked: Blocked, second: int) -> None:
    """Check a cause at one of its seconds."""
    cause = blocked.cause
    holders = {holder.job for holder in cause.holders}
    if cause.kind is CauseKind.TIME:
        earliest = max(instance.earliest_start(job), job.start_at or instance.now)
        assert second < earliest
        return
    if cause.kind is CauseKind.DEPENDENCY:
        assert holders == {name for name, moment in released(instance, plan, job).items() if moment > second}
        return
    if len(job.request.chunks) > 1:
        return  # the judge tries other orders of the kinds, and finds other nodes
    if cause.kind is CauseKind.NOTHING:
        assert could_start(instance, plan, job.id, second)
        return
    assert not could_start(instance, plan, job.id, second)
    if cause.kind is CauseKind.GUARD:
        assert could_start(unguarded(instance), plan, job.id, second)
        return
    if cause.kind is CauseKind.RULE:
        assert not could_start(instance, plan, job.id, second, without={run.id for run in plan.jobs})
        return
    assert cause.kind in BY_JOBS
    assert holders
    assert could_start(instance, plan, job.id, second, without=holders)
    for spared in holders:
        assert not could_start(instance, plan, job.id, second, without=holders - {spared})


def released(instance: Instance, plan: Plan, job: Job) -> dict[str, int]:
    """Return from when on each job that a job waits for lets it start."""
    members, runs = instance.members(), {run.id: run for run in plan.jobs}
    moments: dict[str, int] = {}
    for one in job.after:
        for name in members[one.job]:
            event = runs[name].start if one.type is DependencyType.AFTER else runs[name].end
            moments[name] = max(moments.get(name, event + one.delay), event + one.delay)
    return moments


def unguarded(instance: Instance) -> Instance:
    """Return an instance whose nodes let everybody in."""
    classes = tuple(replace(one, admits=(), keep_free=()) for one in instance.cluster.classes)
    return replace(instance, cluster=replace(instance.cluster, classes=classes))
