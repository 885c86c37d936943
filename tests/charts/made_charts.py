"""A chart of each kind, with hostile names."""

from __future__ import annotations

from cpsched.charts import Axis, Bars, Box, Chart, Heat, Line, ReferenceLine, Table, Unit

EVIL = "<img src=x onerror=alert(1)> $x_1$ & <b>"

SECONDS = Axis(label=EVIL, unit=Unit.SECONDS, is_log=True, floor=1.0)

CHARTS = (
    Chart(
        title=EVIL,
        x=Axis(label="date", unit=Unit.DATE),
        y=Axis(label=EVIL, unit=Unit.SHARE, span=(0, 1.05)),
        layers=(
            Line(name=EVIL, x=(0, 86400), y=(0.5, 0.25), is_step=True),
            Line(
                name="_b", x=(0, 86400), y=(0, 1), half_widths=(0.1, None), series=1, has_marks=True, texts=(EVIL, "t")
            ),
            ReferenceLine(at=1),
        ),
        about=EVIL,
        tables=(Table(title=EVIL, headings=(EVIL, "x"), rows=((EVIL, "1"),), note=EVIL),),
    ),
    Chart(
        title="boxes",
        x=SECONDS,
        y=Axis(label="", names=(EVIL, "b")),
        layers=(
            Box(at=0, quantiles=(0, 1, 10, 100, 1000), mean=200, count=5),
            Box(at=1, quantiles=(0, 0, 0, 0, 0), mean=0, count=1),
        ),
    ),
    Chart(
        title="bars",
        x=Axis(label="jobs", has_zero=True),
        y=Axis(label="", names=(EVIL,)),
        layers=(Bars(name=EVIL, at=(0,), values=(3,), half_widths=(1,)),),
    ),
    Chart(
        title="heat",
        x=Axis(label="", names=("a", "b"), floor=1.0),
        y=Axis(label="", names=(EVIL, "d")),
        layers=(Heat(values=((0, 1), (None, 100)), texts=((EVIL, "1"), ("", "100")), label=EVIL, is_log=True),),
    ),
    Chart(title="nothing", x=SECONDS, y=Axis(label="share", unit=Unit.SHARE), layers=()),
)
