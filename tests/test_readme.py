"""The examples of README.md, run as they stand there."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: What the README's `convert` reads: the first lines of some log.
LOG = """; Version: 2.2
1 0 5 60 2 -1 -1 2 120 -1 1 7 1 -1 1 -1 -1 -1
2 30 5 60 1 -1 -1 1 600 -1 1 8 1 -1 1 -1 -1 -1
3 60 5 60 1 -1 -1 1 300 -1 1 8 1 -1 1 -1 -1 -1
"""
MACHINE = {
    "format": "cpsched-instance/1",
    "name": "machine",
    "cluster": {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}}]},
}


@dataclass(frozen=True, slots=True)
class Example:
    """A command line of the README, and what it prints on stdout; ``...`` stands for any lines."""

    command: str
    output: str
    #: Whether the figures differ from run to run.
    varies: bool = False

    def comparable(self, output: str) -> str:
        """Return an output without what differs from run to run: the seconds taken or, if it varies, all figures."""
        return re.sub(r"\d[\d,.]*", "N", output) if self.varies else re.sub(r"\b\d+\.\d+ s\b", "T s", output)


def examples_in(markdown: str) -> Iterator[Example]:
    """Yield the commands of all ``console`` blocks, in order; the figures in ``console varying`` blocks vary."""
    for mark, block in re.findall(r"^```console( varying)?\n(.*?)^```", markdown, flags=re.MULTILINE | re.DOTALL):
        for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = entry.partition("\n")
            yield Example(command, output, varies=bool(mark))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with what is shipped for users, a log, a machine, and `cpsched` on the search path."""
    for shipped in ("campaigns", "instances"):
        shutil.copytree(ROOT / shipped, tmp_path / shipped)
    (tmp_path / "log.swf.gz").write_text(LOG)
    (tmp_path / "machine.json").write_text(json.dumps(MACHINE))
    script = tmp_path / "bin" / "cpsched"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cpsched "$@"\n')
    script.chmod(0o755)
    return tmp_path


def check_examples(page: Path, folder: Path) -> int:
    """Run the examples of a page one after the other; return how many they are."""
    examples = list(examples_in(page.read_text()))
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
    }
    checker = doctest.OutputChecker()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for example in examples:
        assert example.command.startswith("cpsched "), example.command
        process = subprocess.run(  # noqa: S602 - the page is ours
            example.command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, f"$ {example.command}\n{process.stderr}"
        expected, got = example.comparable(example.output), example.comparable(process.stdout)
        is_alike = checker.check_output(expected, got, flags)
        assert is_alike, f"$ {example.command}\n{process.stdout}"
    return len(examples)


@pytest.mark.slow
def test_the_examples_of_the_readme_work(folder: Path) -> None:
    """Run one after the other, the README's commands end well and print what the README shows."""
    assert check_examples(ROOT / "README.md", folder) >= 6


def test_examples_are_found() -> None:
    """A block may hold several commands, each with its output; other blocks are no examples."""
    markdown = "```console\n$ a b\n1\n2\n$ c\n```\n```sh\n$ d\n```\n```console varying\n$ e\n3.5\n```\n"
    assert list(examples_in(markdown)) == [Example("a b", "1\n2\n"), Example("c", ""), Example("e", "3.5\n", True)]


def test_figures_vary_only_where_it_is_said() -> None:
    """Seconds are never compared; other figures are, unless the block says that they vary."""
    assert Example("", "").comparable("took 1.25 s for 17.5%") == "took T s for 17.5%"
    assert Example("", "", varies=True).comparable("took 1.25 s for 17.5%") == "took N s for N%"


def test_every_linked_file_exists() -> None:
    """The README and CONTRIBUTING.md point at files that are there."""
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
            assert target.startswith("https://") or (ROOT / target).exists(), f"{page}: {target}"
