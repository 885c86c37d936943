"""Plans for people: an interactive HTML Gantt chart, and tables and a Gantt chart for the terminal.

May import: `domain`, `formats` and `metrics`, and rich. Names from documents never reach a page as markup, nor a
terminal as markup or escape codes. Begin with `gantt.py` and its ``gantt_*.js``
(the page), or with `tables.py` and `terminal.py`.
"""

from cpsched.report.gantt import gantt_html
from cpsched.report.runs_table import runs_table
from cpsched.report.tables import history_table, plan_table, reservation_table, summary_table
from cpsched.report.terminal import NARROWEST, terminal_gantt
from cpsched.report.words import change_description, duration, moment, value_text

__all__ = [
    "NARROWEST",
    "change_description",
    "duration",
    "gantt_html",
    "history_table",
    "moment",
    "plan_table",
    "reservation_table",
    "runs_table",
    "summary_table",
    "terminal_gantt",
    "value_text",
]
