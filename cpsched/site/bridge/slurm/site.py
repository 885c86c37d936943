"""The site's choices about its Slurm: where its commands are, and how long the users of a partition expect to wait."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cpsched.domain import DEFAULT_EXPECTED_WAIT, MAX_DURATION, Bounds, Check, FrozenMap, Key, Queue, Weight
from cpsched.formats import FilePath, read_settings, shown
from cpsched.site.bridge.slurm.client import SlurmClient
from cpsched.site.bridge.slurm.rest import ADDRESS, RestServer

#: The word of a job's comment (``sbatch --comment``) by which its user leaves it to Slurm.
OPT_OUT = "no-cpsched"

_Wait = Annotated[int, Bounds(above=0, most=MAX_DURATION, unit="seconds")]
_Address = Annotated[
    str,
    Check(
        lambda text: (
            None if ADDRESS.fullmatch(text) else f"Expected unix:/PATH or http://127.0.0.1:PORT, got {shown(text)}"
        )
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueModel:
    """The wait that the users of a partition may expect."""

    expected_wait: Annotated[_Wait | None, Key("Seconds; default: that of all queues")] = None
    weight: Annotated[Weight, Key("The factor of its jobs in the objective")] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmModel:
    """A real Slurm: the table ``manager`` of a site's file."""

    kind: Annotated[Literal["slurm"], Key("Which resource manager")]
    commands: Annotated[
        FilePath | None, Key("The directory of squeue, sinfo and scontrol; default: where squeue is found (PATH)")
    ] = None
    conf: Annotated[FilePath | None, Key("slurm.conf; default: SLURM_CONF, or where Slurm looks for it")] = None
    seconds: Annotated[float, Bounds(above=0, most=600, unit="seconds"), Key("Seconds that one command may take")] = (
        20.0
    )
    rest: Annotated[
        _Address | None, Key("A slurmrestd of this machine, which is asked in place of squeue and sinfo")
    ] = None
    rest_token: Annotated[FilePath | None, Key("The file with its token (JWT), mode 0600")] = None
    steering: Annotated[
        Literal["order", "exact"],
        Key("The plan is Slurm's order of the jobs, or each job starts when and where planned"),
    ] = "order"
    weights: Annotated[
        Literal["priority", "site"],
        Key("Slurm's priorities weigh jobs, and its tiers are strict, or only the site's file does"),
    ] = "priority"
    influence: Annotated[
        float,
        Bounds(0, 1),
        Key("How far plans may depart from the order of priorities, as a share of the waiting jobs"),
    ] = 1.0
    notes: Annotated[bool, Key("Write when a job will start into its AdminComment, which administrators may write")] = (
        False
    )
    gate: Annotated[
        FilePath | None, Key("The file by which the daemon tells job_submit.lua that the gate is closed")
    ] = None
    expected_wait: Annotated[_Wait, Key("Seconds, of queues that are not named")] = DEFAULT_EXPECTED_WAIT
    queues: Annotated[FrozenMap[str, QueueModel], Key("By partition")] = FrozenMap()
    leave_partitions: Annotated[tuple[str, ...], Key("Partitions whose jobs stay Slurm's")] = ()
    leave_accounts: Annotated[tuple[str, ...], Key("Accounts whose jobs stay Slurm's")] = ()

    def queue(self, name: str) -> Queue:
        """Return the choices of the site for a queue."""
        found = self.queues.get(name, QueueModel())
        return Queue(expected_wait=found.expected_wait or self.expected_wait, weight=found.weight)


def client_of(model: SlurmModel) -> SlurmClient:
    """Return the client of a site's file."""
    rest = None
    if model.rest is not None:
        token = None if model.rest_token is None else Path(model.rest_token)
        rest = RestServer(model.rest, token=token, seconds=model.seconds)
    found = Path(shutil.which("squeue") or "/usr/bin/squeue").absolute()
    directory = model.commands or str(found.parent)
    return SlurmClient(directory=directory, conf=model.conf, seconds=model.seconds, rest=rest)


def read_site(path: Path) -> SlurmModel:
    """Read the table ``manager`` of a site's file (TOML); the rest of the file is the daemon's.

    Raises `DocumentError` with everything that is wrong with it.
    """
    return read_settings(path, SlurmModel, table="manager")[0]
