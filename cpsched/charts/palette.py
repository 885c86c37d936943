"""What tells series apart: a colour, a pattern of the line and a symbol, never the colour alone."""

from __future__ import annotations

#: Colours that the colour-blind tell apart (Okabe and Ito, 2008), on white.
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
