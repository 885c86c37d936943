"""The examples of README.md and of the documentation, run as they stand there.

Blocks marked ``console`` are commands and what they print. A block with a ``title`` is a file that the commands after
it read. ``>>>`` in blocks marked ``python`` is run as a doctest.
"""

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
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_COMMANDS = [page for page in PAGES if "```console" in page.read_text()]
WITH_PYTHON = [page for page in PAGES if ">>> " in page.read_text()]

#: What the `convert` of docs/commands.md reads: the first lines of some log.
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
    """A command line of a page, and what it prints on stdout; ``...`` stands for any lines."""

    command: str
    output: str
    #: Whether the figures differ from run to run.
    varies: bool = False

    @property
    def quick(self) -> str:
        """The command with a budget of two seconds where its figures vary and it would take the default one's ten."""
        is_long = self.varies and "--budget" not in self.command
        return re.sub(r"^cpsched solve\b", "cpsched solve --budget 2", self.command) if is_long else self.command

    def comparable(self, output: str) -> str:
        """Return an output without what differs from run to run: the seconds taken or, if it varies, all figures and
        what was proven, which may be nothing on a busy machine.
        """
        if self.varies:
            output = re.sub(r"^(bound|gap)  .*\n", "", output, flags=re.MULTILINE)
        return re.sub(r"\d[\d,.]*", "N", output) if self.varies else re.sub(r"\b\d+\.\d+ s\b", "T s", output)


@dataclass(frozen=True, slots=True)
class Input:
    """A file that a page shows, and that its commands read."""

    name: str
    content: str


def examples_in(markdown: str) -> Iterator[Example | Input]:
    """Yield the commands of ``console`` blocks and all files, in order; in ``console varying`` blocks figures vary."""
    for language, mark, block in re.findall(r"^```(\w+)(.*)\n((?:(?!```).*\n)*)```", markdown, flags=re.MULTILINE):
        if titled := re.fullmatch(r' title="(.+)"', mark):
            yield Input(titled[1], block)
        if language != "console":
            continue
        for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = entry.partition("\n")
            yield Example(command, output, varies=mark == " varying")


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


def check_examples(page: Path, folder: Path) -> None:
    """Write the files of a page and run its commands, one after the other."""
    examples = list(examples_in(page.read_text()))
    assert any(isinstance(example, Example) for example in examples)
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
    }
    checker = doctest.OutputChecker()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for example in examples:
        if isinstance(example, Input):
            (folder / example.name).write_text(example.content)
            continue
        assert example.command.startswith("cpsched "), example.command
        process = subprocess.run(  # noqa: S602 - the page is ours
            example.quick, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, f"$ {example.command}\n{process.stderr}"
        expected, got = example.comparable(example.output), example.comparable(process.stdout)
        is_alike = checker.check_output(expected, got, flags)
        assert is_alike, f"$ {example.command}\n{process.stdout}"


def name_of(page: Path) -> str:
    """Name a page in the list of tests."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_the_commands_of_a_page_work(page: Path, folder: Path) -> None:
    """Run one after the other, the page's commands end well and print what the page shows."""
    check_examples(page, folder)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_the_python_of_a_page_works(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page shows in Python is what happens."""
    monkeypatch.chdir(folder)
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert tried
    assert failed == 0


def test_examples_are_found() -> None:
    """A block may hold several commands, each with its output; other blocks are no examples."""
    markdown = "```console\n$ a b\n1\n2\n$ c\n```\n```sh\n$ d\n```\n```console varying\n$ e\n3.5\n```\n"
    assert list(examples_in(markdown)) == [Example("a b", "1\n2\n"), Example("c", ""), Example("e", "3.5\n", True)]
    assert list(examples_in('```toml title="a.toml"\nx = 1\n```\n')) == [Input("a.toml", "x = 1\n")]


def test_figures_vary_only_where_it_is_said() -> None:
    """Seconds are never compared; other figures are, unless the block says that they vary."""
    assert Example("", "").comparable("took 1.25 s for 17.5%") == "took T s for 17.5%"
    assert Example("", "", varies=True).comparable("took 1.25 s for 17.5%") == "took N s for N%"


def test_budgets_are_not_waited_out_where_figures_vary() -> None:
    """A plan whose figures vary anyway is made in two seconds, unless the page says in how many."""
    assert (
        Example("cpsched solve a.json -o b.json", "", varies=True).quick == "cpsched solve --budget 2 a.json -o b.json"
    )
    for said in (Example("cpsched solve a.json", ""), Example("cpsched solve a.json --budget 5", "", varies=True)):
        assert said.quick == said.command


def test_every_linked_file_exists() -> None:
    """The README and CONTRIBUTING.md point at files that are there."""
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
            assert target.startswith("https://") or (ROOT / target).exists(), f"{page}: {target}"
