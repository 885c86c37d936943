"""Metrics: the figures of a plan, and of a simulation.

`plans.py` has the value of a plan by the instance's objective, and the figures that people read; `least.py` has a lower
bound of the value that ignores the machine, `workflow.py` the graph of dependencies behind a plan. `runs.py` has the
outcome of each job of a workload. `summary.py`, `fairness.py` and `series.py` compute figures from it, `fidelity.py`
says how near it is to what happened, `intervals.py` combines those of several seeds, `files.py` writes them, also as a
log, and `run_file.py` keeps a whole simulation for reports.

Begin with `objective_value`, the number that engines compare, and with `runs_summary`.
"""

from cpsched.metrics.fairness import UNSERVED, jain_index, overtaken, unserved_counts, unserved_rank, unserved_text
from cpsched.metrics.fidelity import Fidelity, fidelity
from cpsched.metrics.files import log_rows, write_jobs_csv, write_series_csv, write_summary
from cpsched.metrics.intervals import MeanInterval, mean_interval
from cpsched.metrics.least import StretchedSlowdown, least_value, stretched_slowdown
from cpsched.metrics.plans import (
    SLOWDOWN_TAU,
    Delays,
    QueueWaits,
    Summary,
    available,
    delay_rates,
    end_rate,
    honest_gap,
    jobs_by_id,
    later_scores,
    least_running_cost,
    objective_value,
    of_aim,
    score_of,
    suffered,
    summarise,
    usage_over_time,
)
from cpsched.metrics.run_file import SimulatedRun, read_run, write_run
from cpsched.metrics.runs import BOUND, Ending, Runs
from cpsched.metrics.series import Steps, load_over_time
from cpsched.metrics.summary import Decisions, Distribution, Figures, Group, ResourceUse, RunsSummary, runs_summary
from cpsched.metrics.workflow import WorkflowJob, dependency_graph, workflow_of
