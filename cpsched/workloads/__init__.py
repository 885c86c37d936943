"""Workloads made by us: generated windows, and tiny instances whose optimum is known by hand.

May import: `domain`. Nothing here reads or writes files; ``scripts/make_instances`` does. Begin with `eurora_window`;
the tiny instances are in `tiny.py`, jobs that change while they run in `evolving.py`.
"""

from cpsched.workloads.eurora import eurora_cluster, eurora_window
from cpsched.workloads.evolving import evolving_window, made_rigid
from cpsched.workloads.tiny import TinyCase, tiny_cases

__all__ = ["TinyCase", "eurora_cluster", "eurora_window", "evolving_window", "made_rigid", "tiny_cases"]
