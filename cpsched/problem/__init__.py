"""The problem that all engines solve, compiled once from an instance.

Begin with `problem.py`: the rules of a site become licences that only those jobs take that the rule is about, and
amounts set aside (`domain.SetAside`); no engine knows of limits, pools, reservations and calendars. Where documents
have a name, engines have the `Rule` itself, which says what it allows (`rule.py`). Each choice of a job with
alternatives is compiled as a job of its own (`choices.py`). `admission.py` has the checks that do not depend on time,
`holds.py` what is taken in every plan, `precedences.py` the dependencies as distances between starts, `queue.py` the
order in which jobs are planned, and `whole_nodes.py` the view in which only numbers of
nodes count.
"""

from cpsched.problem.admission import Refusal, chunks_on_empty_node, packs, placeable, refusal, refusals, waits
from cpsched.problem.amounts import dominant_share
from cpsched.problem.calendar import Intervals, intervals, minus, occurrences, union
from cpsched.problem.choices import given, with_licenses
from cpsched.problem.holds import (
    Column,
    amount_of,
    columns_of,
    free_over_time,
    held_by,
    held_until,
    taken_licenses,
    taken_on_nodes,
)
from cpsched.problem.nodes import levels_of
from cpsched.problem.overcommitment import is_overcommitted
from cpsched.problem.precedences import (
    Lag,
    LongestDelay,
    Milestone,
    Precedences,
    awaited_ends,
    by_job,
    left_without,
    missing_from,
    own_start,
)
from cpsched.problem.problem import Problem, compiled, exchanged, has_rules, is_compiled
from cpsched.problem.queue import Turn, awaited_first, bound_jobs, by_turn, is_bound, planning_order, turn_of
from cpsched.problem.rule import Choice, Part, Rule, RuleOnNodes, is_optional, level_rule, stated_node, without_rules
from cpsched.problem.settling import chosen_in, consumable, has_choices_made, held_choices, opened
from cpsched.problem.whole_nodes import (
    Application,
    Hold,
    Machine,
    application_of,
    beyond_equal_nodes,
    beyond_whole_nodes,
    in_segments,
    map_to_nodes,
    placements,
    places_of,
    planned_on_nodes,
)
