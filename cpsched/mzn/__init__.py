"""The window as a MiniZinc model (``models/*.mzn``), solved by any solver that MiniZinc knows.

Begin with the models and ``docs/minizinc.md``; then `engine.py`, the improver, which says what is refused. `window.py`
writes a window as the models' data, with `data.py` for its parts, and reads solutions. `solver.py` is the border to
MiniZinc.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.mzn.engine import MiniZinc
    from cpsched.mzn.solver import model_path
    from cpsched.mzn.window import Window

__getattr__ = opener(__name__)
