"""``cpsched snapshot`` and ``cpsched convert --slurm``."""

from __future__ import annotations

import json
import os
from pathlib import Path

from click.testing import CliRunner

from cpsched.cli import main
from cpsched.formats import read_instance
from tests.bridge.slurm.answers import NOW, answers_2205, text_2205, write_answers

#: A topology with a switch that is nowhere else.
LOST = "SwitchName=s1 Switches=s0"


def fake_slurm(folder: Path, *, version: str = "slurm 22.05.8") -> Path:
    """Write commands that print the answers of the small cluster, and a site file that names them; return this."""
    answers = write_answers(folder / "answers", {**answers_2205(), **text_2205()})
    commands = folder / "commands"
    commands.mkdir()
    config = "Configuration data as of now\nSelectTypeParameters = CR_CORE_MEMORY\nTopologyPlugin = topology/tree\n"
    (answers / "config.txt").write_text(config)
    shown = f'"-o show "*) cat {answers}/"$3".txt;; *topology) echo {LOST};; *) cat {answers}/config.txt'
    bodies = {
        "squeue": f'case "$1" in --version) echo "{version}";; *) cat {answers}/squeue.json;; esac',
        "sinfo": f"cat {answers}/sinfo.json",
        "scontrol": f'case "$*" in {shown};; esac',
    }
    for name, body in bodies.items():
        (commands / name).write_text(f"#!/bin/sh\n{body}\n")
        (commands / name).chmod(0o755)
    site = folder / "site.toml"
    site.write_text(f'[manager]\nkind = "slurm"\ncommands = "{commands}"\n[manager.queues.gpuq]\nexpected_wait = 60\n')
    return site


def test_snapshot_writes_an_instance(tmp_path: Path) -> None:
    """The instance of a Slurm that runs has its jobs, and the waits of the site file; what is left is told, and a
    topology that cannot be read.
    """
    site, output = fake_slurm(tmp_path), tmp_path / "now.json"
    result = CliRunner().invoke(main, ["snapshot", "--rm", "slurm", "--config", str(site), "-o", str(output)])
    assert result.exit_code == 0, result.output
    assert "2 running and 5 waiting jobs" in result.stdout
    assert "left out: job 12: it is held" in result.stderr
    assert "left out: scontrol show topology: Expected a topology, got: the switch s0" in result.stderr
    instance = read_instance(output)
    assert {name: queue.expected_wait for name, queue in instance.queues.items()} == {"normal": 1800, "gpuq": 60}


def test_without_a_site_file_the_commands_are_those_in_path(tmp_path: Path) -> None:
    """A Slurm anywhere is asked, and each queue has the default wait."""
    fake_slurm(tmp_path)
    path = {"PATH": f"{tmp_path / 'commands'}:{os.environ['PATH']}"}
    result = CliRunner().invoke(main, ["snapshot", "--rm", "slurm", "-o", str(tmp_path / "now.json")], env=path)
    assert result.exit_code == 0, result.output
    assert {queue.expected_wait for queue in read_instance(tmp_path / "now.json").queues.values()} == {1800}


def test_a_slurm_that_does_not_answer_has_an_exit_code(tmp_path: Path) -> None:
    """A command that fails, an answer that is cut, and a version that is too old end with code 8 and words."""
    site, output = fake_slurm(tmp_path), tmp_path / "now.json"
    command = ["snapshot", "--rm", "slurm", "--config", str(site), "-o", str(output)]
    squeue = tmp_path / "commands" / "squeue"
    for body, words in (
        ("echo slurm 22.05.8; exit 1", "exit code 1"),
        ('case "$1" in --version) echo slurm 22.05.8;; *) echo "{";; esac', "Expected JSON"),
        ("echo slurm 20.11.9", "Expected Slurm 21.08 or later"),
    ):
        squeue.write_text(f"#!/bin/sh\n{body}\n")
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 8
        assert words in result.stderr
    assert not output.exists()


def test_convert_reads_saved_answers(tmp_path: Path) -> None:
    """A directory with answers becomes an instance whose clock stands at the latest start or submission."""
    folder, output = write_answers(tmp_path / "answers", answers_2205()), tmp_path / "now.json"
    result = CliRunner().invoke(main, ["convert", "--slurm", str(folder), "-o", str(output)])
    assert result.exit_code == 0, result.output
    instance = read_instance(output)
    assert (instance.name, instance.now) == ("answers", NOW - 60)
    (folder / "topology.conf").write_text(LOST)
    result = CliRunner().invoke(main, ["convert", "--slurm", str(folder), "--now", str(NOW), "-o", str(output)])
    assert result.exit_code == 0, result.output
    assert f"left out: {folder / 'topology.conf'}: Expected a topology" in result.stderr
    assert json.loads(output.read_text())["now"] == NOW


def test_convert_wants_a_log_or_a_directory(tmp_path: Path) -> None:
    """Both or neither of a log and a directory, and a zone that does not exist, are refused."""
    folder, output = write_answers(tmp_path / "answers", answers_2205()), str(tmp_path / "now.json")
    log = str(folder / "squeue.json")
    for arguments, words in (
        ([], "Expected one of these"),
        ([log], "Expected one of these"),
        ([log, log, "--slurm", str(folder)], "Expected one of these"),
        (["--pbs", str(folder), "--slurm", str(folder)], "Expected one of these"),
        (["--slurm", str(folder), "--time-zone", "Nowhere/City"], "Expected a time zone"),
    ):
        result = CliRunner().invoke(main, ["convert", *arguments, "-o", output])
        assert result.exit_code == 2
        assert words in result.stderr


def test_a_site_file_is_checked(tmp_path: Path) -> None:
    """Unknown keys and values of a wrong type in the table [manager] are told with their paths."""
    site = tmp_path / "site.toml"
    site.write_text('[manager]\nkind = "slurm"\ncommands = "bin"\n[manager.queues.debug]\nexpected_wiat = 3\n')
    result = CliRunner().invoke(
        main, ["snapshot", "--rm", "slurm", "--config", str(site), "-o", str(tmp_path / "now.json")]
    )
    assert result.exit_code == 2
    assert "manager.commands: Expected an absolute path" in result.stderr
    assert "did you mean expected_wait" in result.stderr
