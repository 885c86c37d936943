"""A window built in Python, line by line, and solved: `Model`.

May import: `portfolio` and what is below it; pandas. Begin with `model.py`, the builder; `frames.py` has its jobs as a
table; `plain.py` makes plain values of those of numpy and pandas.
"""

from cpsched.modelling.model import Model

__all__ = ["Model"]
