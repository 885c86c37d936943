"""The variables of a model: starts, counts of units by site, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cpsched.cp.encoding import Alternative, Encoding, Task
from cpsched.cp.solution import ABSENT, Placed
from cpsched.problem import Milestone

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntervalVar, IntVar, LinearExpr


#: (task, part of the task, site).
Key = tuple[int, int, int]
#: (task, mode, first of some segments, last of them).
Run = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Variables:
    """All variables; none of them is made anywhere else, so that hints are complete."""

    #: By task: second from now.
    starts: list[IntVar]
    #: By task that may be left out: whether it has a place.
    places: dict[int, IntVar]
    #: By task and mode: whether it is run so; only of tasks with several modes.
    modes: dict[tuple[int, int], IntVar]
    #: By task and mode: the begin of its first segment, and the ends of all its segments. A segment of fixed
    #: duration needs no variable; all others have a border and a size.
    times: dict[tuple[int, int], tuple[LinearExpr, ...]]
    borders: dict[tuple[int, int, int], IntVar]
    #: Seconds that some segments of a mode take together, where they can take more or less.
    sizes: dict[Run, IntVar]
    #: By task, mode and segments: ``[begin of the first, end of the last)``, if the task is run so.
    intervals: dict[Run, IntervalVar]
    #: By task: when it ends; only where neither its start nor its mode says that.
    ends: dict[int, IntVar]
    #: The number of units of a part on a site, and whether there are any; the same variable if only one fits.
    counts: dict[Key, IntVar]
    presences: dict[Key, IntVar]
    #: The alternatives of a task (BRIDI-5): an interval for each of `Part.runs`, if the part is on the site. All have
    #: the task's own times, which synchronizes the kinds of its chunks.
    alternatives: dict[Key, list[IntervalVar]]
    #: By task, mode, segment and site: whether an exclusive task takes the node, and when.
    hosts: dict[tuple[int, int, int, int], IntVar]
    stays: dict[tuple[int, int, int, int], IntervalVar]
    #: By task, part and group of equal nodes (the number of its class): the number of units there; only for parts
    #: that several groups admit.
    totals: dict[Key, IntVar]
    #: By task, mode and group of nodes of a level: whether the task is in it, of tasks within one group; of others how
    #: many of their segments are, or of their chunks that are to be spread.
    groups: dict[tuple[int, int, tuple[str, str]], IntVar]
    #: By task and kink: seconds of delay beyond the kink.
    delays: dict[tuple[int, int], IntVar]
    #: By task, mode and kink: the same, if the task is run so.
    mode_delays: dict[tuple[int, int, int], IntVar]
    #: Second by which all planned jobs have ended; None if the objective does not ask.
    makespan: IntVar | None
    #: By milestone between several tasks and several others: the second at which it is reached, if all before it have
    #: a place; and whether they have, where a plan may leave tasks behind it out.
    moments: dict[int, IntVar] = field(default_factory=dict)
    reached: dict[int, IntVar] = field(default_factory=dict)

    @classmethod
    def of(cls, model: CpModel, encoding: Encoding) -> Variables:
        """Make the variables of a model."""
        starts = [model.new_int_var(task.earliest, task.latest, f"start{n}") for n, task in enumerate(encoding.tasks)]
        variables = cls(starts, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, None)
        for number, task in enumerate(encoding.tasks):
            variables._add_modes(model, number, task)
        variables = replace(variables, makespan=_makespan(model, encoding))
        for key, alternative in alternatives_of(encoding):
            variables._add_alternative(model, encoding, key, alternative)
        for number, task in enumerate(encoding.tasks):
            variables._add_totals(model, encoding, number)
            if task.is_exclusive:
                variables._add_hosts(model, number, task)
            variables._add_delays(model, encoding, number)
        for number, milestone in enumerate(encoding.milestones):
            if len(milestone.before) > 1 and len(milestone.after) > 1:
                variables._add_moment(model, encoding, number, milestone)
        return variables

    def end_of(self, number: int, task: Task) -> LinearExpr:
        """Return when a task ends."""
        if number in self.ends:
            return self.ends[number]
        if len(task.modes) == 1:
            return self.times[number, 0][-1]
        return self.starts[number] + sum(mode.least * self.modes[number, w] for w, mode in enumerate(task.modes))

    def is_run_so(self, number: int, mode: int) -> IntVar | int:
        """Return whether a task is run in such a mode."""
        return self.modes.get((number, mode), self.has_place(number))

    def has_place(self, number: int) -> IntVar | int:
        """Return whether a task has a place."""
        return self.places.get(number, 1)

    def placed(self, encoding: Encoding, value: Callable[[LinearExpr | IntVar | int], int]) -> tuple[Placed, ...]:
        """Return the tasks as a solution has them, which gives each variable a value."""
        counts: list[list[tuple[int, int, int]]] = [[] for _ in encoding.tasks]
        for (number, part, site), variable in self.counts.items():
            if count := value(variable):
                counts[number].append((part, site, count))
        found = []
        for number, (task, of_task) in enumerate(zip(encoding.tasks, counts, strict=True)):
            if not value(self.has_place(number)):
                found.append(Placed((task.earliest,), (), ABSENT))
                continue
            (mode,) = (mode for mode in range(len(task.modes)) if value(self.is_run_so(number, mode)))
            found.append(Placed(tuple(value(time) for time in self.times[number, mode]), tuple(of_task), mode))
        return tuple(found)

    def passed(self, task: Task, number: int, seconds: int, milestone: Milestone) -> LinearExpr:
        """Return when a task has run for so many seconds; one that may take longer, where its end counts."""
        if milestone.is_from_end and (task.is_elastic or task.job.alternatives):
            return self.end_of(number, task) + (seconds - task.job.shortest)
        return self.starts[number] + seconds

    def _add_moment(self, model: CpModel, encoding: Encoding, number: int, milestone: Milestone) -> None:
        latest = max(max(encoding.tasks[one].latest + seconds, encoding.horizon) for one, seconds in milestone.before)
        self.moments[number] = model.new_int_var(0, latest, f"milestone{number}")
        if any(one in self.places for one, _ in milestone.after):
            self.reached[number] = model.new_bool_var(f"reached{number}")

    def _add_modes(self, model: CpModel, number: int, task: Task) -> None:
        """Make the variables of the modes of a task, and the intervals of their segments."""
        if task.is_optional:
            self.places[number] = model.new_bool_var(f"place{number}")
        for mode in range(len(task.modes)) if len(task.modes) > 1 else ():
            self.modes[number, mode] = model.new_bool_var(f"mode{number}.{mode}")
        if any(mode.work is not None for mode in task.modes):
            self.ends[number] = model.new_int_var(task.earliest, task.end_by, f"end{number}")
        for place, of_mode in enumerate(task.modes):
            name = f"task{number}" if len(task.modes) == 1 else f"task{number}.{place}"
            times: list[LinearExpr] = [self.starts[number]]
            earliest, latest = task.earliest, task.end_by - sum(span.least for span in of_mode.spans)
            for segment, span in enumerate(of_mode.spans):
                earliest, latest = earliest + span.least, latest + span.least
                if span.least == span.most:
                    times.append(times[-1] + span.least)
                    continue
                border = model.new_int_var(earliest, latest, f"{name}.{segment}ends")
                most = min(span.most, task.end_by - task.earliest)
                self.borders[number, place, segment] = border
                self.sizes[number, place, segment, segment] = model.new_int_var(span.least, most, f"{name}.{segment}")
                times.append(border)
            self.times[number, place] = tuple(times)
            present, last = self.modes.get((number, place), self.places.get(number)), len(of_mode.spans) - 1
            whole = {(0, last)} if task.job.licenses_of(place) else set()
            for first, until in sorted({(segment, segment) for segment in range(last + 1)} | whole):
                run = (number, place, first, until)
                label = name if last == 0 else f"{name}.{first}-{until}"
                self.intervals[run] = self._interval(model, task, run, present, label)

    def _interval(self, model: CpModel, task: Task, run: Run, present: IntVar | None, name: str) -> IntervalVar:
        """Make the interval of some segments, optional if something says whether it is there."""
        number, place, first, last = run
        mode, times = task.modes[place], self.times[number, place]
        if mode.is_fixed(first, last):
            seconds = sum(span.least for span in mode.spans[first : last + 1])
            if present is None:
                return model.new_fixed_size_interval_var(times[first], seconds, name)
            return model.new_optional_fixed_size_interval_var(times[first], seconds, present, name)
        if run not in self.sizes:
            spans = mode.spans[first : last + 1]
            most = min(sum(span.most for span in spans), task.end_by - task.earliest)
            self.sizes[run] = model.new_int_var(sum(span.least for span in spans), most, f"size{run}")
        if present is None:
            return model.new_interval_var(times[first], self.sizes[run], times[last + 1], name)
        return model.new_optional_interval_var(times[first], self.sizes[run], times[last + 1], present, name)

    def _add_alternative(self, model: CpModel, encoding: Encoding, key: Key, alternative: Alternative) -> None:
        """Make the variables of a part on a site."""
        number, place, _ = key
        task = encoding.tasks[number]
        part = task.parts[place]
        name = "{}.{}@{}".format(*key)
        present = model.new_bool_var(f"on{name}")
        self.presences[key] = present
        group = encoding.group_of(number, place, alternative.site)
        if group is not None and (number, part.mode, group) not in self.groups:
            _, most = encoding.units_in_groups(number, place)
            self.groups[number, part.mode, group] = model.new_int_var(0, most, f"in{number}.{part.mode}@{group}")
        self.counts[key] = present if alternative.most == 1 else model.new_int_var(0, alternative.most, f"count{name}")
        self.alternatives[key] = [
            self._interval(model, task, (number, part.mode, first, last), present, f"alternative{name}")
            for first, last, _ in part.runs(alternative)
        ]

    def _add_totals(self, model: CpModel, encoding: Encoding, number: int) -> None:
        """Make the variables that count the units of a task's parts by group of nodes."""
        for place, part in enumerate(encoding.tasks[number].parts):
            groups = groups_of(encoding, number, place)
            for group in groups if len(groups) > 1 else ():
                self.totals[number, place, group] = model.new_int_var(0, part.need, f"total{number}.{place}@{group}")

    def _add_hosts(self, model: CpModel, number: int, task: Task) -> None:
        """Make the variables of an exclusive task: of each site on which it could have something in a segment."""
        for mode, segment in task.segments:
            for site in sorted(
                {
                    alternative.site
                    for part in task.parts
                    if part.is_there(mode, segment)
                    for alternative in part.alternatives
                }
            ):
                host = model.new_bool_var(f"host{number}@{site}")
                self.hosts[number, mode, segment, site] = host
                self.stays[number, mode, segment, site] = self._interval(
                    model, task, (number, mode, segment, segment), host, f"stay{number}@{site}"
                )

    def _add_delays(self, model: CpModel, encoding: Encoding, number: int) -> None:
        """Make the variables of a task's delays beyond its kinks."""
        task = encoding.tasks[number]
        for rate in encoding.costs.rates[number]:
            if rate.kink > task.earliest:
                delay = model.new_int_var(0, task.latest - rate.kink, f"delay{number}>{rate.kink}")
                self.delays[number, rate.kink] = delay
        for mode, cost in enumerate(encoding.costs.modes[number]):
            for rate in cost.rates:
                delay = model.new_int_var(0, task.latest - rate.kink, f"delay{number}.{mode}>{rate.kink}")
                self.mode_delays[number, mode, rate.kink] = delay


def alternatives_of(encoding: Encoding) -> Iterator[tuple[Key, Alternative]]:
    """Yield every part of every task with each of its alternatives."""
    for number, task in enumerate(encoding.tasks):
        for place, part in enumerate(task.parts):
            for alternative in part.alternatives:
                yield (number, place, alternative.site), alternative


def groups_of(encoding: Encoding, number: int, place: int) -> dict[int, list[Alternative]]:
    """Return the alternatives of a part by group of equal nodes."""
    groups: dict[int, list[Alternative]] = {}
    for alternative in encoding.tasks[number].parts[place].alternatives:
        groups.setdefault(encoding.sites[alternative.site].group, []).append(alternative)
    return groups


def _makespan(model: CpModel, encoding: Encoding) -> IntVar | None:
    """Make the variable of the makespan, if it costs."""
    if not encoding.costs.makespan:
        return None
    return model.new_int_var(encoding.ended, encoding.horizon, "makespan")
