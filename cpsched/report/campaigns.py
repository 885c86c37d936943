"""A report on a campaign: policies side by side, with confidence intervals, and their paired differences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cpsched.charts import Axis, Chart, Line, Table, Unit, unit_text
from cpsched.errors import ReportError
from cpsched.metrics import UNSERVED, MeanInterval, mean_interval, unserved_rank, unserved_text
from cpsched.report.report import Report, Section


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignCell:
    """The figures of one simulation of a campaign, over all its jobs."""

    workload: str
    policy: str
    #: The replica: policies are compared on the same one.
    replica: str
    #: By the names of ``docs/campaigns.md``; None: not measured.
    figures: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """A figure that reports show."""

    name: str
    label: str
    unit: Unit = Unit.NUMBER
    #: Whether more of it is better.
    is_gain: bool = False


FIGURES = (
    _Figure(name="wait.mean", label="Mean wait", unit=Unit.SECONDS),
    _Figure(name="wait.median", label="Median wait", unit=Unit.SECONDS),
    _Figure(name="wait.p95", label="Wait of the 95th percentile", unit=Unit.SECONDS),
    _Figure(name="bounded_slowdown.mean", label="Mean bounded slowdown"),
    _Figure(name="bounded_slowdown.p95", label="Bounded slowdown of the 95th percentile"),
    _Figure(name="wqt", label="Sum of wait / expected wait"),
    _Figure(name="late", label="Jobs that wait longer than expected"),
    _Figure(name="mean_queue_length", label="Mean length of the queue"),
    _Figure(name="allocated", label="Cores in use", unit=Unit.SHARE, is_gain=True),
    _Figure(name="effective", label="Cores in use by jobs that complete", unit=Unit.SHARE, is_gain=True),
    _Figure(name="makespan", label="Makespan", unit=Unit.SECONDS),
    _Figure(name="jain", label="Fairness between users (Jain's index)", is_gain=True),
    _Figure(name="unfairly_delayed", label="Jobs that others overtook unfairly", unit=Unit.SHARE),
    _Figure(name="decisions.mean", label="Mean time of a decision", unit=Unit.SECONDS),
)
#: The figures of the overview.
_MAIN = ("wait.mean", "bounded_slowdown.mean", "wqt", "allocated")
#: The title of their section.
OVERVIEW = "Overview"

#: The figures of all cells of one workload, by policy and replica.
_Cells = Mapping[str, Mapping[str, Mapping[str, float | None]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """The policies on one workload by one figure, over the replicas that all of them have.

    A policy that serves fewer jobs than another one is behind it, whatever its figures: see `unserved_rank`.
    """

    means: Mapping[str, MeanInterval]
    #: The policies from the best to the last.
    order: Sequence[str]
    #: The rank of each policy by the jobs that it did not serve.
    unserved: Mapping[str, tuple[float, float]]
    #: The same in words.
    unserved_words: Mapping[str, str]
    #: What each policy has more than the best one, replica by replica.
    differences: Mapping[str, MeanInterval]
    #: In how many replicas no policy is better.
    won: Mapping[str, int]
    replicas: int

    @property
    def best(self) -> str:
        """The first policy."""
        return self.order[0]

    @property
    def level(self) -> frozenset[str]:
        """The best policy, and all whose difference to it may be 0 by its interval."""
        return frozenset(
            policy
            for policy, one in self.differences.items()
            if policy == self.best
            or (self.unserved[policy] == self.unserved[self.best] and abs(one.mean) <= (one.half_width or 0.0))
        )


def campaign_report(name: str, cells: Sequence[CampaignCell]) -> Report:
    """Return a report on a campaign. Raises `ReportError` if there are no cells."""
    if not cells:
        raise ReportError(f"Expected the results of cells in the campaign {name}, got none")
    workloads = list(dict.fromkeys(cell.workload for cell in cells))
    policies = list(dict.fromkeys(cell.policy for cell in cells))
    found: dict[str, dict[str, _Comparison]] = {}
    figures_of: dict[str, dict[str, dict[str, Mapping[str, float | None]]]] = {}
    for cell in cells:
        figures_of.setdefault(cell.workload, {}).setdefault(cell.policy, {})[cell.replica] = cell.figures
    for figure in FIGURES:
        compared = {
            workload: comparison
            for workload, of_workload in figures_of.items()
            if (comparison := _compared(of_workload, figure)) is not None
        }
        if compared:
            found[figure.name] = compared
    shown = [figure for figure in FIGURES if figure.name in found]
    sections = [_overview(shown, found, policies, workloads, cells)]
    sections += [_figure_section(figure, found[figure.name], policies) for figure in shown]
    replicas = len({(cell.workload, cell.replica) for cell in cells})
    sentences = [
        f"{len(policies):,} policies on {len(workloads):,} workload{'s' if len(workloads) > 1 else ''}, "
        f"{len(cells):,} simulations of {replicas:,} replicas."
    ]
    sentences += _behind(found, policies)
    sentences += _verdicts(shown, found)
    sentences += _missing(cells, workloads, policies)
    return Report(kind="Campaign", name=name, sentences=tuple(sentences), figures=(), sections=tuple(sections))


def _compared(cells: _Cells, figure: _Figure) -> _Comparison | None:
    """Compare the policies on the replicas that all have; None where there is none."""
    values: dict[str, dict[str, float]] = {}
    for policy, by_replica in cells.items():
        for replica, figures in by_replica.items():
            if (value := figures.get(figure.name)) is not None:
                values.setdefault(policy, {})[replica] = value
    if not values:
        return None
    shared = [replica for replica in next(iter(values.values())) if all(replica in one for one in values.values())]
    if not shared:
        return None
    means = {policy: mean_interval([one[replica] for replica in shared]) for policy, one in values.items()}
    sign = -1 if figure.is_gain else 1
    played = {policy: [cells[policy][replica] for replica in shared] for policy in values}
    unserved = {policy: unserved_rank(figures) for policy, figures in played.items()}
    order = sorted(means, key=lambda policy: (unserved[policy], sign * means[policy].mean))
    differences = {
        policy: mean_interval([one[replica] - values[order[0]][replica] for replica in shared])
        for policy, one in values.items()
    }
    ranks = {
        policy: {replica: (unserved_rank([cells[policy][replica]]), sign * one[replica]) for replica in shared}
        for policy, one in values.items()
    }
    tops = {replica: min(one[replica] for one in ranks.values()) for replica in shared}
    return _Comparison(
        means=means,
        order=order,
        unserved=unserved,
        unserved_words={policy: unserved_text(figures) for policy, figures in played.items()},
        differences=differences,
        won={policy: sum(one[replica] <= tops[replica] for replica in shared) for policy, one in ranks.items()},
        replicas=len(shared),
    )


def _verdicts(shown: Sequence[_Figure], found: Mapping[str, Mapping[str, _Comparison]]) -> Iterator[str]:
    """Yield the best engine by each of the main figures."""
    for figure in shown:
        if figure.name not in _MAIN:
            continue
        compared = found[figure.name]
        wins: dict[str, int] = {}
        for comparison in compared.values():
            wins[comparison.best] = wins.get(comparison.best, 0) + 1
        best = max(wins, key=lambda policy: wins[policy])
        if len(compared) > 1:
            shared = sum(len(one.level) > 1 for one in compared.values())
            words = f"{best} is best on {wins[best]:,} of {len(compared):,} workloads"
            yield f"{figure.label}: {words}" + (
                f"; on {shared:,} of them another policy is as good within the noise." if shared else "."
            )
            continue
        (only,) = compared.values()
        words = f"{best} is best, {mean_text(only.means[best], figure.unit)}"
        others = ", ".join(policy for policy in only.means if policy in only.level and policy != best)
        yield f"{figure.label}: {words}" + (f"; as good within the noise: {others}." if others else ".")


def _behind(found: Mapping[str, Mapping[str, _Comparison]], policies: Sequence[str]) -> Iterator[str]:
    """Yield which policies serve fewer jobs than others, and so are best by no figure."""
    for policy in policies:
        where: dict[str, str] = {}
        for compared in found.values():
            for workload, one in compared.items():
                if policy in one.unserved and one.unserved[policy] > min(one.unserved.values()):
                    where.setdefault(workload, one.unserved_words[policy])
        if where:
            named = "; ".join(f"{workload}: {words}" for workload, words in where.items())
            yield f"{policy} serves fewer jobs than others do, and is best by no figure there ({UNSERVED}: {named})."


def _missing(cells: Sequence[CampaignCell], workloads: Sequence[str], policies: Sequence[str]) -> Iterator[str]:
    have = {(cell.workload, cell.policy, cell.replica) for cell in cells}
    replicas: dict[str, set[str]] = {}
    for cell in cells:
        replicas.setdefault(cell.workload, set()).add(cell.replica)
    missing = [
        (workload, policy)
        for workload in workloads
        for policy in policies
        for replica in replicas[workload]
        if (workload, policy, replica) not in have
    ]
    if missing:
        named = ", ".join(f"{policy} on {workload}" for workload, policy in dict.fromkeys(missing))
        yield (f"{len(missing):,} results are missing ({named}): means are over the replicas that all policies have.")


def _overview(
    shown: Sequence[_Figure],
    found: Mapping[str, Mapping[str, _Comparison]],
    policies: Sequence[str],
    workloads: Sequence[str],
    cells: Sequence[CampaignCell],
) -> Section:
    """Return which policy wins how often, below the jobs that each did not serve."""
    left = (unserved_text(cell.figures for cell in cells if cell.policy == policy) for policy in policies)
    rows: list[tuple[str, ...]] = [(f"Jobs: {UNSERVED}", *left)]
    marked: set[tuple[int, int]] = set()
    for number, figure in enumerate(shown, start=1):
        row = [figure.label]
        for place, policy in enumerate(policies, start=1):
            compared = found[figure.name].values()
            if len(workloads) == 1:
                (comparison,) = compared
                row.append(_marked(comparison, policy, mean_text(comparison.means.get(policy), figure.unit)))
            else:
                wins = sum(one.best == policy for one in compared)
                row.append(f"{wins} best, {sum(policy in one.level for one in compared) - wins} level")
            if all(policy in one.level for one in compared):
                marked.add((number, place))
        rows.append(tuple(row))
    text = (
        "★ is the best mean. ≈ is as good within the noise: the 95% interval of the paired difference, replica by "
        "replica, has 0 in it. Intervals are of one pair each, not corrected for their number."
    )
    if len(workloads) > 1:
        text = f"On how many of {len(workloads):,} workloads each policy is best, or level with the best one."
    return Section(
        title=OVERVIEW,
        text=f"{text} A policy that leaves more jobs unfinished or killed, or else starved, is behind, whatever its "
        "figures. Policies that are best or level everywhere are marked.",
        tables=(Table(headings=("figure", *policies), rows=tuple(rows), marked=frozenset(marked)),),
    )


def _marked(comparison: _Comparison, policy: str, text: str) -> str:
    """Return a text with the sign of the best, or of what is level with it."""
    if policy == comparison.best:
        return f"★ {text}"
    return f"≈ {text}" if policy in comparison.level else text


def mean_text(interval: MeanInterval | None, unit: Unit) -> str:
    """Return a mean with its interval."""
    if interval is None:
        return "-"
    around = "" if interval.half_width is None else f" ± {unit_text(unit, interval.half_width)}"
    return unit_text(unit, interval.mean) + around


def _figure_section(figure: _Figure, compared: Mapping[str, _Comparison], policies: Sequence[str]) -> Section:
    rows = Axis(label="", names=tuple(policies) if len(compared) == 1 else tuple(compared))
    charts = [
        Chart(
            title=f"{figure.label}, by policy",
            x=Axis(label=figure.label, unit=figure.unit, has_zero=True),
            y=rows,
            layers=tuple(_points(compared, policies, lambda one, policy: one.means.get(policy))),
            about="Means over the replicas with their 95% confidence intervals (Student's t).",
        )
    ]
    if any(one.replicas > 1 for one in compared.values()):
        charts.append(
            Chart(
                title=f"{figure.label}: paired difference to the best policy",
                x=Axis(label="difference to the best policy", unit=figure.unit, has_zero=True),
                y=rows,
                layers=tuple(_points(compared, policies, lambda one, policy: one.differences.get(policy))),
                about="The policy's figure less that of the best one on the same replica: mean and 95% interval.",
            )
        )
    better = "More is better." if figure.is_gain else "Less is better."
    return Section(
        title=figure.label,
        text=f"{better} In the tables ★ marks the best mean, ≈ what is as good within the noise.",
        is_folded=figure.name not in _MAIN,
        charts=tuple(charts),
        tables=tuple(_table(figure, workload, one) for workload, one in compared.items()),
    )


def _points(
    compared: Mapping[str, _Comparison], policies: Sequence[str], of: Callable[[_Comparison, str], MeanInterval | None]
) -> Iterator[Line]:
    for number, policy in enumerate(policies):
        x, y, widths = [], [], []
        for row, one in enumerate(compared.values()):
            interval = of(one, policy)
            if interval is not None:
                aside = 0.0 if len(policies) == 1 else 0.6 * (number / (len(policies) - 1) - 0.5)
                x.append(interval.mean)
                y.append(float(number) if len(compared) == 1 else row + aside)
                widths.append(interval.half_width)
        if x:
            yield Line(
                name=policy,
                x=tuple(x),
                y=tuple(y),
                half_widths=tuple(widths),
                series=number,
                is_joined=False,
                has_marks=True,
                is_flat=True,
            )


def _table(figure: _Figure, workload: str, one: _Comparison) -> Table:
    rows = tuple(
        (
            _marked(one, policy, policy),
            mean_text(one.means[policy], figure.unit),
            "-" if policy == one.best else mean_text(one.differences[policy], figure.unit),
            _percent(one, policy),
            one.unserved_words[policy],
            f"{one.won[policy]:,} of {one.replicas:,}",
        )
        for policy in one.order
    )
    return Table(
        title=workload,
        headings=(
            "policy",
            figure.label.lower(),
            "difference to the best, paired",
            "in percent",
            UNSERVED,
            "best in replicas",
        ),
        rows=rows,
        marked=frozenset((row, 0) for row, policy in enumerate(one.order) if policy in one.level),
    )


def _percent(one: _Comparison, policy: str) -> str:
    """Return the mean difference as a share of the best policy's mean."""
    best = one.means[one.best].mean
    if policy == one.best or not best:
        return "-"
    return f"{100 * one.differences[policy].mean / abs(best):+.1f}%"
