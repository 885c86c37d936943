"""Charts as figures of plotly: what plotly itself accepts, with texts that it cannot take for markup."""

from __future__ import annotations

import json
from typing import Any

import plotly.graph_objects as go
import pytest

from cpsched.charts import Chart, plotly_figure, plotly_script
from cpsched.errors import ReportError
from tests.charts.made_charts import CHARTS


def texts_in(value: Any) -> list[str]:
    """Return all texts of a document."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts_in(inner)]
    return [text for inner in value for text in texts_in(inner)] if isinstance(value, list | tuple) else []


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.title[:6])
def test_plotly_accepts_each_figure(chart: Chart) -> None:
    """All properties exist, all values are of their kinds, and none is a number that JSON does not have."""
    figure = plotly_figure(chart)
    go.Figure(figure)
    json.dumps(figure, allow_nan=False)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.title[:6])
def test_no_text_of_a_figure_is_markup(chart: Chart) -> None:
    """Plotly shows some tags as markup: there is no tag."""
    assert not [text for text in texts_in(plotly_figure(chart)) if "<" in text or ">" in text]


def test_values_are_those_of_the_chart() -> None:
    """Dates are written as such, values below the floor are on it, logarithms of cells are their colours."""
    dates, boxes, _, heat, _ = (plotly_figure(chart) for chart in CHARTS)
    assert dates["data"][0]["x"] == ["1970-01-01 00:00:00", "1970-01-02 00:00:00"]
    assert (dates["data"][0]["y"], dates["data"][1]["error_y"]["array"]) == ([0.5, 0.25], [0.1, 0.0])
    box = boxes["data"][0]
    assert [box[key] for key in ("lowerfence", "q1", "median", "q3", "upperfence", "mean")] == [
        [1.0],
        [1.0],
        [10.0],
        [100.0],
        [1000.0],
        [200.0],
    ]
    low, high = boxes["layout"]["xaxis"]["range"]
    assert low < 0 < 3 < high
    assert heat["data"][0]["z"] == [[0.0, 0.0], [None, 2.0]]


def test_the_script_is_whole() -> None:
    """It defines Plotly, and nothing in it ends the script element that it is put into."""
    script = plotly_script()
    assert "Plotly" in script
    assert "</script" not in script.lower()
    assert "<!--" not in script


def test_without_plotly_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is optional."""
    monkeypatch.setitem(__import__("sys").modules, "plotly.offline", None)
    with pytest.raises(ReportError, match=r"needs plotly; .* pip install '\.\[report\]'"):
        plotly_script()
