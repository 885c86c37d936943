"""The window as a MiniZinc model (``models/*.mzn``), solved by any solver that MiniZinc knows.

Begin with the models and ``docs/minizinc.md``; then `engine.py`, the improver, which says what is refused, writes a
window of rigid jobs as the models' data and reads solutions, with `data.py` for its parts;
`evolving.py` does so for windows with evolving jobs. `solver.py` is the border to MiniZinc.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.mzn.engine import MiniZinc, Window, window_of
    from cpsched.mzn.solver import model_path

__getattr__ = opener(__name__)
