"""What surrounds the process, streams, memory, home and user: where it is not as usual, one line says so."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sizes import some

INSTANCE = Path(__file__).parents[2] / "instances" / "eurora-like-0050.json.gz"


def _cpsched(
    arguments: str, folder: Path, redirections: str = "", before: Callable[[], None] | None = None, **env: str
) -> tuple[int, str]:
    """Run a command by the shell, with redirections; return its exit code and what it said on stderr."""
    command = f'exec "{sys.executable}" -m cpsched {arguments} {redirections}'
    environment = {name: value for name, value in os.environ.items() if name != "HOME"} | env
    done = subprocess.run(  # noqa: S602 - redirections are what is tested
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, preexec_fn=before, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plan the instance."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    assert _cpsched(f"solve {INSTANCE} --budget 0 --quiet -o {path}", path.parent)[0] == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize("redirections", some([">&-", "2>&-", "<&-", ">&- 2>&- <&-"], 3))
def test_closed_streams(plan: Path, tmp_path: Path, redirections: str) -> None:
    """What is told nobody hears, the exit code still tells, and no file gets what belongs to a stream."""
    assert _cpsched(f"verify {INSTANCE} {plan}", tmp_path, redirections) == (0, "")
    assert _cpsched(f"verify {INSTANCE} {INSTANCE}", tmp_path, redirections)[0] == 2
    assert _cpsched(f"solve {INSTANCE} --budget 1 --quiet -o mine.json", tmp_path, redirections) == (0, "")
    assert _cpsched(f"verify {INSTANCE} mine.json", tmp_path) == (0, "")


@pytest.mark.slow
def test_a_closed_standard_input(tmp_path: Path) -> None:
    """There is no instance on it."""
    code, said = _cpsched("solve - -o plan.json", tmp_path, "<&-")
    assert code == 2
    assert said == "cpsched: <stdin>: 1 fault\n  file: Expected a JSON object, got an empty file\n"


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["schema plan", "--help", "verify --help", "verify {instance} {plan}"])
def test_a_full_standard_output(plan: Path, tmp_path: Path, arguments: str) -> None:
    """One line names the stream."""
    code, said = _cpsched(arguments.format(instance=INSTANCE, plan=plan), tmp_path, "> /dev/full")
    assert code == 6
    assert re.fullmatch(r"cpsched: .*No space left on device.*<stdout>.*\n", said)


def test_a_full_standard_error(tmp_path: Path) -> None:
    """Messages are lost, the exit code is not."""
    assert _cpsched(f"verify {INSTANCE} {INSTANCE}", tmp_path, "2> /dev/full")[0] == 2
    assert _cpsched("verify", tmp_path, "2> /dev/full")[0] == 2


@pytest.mark.parametrize("command", ["solve {i} -o p.json", "simulate {i}", "show {i}", "warmup", "bench x.toml"])
def test_too_little_memory(tmp_path: Path, command: str) -> None:
    """A limit beneath which libraries would abort the process is told before anything is begun."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (300 * 2**20, 300 * 2**20))

    code, said = _cpsched(command.format(i=INSTANCE), tmp_path, before=limit)
    assert code == 7
    assert re.fullmatch(
        r"cpsched: out of memory: the process may have 300 MiB \(ulimit -v\), \w+ needs \d+ MiB\n", said
    )


@pytest.mark.slow
def test_memory_that_does_not_suffice(tmp_path: Path) -> None:
    """Where memory ends on the way, that is one line, too."""
    path = tmp_path / "large.json"
    path.write_bytes(b'{"name": "' + b"x" * 150 * 2**20 + b'"}')

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (200 * 2**20, 200 * 2**20))

    code, said = _cpsched(f"verify {path} {path}", tmp_path, before=limit)
    assert (code, said) == (7, "cpsched: out of memory: the process may have 200 MiB (ulimit -v)\n")


#: Runs the command line as somebody whom no password file knows.
_AS_NOBODY = """
import pwd, sys
def unknown(*_):
    raise KeyError("uid not found")
pwd.getpwuid = pwd.getpwnam = unknown
from cpsched.cli import run
run()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        "solve {instance} --budget 2 --quiet -o {folder}/mine.json",
        "show {instance} {plan}",
    ],
)
def test_neither_home_nor_user(plan: Path, tmp_path: Path, arguments: str) -> None:
    """Somebody without a home whom no password file knows can plan and draw."""
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    environment.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))  # else all kernels would be compiled anew
    words = arguments.format(instance=INSTANCE, plan=plan, folder=tmp_path).split()
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _AS_NOBODY, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
