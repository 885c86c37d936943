"""Replicas of one workload as a campaign: policies are compared on the same jobs at moved times."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cpsched.formats.logs import LogOptions
from cpsched.lab.bench.campaign import Campaign, Contender, LogFile, Workload
from cpsched.lab.bench.campaign_model import Plot, Table
from cpsched.lab.bench.reading import frozen_parameters
from cpsched.lab.policies import label_of
from cpsched.lab.sim import Prediction

#: Seconds by which each submission is moved at random, at most.
MOVED = 600
#: The figures of the table and the charts.
_FIGURES = ("wait.mean", "bounded_slowdown.mean", "wqt")


def replicas_campaign(
    name: str,
    source: Path,
    options: LogOptions,
    policies: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    replicas: int,
    predict: Prediction | None,
    charge_overhead: bool,
) -> Campaign:
    """Return the campaign of some policies on replicas of a workload, in which each submission is moved at random.

    `name`: of the workload. `source`, `options`: the workload: an instance or a log, and how a log is read. `policies`:
    schedulers with parameters. `replicas`: how many. `predict`, `charge_overhead`: the settings of all simulations.
    """
    return Campaign(
        name=name,
        seeds=tuple(range(1, replicas + 1)),
        warm_up=0.0,
        cool_down=0.0,
        workloads=(
            Workload(
                name=name,
                source=LogFile(path=source.resolve(), options=options),
                load=None,
                malleable=None,
                moved=MOVED,
            ),
        ),
        contenders=tuple(
            Contender(
                label=label_of(scheduler, parameters),
                scheduler=scheduler,
                parameters=frozen_parameters(parameters),
                predict=predict,
                charge_overhead=charge_overhead,
            )
            for scheduler, parameters in policies
        ),
        tables=(Table(name="replicas", title="Replicas", figures=_FIGURES, by="total", won="wqt"),),
        plots=tuple(Plot(name=figure, figure=figure) for figure in _FIGURES),
        published=(),
        page=None,
    )
