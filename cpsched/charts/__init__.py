"""Charts as data, and their two drawings: by plotly for a page, and by matplotlib as a picture.

`chart.py` has the nouns: a chart says what is drawn, and has the same as a table. `units.py` has numbers in words and
the ticks of durations; `plotly_figure.py` and `pictures.py` draw. Figures that are no charts are begun and saved as
pictures are: `empty_figure`, `picture_settings` and `figure_bytes`.
"""

from cpsched.charts.chart import (
    COLOURS,
    DARK_COLOURS,
    DASHES,
    SYMBOLS,
    Axis,
    Bars,
    Box,
    Chart,
    Heat,
    Layer,
    Line,
    ReferenceLine,
    Table,
)
from cpsched.charts.pictures import (
    PICTURE_FORMATS,
    empty_figure,
    figure_bytes,
    gantt_figure,
    picture,
    picture_settings,
    pictures,
)
from cpsched.charts.plotly_figure import plotly_figure, plotly_script
from cpsched.charts.units import Unit, duration, shortened, unit_text
