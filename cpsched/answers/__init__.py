"""Answers about a plan: why a job does not start earlier, when a new one would start, and what a change would cost.

Begin with `answers.py`. `world.py` keeps a plan booked (`occupation.py`), and a job is looked for in one of its
`queries.py`; `inquiry.py` finds the cause second by second, `blockers.py` the jobs behind it, `changes.py` what would
change it, `chain.py` the jobs behind those jobs; `submission.py` is about a job that does not exist yet, and
`whatif.py` about changes that are planned again, `machine_changes.py` about other nodes, and `history_changes.py` about
changes of a whole history. `explanation.py` has what is answered, `words.py` says it.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.answers.answers import MOST_INTERVALS, Answers, explain
    from cpsched.answers.chain import MOST_LINKS, Link
    from cpsched.answers.explanation import Blocked, Cause, CauseKind, Change, ChangeKind, Explanation, Holder, JobState
    from cpsched.answers.history_changes import HistoryChange, check_limits, parse_history_change
    from cpsched.answers.submission import SUBMITTED, Submission, parse_submission, parse_walltime, under_free_id
    from cpsched.answers.whatif import Comparison, JobChange, WhatIf, changed_instance, compared, what_if
    from cpsched.answers.words import chain_lines, comparison_lines, explanation_lines, first_line, submission_lines

__getattr__ = opener(__name__)
