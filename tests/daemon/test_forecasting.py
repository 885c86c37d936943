"""Forecasts of the daemon: they are told and kept, what becomes of them is noted, and a restart forgets nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.domain import PlannedJob, Segment
from cpsched.forecast import Kind, RuntimeLearner
from cpsched.site.daemon import forecasting
from cpsched.site.daemon.forecasting import Forecaster, StoredForecast
from cpsched.site.daemon.state import PlannedStart
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, on, site, world
from tests.daemon.making import LIVE, daemon_on, finish


def planned_start(name: str, start: int) -> PlannedStart:
    """Return an entry of the living plan."""
    segment = Segment(start=start, end=start + 100, allocation=on("n1"))
    return PlannedStart(planned=PlannedJob(id=name, start=start, end=start + 100, segments=(segment,)), revision="0")


FORECASTING = replace(LIVE, forecast_every=1)


def told(job: str, at: int, start: int | None = None, *, latest: int | None = 200) -> StoredForecast:
    """Return a forecast of the second 100, from 50 on."""
    return StoredForecast(
        job=job, at=at, likely=100, earliest=50, latest=latest, low=60, median=100, high=180, waited=0, start=start
    )


def test_starts_are_forecast_kept_and_judged(tmp_path: Path) -> None:
    """Three jobs of the whole machine one after the other: each has a forecast from its first cycle on; all starts are
    noted in the store, and readers are told how many were within.
    """
    there = world(*(job(f"j{number}", "2:ncpus=4", walltime=100, runtime=50) for number in range(3)))
    daemon, _ = daemon_on(there, tmp_path, FORECASTING)
    daemon.cycle()
    found = daemon._forecaster.told
    assert found.keys() == {"j0", "j1", "j2"}
    assert [found[f"j{number}"].likely for number in range(3)] == [0, 100, 200]
    present = daemon.store.present()
    assert present is not None
    assert present.document["forecasts"]["j1"]["likely"] == 100
    assert present.document["calibration"] == {"starts": 0, "within": 0, "ends": 0, "in_time": 0}
    finish(daemon)
    kept = daemon.store.forecasts(100)
    assert {one.job: one.start for one in kept} == {name: there.jobs[name].start for name in found}
    held = daemon._forecaster.held
    assert held["starts"] == len(kept)
    assert held["within"] == sum(one.start is not None and one.holds(one.start) for one in kept)
    again, _ = daemon_on(PlayedWorld(site()), tmp_path, FORECASTING)
    assert again._forecaster.held == held


def test_whatever_is_wrong_with_a_forecast_the_cluster_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of a forecast is logged; the cycle is a good one, and jobs start."""

    def fail(*_: object, **__: object) -> None:
        raise IndexError("out of range")

    monkeypatch.setattr(forecasting, "forecast", fail)
    there = world(job("j", "2:ncpus=4", walltime=100, runtime=50))
    daemon, lines = daemon_on(there, tmp_path, FORECASTING)
    daemon.cycle()
    assert any(one["event"] == "no forecast" for one in lines.read())
    assert not daemon.journal.has_failed
    finish(daemon)
    assert there.jobs["j"].start == 0


def test_without_forecasts_there_are_none(tmp_path: Path) -> None:
    """0 seconds: none is made, and readers see that."""
    daemon, _ = daemon_on(world(job("a")), tmp_path, LIVE)
    daemon.cycle()
    present = daemon.store.present()
    assert present is not None
    assert (present.document["forecasts"], present.document["calibration"]) == ({}, None)


def test_what_is_cancelled_is_no_start(tmp_path: Path) -> None:
    """A job that never starts leaves no forecast behind."""
    there = world(job("a", "2:ncpus=4"), job("b", "2:ncpus=4"))
    daemon, _ = daemon_on(there, tmp_path, FORECASTING)
    daemon.cycle()
    assert {one.job for one in daemon.store.forecasts(10)} == {"a", "b"}
    there.cancel("b")
    finish(daemon)
    assert {one.job for one in daemon.store.forecasts(10)} == {"a"}


def test_an_interval_without_an_end_holds_all_that_is_late() -> None:
    """From 50 to 200; or to never."""
    assert [told("a", 0).holds(start) for start in (49, 50, 200, 201)] == [False, True, True, False]
    assert told("a", 0, latest=None).holds(10**6)


def test_forecasts_are_made_now_and_then() -> None:
    """Not before `every` seconds are over, nor before twenty times what the last ones took; kept once an hour."""
    seconds = [0.0]

    def clock() -> float:
        seconds[0] += 10.0  # what each look takes
        return seconds[0]

    forecaster, window = Forecaster(RuntimeLearner(), clock=clock), site(job("a"), job("b"), now=5)
    kept = forecaster.renew(window, {}, every=1)
    assert kept is not None
    assert {one.job for one in kept} == {"a", "b"}
    assert forecaster.renew(window, {}, every=1) is None
    seconds[0] += 400.0
    assert forecaster.renew(replace(window, now=3604), {}, every=1) == ()
    seconds[0] += 400.0
    later = forecaster.renew(replace(window, now=3605), {}, every=1)
    assert later is not None
    assert {one.at for one in later} == {3605}


def test_a_daemon_that_begins_knows_what_became_of_forecasts() -> None:
    """What a store has kept: two starts, one of them within; the job that waits is judged when it starts."""
    forecaster = Forecaster(RuntimeLearner())
    forecaster.begin([told("a", 0, 70), told("b", 0, 300), told("c", 0)])
    assert (forecaster.held["starts"], forecaster.held["within"]) == (2, 1)
    forecaster.started("c", 100)
    assert (forecaster.held["starts"], forecaster.held["within"]) == (3, 2)


def test_walltimes_that_are_enough_are_judged_by_what_was_known_before() -> None:
    """Forty jobs take 55 of 100,000 s. The next ones take 60 s, which was enough, and 61 s, which was not; of a user of
    whom nothing is known nothing less than the walltime was said.
    """
    forecaster, kind = Forecaster(RuntimeLearner()), Kind("q", "ann", 100_000)
    forecaster.learn([(kind, 55)] * 40)
    before = forecaster.held
    assert before["in_time"] == before["ends"] > 0
    forecaster.learn([(kind, 60), (kind, 61)])
    forecaster.learn([(Kind("other", "bob", 100), 1)])
    assert (forecaster.held["ends"], forecaster.held["in_time"]) == (before["ends"] + 2, before["in_time"] + 1)


def test_of_a_long_queue_the_jobs_that_start_first_are_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most so many, elements of arrays one by one; what waits for a job that is left out waits for nothing else."""
    monkeypatch.setattr(forecasting, "_MOST", 3)
    forecaster, window = (
        Forecaster(RuntimeLearner()),
        site(job("a"), job("many", array={"indices": "0-1"}), job("b"), job("c")),
    )
    forecaster.renew(window, {}, every=1)
    assert forecaster.told.keys() == {"a", "many[0]", "many[1]"}
    plan = {name: planned_start(name, at) for name, at in (("c", 0), ("b", 5), ("many[0]", 9))}
    later = Forecaster(RuntimeLearner())
    later.renew(window, plan, every=1)
    assert later.told.keys() == {"c", "b"}
