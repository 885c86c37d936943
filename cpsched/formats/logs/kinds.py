"""Which kind of log a file is, by its name or by its first lines."""

import re
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from cpsched.errors import DocumentError
from cpsched.formats.files import load_json, read_lines
from cpsched.formats.logs.batsim import is_batsim, read_batsim
from cpsched.formats.logs.elastisim import is_elastisim, read_elastisim
from cpsched.formats.logs.jobs import JobLog, LogKind
from cpsched.formats.logs.sacct import is_header, is_json, read_sacct
from cpsched.formats.logs.sbatch import EVENT, read_sbatch
from cpsched.formats.logs.torque import RECORD, read_torque
from cpsched.formats.paths import open_file
from cpsched.formats.swf import SwfLog, read_swf

_SUFFIXES = {".swf": LogKind.SWF, ".acct": LogKind.TORQUE, ".events": LogKind.SBATCH}
_READERS: Mapping[LogKind, Callable[[str | Path], SwfLog | JobLog]] = {
    LogKind.SWF: read_swf,
    LogKind.TORQUE: read_torque,
    LogKind.SBATCH: read_sbatch,
    LogKind.SACCT: read_sacct,
    LogKind.BATSIM: read_batsim,
    LogKind.ELASTISIM: read_elastisim,
}
#: The number of lines that are checked.
_FIRST_LINES = 20
#: The number of bytes in which our own documents say what they are.
_HEAD = 4096
#: What our own documents begin with.
_OURS = re.compile(r'"format"\s*:\s*"cpsched-')
#: A line of Standard Workload Format: of its header, or a job, of 18 numbers.
_SWF = re.compile(r";.*|(?:-?\d+(?:\.\d+)?\s+){17}-?\d+(?:\.\d+)?(?:\s.*)?")


def kind_of(path: Path) -> LogKind | None:
    """Return the kind of a log by the end of its name, or by its first lines; None if it is none of these."""
    for suffix, kind in _SUFFIXES.items():
        if path.name.removesuffix(".gz").endswith(suffix):
            return kind
    try:
        lines = list(islice(read_lines(path), _FIRST_LINES))
    except DocumentError:
        # the reader reports what is wrong with it; a document on one line is too long for a log
        return _kind_of_json(path) if _is_foreign_json(path) else None
    if any(map(RECORD.fullmatch, lines)):
        return LogKind.TORQUE
    if lines and is_header(lines[0]):
        return LogKind.SACCT
    if lines and lines[0].startswith("{") and _is_foreign_json(path):
        return _kind_of_json(path)
    if any(lines) and all(_SWF.fullmatch(line) for line in lines if line):
        return LogKind.SWF
    return LogKind.SBATCH if any(map(EVENT.fullmatch, lines)) else None


def _is_foreign_json(path: Path) -> bool:
    """Tell whether a file begins as JSON does, and not as our own documents do; a packed one is not looked into."""
    try:
        with open_file(path) as stream:
            head = stream.read(_HEAD)
    except (OSError, ValueError):
        return False
    return head.lstrip().startswith(b"{") and _OURS.search(head.decode("utf-8", "replace")) is None


def _kind_of_json(path: Path) -> LogKind | None:
    try:
        document = load_json(path)
    except DocumentError:
        # the reader of documents reports what is wrong with it
        return None
    if is_batsim(document):
        return LogKind.BATSIM
    if is_elastisim(document):
        return LogKind.ELASTISIM
    return LogKind.SACCT if is_json(document) else None


def read_log(path: str | Path, kind: LogKind) -> SwfLog | JobLog:
    """Read a log of a known kind. Raises `DocumentError` if the file cannot be read or holds not one job."""
    return _READERS[kind](path)
