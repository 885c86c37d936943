"""The report on a campaign: means, paired differences, winners, and its page."""

from __future__ import annotations

import pytest

from cpsched.charts import Line
from cpsched.errors import ReportError
from cpsched.metrics import mean_interval
from cpsched.report import CampaignCell, campaign_report
from tests.report.pages import parsed
from tests.report.report_plans import HOSTILE

Values = dict[str, list[float | None]]


def cells_of(values: Values, *, workload: str = "w", figure: str = "wait.mean") -> list[CampaignCell]:
    """Return a cell for each policy and replica; None: not measured."""
    return [
        CampaignCell(workload=workload, policy=policy, replica=str(number), figures={figure: value})
        for policy, line in values.items()
        for number, value in enumerate(line)
    ]


def points_of(report_cells: list[CampaignCell], place: int) -> dict[str, tuple[float, float | None]]:
    """Return mean and half width of each policy in a chart."""
    chart = campaign_report("c", report_cells).charts[place]
    return {one.name: (one.x[0], one.half_widths[0]) for one in chart.layers if isinstance(one, Line)}


REPLICAS: Values = {"a": [10, 100, 1000], "b": [12, 103, 1004], "c": [9, 120, 990]}


def test_means_and_paired_differences() -> None:
    """Replicas differ much more than policies do: only the paired differences tell a from b."""
    means, differences = (points_of(cells_of(REPLICAS), place) for place in range(2))
    assert means["a"] == (370, mean_interval([10, 100, 1000]).half_width)
    assert differences["a"] == (0, 0)
    assert differences["b"] == (3, pytest.approx(mean_interval([2, 3, 4]).half_width))
    assert differences["c"][0] == 3


def test_winners_are_marked() -> None:
    """A is best; c, sometimes better, is as good within the noise; b always has more, and is not level."""
    report = campaign_report("c", cells_of(REPLICAS))
    (table,) = report.sections[1].tables
    assert [row[0] for row in table.rows] == ["★ a", "b", "≈ c"]
    assert [row[-1] for row in table.rows] == ["1 of 3", "0 of 3", "2 of 3"]
    assert table.marked == {(0, 0), (2, 0)}
    assert any(
        "a is best, 6 min 10 s" in sentence and "within the noise: c" in sentence for sentence in report.sentences
    )


def test_more_can_be_better() -> None:
    """Of cores in use the largest share wins."""
    report = campaign_report("c", cells_of({"a": [0.5, 0.5], "b": [0.75, 0.75]}, figure="allocated"))
    assert [row[0] for row in report.sections[1].tables[0].rows] == ["★ b", "a"]
    assert report.sections[1].tables[0].rows[1][2:4] == ("-25.0% ± 0.0%", "-33.3%")


def test_a_single_replica_has_no_interval() -> None:
    """There is one winner, and no chart of differences."""
    report = campaign_report("c", cells_of({"a": [1], "b": [2]}))
    assert len(report.charts) == 1
    assert [row[0] for row in report.sections[1].tables[0].rows] == ["★ a", "b"]


def test_missing_results_are_told() -> None:
    """Means are over the replicas that all policies have, and it is said what is missing."""
    cells = [cell for cell in cells_of(REPLICAS) if (cell.policy, cell.replica) != ("b", "2")]
    assert points_of(cells, 0)["a"][0] == 55
    assert any("1 results are missing (b on w)" in text for text in campaign_report("c", cells).sentences)
    unmeasured = cells_of({"a": [None, None]})
    assert campaign_report("c", unmeasured).charts == ()


def test_workloads_are_rows() -> None:
    """With several workloads each is a row of the chart, and the overview counts who is best how often."""
    cells = cells_of(REPLICAS) + cells_of({"a": [5, 6], "b": [1, 2], "c": [5, 6]}, workload="v")
    report = campaign_report("c", cells)
    assert report.charts[0].y.names == ("w", "v")
    assert report.sections[0].tables[0].rows[1:] == (
        ("Mean wait", "1 best, 0 level", "1 best, 0 level", "0 best, 1 level"),
    )
    parsed(report)


def test_who_leaves_jobs_unstarted_never_wins() -> None:
    """The least wait is that of a policy under which jobs never run: it is behind, not level, and that is said; a
    policy under which a job starves is behind those under which none does.
    """
    left = {"crowned": {"waiting": 1.0}, "hungry": {"starved": 2.0}, "fair": {"restarts": 3.0}}
    waits = {"crowned": 1.0, "hungry": 2.0, "fair": 9.0}
    cells = [
        CampaignCell(workload="w", policy=policy, replica=str(number), figures={"wait.mean": wait, **left[policy]})
        for policy, wait in waits.items()
        for number in range(2)
    ]
    report = campaign_report("c", cells)
    (table,) = report.sections[1].tables
    assert [(row[0], row[4], row[-1]) for row in table.rows] == [
        ("★ fair", "0 / 0 / 6 / 0", "2 of 2"),
        ("hungry", "0 / 0 / 0 / 4", "0 of 2"),
        ("crowned", "2 / 0 / 0 / 0", "0 of 2"),
    ]
    assert report.sections[0].tables[0].rows[0][1:] == ("2 / 0 / 0 / 0", "0 / 0 / 0 / 4", "0 / 0 / 6 / 0")
    assert [policy in " ".join(report.sentences[1:3]) for policy in waits] == [True, True, False]


def test_a_campaign_without_results_is_refused() -> None:
    """There is nothing to show."""
    with pytest.raises(ReportError, match="got none"):
        campaign_report("c", [])


def test_hostile_names_are_text() -> None:
    """Neither policies nor workloads become elements."""
    cells = [cell for name in HOSTILE for cell in cells_of({other: [1, 2, 3] for other in HOSTILE}, workload=name)]
    page = parsed(campaign_report(HOSTILE[0], cells))
    assert "img" not in page.tags
    assert page.tags.count("script") == 3
