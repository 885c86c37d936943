"""A window built in Python, line by line, and solved: `Model`.

Begin with `model.py`, the builder; `frames.py` has its jobs as a table.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.modelling.model import Model

__getattr__ = opener(__name__)
