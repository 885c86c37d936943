"""Resource usage vectors: the timeline, fast bookkeeping of what is free on many nodes over time. Knows no job.

May import: `gc_pauses`; numba lives here. Begin with `timeline.py`, what the planner books on, and `node_steps.py`,
what each node has of it; their kernels are in `kernels/`, `jit.py` says whether they are interpreted, `compiler.py`
compiles them, `kernel_cache.py` says where the compiled code is kept.
`instant_kernels.py` has the kernels for the state at one instant, `count_kernels.py` those for numbers of free units;
`compression.py` moves jobs to earlier starts after a release, with kernels of its own;
`step_sequences.py` has jobs of several steps, whose kernels are in `step_kernels.py`;
`equal_nodes.py` says what can be counted where nodes are interchangeable;
What is free when is kept as rows of all nodes or as steps of each node (`Timeline`; rows are faster where they fit
into the caches, steps on thousands of nodes), as counts of interchangeable units (`count_kernels.Profile`), and by the
search for jobs of several pieces as counts of one kind. All keep one contract (`tests/rusv/calendars.py`).
`profile.py` has the evolution profiles of applications that change while they run.
"""

from cpsched.rusv import count_kernels, instant_kernels, kernels, step_kernels
from cpsched.rusv.compression import Compression
from cpsched.rusv.equal_nodes import Asks, EqualNodes
from cpsched.rusv.jit import allocating_kernel, announced, inner_kernel, interpret, kernel, own_interpretation, viewed
from cpsched.rusv.kernel_cache import remove_temporary_kernels
from cpsched.rusv.kernels import Array, Choices, Links, Scratch, Tables, TimelineState
from cpsched.rusv.kernels.constants import FOREVER, NOWHERE, numbered
from cpsched.rusv.links import (
    Countdown,
    ahead,
    awaited_first,
    behind,
    grouped,
    heads,
    lasts,
    links_of,
    raise_earliest,
    relaxed,
)
from cpsched.rusv.profile import Profile
from cpsched.rusv.step_sequences import StepSequence, StepSequences, Turns
from cpsched.rusv.timeline import Booking, Demands, Fit, JobTable, KindDemand, Layout, Run, Timeline, TimelineMark
