"""``cpsched completion``: the scripts, and what a shell gets with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]

#: How each shell sources the script and asks for the words after those that were typed.
ASKED = {
    "bash": 'source "$1"; COMP_WORDS=(cpsched {before} "{word}"); COMP_CWORD={count}; '
    '_cpsched_completion cpsched; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "fish": 'source $argv[1]; complete --do-complete "cpsched {before} {word}"',
    # in place of the functions of its completion system, which work in a terminal only
    "zsh": "compdef() {{ : }}; _path_files() {{ : }}; compadd() {{ print -l -- $completions }}; "
    "_describe() {{ print -l -- ${{completions_with_descriptions%%:*}} }}; "
    'source "$1"; words=(cpsched {before} "{word}"); CURRENT={count}+1; _cpsched_completion',
}


def completed(shell: str, folder: Path, script: str, before: str, word: str) -> list[str]:
    """Return what a shell completes a word to."""
    command = folder / "bin" / "cpsched"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cpsched "$@"\n')
    command.chmod(0o755)
    (folder / "script").write_text(script)
    asked = ASKED[shell].format(before=before, word=word, count=len(before.split()) + 1)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    arguments = [shell, "-c", asked, *([] if shell == "fish" else [shell]), str(folder / "script")]
    process = subprocess.run(  # noqa: S603 - our own command
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return [line.split("\t")[0] for line in process.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(shell: str, run: Run) -> None:
    """It asks cpsched itself, by the variable that click looks at."""
    assert f"_CPSCHED_COMPLETE={shell}_complete" in run("completion", shell).stdout


@pytest.mark.parametrize("shell", sorted(ASKED))
def test_a_shell_completes(shell: str, run: Run, tmp_path: Path) -> None:
    """Commands, options, and the names of engines and documents are completed; files are left to the shell."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = run("completion", shell).stdout
    assert completed(shell, tmp_path, script, "", "so") == ["solve"]
    assert completed(shell, tmp_path, script, "solve --engine", "pbs") == ["pbs_fifo_bf10", "pbs_walltime_bf400"]
    assert completed(shell, tmp_path, script, "solve --engine planner", "--bu") == ["--budget"]
    assert "plan" in completed(shell, tmp_path, script, "schema", "pl")
