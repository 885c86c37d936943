"""``cpsched show --live``: it follows files and stores, in a terminal and in a pipe, and ends with Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from cpsched.cli import main
from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window
from tests.cli.test_cli_examples import SITE

ROOT = Path(__file__).parents[2]
#: So long (s) something may take that is waited for.
_PATIENCE = 60


class Terminal:
    """A command in a terminal of 100 columns and 24 lines, and all that it has written."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self.text = ""
        self.process = process
        self._descriptor = descriptor
        self._decoder = getincrementaldecoder("utf-8")()

    def until(self, pattern: str) -> None:
        """Read until a text is there that was not there before."""
        end, begin = time.monotonic() + _PATIENCE, len(self.text)
        while not re.search(pattern, self.text[begin:]):
            assert time.monotonic() < end, f"{pattern!r} is not in {self.text[begin:]!r}"
            if select.select([self._descriptor], [], [], 0.1)[0]:
                self.text += self._decoder.decode(os.read(self._descriptor, 65_536))


@contextmanager
def terminal(*arguments: object, **variables: str) -> Iterator[Terminal]:
    """Run a command in a terminal; end it if it does not end by itself."""
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "24", "PYTHONPATH": str(ROOT), **variables}
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "cpsched", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_terminal_shows_each_new_plan(window: Window) -> None:
    """The plan is drawn, anew when a file changes; what cannot be read is said; Ctrl-C ends it with code 0."""
    plan = window.plan_file
    with terminal("show", window.instance_file, plan, "--live") as shown:
        shown.until("1 running, 2 planned, 1 in the waiting room, weighted_wait 1")
        shown.until("A.*debug")
        assert "\x1b[?1049h" in shown.text
        assert "\x1b[38;" in shown.text
        plan.write_text("{")
        shown.until("Expected JSON")
        window.plan["waiting_room"] = []
        window.write("plan.json", window.plan)
        shown.until("0 in the waiting room")
        shown.process.send_signal(signal.SIGINT)
        shown.until(r"\x1b\[\?1049l")
        assert shown.process.wait(_PATIENCE) == 0
    assert "Traceback" not in shown.text


def test_no_color_is_honoured(window: Window) -> None:
    """With NO_COLOR a terminal gets no colours, and the queues are letters."""
    with terminal("show", window.instance_file, window.plan_file, "--gantt", NO_COLOR="1") as shown:
        shown.until("A.*debug")
    assert not re.search(r"\x1b\[[0-9;]*(3[0-9]|4[0-9]|9[0-7])[0-9;]*m", shown.text)
    assert "n1 A" in shown.text


def test_a_pipe_gets_a_line_for_each_plan(window: Window) -> None:
    """Without a terminal there is one plain line for each state of the files."""
    files = str(window.instance_file), str(window.plan_file)
    arguments = [sys.executable, "-m", "cpsched", "show", *files, "--live"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first == "now + 0 s: 1 running, 2 planned, 1 in the waiting room, weighted_wait 1.00\n"
            window.plan["waiting_room"] = []
            window.write("plan.json", window.plan)
            assert "0 in the waiting room" in process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(_PATIENCE) == 0
            assert process.stdout.read() == ""
        finally:
            process.kill()


def test_the_store_of_a_daemon_is_shown(run: Run, tmp_path: Path) -> None:
    """Without a plan the site's file of a daemon is shown, as it was after the last cycle."""
    site = tmp_path / "site.toml"
    site.write_text(SITE.format(folder=tmp_path))
    job, later = ({"id": name, "submit": 0, "walltime": 600, "request": "ncpus=4"} for name in ("1201", "1202"))
    nodes = [{"names": "n1", "resources": {"cores": 4}}]
    machine = {"format": "cpsched-instance/1", "name": "w", "cluster": {"nodes": nodes}, "jobs": [job, later]}
    (tmp_path / "window.json").write_text(json.dumps(machine))
    assert CliRunner().invoke(main, ["daemon", "--config", str(site), "--once"]).exit_code == 0
    assert "1201" in run("show", site).stdout
    assert json.loads(run("show", site, "--json").stdout)["jobs"][0]["id"] == "1201"
    refused = run("show", tmp_path / "window.json")
    assert "Expected a PLAN beside an instance" in refused.stderr
    assert run("explain", tmp_path / "window.json", "1202").exit_code == ExitCode.BAD_INPUT
    store = tmp_path / "store.db"
    for source in (site, store):
        assert "job 1202: planned from" in run("explain", source, "1202").stdout
        assert run("whatif", source, "--submit", "ncpus=4,walltime=10m").stdout.startswith("would start in ")
        assert [one["job"] for one in json.loads(run("forecast", source, "--json").stdout)["jobs"]] == ["1202"]
