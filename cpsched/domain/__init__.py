"""The nouns: cluster, request, job, rules, instance and plan. All frozen.

May import: `errors` only. Nothing here reads or writes; documents become these values in `cpsched.formats`, where
they are checked once. Begin with `instance.py` and `plan.py`: they are the two documents of ``docs/formats.md``.
"""

from cpsched.domain.cluster import AdmitCondition, Cluster, KeepFree, NodeClass, NodeState
from cpsched.domain.frozen import Amounts, FrozenMap
from cpsched.domain.instance import DEFAULT_EXPECTED_WAIT, Instance, Objective, ObjectiveTerm
from cpsched.domain.job import (
    Dependency,
    DependencyType,
    Job,
    Malleability,
    Placement,
    Running,
    RuntimeModel,
    Segment,
    Step,
    Told,
)
from cpsched.domain.lives import Life, lives, moves_about
from cpsched.domain.modes import Mode, modes
from cpsched.domain.plan import (
    EngineReport,
    Event,
    Incumbent,
    Plan,
    PlannedJob,
    ReservedSlice,
    Score,
    WaitingJob,
    WaitingReason,
    repeated,
)
from cpsched.domain.remaining import Remaining, counted, rate_on, resumable, share_of, time_on
from cpsched.domain.request import Arrangement, Chunk, Place, Request
from cpsched.domain.rules import (
    Access,
    AreaScope,
    Consumer,
    ConsumerKind,
    FreePool,
    ItemBound,
    Limit,
    MaxWait,
    Queue,
    Reservation,
    ReservationKind,
    Usage,
    Validity,
)

__all__ = [
    "DEFAULT_EXPECTED_WAIT",
    "Access",
    "AdmitCondition",
    "Amounts",
    "AreaScope",
    "Arrangement",
    "Chunk",
    "Cluster",
    "Consumer",
    "ConsumerKind",
    "Dependency",
    "DependencyType",
    "EngineReport",
    "Event",
    "FreePool",
    "FrozenMap",
    "Incumbent",
    "Instance",
    "ItemBound",
    "Job",
    "KeepFree",
    "Life",
    "Limit",
    "Malleability",
    "MaxWait",
    "Mode",
    "NodeClass",
    "NodeState",
    "Objective",
    "ObjectiveTerm",
    "Place",
    "Placement",
    "Plan",
    "PlannedJob",
    "Queue",
    "Remaining",
    "Request",
    "Reservation",
    "ReservationKind",
    "ReservedSlice",
    "Running",
    "RuntimeModel",
    "Score",
    "Segment",
    "Step",
    "Told",
    "Usage",
    "Validity",
    "WaitingJob",
    "WaitingReason",
    "counted",
    "lives",
    "modes",
    "moves_about",
    "rate_on",
    "repeated",
    "resumable",
    "share_of",
    "time_on",
]
