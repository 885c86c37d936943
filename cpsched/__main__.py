"""``python -m cpsched`` is the same as ``cpsched``."""

from cpsched.cli import run

run()
