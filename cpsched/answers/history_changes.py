"""Other rules, limits and machines for a whole history, as a user writes them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cpsched.answers.machine_changes import EXPECTED_NODES
from cpsched.answers.whatif import SOURCE, WhatIf
from cpsched.domain import AnyLimit, Instance, Job, Limit
from cpsched.errors import DocumentError, Fault
from cpsched.formats import expand_hostlist
from cpsched.text import did_you_mean

_EXPECTED = f"engine=NAME, policy=NAME, limit=JSON, drain=NODES, {EXPECTED_NODES}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """What is different in one replay of a history."""

    #: As it is written.
    text: str
    #: The machine and its rules.
    request: WhatIf
    #: ``NAME [KEY=VALUE ...]``; None: that of the site.
    scheduler: str | None


def parse_history_change(text: str) -> HistoryChange:
    """``change := part (';' part)*; part := ('engine' | 'policy' | 'limit' | 'drain') '=' VALUE | nodes``.

    Raises `DocumentError` with every part that is none. Raises `SyntaxFault` if a host list is none.
    """
    faults: list[Fault] = []
    schedulers: list[str] = []
    drained: list[str] = []
    limits: list[str] = []
    nodes: list[str] = []
    for part in map(str.strip, text.split(";")):
        key, sign, value = (one.strip() for one in part.partition("="))
        if part.startswith(("add ", "remove ")):
            nodes.append(part)
        elif not (sign and value) or key not in ("engine", "policy", "limit", "drain"):
            faults.append(Fault("change", f"Expected {_EXPECTED}, got {part[:100]!r}"))
        elif key == "limit":
            limits.append(value)
        elif key == "drain":
            drained += expand_hostlist(value)
        else:
            schedulers.append(value)
    if len(schedulers) > 1:
        faults.append(Fault("change", f"Expected one engine or policy, got {' and '.join(schedulers)}"))
    if faults:
        raise DocumentError(SOURCE, faults)
    request = WhatIf(drain=tuple(drained), limit=tuple(limits), nodes=tuple(nodes))
    return HistoryChange(text=text.strip(), request=request, scheduler=next(iter(schedulers), None))


def check_limits(limits: Sequence[AnyLimit], jobs: Instance) -> None:
    """Refuse further limits that none of some jobs can meet. Raises `DocumentError` with each of them."""
    faults = [fault for limit in limits if isinstance(limit, Limit) for fault in _unmet(limit, jobs.jobs)]
    if faults:
        raise DocumentError(SOURCE, faults)


def _unmet(limit: Limit, jobs: Sequence[Job]) -> Iterator[Fault]:
    """Yield why a limit is of none of the jobs."""
    names = {name for job in jobs if (name := limit.consumer.kind.of(job)) is not None}
    wanted = limit.consumer.name
    if not names or (wanted is not None and wanted not in names):
        who = f"{limit.consumer.kind}s" if wanted is None else f"the {limit.consumer.kind} {wanted!r}"
        hint = "" if wanted is None else did_you_mean(wanted, names)
        yield Fault("limit.consumer", f"Expected somebody with jobs in the history, got {who} without any{hint}")
        return
    asked = {name for job in jobs for step in job.steps for name in (*job.licenses, *step.request.totals)}
    asked |= {"jobs", "*"} | ({"arrayjobs"} if any(job.array is not None for job in jobs) else set())
    if limit.resource not in asked:
        yield Fault("limit.resource", f"Expected what jobs of the history ask for, got {limit.resource!r}")
