"""A directory with answers of Slurm, JSON or text, as records: for looking at a machine without being on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

from cpsched.errors import DocumentError, Fault
from cpsched.site.bridge.slurm.json_reader import parse_answer, read_answer
from cpsched.site.bridge.slurm.limits import LIMITS_HEAD, read_limits
from cpsched.site.bridge.slurm.records import SlurmRecords
from cpsched.site.bridge.slurm.text_reader import read_config, read_text
from cpsched.site.bridge.slurm.topology import is_topology, read_topology

_MOST_BYTES = 512 * 2**20
_KINDS = tuple(field.name for field in fields(SlurmRecords) if field.name != "notes")
#: The lists that answers in JSON have.
_LISTS = ("jobs", "nodes", "partitions", "reservations", "licenses", "sinfo")
#: What the texts of `scontrol show` begin with.
_HEADS = ("JobId=", "NodeName=", "PartitionName=", "ReservationName=", "LicenseName=")
#: Of the answers of commands, and of the two files of a topology.
_TEXTS = (".txt", ".conf", ".yaml")
#: What the text of `scontrol show config` begins with.
CONFIG_HEAD = "Configuration data as of"


@dataclass(frozen=True, slots=True)
class Reading:
    """The answers that a directory has.

    `records`: of each kind those of the file that has most of them; JSON is preferred to text. `used`: the names of the
    files that they are from. `skipped`: the other files, each with the reason. `latest`: the latest second (Unix) that
    a job of the records started or was submitted at.
    """

    records: SlurmRecords
    used: tuple[str, ...]
    skipped: tuple[str, ...]
    latest: int


def merge_records(parts: Sequence[tuple[str, SlurmRecords]]) -> tuple[SlurmRecords, tuple[str, ...]]:
    """Take of each kind the records of the part that has most, the first one of several; return their names too."""
    chosen: dict[str, Any] = {}
    used: dict[str, None] = {}
    for kind in _KINDS:
        best = max(parts, key=lambda part: len(getattr(part[1], kind) or ()), default=None)
        if best is not None and getattr(best[1], kind):
            chosen[kind] = getattr(best[1], kind)
            used[best[0]] = None
    notes = (note for name, part in parts if name in used for note in part.notes)
    return replace(SlurmRecords(), **chosen, notes=tuple(dict.fromkeys(notes))), tuple(used)


def read_directory(path: Path, zone: tzinfo | None = None) -> Reading:
    """Read all answers in a directory; what each file is, its contents tell.

    Raises `DocumentError` if it cannot be read, has no jobs and no nodes, or a file that is used has faults. `path`: a
    directory. Files end in ``.json``, ``.txt``, ``.conf`` or ``.yaml``. `zone`: that of dates in texts; None: that of
    this machine.
    """
    parts: list[tuple[str, SlurmRecords]] = []
    skipped: list[str] = []
    try:
        files = sorted(entry for entry in path.iterdir() if entry.is_file())
    except OSError as error:
        raise DocumentError(str(path), [Fault("", f"Expected a directory, got: {error.strerror}")]) from None
    for file in sorted(files, key=lambda file: (file.suffix != ".json", file.name)):
        records = _read_file(file, zone, skipped.append)
        if records is not None:
            parts.append((file.name, records))
    records, used = merge_records(parts)
    skipped += [f"{name}: another file has more of it" for name, _ in parts if name not in used]
    if not records.nodes:
        said = "; ".join(skipped[:5]) or "no files"
        raise DocumentError(str(path), [Fault("", f"Expected the nodes of a Slurm cluster, got none ({said})")])
    # other starts are estimates
    starts = (job.start or 0 for job in records.jobs if job.shares or job.state.is_over)
    latest = max((*starts, *(job.submit for job in records.jobs)), default=0)
    return Reading(records, used, tuple(skipped), latest)


def _read_file(file: Path, zone: tzinfo | None, skip: Callable[[str], None]) -> SlurmRecords | None:
    """Return the records of one file; None, with a reason, where it has none."""
    if file.suffix not in (".json", *_TEXTS):
        skip(f"{file.name}: neither JSON nor text")
        return None
    if file.stat().st_size > _MOST_BYTES:
        raise DocumentError(str(file), [Fault("", f"Expected at most {_MOST_BYTES} bytes, got more")])
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    if file.suffix in _TEXTS:
        if text.startswith(CONFIG_HEAD):
            return replace(SlurmRecords(), config=read_config(text))
        if is_topology(text):
            return replace(SlurmRecords(), topology=read_topology(text, str(file)))
        if text.startswith(LIMITS_HEAD):
            return replace(SlurmRecords(), limits=read_limits(text, str(file)))
        first = text.lstrip()
        if not first.startswith(_HEADS) or (first.startswith("JobId=") and "NumNodes=" not in first):
            skip(f"{file.name}: no answer of scontrol")
            return None
        return read_text(text, str(file), zone)
    try:
        answer = parse_answer(text, str(file))
    except DocumentError as error:
        skip(f"{file.name}: {error.faults[0].message}")
        return None
    if not any(isinstance(answer.get(kind), list) for kind in _LISTS):
        skip(f"{file.name}: none of {', '.join(_LISTS)} in it")
        return None
    if any(isinstance(job, dict) and "job_state" not in job for job in answer.get("jobs") or ()):
        skip(f"{file.name}: the jobs of an accounting database, which are over")
        return None
    return read_answer(answer, str(file))
