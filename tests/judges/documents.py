"""A judge of the borders: files that are changed at random go through the command line, each in a process of its own.

Whatever is in a file, a command succeeds, or ends with a documented exit code and an error that it prints. A traceback,
a signal, more than `SECONDS` seconds or more than `MEMORY` bytes are failures.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from click.testing import CliRunner

from cpsched.cli import main
from cpsched.formats import read_instance
from cpsched.lab.sim import BackfillRule, Checkpoint, Interrupted, QueueRule, simulate
from tests.judges.mutations import change_bytes, change_document, change_text
from tests.sim.interrupted import forged, looking_often, written

__all__ = ["MEMORY", "SECONDS", "Answer", "Sources", "judge_document", "sources_of"]

#: What a command may take on one of the small files.
SECONDS = 60
MEMORY = 6 * 2**30

#: Two nodes and six jobs, in Standard Workload Format.
_SWF = "; MaxNodes: 2\n; MaxProcs: 8\n; UnixStartTime: 1500000000\n; TimeZoneString: Europe/Berlin\n" + "".join(
    f"{n} {10 * n} 5 {60 * n} {n} -1 -1 {n} {100 * n} -1 1 {n % 3} 1 -1 1 {n % 2} -1 -1\n" for n in range(1, 7)
)
#: Exit codes, as docs/reference/exit-codes.md has them: fine, a plan breaks rules, bad input, an engine refuses.
_FINE, _BAD_INPUT = {0, 1, 2, 4}, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files that are changed, and files made of them."""

    #: Instances, each with a plan where one could be made of it.
    instances: Sequence[tuple[Path, Path | None]]
    logs: Sequence[Path]
    campaigns: Sequence[Path]
    #: A workload, and the checkpoint of an interrupted simulation of it by EASY.
    workload: Path
    checkpoint: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one changed file."""

    kind: str
    #: The exit codes of the commands that read it.
    codes: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def sources_of(files: Sequence[Path], folder: Path) -> Sources:
    """Sort files by kind, and make plans, a log and a checkpoint in a folder; this also compiles the kernels."""
    instances: list[tuple[Path, Path | None]] = []
    logs = [
        folder / "log.swf",
        *(path for path in files if path.name.endswith((".acct", ".events", ".swf", ".swf.gz"))),
    ]
    logs[0].write_text(_SWF)
    for path in files:
        if path.name.endswith((".json", ".json.gz")) and not path.name.endswith(".plan.json"):
            plan = folder / f"{len(instances)}.plan.json"
            planned = _run("solve", path, "--engine", "planner", "--quiet", "-o", plan) == (0, "")
            instances.append((path, plan if planned else None))
    workload, checkpoint = folder / "workload.json", folder / "checkpoint"
    _run("generate", "eurora", "--jobs", 30, "--malleable", 0.3, "-o", workload)
    _leave_checkpoint(workload, checkpoint)
    campaigns = [path for path in files if path.suffix == ".toml"]
    return Sources(instances=instances, logs=logs, campaigns=campaigns, workload=workload, checkpoint=checkpoint)


def judge_document(seed: int, sources: Sources, folder: Path) -> Answer:
    """Change a file by its seed, and let commands read it; `folder` is for what they write."""
    random = Random(seed)
    kind = random.choice([name for name, is_there in _is_there(sources).items() if is_there])
    answer = Answer(kind=kind)
    for command in _KINDS[kind](random, sources, folder):
        code, failure = _apart(command)
        answer.codes[code] += 1
        if failure:
            answer.failures.append(f"{' '.join(map(str, command))[:300]}: {failure}")
    return answer


def _is_there(sources: Sources) -> dict[str, bool]:
    return {
        "instance": bool(sources.instances),
        "plan": any(plan for _, plan in sources.instances),
        "log": bool(sources.logs),
        "campaign": bool(sources.campaigns),
        "checkpoint": True,
    }


_Command = tuple[object, ...]


def _changed_json(random: Random, path: Path, target: Path) -> Path:
    """Write a changed document: its values, or its bytes, packed or not."""
    content = path.read_bytes()
    plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    if random.random() < 0.8:
        document = json.loads(plain)
        for _ in range(random.choice([1, 1, 2, 4])):
            change_document(random, document)
        target.write_text(json.dumps(document))
    else:
        target.write_bytes(change_bytes(random, random.choice([content, plain])))
    return target


def _changed_text(random: Random, path: Path, target: Path) -> Path:
    """Write a changed text: its lines and words, or its bytes."""
    content = path.read_bytes()
    if random.random() < 0.8 and not content.startswith(b"\x1f\x8b"):
        text = content.decode()
        for _ in range(random.randint(1, 4)):
            text = change_text(random, text)
        content = text.encode()
    else:
        content = change_bytes(random, content)
    target.write_bytes(content)
    return target


def _instance(random: Random, sources: Sources, folder: Path) -> list[_Command]:
    path, plan = random.choice(sources.instances)
    changed, target = _changed_json(random, path, folder / "instance.json"), folder / "out.json"
    commands: list[_Command] = [("solve", changed, "--engine", "planner", "--quiet", "-o", target)]
    return commands if plan is None else [*commands, ("verify", changed, plan)]


def _plan(random: Random, sources: Sources, folder: Path) -> list[_Command]:
    instance, plan = random.choice([(path, plan) for path, plan in sources.instances if plan])
    changed = _changed_json(random, plan, folder / "plan.json")
    return [("verify", instance, changed), ("show", instance, changed, "--html", folder / "plan.html")]


def _log(random: Random, sources: Sources, folder: Path) -> list[_Command]:
    path = random.choice(sources.logs)
    changed = _changed_text(random, path, folder / path.name)
    policy = random.choice(["easy", "conservative"])
    return [
        ("simulate", changed, "--policy", policy, "--quiet"),
    ]


def _campaign(random: Random, sources: Sources, folder: Path) -> list[_Command]:
    """Read a campaign; it is never run: no workload file is there."""
    path = random.choice(sources.campaigns)
    changed = _changed_text(random, path, folder / "campaign.toml")
    with changed.open("ab") as stream:
        stream.write(b"\n[[workload]]\nname = 'none'\ninstance = 'none.json'\n")
    return [("bench", changed, "-o", folder / "out", "--quiet")]


def _checkpoint(random: Random, sources: Sources, folder: Path) -> list[_Command]:
    """Change bytes of a checkpoint, or values with a digest that is right for them."""
    changed = folder / "checkpoint"
    if random.random() < 0.3:
        changed.write_bytes(change_bytes(random, sources.checkpoint.read_bytes()))
    else:
        arrays = {name: array for name, array in written(sources.checkpoint).items() if name != "digest"}
        for _ in range(random.randint(1, 3)):
            array = arrays[random.choice([name for name, array in arrays.items() if array.size])]
            if array.dtype.kind in "if":
                array.flat[random.randrange(array.size)] = random.choice([-1, 0, 1, 2, 7, 127])
        forged(arrays, changed)
    return [("simulate", sources.workload, "--checkpoint", changed, "--resume", "--quiet")]


_KINDS: dict[str, Callable[[Random, Sources, Path], list[_Command]]] = {
    "instance": _instance,
    "plan": _plan,
    "log": _log,
    "campaign": _campaign,
    "checkpoint": _checkpoint,
}


def _leave_checkpoint(workload: Path, checkpoint: Path) -> None:
    """Interrupt a simulation half-way, in which the command looks at the clock rarely."""
    looks = iter(range(3))

    def interrupt(_: object) -> None:
        if next(looks, None) is None:
            raise KeyboardInterrupt

    easy = QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING)
    kept = Checkpoint(path=checkpoint, scheduler="easy", interval=3600)
    with looking_often(3), suppress(Interrupted):
        simulate(read_instance(workload), easy, progress=interrupt, checkpoint=kept)


def _run(*command: object) -> tuple[int, str]:
    """Run a command in this process; return its exit code, and what is wrong with how it ended."""
    shown = CliRunner().invoke(main, [str(word) for word in command])
    error = shown.exception
    if error is not None and not isinstance(error, SystemExit):
        where = traceback.extract_tb(error.__traceback__)[-1]
        return shown.exit_code, f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"[:300]
    if shown.exit_code not in _FINE:
        return shown.exit_code, f"exit code {shown.exit_code}: {shown.stderr[-200:]}"
    if shown.exit_code == _BAD_INPUT and not shown.stderr:
        return shown.exit_code, "no error was told"
    return shown.exit_code, ""


def _apart(command: _Command) -> tuple[int, str]:
    """Run a command in a child that has limits of time and memory."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.write(writing, json.dumps(_run(*command)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        words = f"more than {SECONDS} s" if number == signal.SIGALRM else signal.Signals(number).name
        return 128 + number, f"ended by {words}"
    if not said:
        return 1, "ended without an answer"
    code, failure = json.loads(said)
    return code, failure
