"""``python -m cpsched`` is the same as ``cpsched``."""

from cpsched.cli import main

main(prog_name="cpsched")
