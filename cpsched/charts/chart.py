"""The nouns of a chart: axes, what is drawn between them, and the same as a table; and what tells series apart."""

from dataclasses import dataclass, field

from cpsched.charts.units import Unit

#: What tells series apart: never the colour alone. Colours that the colour-blind tell apart (Okabe, Ito 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
#: The same hues on a dark page, where black is white.
DARK_COLOURS = ("#4ea3dd", "#f08a4b", "#1fc196", "#e79ac6", "#f2b134", "#9ad7f7", "#ffffff")
#: Patterns of lines, in matplotlib's words and in plotly's; they repeat after another number than the colours.
DASHES = (("solid", "solid"), ("dashed", "dash"), ("dotted", "dot"), ("dashdot", "dashdot"))
#: Symbols of points, in matplotlib's words and in plotly's.
SYMBOLS = (
    ("o", "circle"),
    ("s", "square"),
    ("D", "diamond"),
    ("^", "triangle-up"),
    ("X", "x"),
    ("P", "cross"),
    ("v", "triangle-down"),
    ("p", "pentagon"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis; names and labels are any text."""

    label: str
    unit: Unit = Unit.NUMBER
    is_log: bool = False
    #: The names of the places 0, 1, 2, ...; an axis without names has numbers.
    names: tuple[str, ...] = ()
    #: Whether 0 is on the axis whatever is drawn.
    has_zero: bool = False
    #: What the axis shows; None: what is drawn.
    span: tuple[float, float] | None = None
    #: The least value that a logarithmic axis shows: smaller ones are drawn there, and its tick says so.
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through points, or points alone."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    #: The number of the series: what has the same number looks the same.
    series: int = 0
    #: Half widths of the intervals around the points, along the axis of the values; None: no interval.
    half_widths: tuple[float | None, ...] = ()
    #: Whether each y holds up to the next x.
    is_step: bool = False
    #: Whether the points are joined, and whether each has a symbol (else some of them have).
    is_joined: bool = True
    has_marks: bool = False
    #: Whether the values are along x (and the names along y).
    is_flat: bool = False
    #: What each point is, for those who point at it.
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Bars from 0 to the right, each at a place of the axis of names along y."""

    name: str
    at: tuple[float, ...]
    values: tuple[float, ...]
    series: int = 0
    half_widths: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A distribution by five of its quantiles, along x, at a place of the axis of names along y."""

    at: float
    #: The quantiles 5 %, 25 %, 50 %, 75 % and 95 %.
    quantiles: tuple[float, float, float, float, float]
    mean: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """A field of cells, a row for each name of the y axis and a column for each name of the x axis."""

    #: None: there is nothing in the cell.
    values: tuple[tuple[float | None, ...], ...]
    #: What is written into each cell.
    texts: tuple[tuple[str, ...], ...]
    #: What the colour means, and whether it goes by orders of magnitude.
    label: str
    is_log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceLine:
    """A line across the whole chart at one value of y."""

    at: float


Layer = Line | Bars | Box | Heat | ReferenceLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: its cells are texts, whatever is in them."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    #: The columns with words; all others have numbers.
    words: frozenset[int] = frozenset({0})
    #: The places (row, column) of cells that are marked, the best of their kind.
    marked: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    #: What is not in the rows.
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart: what is drawn, how it is read, and the same as a table."""

    title: str
    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    #: How it is read, in a sentence or two.
    about: str = ""
    tables: tuple[Table, ...] = ()
    #: Whether it needs the whole width of a page.
    is_wide: bool = False
