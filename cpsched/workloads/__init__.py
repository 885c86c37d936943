"""Workloads made by us: generated windows, and tiny instances whose optimum is known by hand.

May import: `domain`. Nothing here reads or writes files; ``scripts/make_instances`` does. Begin with `eurora_window`;
the tiny instances are in `tiny.py`.
"""

from cpsched.workloads.eurora import eurora_cluster, eurora_window
from cpsched.workloads.tiny import TinyCase, tiny_cases

__all__ = ["TinyCase", "eurora_cluster", "eurora_window", "tiny_cases"]
