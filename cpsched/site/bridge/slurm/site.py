"""The site's choices about its Slurm: where its commands are, and how long the users of a partition expect to wait."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cpsched.domain import DEFAULT_EXPECTED_WAIT, Queue
from cpsched.formats import DocumentModel, Omittable, keys_of_models, read_settings, refusal, shown
from cpsched.site.bridge.slurm.client import SlurmClient
from cpsched.site.bridge.slurm.rest import ADDRESS, RestServer

_LONGEST = 10**10
#: The word of a job's comment (``sbatch --comment``) by which its user leaves it to Slurm.
OPT_OUT = "no-cpsched"


def _path(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise refusal(f"Expected an absolute path, got {shown(text)}")
    return text


def _address(text: str) -> str:
    if ADDRESS.fullmatch(text) is None:
        raise refusal(f"Expected unix:/PATH or http://127.0.0.1:PORT, got {shown(text)}")
    return text


_FilePath = Annotated[str, AfterValidator(_path)]
_Wait = Annotated[int, Field(gt=0, le=_LONGEST)]


class QueueModel(DocumentModel):
    """The wait that the users of a partition may expect."""

    expected_wait: Omittable[_Wait] = Field(None, description="Seconds; default: that of all queues")
    weight: Annotated[float, Field(gt=0, le=1e100)] = Field(1, description="The factor of its jobs in the objective")


class SlurmModel(DocumentModel):
    """A real Slurm: the table ``manager`` of a site's file."""

    kind: Literal["slurm"] = Field(description="Which resource manager")
    commands: Omittable[_FilePath] = Field(
        None, description="The directory of squeue, sinfo and scontrol; default: where squeue is found (PATH)"
    )
    conf: Omittable[_FilePath] = Field(None, description="slurm.conf; default: SLURM_CONF, or where Slurm looks for it")
    seconds: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = Field(
        20.0, description="Seconds that one command may take"
    )
    rest: Omittable[Annotated[str, AfterValidator(_address)]] = Field(
        None, description="A slurmrestd of this machine, which is asked in place of squeue and sinfo"
    )
    rest_token: Omittable[_FilePath] = Field(None, description="The file with its token (JWT), mode 0600")
    steering: Literal["order", "exact"] = Field(
        "order", description="The plan is Slurm's order of the jobs, or each job starts when and where planned"
    )
    weights: Literal["priority", "site"] = Field(
        "priority", description="Slurm's priorities weigh jobs, and its tiers are strict, or only the site's file does"
    )
    influence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        1.0, description="How far plans may depart from the order of priorities, as a share of the waiting jobs"
    )
    notes: bool = Field(
        False, description="Write when a job will start into its AdminComment, which administrators may write"
    )
    gate: Omittable[_FilePath] = Field(
        None, description="The file by which the daemon tells job_submit.lua that the gate is closed"
    )
    expected_wait: _Wait = Field(DEFAULT_EXPECTED_WAIT, description="Seconds, of queues that are not named")
    queues: dict[str, QueueModel] = Field({}, description="By partition")
    leave_partitions: list[str] = Field([], description="Partitions whose jobs stay Slurm's")
    leave_accounts: list[str] = Field([], description="Accounts whose jobs stay Slurm's")

    def queue(self, name: str) -> Queue:
        """Return the choices of the site for a queue."""
        found = self.queues.get(name, QueueModel())
        return Queue(expected_wait=found.expected_wait or self.expected_wait, weight=found.weight)


_KEYS = keys_of_models(globals())


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
    return read_settings(path, SlurmModel, _KEYS, table="manager")[0]
