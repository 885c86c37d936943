"""Charts as pictures: the right lengths, any numbers, and names that are text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from cpsched.charts import PICTURE_FORMATS, Axis, Bars, Chart, Line, picture, pictures
from cpsched.errors import ReportError
from tests.charts.made_charts import CHARTS, EVIL

HEADS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def elements(svg: bytes, name: str) -> list[ElementTree.Element]:
    """Return the elements of a kind; the document is parsed, so that markup in names would be found."""
    return list(ElementTree.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{name}"))  # noqa: S314 - ours


def path_of(svg: bytes, name: str) -> list[tuple[float, float]]:
    """Return the points of the path in a named group."""
    (group,) = [group for group in elements(svg, "g") if group.get("id") == name]
    path = group.find("{http://www.w3.org/2000/svg}path")
    assert path is not None
    numbers = [float(number) for number in re.findall(r"-?[0-9.]+", path.attrib["d"])]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_bars_are_as_long_as_their_values() -> None:
    """A bar twice as long stands for a value twice as large, all from 0, and names are text, never a formula."""
    names = ("a & b", "_c $x$")
    bars = (
        Bars(name=names[0], at=(0,), values=(10,)),
        Bars(name=names[1], at=(1,), values=(20,), half_widths=(5,), series=1),
    )
    svg = picture(
        Chart(title="<b>", x=Axis(label="wqt", has_zero=True), y=Axis(label="", names=names), layers=bars), "svg"
    )
    first, second = ([x for x, _ in path_of(svg, f"bars-{place}")] for place in range(2))
    assert max(second) - min(second) == pytest.approx(2 * (max(first) - min(first)), abs=0.2)
    assert min(first) == pytest.approx(min(second), abs=0.2)
    assert {"<b>", "a & b", "_c $x$", "wqt"} <= {text.text for text in elements(svg, "text")}


@pytest.mark.parametrize("values", [[0.0], [-5.0, 5.0], [1e-9], [1e12, 1.0]])
def test_charts_can_draw_any_numbers(values: list[float]) -> None:
    """Zeros, negative, tiny and huge values have a place inside of the picture, and 0 is on the axis."""
    points = tuple(map(float, range(len(values) + 1)))
    line = Line(name="a", x=points, y=(*values, values[0]), has_marks=True)
    svg = picture(Chart(title="t", x=Axis(label="x"), y=Axis(label="y", has_zero=True), layers=(line,)), "svg")
    assert all(0 <= y <= 288 for _, y in path_of(svg, "line-0"))
    assert "0" in {text.text for text in elements(svg, "text")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PICTURE_FORMATS)
def test_all_charts_are_one_picture(kind: str) -> None:
    """Each format has its first bytes; the same charts give the same bytes."""
    drawn = pictures(CHARTS, kind, EVIL)
    assert drawn.startswith(HEADS[kind])
    if kind == "svg":
        assert drawn == pictures(CHARTS, kind, EVIL)
        assert EVIL in {text.text for text in elements(drawn, "text")}


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is optional."""
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ReportError, match=r"need matplotlib; .* pip install '\.\[report\]'"):
        picture(CHARTS[0], "svg")
