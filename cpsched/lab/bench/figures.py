"""The figures of a cell by their names: ``wqt``, ``bounded_slowdown.mean``, ``decisions.p99``."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from cpsched.metrics import Decisions, Distribution, Figures, RunsSummary

#: The kinds of groups of jobs that have figures of their own, and their fields in a summary.
GROUPS = {"queue": "by_queue", "size": "by_size", "user": "by_user", "class": "by_class", "day": "by_day"}
#: The counters of schedulers that lend cores (SD-12).
_COUNTERS = ("guests", "mates")

_PARTS: dict[str, type[Any]] = {"Distribution": Distribution, "Decisions": Decisions}


def _names_in(kind: type[Any]) -> dict[str, bool]:
    """Return the names of the numbers in a class of figures, and whether each is an integer."""
    names: dict[str, bool] = {}
    for field in fields(kind):
        type_name = str(field.type).removesuffix(" | None")
        if type_name in _PARTS:
            inner = _names_in(_PARTS[type_name])
            names |= {f"{field.name}.{name}": is_integer for name, is_integer in inner.items()}
        elif type_name in ("int", "float"):
            names[field.name] = type_name == "int"
    return names


_JOB_FIGURES = _names_in(Figures)
#: Figures of the whole machine, the seconds of the simulation, and the scheduler's counters; of no group of jobs.
MACHINE_FIGURES = {name: integer for name, integer in _names_in(RunsSummary).items() if name not in ("begin", "end")}
MACHINE_FIGURES |= {"seconds": False, **dict.fromkeys(_COUNTERS, True)}
#: All figures, each with whether it is an integer.
FIGURES: Mapping[str, bool] = _JOB_FIGURES | MACHINE_FIGURES


#: The names that do not say by themselves what they mean, and the parts of distributions, in words.
_WORDS = {
    "allocated": "cores in use",
    "cut": "jobs not counted",
    "decisions": "decision",
    "decisions.count": "decisions",
    "effective": "cores in use by completed jobs",
    "jain": "Jain's index",
    "late": "late jobs",
    "max_queue_length": "queue, longest",
    "mean_queue_length": "queue, mean",
    "overdue": "overdue jobs",
    "starved": "jobs that starve",
    "p50": "median",
    "p95": "95 %",
    "p99": "99 %",
    "seconds": "seconds to simulate",
    "wqt": "weighted queue time",
}


def words_of(figure: str) -> str:
    """Say what a figure is: ``weighted queue time`` for ``wqt``, ``bounded slowdown, mean``."""
    if figure in _WORDS:
        return _WORDS[figure]
    return ", ".join(_WORDS.get(part, part.replace("_", " ")) for part in figure.split("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figures of one cell for all jobs, or for one group of them."""

    #: ``total``, or a kind of `GROUPS`.
    by: str
    #: The name of the group; None: the jobs without queue, or all.
    key: str | None
    #: None where there is nothing to measure, or where it was not measured.
    figures: Mapping[str, float | None]


def rows_of(result: Mapping[str, Any]) -> list[Row]:
    """Return the figures in the result of a cell: of all jobs, of each queue and of each class of jobs."""
    summary = result["summary"]
    counted = dict.fromkeys(_COUNTERS) | result["counters"]
    whole = summary["total"] | summary | {"seconds": result["seconds"]} | counted
    rows = [Row(by="total", key=None, figures=_picked(whole, FIGURES))]
    for by, place in GROUPS.items():
        for group in summary[place]:
            rows.append(Row(by=by, key=group["key"], figures=_picked(group["figures"], _JOB_FIGURES)))
    return rows


def _picked(document: Mapping[str, Any], names: Mapping[str, bool]) -> dict[str, float | None]:
    """Return the named numbers of a document; None where a part is missing."""
    picked = dict.fromkeys(FIGURES)
    for name in names:
        first, _, second = name.partition(".")
        value = document[first]
        picked[name] = value if not second or value is None else value[second]
    return picked
