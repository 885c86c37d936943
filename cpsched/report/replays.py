"""A report on history that was played again: how near the replay is, and what other rules would have changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table as TerminalTable

from cpsched.charts import Table, Unit, duration, unit_text
from cpsched.metrics import Fidelity, MeanInterval, RunsSummary, SimulatedRun, mean_interval
from cpsched.report.campaigns import FIGURES, CampaignCell, mean_text
from cpsched.report.report import Report, Section
from cpsched.report.runs import figures_section, side_by_side
from cpsched.report.tables import grid, runs_table

#: Up to these shares the replayed mean wait may be off, with at least this rank correlation: near, or rough.
_NEAR, _ROUGH = (0.1, 0.8), (0.5, 0.5)
#: Seconds by which the mean wait may always be off.
_NOTHING = 60
#: Where so large a share of the jobs starts within a minute of the real start, the replay is near in any case.
_ALIKE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a change does to a figure: means over replicas, and of the differences, each within one replica."""

    label: str
    #: By the names of ``docs/campaigns.md``, and in words.
    figure: str
    words: str
    unit: Unit
    unchanged: MeanInterval
    changed: MeanInterval
    difference: MeanInterval

    @property
    def share(self) -> float | None:
        """The mean difference as a share of the unchanged mean; None where that is 0."""
        return self.difference.mean / abs(self.unchanged.mean) if self.unchanged.mean else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay:
    """History that was played again under several rules; the first are those of the site, unchanged."""

    name: str
    #: What happened; None where nobody knows.
    real: SimulatedRun | None
    #: The jobs as they came, under each of the rules.
    runs: tuple[SimulatedRun, ...]
    #: The figures of what happened, and of the jobs as they came under each of the rules.
    summaries: Mapping[str, RunsSummary]
    #: Which of the jobs count.
    only: NDArray[np.bool_]
    #: How near the unchanged replay is to what happened.
    fidelity: Fidelity | None
    #: The figures of each replica under each of the rules, the first ones of the jobs as they came.
    cells: tuple[CampaignCell, ...]
    replicas: int

    @property
    def _all(self) -> tuple[SimulatedRun, ...]:
        return self.runs if self.real is None else (self.real, *self.runs)

    def differences(self) -> tuple[Difference, ...]:
        """Return the effect of each change on each figure that all replicas have."""
        values: dict[tuple[str, str], list[float]] = {}
        for figure in FIGURES:
            for cell in self.cells:
                value = cell.figures.get(figure.name)
                if value is not None:
                    values.setdefault((figure.name, cell.policy), []).append(value)
        found = []
        before, *others = (run.policy for run in self.runs)
        for label in others:
            for figure in FIGURES:
                old, new = values.get((figure.name, before), []), values.get((figure.name, label), [])
                if len(old) == len(new) == self.replicas and figure.name != "decisions.mean":
                    found.append(
                        Difference(
                            label=label,
                            figure=figure.name,
                            words=figure.label,
                            unit=figure.unit,
                            unchanged=mean_interval(old),
                            changed=mean_interval(new),
                            difference=mean_interval([b - a for a, b in zip(old, new, strict=True)]),
                        )
                    )
        return tuple(found)


def replay_report(replay: Replay) -> Report:
    """Return a report on a replay: first how near it is to what happened."""
    differences = replay.differences()
    jobs = {run.policy: np.flatnonzero(replay.only & run.runs.over) for run in replay._all}
    sections = [Section(title="How near the replay is", text=_NEAR_TEXT, tables=_near(replay))]
    sections += [
        Section(title=f"Changed: {label}", text=_HOW, tables=(_changes(label, differences),))
        for label in dict.fromkeys(one.label for one in differences)
    ]
    sections.append(figures_section(replay.summaries))
    sections.append(side_by_side("Side by side", {run.policy: run for run in replay._all}, jobs, by="replay"))
    return Report(
        kind="Replay",
        name=replay.name,
        sentences=(" ".join(_nearness(replay.fidelity)), *_verdicts(replay, differences)),
        figures=(),
        sections=tuple(sections),
    )


def replay_tables(replay: Replay) -> Iterator[TerminalTable]:
    """Yield the tables of a replay for a terminal."""
    for table in _near(replay):
        yield grid("how near the replay is", table.headings, table.rows, right={1, 2, 3})
    differences = replay.differences()
    for label in dict.fromkeys(one.label for one in differences):
        table = _changes(label, differences)
        yield grid(f"changed: {label}", table.headings, table.rows, right={1, 2, 3, 4})
    yield runs_table(replay.name, replay.summaries)


_NEAR_TEXT = "The replay without a change beside what happened, over the jobs that count and ended in both."
_HOW = (
    "Means over the replicas with their 95% confidence intervals (Student's t); the difference is within each replica: "
    "an interval without 0 is more than chance."
)


def _nearness(found: Fidelity | None) -> Iterator[str]:
    """Yield how near the unchanged replay is, in the words of an operator."""
    if found is None:
        yield (
            "The history does not say when jobs started: nothing shows how near the replay is to what happened. "
            "Compare the replays with each other only."
        )
        return
    yield (
        f"Played again without a change, the mean wait is {duration(found.simulated_wait)}; it really was "
        f"{duration(found.wait)}. {found.within_minute:.0%} of the jobs start within a minute of their real start, "
        f"{found.within_hour:.0%} within an hour."
    )
    apart = abs(found.simulated_wait - found.wait)
    alike = 1.0 if found.correlation is None else found.correlation

    def is_within(bounds: tuple[float, float]) -> bool:
        return apart <= max(_NOTHING, bounds[0] * found.wait) and alike >= bounds[1]

    if is_within(_NEAR) or found.within_minute >= _ALIKE:
        yield "That is near: what changes do here they would have done there."
    elif is_within(_ROUGH):
        yield "That is rough: believe whether a change helps, and its order of magnitude, not its figures."
    else:
        unknown = "jobs waited for something that the replay does not know (limits, reservations, failures"
        if found.simulated_wait > found.wait:
            unknown = "jobs waited less than the replay lets them (a larger machine, shorter runs, other priorities"
        yield (
            f"That is far: {unknown}, another scheduler). Compare the replays with each other only, or name the site's "
            "scheduler with --policy."
        )


def _near(replay: Replay) -> tuple[Table, ...]:
    """Return the figures of how near the unchanged replay is, as a table."""
    found = replay.fidelity
    if found is None:
        return ()
    alike = "-" if found.correlation is None else f"{found.correlation:.2f}"
    rows = (
        ("jobs that are compared", f"{found.jobs:,}"),
        ("mean wait, as it was", duration(found.wait)),
        ("mean wait, replayed", duration(found.simulated_wait)),
        ("start within a minute of the real start", unit_text(Unit.SHARE, found.within_minute)),
        ("start within an hour of it", unit_text(Unit.SHARE, found.within_hour)),
        ("rank correlation of the waits (1: the same jobs wait long; 0: nothing is alike)", alike),
    )
    return (Table(headings=("figure", "value"), rows=rows),)


def _changes(label: str, differences: tuple[Difference, ...]) -> Table:
    """Return the effects of one change, a row for each figure."""
    rows = tuple(
        (
            one.words,
            mean_text(one.unchanged, one.unit),
            mean_text(one.changed, one.unit),
            mean_text(one.difference, one.unit),
            "-" if one.share is None else f"{one.share:+.1%}",
        )
        for one in differences
        if one.label == label
    )
    return Table(headings=("figure", "unchanged", "changed", "difference", "in percent"), rows=rows)


def _verdicts(replay: Replay, differences: tuple[Difference, ...]) -> Iterator[str]:
    """Yield what each change does to the mean wait."""
    by_label: Mapping[str, Difference] = {one.label: one for one in differences if one.figure == "wait.mean"}
    for label, one in by_label.items():
        width = one.difference.half_width
        if one.difference.mean == 0:
            yield f"{label}: no job waits longer or shorter in the mean."
            continue
        share = "" if one.share is None else f", {one.share:+.0%}"
        before, after = (mean_text(mean, one.unit) for mean in (one.unchanged, one.changed))
        words = f"{label}: the mean wait is {after} in place of {before}{share}"
        if width is None:
            yield f"{words}; one replica does not tell this from chance."
        elif abs(one.difference.mean) <= width:
            yield f"{words}; that may be chance ({replay.replicas} replicas)."
        else:
            yield f"{words}; that is more than chance ({replay.replicas} replicas)."
