"""The command line: options in, one public call, print, exit code.

May import: every room's door, inside the functions that need it, so that ``cpsched --help`` starts at once. Begin with
`group.py`, which holds the list of commands and turns errors into exit codes; each command is the file of its name.
"""

from cpsched.cli.group import main, run

__all__ = ["main", "run"]
