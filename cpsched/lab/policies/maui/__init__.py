"""The Maui scheduler, on-line (MAUI-1 to MAUI-10).

May import what `policies` may. Begin with `maui.py`, the scheduler, and `params.py`, what it can be told; `cycle.py` is
one pass over the queue, `priority.py` says which job is first, `allocation_bank.py` who has credit left, and
`short_pool.py` which nodes are kept back.
"""

from cpsched.lab.policies.maui.maui import Maui, maui
from cpsched.lab.policies.maui.params import MauiParams
