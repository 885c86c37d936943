"""What Slurm says of its jobs, nodes, partitions, reservations and licences, whatever form it was said in.

The readers (`json_reader.py`, `text_reader.py`) make these; values are plain, states are ours. Times are Unix seconds,
memory is in MiB, and None stands for what is not set, or has no limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cpsched.domain import Amounts, FrozenMap, NodeState
from cpsched.errors import Fault, SyntaxFault
from cpsched.formats import expand_hostlist, format_indices, parse_indices
from cpsched.site.bridge.protocol import JobState
from cpsched.site.bridge.slurm.limits import SlurmLimits
from cpsched.site.bridge.slurm.topology import FLAT, Topology

#: The most nodes of a job that has no limit, and was given one: Slurm cannot be told that there is none.
MANY_NODES = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a job holds on one node."""

    node: str
    cpus: int
    #: Whether these are cores, of which it has all threads.
    are_cores: bool = False
    memory: int = 0
    #: Generic resources as in `Tres.amounts`: ``gpus``, and ``gpus.k20`` where the type is known.
    gres: Amounts = Amounts()


class JobRecord(NamedTuple):
    """One job, or the tasks of an array that have not been told apart yet.

    A tuple, since a cycle makes and changes tens of thousands.
    """

    number: int
    state: JobState
    #: Whether it is suspended: it keeps its nodes and its clock stands still.
    is_suspended: bool = False
    #: Whether it is over for its user, and its nodes are being cleaned.
    is_completing: bool = False
    #: Slurm's word for why it waits, and what it adds to that.
    reason: str = ""
    user: str = ""
    group: str = ""
    account: str = ""
    qos: str = ""
    name: str = ""
    partitions: tuple[str, ...] = ()
    #: The number of the array that it is of, its index in it, or the indices of the tasks that are not told apart.
    array: int | None = None
    task: int | None = None
    tasks_text: str = ""
    #: The most tasks of its array that may run at once; None: all.
    throttle: int | None = None
    submit: int = 0
    #: The second before which Slurm does not start it; None: none.
    begin: int | None = None
    start: int | None = None
    end: int | None = None
    #: Seconds; None: that of its partition, or none.
    time_limit: int | None = None
    is_unlimited: bool = False
    deadline: int | None = None
    #: The fewest and the most nodes that it asks for.
    nodes: int = 1
    max_nodes: int | None = None
    cpus: int = 1
    tasks: int = 1
    cpus_per_task: int | None = None
    tasks_per_node: int | None = None
    cpus_per_node: int = 1
    memory_per_cpu: int | None = None
    memory_per_node: int | None = None
    tres_per_job: str = ""
    tres_per_node: str = ""
    tres_per_socket: str = ""
    tres_per_task: str = ""
    cpus_per_tres: str = ""
    memory_per_tres: str = ""
    features: str = ""
    required_nodes: str = ""
    excluded_nodes: str = ""
    licenses: str = ""
    dependency: str = ""
    reservation: str = ""
    #: ``""`` shares its nodes, ``"node"`` has them for itself; other words are those of Slurm (``user``, ``mcs``).
    exclusive: str = ""
    #: On how many threads of a core its CPUs are; None: on all.
    threads_per_core: int | None = None
    #: The most of its tasks on a core; None: as many as it has threads.
    tasks_per_core: int | None = None
    #: The level of the topology of which all its nodes are in one group, or none.
    within: str = ""
    #: How many of its nodes at a time are in one block; None: it does not ask for segments.
    segment: int | None = None
    #: What it asks for besides, in Slurm's words, and cpsched cannot say.
    others: tuple[str, ...] = ()
    #: For how many seconds after its submission, whatever its begin, Slurm waits for such a group; None: always.
    within_for: int | None = None
    #: Whether Slurm lets it be queued again.
    can_requeue: bool = False
    #: The number of the heterogeneous job that it is a part of.
    het: int | None = None
    restarts: int = 0
    admin_comment: str = ""
    #: Of its user.
    comment: str = ""
    #: Slurm's, as it is now; in it is what was added to it.
    priority: int = 0
    #: What was added to it (``SiteFactor``); None: Slurm does not add such things, or says nothing of this job's.
    site_factor: int | None = None
    #: Whether that was set by others, lately.
    is_foreign: bool = False
    #: What it holds, of one that runs.
    shares: tuple[Share, ...] = ()
    #: The nodes on which it runs or ran, as a host list.
    ran_on: str = ""

    def but(self, **fields: object) -> "JobRecord":
        """Return a record with other values of some fields; as `_replace`, in a third of its time."""
        values: list[object] = list(self)
        for name, value in fields.items():
            values[_PLACES[name]] = value
        return JobRecord._make(values)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids by which Slurm's commands know it, one for each task of an array: ``17``, or ``17_3``."""
        if self.array is None:
            return (str(self.number),)
        if self.task is not None:
            return (f"{self.array}_{self.task}",)
        return tuple(f"{self.array}_{index}" for index in task_indices(self.tasks_text))

    @property
    def whole_id(self) -> str:
        """The id by which Slurm's commands know all tasks of an array that are not told apart: ``17_1,3,5-9``."""
        return f"{self.array}_{format_indices(task_indices(self.tasks_text))}"


#: The place of each field in a record.
_PLACES = {name: place for place, name in enumerate(JobRecord._fields)}


def task_indices(text: str) -> tuple[int, ...]:
    """Read the indices of tasks, ``1,3,5-9:2%2``; what is after the percent sign is no index.

    Raises `SyntaxFault` if the text is none, is cut short by Slurm (``...``), or names too many.
    """
    return parse_indices(text.partition("%")[0].strip("[]"))


def hosts_of(text: str) -> tuple[str, ...]:
    """Return the names of a host list; none where it cannot be read."""
    try:
        return expand_hostlist(text) if text else ()
    except SyntaxFault:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """One node."""

    name: str
    state: NodeState
    cpus: int
    threads: int = 1
    sockets: int = 1
    #: What jobs can have of its memory.
    memory: int = 0
    gres: Amounts = Amounts()
    features: tuple[str, ...] = ()
    weight: int = 1
    partitions: tuple[str, ...] = ()
    #: What of it cannot be read: then it counts as down.
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """One partition."""

    name: str
    #: A host list; may be empty.
    nodes: str = ""
    #: Seconds; None: no limit.
    max_time: int | None = None
    default_time: int | None = None
    tier: int = 0
    #: Slurm's word: ``UP``, ``DOWN``, ``DRAIN`` or ``INACTIVE``.
    state: str = "UP"
    #: Whether each of its jobs has its nodes for itself.
    is_exclusive: bool = False
    #: Whether a node has jobs of one user only.
    is_of_one_user: bool = False
    #: How many of its jobs may have a CPU in common, whatever they ask for.
    shares: int = 1
    #: The most nodes of a job, and the most CPUs of all its jobs on a node; None: all.
    max_nodes: int | None = None
    cpus_per_node: int | None = None
    #: The fewest nodes of a job.
    min_nodes: int = 1
    #: The QOS whose limits hold for its jobs; empty: none.
    qos: str = ""
    #: How its jobs are preempted, in Slurm's word; empty: that is not known.
    preemption: str = ""
    #: The seconds that they have from being told of that on.
    grace: int = 0

    @property
    def is_alone(self) -> bool:
        """Whether its jobs are planned with their nodes for themselves."""
        return self.is_exclusive or self.is_of_one_user


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRecord:
    """One reservation."""

    name: str
    start: int
    end: int
    nodes: str = ""
    #: Those who may use it; a minus sign stands before those who may not.
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    licenses: Amounts = Amounts()
    #: Of a reservation of cores: how many on each node, where that is said; and how many in all.
    cores: Amounts | None = None
    core_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmRecords:
    """All that Slurm said at one moment."""

    jobs: tuple[JobRecord, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    partitions: tuple[PartitionRecord, ...] = ()
    reservations: tuple[ReservationRecord, ...] = ()
    licenses: Amounts = Amounts()
    #: Those that nobody has now, where Slurm says so.
    free_licenses: Amounts = Amounts()
    #: ``scontrol show config``, by key; empty where it is not known.
    config: Mapping[str, str] = FrozenMap()
    #: ``scontrol show topology``.
    topology: Topology = FLAT
    #: The limits of QOS and associations; None where they are not known, or not enforced.
    limits: SlurmLimits | None = None
    #: Which records cannot be read, and why.
    notes: tuple[Fault, ...] = ()
