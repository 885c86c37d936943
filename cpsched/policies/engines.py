"""The engines of all rules for windows."""

from __future__ import annotations

from cpsched.engine import Engine
from cpsched.policies.evolving import VARIANTS, EvolvingEngine
from cpsched.policies.policy_engine import PolicyEngine
from cpsched.policies.queue_rules import WINDOW_RULES
from cpsched.policies.sd import SD_RULES, SdEngine

__all__ = ["POLICIES"]

_ENGINES: tuple[Engine, ...] = (
    *map(PolicyEngine, WINDOW_RULES),
    *map(EvolvingEngine, VARIANTS),
    *map(SdEngine, SD_RULES),
)

#: The engines of all rules by their names, ``easy``, ``ep_nox`` and so on.
POLICIES: dict[str, Engine] = {engine.name: engine for engine in _ENGINES}
