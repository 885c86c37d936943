"""What cpsched notes in a job's `AdminComment`, which only administrators of Slurm may write.

The note says that the job is steered, what its user asked for in the fields that an order overwrites, and the order or
the announced start. So everything that was done to a job can be read from Slurm alone, and undone. The text has no
blanks, quotes or signs that a shell or ``scontrol`` would read: ``cpsched:1;begin=0;...``; what stood there before
remains in front of it.
"""

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from cpsched.site.bridge.protocol import JobState
from cpsched.site.bridge.slurm.records import JobRecord

#: The begin of the jobs that earlier versions of cpsched held, 2099-01-01 UTC; they are handed back.
GATE = 4070908800

_MARK = "cpsched:1"
_PAIR = re.compile(r"([a-z]+)=([^;\s]*)")
#: What can stand in a line for scontrol, which splits at blanks and ends a line at a newline; it knows no quotes.
_SAYABLE = re.compile(r"[!-~]*")
_DATE = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
_FORECAST = re.compile(rf"most_likely_{_DATE}(?:,_by_{_DATE}_with_80_percent)?")
#: Signs that stay as they are in a value.
_PLAIN = "[]-_.,:/*+"
_UNQUOTED = re.compile(rf"[A-Za-z0-9{re.escape(_PLAIN)}]*")


class Marker(NamedTuple):
    """The note of one job. Times are Unix seconds; what the user did not give is 0 or empty."""

    #: The user's own ``--begin``.
    begin: int = 0
    #: The user's own nodes (``--nodelist``), number of nodes, CPUs, and least CPUs per node.
    required: str = ""
    nodes: int = 0
    most: int = 0
    cpus: int = 0
    pernode: int = 0
    #: The nodes that were ordered, as a host list, the second, and the begin that it came to; no nodes: no order.
    ordered: str = ""
    at: int = 0
    given: int = 0
    #: How often the job had been queued again when it was ordered.
    restarts: int = 0
    #: Until when it is held.
    until: int = 0
    #: Who holds it: ``host:process:second`` at which that began.
    by: str = ""
    #: For the user: the planned start as a date, the nodes, and a line about it.
    start: str = ""
    where: str = ""
    why: str = ""
    #: For the user: when it starts most likely, and by when with 80 %.
    forecast: str = ""


#: The fields that are numbers, and all others.
_NUMBERS = frozenset(name for name, default in Marker._field_defaults.items() if isinstance(default, int))
_TEXTS = frozenset(Marker._fields) - _NUMBERS


def shown_time(second: int) -> str:
    """Return a second (Unix) as users can read it."""
    return f"{datetime.fromtimestamp(second, UTC).replace(tzinfo=None).isoformat()}Z"


def forecast_text(likely: int, by: int | None) -> str:
    """Return a forecast as users can read it in a note."""
    return f"most_likely_{shown_time(likely)}" + ("" if by is None else f",_by_{shown_time(by)}_with_80_percent")


def noted_forecast(marker: Marker | None) -> tuple[int, int | None] | None:
    """Return the forecast of a note; None: it has none that can be read."""
    match = None if marker is None else _FORECAST.fullmatch(marker.forecast)
    if match is None:
        return None
    likely, by = (None if text is None else int(datetime.fromisoformat(text).timestamp()) for text in match.groups())
    return None if likely is None else (likely, by)


def is_same_begin(wanted: int, got: int | None, now: int) -> bool:
    """Tell whether two begins mean the same at a second: they are equal, or both have passed."""
    return got is not None and (wanted == got or max(wanted, got) <= now)


def prefix_of(comment: str) -> str:
    """Return the text that others wrote in front of the note."""
    return comment.partition(_MARK)[0]


def is_sayable(comment: str) -> bool:
    """Tell whether a comment can be given to scontrol as it is."""
    return _SAYABLE.fullmatch(comment) is not None


def read_marker(comment: str) -> Marker | None:
    """Return the note in a comment; None where there is none, or it cannot be read."""
    _, mark, rest = comment.partition(_MARK)
    if not mark:
        return None
    found: dict[str, Any] = {}
    for key, value in _PAIR.findall(rest):
        if key in _NUMBERS:
            if not value.isdecimal():
                return None
            found[key] = int(value)
        elif key in _TEXTS:
            found[key] = unquote(value)
    return Marker(**found)


def marked(prefix: str, marker: Marker) -> str:
    """Return a comment with a note."""
    pairs = zip(Marker._fields, marker, strict=True)
    said = [f";{key}={value if isinstance(value, int) else _quoted(str(value))}" for key, value in pairs if value]
    return f"{prefix}{_MARK}{''.join(said)}"


def _quoted(text: str) -> str:
    """Return a text with an escape for each sign that is not plain."""
    return text if _UNQUOTED.fullmatch(text) else quote(text, safe=_PLAIN)


def user_view(job: JobRecord) -> tuple[JobRecord, Marker | None]:
    """Return a job as its user asked for it, without its note, and the note.

    A field that is not as the order set it was changed by somebody else since, and counts as it is. A job that is
    steered and has no note has lost it: somebody wrote over it, and the begin that its user asked for is not known.
    """
    prefix, marker = prefix_of(job.admin_comment), read_marker(job.admin_comment)
    if marker is None:
        return (job.but(begin=None) if job.begin == GATE else job), None
    if job.state is JobState.HELD and job.reason.startswith("BadConstraints") and marker.ordered:
        job = job.but(state=JobState.WAITING)  # Slurm holds what it cannot start where we ordered it
    begin: int | None = job.begin
    if job.begin is not None and job.begin in (GATE, marker.given, marker.until):
        begin = marker.begin or None
    if not (marker.ordered and job.required_nodes == marker.ordered):
        view = job.but(begin=begin, admin_comment=prefix)
    else:
        view = job.but(
            begin=begin,
            admin_comment=prefix,
            required_nodes=marker.required,
            nodes=marker.nodes or 1,
            max_nodes=marker.most or None,
            cpus=marker.cpus or job.cpus,
            cpus_per_node=marker.pernode or job.cpus_per_node,
        )
    return view, marker
