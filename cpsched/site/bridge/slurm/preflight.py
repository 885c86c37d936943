"""Whether cpsched can do its work on a Slurm: each finding with what to do."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from cpsched.errors import BridgeError
from cpsched.site.bridge.protocol import Finding, JobState
from cpsched.site.bridge.slurm.client import SlurmClient
from cpsched.site.bridge.slurm.machine import site_of
from cpsched.site.bridge.slurm.orders import refusal_of
from cpsched.site.bridge.slurm.records import JobRecord
from cpsched.site.bridge.slurm.site import SlurmModel, client_of
from cpsched.site.bridge.slurm.steering import Leaving, why_not_ranked
from cpsched.text import printable

#: Seconds by which the clock of slurmctld may differ.
_APART = 5
_AS_OF = re.compile(r"Configuration data as of (\S+)")
_OPERATORS = re.compile(r"^local OPERATORS = \{(.*)\}", re.MULTILINE)
_LONGEST_SAID = 200


def findings(model: SlurmModel, *, is_live: bool) -> Iterator[Finding]:
    """Yield what was found; orders that try the rights, which only one that is live needs, are taken back."""
    client = client_of(model)
    try:
        version = client.version()
        config = client.config()
        records = client.records(client.jobs())
    except BridgeError as error:
        said = f"{printable(str(error))[:_LONGEST_SAID]}: see [manager] commands and conf, and whether slurmctld runs"
        yield Finding("commands", False, said)
        return
    yield Finding("commands", True, f"Slurm {version[0]}.{version[1]:02} answers")
    yield _clock(client)
    known = {partition.name for partition in records.partitions}
    wrong = sorted({*model.queues, *model.leave_partitions} - known)
    said = f"no partition {', '.join(wrong)}: mend the file" if wrong else f"{len(known)} known"
    yield Finding("partitions", not wrong, printable(said))
    if model.steering == "order":
        is_fine = config.get("SchedulerType") == "sched/backfill"
        said = f"{config.get('SchedulerType')}"
        said = said if is_fine else f"{said}: set SchedulerType=sched/backfill"
        yield Finding("scheduler", is_fine, said)
        reason = why_not_ranked(config)
        yield Finding("priorities", not reason, reason or f"{config.get('PriorityType')}")
        if config.get("PrioritySiteFactorPlugin", "(null)") not in ("(null)", "none", ""):
            said = "PrioritySiteFactorPlugin sets the factors that cpsched sets: use one of them"
            yield Finding("factors", False, said)
    else:
        yield from _gate(model, config)
        yield from _preemption(Leaving.of(records, site_of(records).partitions, model, only_ranks=False))
    if is_live:
        yield _rights(client, records.jobs, needs_note=model.steering == "exact" or model.notes)


def _clock(client: SlurmClient) -> Finding:
    """Hold the clock of slurmctld against that of this machine."""
    match = _AS_OF.search(client.command("scontrol", "show", "config").out)
    if match is None or not match[1].isdecimal():
        return Finding("clock", True, "slurmctld does not say what time it has")
    apart = round(abs(time.time() - int(match[1])))
    is_fine = apart <= _APART
    said = f"{apart} s from that of slurmctld"
    return Finding("clock", is_fine, said if is_fine else f"{said}: let both follow one time server")


def _gate(model: SlurmModel, config: dict[str, str]) -> Iterator[Finding]:
    """Look whether new jobs can be steered from their submission on."""
    is_loaded = "lua" in config.get("JobSubmitPlugins", "").split(",")
    said = "loaded" if is_loaded else "JobSubmitPlugins=lua, and the script beside slurm.conf; or name no gate"
    script = Path(config.get("SLURM_CONF", "")).parent / "job_submit.lua"
    if is_barred := is_loaded and not _is_operator(script, os.getuid()):
        said = f"refuses the orders of this account: [{os.getuid()}] = true in OPERATORS of {printable(str(script))}"
    yield Finding("job_submit.lua", (is_loaded or model.gate is None) and not is_barred, said)
    if model.gate is not None:
        folder = Path(model.gate).parent
        is_fine = os.access(folder, os.W_OK) and folder.stat().st_mode & 0o001 != 0
        said = model.gate if is_fine else f"{folder} must be writable for this account, and may be entered by slurmctld"
        yield Finding("gate", is_fine, said)


def _is_operator(script: Path, user: int) -> bool:
    """Tell whether a script of cpsched, if it is one and can be read here, lets a user steer jobs."""
    try:
        text = script.read_text(errors="replace")
    except OSError:
        return True
    match = _OPERATORS.search(text)
    return match is None or re.search(rf"\[\s*{user}\s*\]\s*=\s*true", match[1]) is not None


def _preemption(leaving: Leaving) -> Iterator[Finding]:
    """Say whose jobs are stopped for whose, where they are."""
    for high, lows in leaving.preemption.queues.items() if leaving.preemption is not None else ():
        yield Finding("preemption", True, printable(f"jobs of {', '.join(lows)} are requeued for those of {high}"))


def _rights(client: SlurmClient, jobs: tuple[JobRecord, ...], *, needs_note: bool) -> Finding:
    """Change a waiting job so that nothing follows from it, and take that back."""
    level = "Admin" if needs_note else "Operator"
    job = next((one for one in jobs if one.state is JobState.WAITING and one.array is None), None)
    if job is None:
        said = "not tried, as no job waits: sbatch --begin=now+1hour --wrap true, and check again"
        return Finding("rights", True, said)
    field, own, other = "AdminComment", job.admin_comment, "cpsched-check"
    if not needs_note:
        factor = client.factors().get(job.number, (0, 0))[0]
        field, own, other = "SiteFactor", str(factor), str(factor + 1)
    elif own.split() not in ([], [own]):
        return Finding("rights", True, f"not tried: job {job.number} has an AdminComment with blanks")
    lines = "".join(f"update JobId={job.number} {field}={value}\n" for value in (other, own))
    refused = client.command("scontrol", given=lines, codes=(0, 1)).err.strip()
    if not refused:
        return Finding("rights", True, f"{field} of job {job.number} was changed, and back")
    said = f"{refusal_of(refused)}: {printable(refused.splitlines()[0])[:_LONGEST_SAID]}"
    advice = f"sacctmgr modify user NAME set AdminLevel={level}, with the name of this account"
    return Finding("rights", False, f"{said}: {advice}")
