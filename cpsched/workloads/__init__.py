"""Workloads: generated windows, tiny instances whose optimum is known by hand, and projects as windows.

May import: `domain`, `errors`. Nothing here reads or writes files; scripts do. Begin with `eurora_window`; the tiny
instances are in `tiny.py`, jobs that change while they run in `evolving.py` and `changing.py`, projects of PSPLIB in
`psplib.py`.
"""

from cpsched.workloads.changing import changing_windows, made_rigid, with_evolving, with_malleable
from cpsched.workloads.eurora import eurora_cluster, eurora_window
from cpsched.workloads.evolving import evolving_window
from cpsched.workloads.psplib import project_window
from cpsched.workloads.tiny import TinyCase, tiny_cases

__all__ = [
    "TinyCase",
    "changing_windows",
    "eurora_cluster",
    "eurora_window",
    "evolving_window",
    "made_rigid",
    "project_window",
    "tiny_cases",
    "with_evolving",
    "with_malleable",
]
