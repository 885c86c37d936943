"""The resource manager outside: the protocol that cpsched speaks with it, and a manager in memory.

Begin with `protocol.py`; `memory.py` is a manager for trying out and for tests, the machine behind it is `world.py`,
and `own_scheduler.py` is what starts jobs there that nobody steers. `beside.py` runs a process that nobody waits for.
"""

from cpsched.site.bridge.beside import Beside
from cpsched.site.bridge.files import FilesManager
from cpsched.site.bridge.leaving import without_awaited
from cpsched.site.bridge.memory import MemoryManager
from cpsched.site.bridge.protocol import (
    Announce,
    Finding,
    Gate,
    HandBack,
    Hold,
    JobFacts,
    JobState,
    LeftJob,
    Note,
    Order,
    Rank,
    Receipt,
    Refusal,
    Requeue,
    ResourceManager,
    Result,
    Snapshot,
    Start,
)
from cpsched.site.bridge.world import World
