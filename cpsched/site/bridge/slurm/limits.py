"""The limits of QOS and associations, from the text of ``scontrol show assoc_mgr``: slurmctld's own copy, with usage.

An association is of an account, or of a user in an account, in all partitions or in one. Limits of groups (``Grp``)
hold for an account with all accounts below it, or for all jobs of a QOS; the others are inherited, and each association
shows what it has. Amounts have our names (``cores``, ``gpus``); ``node`` counts nodes, ``jobs`` jobs, ``license/NAME``
licences.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from cpsched.domain import Amounts
from cpsched.errors import DocumentError, Fault
from cpsched.site.bridge.slurm.amounts import gres_amounts

#: What the text begins with.
LIMITS_HEAD = "Current Association Manager state"
_RECORD = re.compile(r"^(?=(?:ClusterName|QOS)=)", re.MULTILINE)
_FIELD = re.compile(r"(?:^|(?<=\s))([A-Za-z]+)=(\S*)")
#: A limit, and in brackets what is used of it.
_USED = re.compile(r"(N|\d+(?:\.\d+)?)(?:\((\d+(?:\.\d+)?)\))?")
_NAMED = re.compile(r"([^()]*)(?:\(\d+\))?")
_OURS = {"cpu": "cores", "mem": "mem", "node": "node"}
#: Records that are as before are not read again: a site may have thousands of associations.
_KEPT = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one QOS or association; None and missing names: no limit."""

    #: Of all jobs at a time, with those of the accounts below.
    group: Amounts = Amounts()
    #: Of one user at a time: in an association itself the user's jobs, in a QOS those of each.
    user: Amounts = Amounts()
    #: Of each account at a time in a QOS.
    account: Amounts = Amounts()
    #: Of one job: seconds, amounts, amounts on one node, the least amounts, amounts times minutes.
    walltime: int | None = None
    job: Amounts = Amounts()
    node: Amounts = Amounts()
    least: Amounts = Amounts()
    area: Amounts = Amounts()
    #: Of the amounts times minutes of all jobs that ever ran: the limits, and those that are used up; also ``wall``.
    spent: Amounts = Amounts()
    used_up: tuple[str, ...] = ()
    #: Of what the running jobs have before them, in amounts times minutes.
    ahead: Amounts = Amounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """One association."""

    account: str
    #: Empty: of the account.
    user: str = ""
    #: Empty: all.
    partition: str = ""
    #: The account above; empty for the root, and for users.
    parent: str = ""
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmLimits:
    """All limits."""

    #: By account, user and partition.
    associations: Mapping[tuple[str, str, str], Association] = field(default_factory=dict)
    #: By name.
    qos: Mapping[str, Limits] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.associations) + len(self.qos)

    def chain(self, account: str, user: str, partition: str) -> tuple[Association, ...]:
        """Return a job's associations, the user's first, then the accounts up to the root; empty where it has none."""
        found = self.associations
        first = found.get((account, user, partition)) or found.get((account, user, ""))
        chain = [] if first is None else [first]
        while first is not None and (one := found.get((account, "", ""))) is not None and one not in chain:
            chain.append(one)
            account = one.parent
        return tuple(chain)


def are_enforced(config: Mapping[str, str]) -> bool:
    """Tell whether Slurm keeps the limits, by `scontrol show config`."""
    words = config.get("AccountingStorageEnforce", "").lower().split(",")
    return not {"limits", "safe", "all"}.isdisjoint(words)


def read_limits(text: str, source: str) -> SlurmLimits:
    """Read ``scontrol show assoc_mgr``, with or without ``-o``. Raises `DocumentError` if a limit cannot be read."""
    associations: dict[tuple[str, str, str], Association] = {}
    qos: dict[str, Limits] = {}
    for index, piece in enumerate(_RECORD.split(text)[1:]):
        try:
            name, one = _record(piece.partition("\n\n")[0])
        except ValueError as error:
            raise DocumentError(source, [Fault(f"[{index}]", str(error))]) from None
        if isinstance(one, Limits):
            qos[name] = one
        else:
            associations[one.account, one.user, one.partition] = one
    return SlurmLimits(associations=associations, qos=qos)


@lru_cache(maxsize=_KEPT)
def _record(text: str) -> tuple[str, Limits | Association]:
    """Read one record; of keys that occur for each user and account of a QOS the first one counts: all are alike."""
    fields = dict(reversed(_FIELD.findall(text)))
    limits = _limits(fields, is_qos="QOS" in fields)
    if "QOS" in fields:
        return _named(fields["QOS"]), limits
    one = Association(
        account=fields.get("Account", ""),
        user=_named(fields.get("UserName", "")),
        partition=fields.get("Partition", ""),
        parent=_named(fields.get("ParentAccount", "")),
        limits=limits,
    )
    return one.account, one


def _named(text: str) -> str:
    """Return a name without the number behind it."""
    match = _NAMED.fullmatch(text)
    return match[1] if match else text


def _limits(fields: Mapping[str, str], *, is_qos: bool) -> Limits:
    spent, used_up = _amounts(fields.get("GrpTRESMins", ""))
    wall, has_no_wall = _number(fields.get("GrpWall", ""))
    walltime = _number(fields.get("MaxWallPJ", ""))[0]
    return Limits(
        group=_amounts(fields.get("GrpTRES", ""), fields.get("GrpJobs", ""))[0],
        user=_amounts(fields.get("MaxTRESPU", ""), fields.get("MaxJobsPU" if is_qos else "MaxJobs", ""))[0],
        account=_amounts(fields.get("MaxTRESPA", ""), fields.get("MaxJobsPA", ""))[0],
        walltime=None if walltime is None else walltime * 60,
        job=_amounts(fields.get("MaxTRESPJ", ""))[0],
        node=_amounts(fields.get("MaxTRESPN", ""))[0],
        least=_amounts(fields.get("MinTRESPJ", ""))[0],
        area=_amounts(fields.get("MaxTRESMinsPJ", ""))[0],
        spent=spent,
        used_up=(*used_up, *(["wall"] if wall is not None and has_no_wall else [])),
        ahead=_amounts(fields.get("GrpTRESRunMins", ""))[0],
    )


def _number(text: str) -> tuple[int | None, bool]:
    """Return a limit, and whether it is used up; None: there is none."""
    if not text:
        return None, False
    match = _USED.fullmatch(text)
    if match is None:
        raise ValueError(f"Expected a limit such as 40(8), got {text!r}")
    if match[1] == "N":
        return None, False
    return int(float(match[1])), float(match[2] or 0) >= float(match[1])


def _amounts(text: str, jobs: str = "") -> tuple[Amounts, tuple[str, ...]]:
    """Return limits by resource, and on the number of jobs, and those that are used up; 0 is a limit too."""
    found: dict[str, int] = {}
    used_up = []
    for part in (*(text.split(",") if text else ()), f"jobs={jobs}"):
        name, _, said = part.rpartition("=")
        bound, is_used_up = _number(said)
        if bound is not None:
            ours = _our_name(name)
            found[ours] = bound
            used_up += [ours] * is_used_up
    return Amounts(found), tuple(used_up)


def _our_name(tres: str) -> str:
    """Return our name of a resource; that of Slurm where we have none."""
    if tres.startswith("gres/"):
        return max(gres_amounts(f"{tres[5:]}:1"), key=len)
    return _OURS.get(tres, tres)
