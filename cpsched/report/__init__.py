"""Plans and simulations for people: reports as pages and pictures, Gantt charts, and tables for the terminal.

Names from documents never reach a page as markup, nor a terminal as markup or escape codes. Begin with `gantt.py` and
its ``gantt_*.js`` (a plan as one interactive chart), with `tables.py` and `terminal.py`, with `workflow_report.py` (its
dependencies), or with `report.py`, the nouns of a report: `plan_report.py`, `run_report.py`, `campaign_report.py` and
`replay_report.py` make them, `page.py` and its ``page.js`` show them.
"""

from cpsched.charts import duration as duration
from cpsched.report.campaign_report import CampaignCell, campaign_report
from cpsched.report.gantt import gantt_html, groups_of_nodes
from cpsched.report.page import report_page
from cpsched.report.plan_report import plan_report
from cpsched.report.replay_report import Difference, Replay, replay_report, replay_tables
from cpsched.report.report import Frame, Report, Section
from cpsched.report.run_report import run_report
from cpsched.report.tables import (
    history_table,
    next_starts,
    plan_table,
    reservation_table,
    runs_table,
    summary_table,
)
from cpsched.report.terminal import NARROWEST, terminal_gantt
from cpsched.report.words import change_description, moment, request_text, value_text
from cpsched.report.workflow_report import workflow_html, workflow_table
