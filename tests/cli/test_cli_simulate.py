"""``cpsched simulate``."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from cpsched.cli import screen
from cpsched.cli.exits import ExitCode
from cpsched.cli.results import write_results
from cpsched.formats import read_instance, read_plan, write_instance
from cpsched.formats.swf import read_swf
from cpsched.lab.policies import scheduler_names
from cpsched.lab.sim import BackfillRule, Moment, QueueRule, simulate
from cpsched.lab.workloads import lublin
from cpsched.metrics import write_jobs_csv
from cpsched.verify import verify_files
from tests.cli.conftest import Run
from tests.sim.interrupted import looking_often
from tests.sim.test_rule_loop import crowd

#: On two nodes of four cores: 1 has both for 60 s; 2 wants both, 3 and 4 one core each; 5 is larger than the machine,
#: 6 does not say how long it ran; the last line is no job. Status 5 is a cancelled job, which ran all the same.
LOG = """; UnixStartTime: 1000
; MaxNodes: 2
; MaxProcs: 8
1 100 0 60 5 -1 -1 5 120 -1 1 7 1 -1 1 1 -1 -1
2 110 0 50 8 -1 -1 8 50 -1 1 8 1 -1 1 1 -1 -1
3 120 0 10 1 -1 -1 1 30 -1 1 8 1 -1 2 1 -1 -1
4 130 0 0 1 -1 -1 1 600 -1 5 8 1 -1 2 2 -1 -1
5 140 0 50 9 -1 -1 9 60 -1 1 9 1 -1 1 1 -1 -1
6 150 0 -1 1 -1 -1 1 60 -1 1 9 1 -1 1 1 -1 -1
this is no job
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the log, gzipped."""
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    return path


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Return a workload of 300 jobs as an instance."""
    path = tmp_path / "workload.json"
    write_instance(lublin(300, 1, nodes=32, cores=4), path)
    return path


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    """Return the rows of a table of jobs by their ids."""
    with path.open(newline="") as stream:
        return {row["job_id"]: row for row in csv.DictReader(stream)}


def starts_in(path: Path) -> dict[str, str]:
    """Return when the jobs of a table started."""
    return {job: row["starting_time"] for job, row in rows_of(path).items()}


def summary_in(folder: Path) -> dict[str, Any]:
    """Return the figures in a folder."""
    return dict(json.loads((folder / "summary.json").read_text()))


def test_a_log_is_simulated_by_its_header(run: Run, log: Path, tmp_path: Path) -> None:
    """All that is left out or assumed is counted on stderr, and the results are those of the five jobs that can be."""
    out = tmp_path / "out"
    shown = run("simulate", log, "--policy", "first_fit", "-o", out, "--record", "--verify")
    assert shown.exit_code == ExitCode.FINE
    for said in (
        "assumed: 2 equal nodes of 4 cores each",
        "1 x left out: lines that are not jobs",
        "1 x left out: no run time",
        "1 x run time 0: its runtime is 1 s",
        "1 x larger than the machine: it can never run",
        "first_fit: verified, no violations",
    ):
        assert said in shown.stderr
    assert "line 9" not in shown.stderr
    assert starts_in(out / "jobs.csv") == {"1": "0", "2": "60", "3": "20", "4": "30", "5": ""}
    assert {path.name for path in out.iterdir()} == {
        "jobs.csv",
        "jobs.swf.gz",
        "machine.json",
        "record.json.gz",
        "run.npz",
        "series.csv",
        "summary.json",
        "workload.json.gz",
    }
    summary = summary_in(out)
    assert (summary["policy"], summary["parameters"], summary["interrupted"]) == ("first_fit", {}, False)
    assert (summary["total"]["completed"], summary["total"]["refused"]) == (4, 1)
    assert summary["makespan"] == 110
    assert verify_files(out / "workload.json.gz", out / "record.json.gz") == ()
    assert read_plan(out / "record.json.gz").record


def test_evolving_jobs_are_simulated_into_a_folder(run: Run, tmp_path: Path) -> None:
    """Their results are of that workload: another one, by a rule or by a step alone, is refused there."""
    steps = [{"walltime": 5, "request": f"{count}:ncpus=4"} for count in (1, 2)]
    jobs = [{"id": "e", "submit": 5, "steps": steps}]
    document: dict[str, Any] = {
        "format": "cpsched-instance/1",
        "name": "e",
        "cluster": {"nodes": [{"names": "n[1-3]", "resources": {"cores": 4}}]},
        "jobs": jobs,
    }
    file, out = tmp_path / "e.json", tmp_path / "out"
    limits = [{"consumer": {"each": "user"}, "resource": "cores", "items": "9"}]
    others = [{**document, "limits": limits}, {**document, "jobs": [{**jobs[0], "steps": [steps[0], steps[0]]}]}]
    for number, one in enumerate((document, document, *others)):
        file.write_text(json.dumps(one))
        expected = ExitCode.FINE if number < 2 else ExitCode.BAD_INPUT
        assert run("simulate", file, "--policy", "ep_2x", "-o", out, "--verify").exit_code == expected


def test_what_happened_is_a_log_again(run: Run, log: Path, tmp_path: Path) -> None:
    """The log that is written has the same jobs, with the waits that they had here; it can be simulated as well."""
    out = tmp_path / "out"
    run("simulate", log, "--policy", "first_fit", "-o", out, "--quiet")
    written = read_swf(out / "jobs.swf.gz")
    assert not written.faults
    assert [(job.number, job.submit, job.wait, job.run_time, job.status) for job in written.jobs] == [
        (1, 0, 0, 60, 1),
        (2, 10, 50, 50, 1),
        (3, 20, 0, 10, 1),
        (4, 30, 0, 1, 1),
        (5, 40, None, None, 5),
    ]
    assert [(job.user, job.requested_processors, job.requested_time) for job in written.jobs[:2]] == [
        (7, 5, 120),
        (8, 8, 50),
    ]
    again = run("simulate", out / "jobs.swf.gz", "--policy", "first_fit", "-o", tmp_path / "again", "--quiet")
    assert again.exit_code == ExitCode.FINE
    first, second = starts_in(out / "jobs.csv"), starts_in(tmp_path / "again" / "jobs.csv")
    assert second == {job: start for job, start in first.items() if job != "5"}


@pytest.mark.parametrize(
    ("options", "jobs"),
    [
        ((), {"1", "2", "3", "4", "5"}),
        (("--status", 5), {"4"}),
        (("--queue", 2), {"3", "4"}),
        (("--partition", 1, "--partition", 3), {"1", "2", "3", "5"}),
        (("--submitted", 110, 130), {"2", "3"}),
        (("--first", 1, "--jobs", 2), {"2", "3"}),
        (("--queue", 2, "--status", 1), {"3"}),
    ],
)
def test_which_jobs_of_a_log(run: Run, log: Path, tmp_path: Path, options: tuple[object, ...], jobs: set[str]) -> None:
    """Each filter takes its part, and what it kept out is counted."""
    shown = run("simulate", log, "-o", tmp_path / "out", *options)
    assert shown.exit_code == ExitCode.FINE
    assert set(rows_of(tmp_path / "out" / "jobs.csv")) == jobs
    assert ("left out by --" in shown.stderr) == bool(options)


def test_a_machine_of_its_own(run: Run, log: Path, tmp_path: Path) -> None:
    """With a cluster file nothing is assumed; chunks may be whole nodes; job 5 fits on the larger machine."""
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps({"cluster": {"nodes": [{"names": "big[1-3]", "resources": {"cores": 4}}]}}))
    out = tmp_path / "out"
    shown = run("simulate", log, "--cluster", machine, "--cores-per-chunk", 4, "-o", out)
    assert shown.exit_code == ExitCode.FINE
    assert "assumed" not in shown.stderr
    rows = rows_of(out / "jobs.csv")
    assert (rows["1"]["requested_number_of_resources"], rows["5"]["requested_number_of_resources"]) == ("2", "3")


def test_an_assumed_machine_is_written_to_be_corrected(run: Run, log: Path, tmp_path: Path) -> None:
    """It is the cluster file of the same simulation."""
    assert run("simulate", log, "-o", tmp_path / "out").exit_code == ExitCode.FINE
    again = run("simulate", log, "--cluster", tmp_path / "out" / "machine.json", "-o", tmp_path / "again")
    assert (again.exit_code, "assumed" in again.stderr) == (ExitCode.FINE, False)
    assert rows_of(tmp_path / "again" / "jobs.csv") == rows_of(tmp_path / "out" / "jobs.csv")
    assert not (tmp_path / "again" / "machine.json").exists()


def test_notes_list_each_line(run: Run, log: Path) -> None:
    """--notes names the line and the job of all that is odd, also when nothing else is to be said."""
    shown = run("simulate", log, "--quiet", "--notes")
    assert shown.stdout == ""
    for said in (
        "line 10: Expected 18 fields, got 4",
        "line 9: job 6: nothing says how long to simulate it",
        "line 7: job 4: runs for less than a second",
        "line 8: job 5: asks for 9 chunks of cores=1, of which 8 have room",
    ):
        assert said in shown.stderr


def test_policies_are_compared(run: Run, workload: Path, tmp_path: Path) -> None:
    """Each policy has its column and its folder, with its parameters."""
    out = tmp_path / "out"
    shown = run("simulate", workload, "--policy", "fcfs", "--policy", "pbs_fifo_starve max_starve=5", "-o", out)
    assert shown.exit_code == ExitCode.FINE
    head = next(line for line in shown.stdout.splitlines() if "fcfs" in line)
    assert head.split() == ["fcfs", "pbs_fifo_starve", "max_starve=5"]
    for label in (
        "wait, mean",
        "wait, median",
        "wait, 95 %",
        "bounded slowdown",
        "sum of wait / expected wait",
        "jobs that wait longer than expected",
        "waited beyond the expected, sum",
        "utilisation",
        "time of a decision, mean",
    ):
        assert label in shown.stdout
    assert {path.name for path in out.iterdir()} == {"fcfs", "pbs_fifo_starve,max_starve=5"}
    assert summary_in(out / "fcfs")["parameters"] == {}
    assert summary_in(out / "pbs_fifo_starve,max_starve=5")["parameters"] == {"max_starve": 5}
    rule = QueueRule(name="same", backfill=BackfillRule.ANYBODY, max_starve=5)
    history = simulate(read_instance(workload), rule)
    expected = tmp_path / "expected.csv"
    write_jobs_csv(history.runs, history.allocations(), expected, workload_name=read_instance(workload).name)
    assert (out / "pbs_fifo_starve,max_starve=5" / "jobs.csv").read_bytes() == expected.read_bytes()


def test_a_policy_is_compared_with_itself_under_other_parameters(run: Run, workload: Path, tmp_path: Path) -> None:
    """Sjf with and without backfilling: each has its heading, folder and results."""
    out = tmp_path / "out"
    policies = ("--policy", "sjf", "--policy", "sjf backfill=easy", "--policy", "fcfs")
    shown = run("simulate", workload, *policies, "-o", out)
    assert shown.exit_code == ExitCode.FINE
    assert {path.name for path in out.iterdir()} == {"sjf", "sjf,backfill=easy", "fcfs"}
    assert summary_in(out / "sjf,backfill=easy")["parameters"] == {"backfill": "easy"}
    assert starts_in(out / "sjf" / "jobs.csv") != starts_in(out / "sjf,backfill=easy" / "jobs.csv")
    assert "sjf backfill=easy: 300 jobs in" in shown.stderr


def test_the_results_of_another_simulation_are_kept(run: Run, workload: Path, tmp_path: Path) -> None:
    """A folder with the results of another policy, parameter, condition or workload is refused, and nothing is
    simulated; the same simulation may be run again.
    """
    out, other = tmp_path / "out", tmp_path / "other.json"
    write_instance(lublin(300, 2, nodes=32, cores=4), other)
    simulate_sjf = ("simulate", workload, "--policy", "sjf", "-o", out)
    assert run(*simulate_sjf).exit_code == ExitCode.FINE
    before = (out / "summary.json").read_bytes()
    for said, command in {
        "(policy sjf)": ("simulate", workload, "--policy", "fcfs", "-o", out),
        "(parameters {})": ("simulate", workload, "--policy", "sjf backfill=easy", "-o", out),
        "(predict None)": (*simulate_sjf, "--predict"),
        "workload_digest": ("simulate", other, "--policy", "sjf", "-o", out),
        "(workload_digest": ("simulate", other, "--policy", "saf", "--policy", "f1", "-o", out),
    }.items():
        shown = run(*command)
        assert shown.exit_code == ExitCode.BAD_INPUT
        assert "has the results of another simulation" in shown.stderr
        assert said in shown.stderr
        assert (out / "summary.json").read_bytes() == before
    assert run(*simulate_sjf).exit_code == ExitCode.FINE


def test_runtimes_are_predicted_where_asked(run: Run, workload: Path, tmp_path: Path) -> None:
    """--predict changes what happens, and stands in the summary; without a value it is about the order alone."""
    found = {}
    for name, options in (
        ("plain", ()),
        ("bare", ("--predict",)),
        ("order", ("--predict=order",)),
        ("all", ("--predict=all",)),
    ):
        policy = ("--policy", "sjf backfill=easy")
        run("simulate", workload, *policy, *options, "-o", tmp_path / name, "--quiet")
        found[name] = summary_in(tmp_path / name)["predict"], starts_in(tmp_path / name / "jobs.csv")
    assert [predict for predict, _ in found.values()] == [None, "order", "order", "all"]
    assert found["bare"] == found["order"]
    assert found["plain"][1] != found["order"][1] != found["all"][1] != found["plain"][1]


def test_an_engine_schedules(run: Run, log: Path, tmp_path: Path) -> None:
    """Engines are policies too, here with its overhead charged; what happened is verified."""
    shown = run("simulate", log, "--policy", "planner", "--charge-overhead", "--verify", "-o", tmp_path / "out")
    assert shown.exit_code == ExitCode.FINE
    assert "planner: verified, no violations" in shown.stderr
    assert summary_in(tmp_path / "out")["charge_overhead"]


def test_who_waits_too_long_is_counted(run: Run, log: Path, tmp_path: Path) -> None:
    """No rule knows max_wait: the count is said and stands in the summary, and the judge names each job."""
    machine, out = tmp_path / "machine.json", tmp_path / "out"
    queues = {"q1": {"expected_wait": 10, "max_wait": {"seconds": 20, "hard": True}}}
    cluster = {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4, "gpus": 1}}]}
    machine.write_text(json.dumps({"cluster": cluster, "queues": queues}))
    shown = run("simulate", log, "--cluster", machine, "--policy", "first_fit", "--verify", "-o", out)
    assert shown.exit_code == ExitCode.VIOLATIONS
    assert "first_fit: 1 x waited longer than the max_wait of the queue" in shown.stderr
    assert "max_wait: 2: starts at 60, expected 30 or earlier" in shown.stderr
    summary = summary_in(out)
    assert summary["total"]["overdue"] == 1
    assert [use["name"] for use in summary["by_resource"]] == ["cores", "gpus"]


def test_days_as_under_easy_are_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a rule that has lost against EASY; it starts jobs so until a second, for at most the time since the first."""
    monkeypatch.setattr("cpsched.lab.sim.rules._FEW", 20)
    write_instance(crowd(1, 160), workload := tmp_path / "crowd.json")
    smith, easy = json.loads(run("simulate", workload, "--policy", "smith", "--policy", "easy", "--json").stdout)[
        "policies"
    ]
    spell = smith["as_easy"]
    assert 0 < spell["seconds"] <= spell["until"] - spell["since"]
    assert easy["as_easy"] is None
    lines = run("simulate", workload, "--policy", "smith", "-o", tmp_path / "out").stdout.splitlines()
    assert f"{spell['seconds'] / 86_400:.1f}" in next(line for line in lines if line.startswith("smith:"))
    assert summary_in(tmp_path / "out")["as_easy"] == spell


def test_all_policies_are_listed(run: Run) -> None:
    """--list-policies names every scheduler with its parameters, and needs no workload."""
    shown = run("simulate", "--list-policies")
    assert shown.exit_code == ExitCode.FINE
    lines = shown.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(scheduler_names())
    assert lines[list(scheduler_names()).index("sjf")].split() == ["sjf", "backfill=none", "expect=walltime"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--policy", "easi"), "did you mean easy?"),
        (("--policy", "easy", "--policy", "easy"), "each policy once"),
        (("--policy", "sjf backfill=often"), "backfill: Expected"),
        (("--policy", "sjf backfill"), "Expected KEY=VALUE, got 'backfill'"),
        (("--policy", "sjf 'backfill=easy"), "Expected NAME [KEY=VALUE ...]"),
        (("--policy", "easy depth=4"), "depth: unknown parameter"),
        (("--policy", "sjf backfill=5"), "backfill: Expected"),
        (("--policy", "sjf backfill=easy backfill=none"), "each key once"),
        (("--status", "done"), "done"),
        (("--submitted", 5, 5), "Expected FROM < UNTIL, got 5 5"),
        (("--submitted", 5, 6), "Expected jobs to simulate, got none"),
        (("--record",), "--record needs -o FOLDER"),
        (("--resume",), "--resume needs --checkpoint"),
        (("--checkpoint", "none/state"), "The folder 'none' does not exist"),
        (("--checkpoint", "state", "--resume"), "The checkpoint state does not exist"),
        (("--checkpoint", "state", "--policy", "easy", "--policy", "fcfs"), "A checkpoint is of one policy, got 2"),
        (("--interval", -1), "-1"),
    ],
)
def test_senseless_options_are_refused(
    run: Run, log: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[object, ...], said: str
) -> None:
    """What cannot be done is said before anything is simulated."""
    monkeypatch.chdir(log.parent)
    shown = run("simulate", log, *options)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert said in shown.stderr
    assert shown.stdout == ""


def test_options_for_logs_need_a_log(run: Run, workload: Path) -> None:
    """An instance has its machine, and all of its jobs are simulated."""
    shown = run("simulate", workload, "--queue", 1)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "Expected a log (.swf, .acct, .events), since there are options for logs" in shown.stderr


def test_what_no_simulation_can_honour(run: Run, workload: Path) -> None:
    """A workload with rules that the simulator does not know is refused with the places that ask for them."""
    document = json.loads(workload.read_text())
    job = document["jobs"][3]
    job["steps"] = [{"walltime": job.pop("walltime"), "request": job.pop("request")}] * 2
    workload.write_text(json.dumps(document))
    shown = run("simulate", workload)
    assert shown.exit_code == ExitCode.REFUSED
    assert f"job {job['id']}: evolves over several steps" in shown.stderr


def test_what_breaks_rules_is_said(run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the judge finds a fault, all violations are listed, and the results are there all the same."""
    monkeypatch.setattr("cpsched.verify.verify", lambda *_: ("job 1: runs twice",))
    shown = run("simulate", log, "--verify", "-o", tmp_path / "out")
    assert shown.exit_code == ExitCode.VIOLATIONS
    assert "easy: 1 violation:\n  job 1: runs twice\n" in shown.stderr
    assert (tmp_path / "out" / "jobs.csv").exists()


@contextmanager
def interrupted(look: int) -> Iterator[None]:
    """Interrupt the simulation at the given look at its progress."""
    calls = iter(range(1, look))

    def show(_: Moment) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    @contextmanager
    def bar(*_: object, **__: Any) -> Iterator[Callable[[Moment], None]]:
        yield show

    with looking_often(50), patch.object(screen, "simulation_bar", bar):
        yield


def test_an_interrupt_leaves_what_happened_so_far(run: Run, workload: Path, tmp_path: Path) -> None:
    """The results are of the jobs that were over, the other policies are not tried, and there is no record."""
    with interrupted(2):
        shown = run(
            "simulate", workload, "--policy", "fcfs", "--policy", "easy", "-o", tmp_path / "out", "--record", "--verify"
        )
    assert shown.exit_code == ExitCode.INTERRUPTED
    assert "fcfs: interrupted when" in shown.stderr
    assert "verified" not in shown.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["fcfs"]
    summary = summary_in(tmp_path / "out" / "fcfs")
    assert summary["interrupted"]
    assert 0 < summary["total"]["completed"] < 300
    assert not (tmp_path / "out" / "fcfs" / "record.json.gz").exists()


def test_results_are_finished_when_their_writing_is_interrupted(
    run: Run, workload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the results are written lets them be finished, and says so; the other policies are not tried."""

    def write(folder: Path, *arguments: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        write_results(folder, *arguments, **options)

    monkeypatch.setattr("cpsched.cli.simulate.write_results", write)
    out = tmp_path / "out"
    shown = run("simulate", workload, "--policy", "fcfs", "--policy", "easy", "-o", out, "--record")
    assert shown.exit_code == ExitCode.INTERRUPTED
    assert "interrupted; the results are written first" in shown.stderr
    assert [path.name for path in out.iterdir()] == ["fcfs"]
    assert not summary_in(out / "fcfs")["interrupted"]
    assert {path.name for path in (out / "fcfs").iterdir()} >= {"run.npz", "jobs.csv", "record.json.gz"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_simulation_is_resumed(run: Run, workload: Path, tmp_path: Path) -> None:
    """After an interrupt it goes on from its checkpoint to the same end, and then the checkpoint is gone."""
    state, options = tmp_path / "state", ("--policy", "saf backfill=easy")
    whole, pieced = tmp_path / "whole", tmp_path / "pieced"
    run("simulate", workload, *options, "-o", whole, "--quiet")
    with interrupted(3):
        shown = run("simulate", workload, *options, "-o", pieced, "--checkpoint", state)
    assert shown.exit_code == ExitCode.INTERRUPTED
    assert f"checkpoint: {state}" in shown.stderr
    assert starts_in(pieced / "jobs.csv") != starts_in(whole / "jobs.csv")
    assert "continue it with --resume" in run("simulate", workload, *options, "--checkpoint", state).stderr
    other = run("simulate", workload, "--policy", "saf", "--checkpoint", state, "--resume")
    assert other.exit_code == ExitCode.BAD_INPUT
    assert "Expected a checkpoint of this scheduler, saf, got one of saf backfill=easy" in other.stderr
    shown = run("simulate", workload, *options, "-o", pieced, "--checkpoint", state, "--resume")
    assert shown.exit_code == ExitCode.FINE
    assert (pieced / "jobs.csv").read_bytes() == (whole / "jobs.csv").read_bytes()
    assert not summary_in(pieced)["interrupted"]
    assert not state.exists()


@pytest.mark.slow
def test_ctrl_c_in_a_process(repository: Path, workload: Path, tmp_path: Path) -> None:
    """A real SIGINT ends a scheduler that is not compiled with its results and its checkpoint."""
    state = tmp_path / "state"
    # whoever runs the tests in the background has them ignore SIGINT, and children inherit that
    heeding = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from cpsched.cli import run; run()"
    )
    command = (sys.executable, "-c", heeding, "simulate", workload, "--policy", "planner", "-o", tmp_path / "out")
    with subprocess.Popen(  # noqa: S603 - our own command
        [*map(str, command), "--checkpoint", str(state), "--interval", "0"],
        cwd=repository,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not state.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert "Traceback" not in said
    assert "planner: interrupted when" in said
    assert state.exists()
    assert summary_in(tmp_path / "out")["interrupted"]


def test_the_bar_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal it has jobs done, the simulated date and the length of the queue; elsewhere there is none."""
    import io

    from rich.console import Console

    with screen.simulation_bar("easy", date=str, wanted=True) as show:
        assert show is None
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(screen, "output", lambda **_: terminal)
    monkeypatch.setattr(screen, "is_terminal_at", lambda _: True)
    with screen.simulation_bar("easy", date=lambda now: f"day {now}", wanted=True) as show:
        assert show is not None
        show(Moment(now=5, done=120, jobs=1000, queued=1234))
    assert isinstance(terminal.file, io.StringIO)
    text = terminal.file.getvalue()
    for said in ("easy", "120/1000", "day 5", "1,234 wait", "jobs/s"):
        assert said in text
    with screen.simulation_bar("easy", date=str, wanted=False) as show:
        assert show is None


def test_jobs_of_a_log_wait_for_their_preceding_jobs(run: Run, tmp_path: Path) -> None:
    """The second job comes at 10, the first one ends at 50: with 5 s to think it starts at 55, and that is counted."""
    log = tmp_path / "log.swf"
    log.write_text(
        "; MaxProcs: 4\n1 0 0 50 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 -1 -1\n2 10 0 5 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 1 5\n"
    )
    for options, start in ((), 10), (("--dependencies",), 55):
        folder = tmp_path / str(start)
        shown = run("simulate", log, *options, "--policy", "fcfs", "-o", folder, "--verify")
        assert shown.exit_code == 0, shown.stderr
        assert ("1 x waits for its preceding job" in shown.stderr) is bool(options)
        rows = list(csv.DictReader((folder / "jobs.csv").read_text().splitlines()))
        assert float(rows[1]["starting_time"]) == start


def test_users_look_at_results_first(run: Run, tmp_path: Path) -> None:
    """A job that came 20 s after the end of another one in the log does so in the simulation, from the log and from
    what `generate log` wrote; the record is judged by the workload that was played, which can be played again.
    """
    log, made = tmp_path / "log.swf", tmp_path / "made.json"
    jobs = (f"{job} 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 -1 -1\n" for job in ("1 0 30 50", "2 100 0 5"))
    log.write_text("".join(["; MaxProcs: 4\n", *jobs]))
    assert run("generate", "log", log, "--feedback", "-o", made).exit_code == 0
    both = ("--policy", "easy", "--policy", "fcfs")
    for source, policies in ((log, both), (made, both), (tmp_path / "0" / "easy" / "workload.json.gz", both)):
        folder = tmp_path / str(len(list(tmp_path.iterdir())) - 2)
        shown = run("simulate", source, "--feedback", *policies, "-o", folder, "--record", "--verify")
        assert shown.exit_code == 0, shown.stderr
        for policy in ("easy", "fcfs"):
            place = folder / policy
            rows = list(csv.DictReader((place / "jobs.csv").read_text().splitlines()))
            assert [float(row["submission_time"]) for row in rows] == [0, 70]
            assert run("verify", place / "workload.json.gz", place / "record.json.gz").exit_code == 0
        again = run("simulate", source, *policies, "-o", folder)
        assert again.exit_code == ExitCode.BAD_INPUT
