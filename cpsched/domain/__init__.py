"""The nouns: cluster, request, job, rules, instance and plan. All frozen.

Nothing here reads or writes; documents become these values in `cpsched.formats`, where they are checked once. Begin
with `instance.py` and `plan.py`: they are the two documents of ``docs/formats.md``.
"""

from cpsched.domain.annotations import (
    MAX_AMOUNT,
    MAX_ARRAY,
    MAX_COUNT,
    MAX_DURATION,
    MAX_NAME,
    Asks,
    Bounds,
    Check,
    Count,
    Duration,
    Entries,
    Has,
    Key,
    Letters,
    Name,
    Price,
    Resource,
    Seconds,
    Several,
    Text,
    Time,
    Weight,
    Written,
)
from cpsched.domain.chunk_layers import ChunkLayer, chunk_layers, needs_migration
from cpsched.domain.cluster import AdmitCondition, Cluster, KeepFree, NodeClass, NodeState, Outage
from cpsched.domain.events import (
    AllocationFailed,
    CapacityChanged,
    JobAltered,
    JobCancelled,
    JobEnded,
    JobExtended,
    NodesChanged,
    ProfileChange,
    ReservationDropped,
    ReservationMade,
    WindowEvent,
)
from cpsched.domain.fair_share import Account, FairShare, UserShare
from cpsched.domain.frozen import Amounts, FrozenMap, with_fields
from cpsched.domain.instance import (
    DEFAULT_EXPECTED_WAIT,
    FOR_EVER,
    RULES,
    Instance,
    Objective,
    ObjectiveTerm,
    SetAside,
    priority_classes,
)
from cpsched.domain.job import (
    Dependency,
    DependencyType,
    Job,
    Malleability,
    Placement,
    PromisedStart,
    Resizable,
    Running,
    RuntimeModel,
    Segment,
    Speedup,
    Step,
    amdahl,
    downey,
    resized,
)
from cpsched.domain.modes import Mode, duration_range, modes, stretches_of
from cpsched.domain.plan import (
    AimScore,
    EngineReport,
    Event,
    Incumbent,
    Judgement,
    Plan,
    PlannedJob,
    ReservedSlice,
    Score,
    SolveParams,
    SolverWork,
    WaitingJob,
    WaitingReason,
    repeated,
)
from cpsched.domain.preemption import Preemptible, Preemption, StopKind
from cpsched.domain.remaining import (
    Remaining,
    changed_from,
    counted,
    end_of_work,
    rate_on,
    resumable,
    resumed_plan,
    share_of,
    time_on,
)
from cpsched.domain.request import Arrangement, Chunk, Place, Request
from cpsched.domain.rules import (
    Access,
    AnyLimit,
    AreaScope,
    Consumer,
    ConsumerKind,
    CountedJobs,
    CountingRule,
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
from cpsched.domain.states import RequestState, state_of
