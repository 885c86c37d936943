"""An environment of gymnasium: an agent picks which waiting job is next.

Begin with `environment.py`.
"""

from typing import TYPE_CHECKING

from cpsched.doors import opener

if TYPE_CHECKING:
    from cpsched.lab.gym.environment import SchedulingEnv

__getattr__ = opener(__name__)
