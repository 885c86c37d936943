"""Rules and jobs with a choice: the first choice that fits at once, against a twin that tries them one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.booking import Ledger
from cpsched.domain import Instance
from cpsched.planner import AdmissionResult
from cpsched.rules.policy import FirstThatFits
from tests.workloads.changing import with_alternatives
from tests.workloads.eurora_windows import eurora_window

HOUR = 3600


def costly(window: Instance) -> Instance:
    """Return a window whose alternatives are open one after the other, an hour later, or two."""
    jobs = (
        replace(
            job,
            alternatives=tuple(replace(one, cost=HOUR * (number % 3)) for number, one in enumerate(job.alternatives)),
        )
        for job in window.jobs
    )
    return replace(window, jobs=tuple(jobs))


def tried(ledger: Ledger, names: list[str], now: int) -> dict[str, int]:
    """Book jobs that can start now, job by job and choice by choice."""
    starts = dict[str, int]()
    for name in names:
        job = ledger.job_of(name)
        for number in range(1 + len(job.alternatives)):
            if name not in starts and job.submit + job.step_of(number).cost <= now:
                if job.alternatives:
                    ledger.take_mode(name, number)
                starts |= ledger.place([name], earliest=now, latest=now)
    return starts


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_at_once_is_one_by_one(seed: int, share: float) -> None:
    """At two seconds, the second time beside jobs that started and with single jobs whose own window is kept."""
    window = costly(with_alternatives(eurora_window(80, seed, busy=0.5, demand=1000), seed, share=share))
    jobs = AdmissionResult.of(window, engine="test", is_shrunk=False).admitted
    ours, twin = Ledger(window, jobs), Ledger(window, jobs)
    first_that_fits, names = FirstThatFits(ours), [job.id for job in jobs]
    for second in (window.now, window.now + HOUR):
        assert first_that_fits.at_once(names, second) == tried(twin, names, second)
        assert [ours.planned(name) for name in names] == [twin.planned(name) for name in names]
        names = [name for name in names if not ours.is_booked(name)]
    placed = [planned for job in jobs if (planned := ours.planned(job.id)) is not None]
    assert len({planned.alternative for planned in placed}) > 1
    ends = {name: first_that_fits.from_now_on(name, window.now + HOUR) for name in names}
    assert all(start is not None for start in ends.values())
