"""Real logs, played by the compiled event loop and by its naive twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpsched.formats.logs import LogOptions, Selection, log_to_instance
from cpsched.formats.swf import machine_of_log, read_swf
from cpsched.lab.sim import BackfillRule, Order, Prediction, QueueRule
from tests.oracle.naive_simulator import play_naively
from tests.sim.played import played, story_of
from tests.sizes import some


@pytest.mark.slow
@pytest.mark.parametrize("predicts", some([Prediction.ALL, Prediction.ORDER, None], 2))
@pytest.mark.parametrize(
    "rule",
    [
        QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING),
        QueueRule(name="sjf", backfill=BackfillRule.ANYBODY, order=Order.WALLTIME, depth=10),
    ],
    ids=lambda rule: rule.name,
)
def test_the_first_jobs_of_a_real_log(rule: QueueRule, predicts: Prediction | None, shared_data: Path) -> None:
    """150 lines of the SP2 at San Diego: 128 nodes, and 142 jobs with a run time, more than half of which wait."""
    log = read_swf(shared_data / "logs" / "SDSC-SP2-1998-4.2-cln.firsthalf.swf.gz")
    chosen = Selection(jobs=150)
    instance = log_to_instance(log, machine_of_log(log).machine, LogOptions(selection=chosen), arriving=True).instance
    history = played(instance, rule, predicts=predicts)
    waits = history.runs.start - history.runs.submit
    assert len(instance.jobs) == 142
    assert (waits > 0).sum() > 80
    assert story_of(instance, history) == play_naively(instance, rule, predicts=predicts)
