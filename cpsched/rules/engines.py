"""The engines of all rules for windows."""

from __future__ import annotations

from cpsched.engine import Engine
from cpsched.rules.evolving import VARIANTS, EvolvingEngine
from cpsched.rules.policy_engine import PolicyEngine
from cpsched.rules.sd import SD_RULES, SdEngine
from cpsched.rules.window_rules import WINDOW_RULES

_ENGINES: tuple[Engine, ...] = (
    *map(PolicyEngine, WINDOW_RULES),
    *map(EvolvingEngine, VARIANTS),
    *map(SdEngine, SD_RULES),
)

#: The engines of all rules by their names, ``easy``, ``ep_nox`` and so on.
POLICIES: dict[str, Engine] = {engine.name: engine for engine in _ENGINES}
