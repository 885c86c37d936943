"""Plans and simulations for people: reports as pages and pictures, Gantt charts, and tables for the terminal.

Names from documents never reach a page as markup, nor a terminal as markup or escape codes. Begin with `gantt.py` and
its ``gantt_*.js`` (a plan as one interactive chart), with `tables.py` and `terminal.py`, with `workflow_report.py` (its
dependencies), or with `report.py`, the nouns of a report: `plans.py`, `runs.py`, `campaigns.py` and `replays.py`
make them, `page.py` and its ``page.js`` show them.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.charts import duration as duration
    from cpsched.report.campaigns import CampaignCell, campaign_report
    from cpsched.report.gantt import gantt_html, groups_of_nodes
    from cpsched.report.page import report_page
    from cpsched.report.plans import plan_report
    from cpsched.report.replays import Difference, Replay, replay_report, replay_tables
    from cpsched.report.report import Frame, Report, Section
    from cpsched.report.runs import run_report
    from cpsched.report.tables import (
        grid,
        history_table,
        next_starts,
        plan_table,
        reservation_table,
        runs_table,
        summary_table,
    )
    from cpsched.report.terminal import NARROWEST, terminal_gantt
    from cpsched.report.words import change_description, moment, request_text, utc_offset, value_text
    from cpsched.report.workflow_report import workflow_html, workflow_table

__getattr__ = opener(__name__)
