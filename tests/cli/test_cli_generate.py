"""``cpsched generate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import pytest

from cpsched.cli.exits import ExitCode
from cpsched.cli.generate import command
from cpsched.domain import Resizable
from cpsched.formats import read_instance
from cpsched.lab.workloads import (
    Failures,
    agent_workload,
    cirne_like,
    eurora_stream,
    evolving_window,
    job_mix,
    lublin,
    offered_load,
    openccs_workload,
    with_failures,
    with_malleable,
    with_moldable,
    with_walltimes,
)
from tests.cli.conftest import Run

#: A command line for each model, and what it makes.
MODELS = {
    ("lublin", "--jobs", 50, "--nodes", 64, "--cores", 8, "--stream", "batch", "--stream", "interactive"): lublin(
        50, 3, nodes=64, cores=8, streams=("batch", "interactive")
    ),
    ("cirne-like", "--jobs", 50, "--nodes", 32, "--cores", 4, "--widest", 16, "--ideal", "--load", 0.7): cirne_like(
        50, 3, nodes=32, cores=4, widest=16, load=0.7, ideal=True
    ),
    ("job-mix",): job_mix(3),
    ("agents", "--agents", 1, "--nodes", 16): agent_workload(3, nodes=16, agents=1),
    ("openccs", "--jobs", 50): openccs_workload(50, 3),
    ("eurora", "--jobs", 50): eurora_stream(50, 3),
    ("evolving", "--nodes", 80): evolving_window(3, nodes=80),
}


@pytest.mark.parametrize("line", MODELS, ids=lambda line: line[0])
def test_a_model_becomes_an_instance(run: Run, tmp_path: Path, line: tuple[str | int | float, ...]) -> None:
    """What is written reads back as what the generator makes of the same arguments."""
    out = tmp_path / "workload.json.gz"
    shown = run("generate", *line, "--seed", 3, "-o", out)
    assert shown.exit_code == ExitCode.FINE
    workload = MODELS[line]
    load = "" if line[0] == "evolving" else f", load {offered_load(workload):.2f}"
    assert shown.stdout == f"{len(workload.jobs)} jobs{load} in {out}\n"
    assert read_instance(out) == workload


def test_every_model_is_tried() -> None:
    """The tests know all models, each of which says what it does and how it is called, and what its options are for."""
    assert set(command.commands) == {"log", *(line[0] for line in MODELS)}
    for name, model in command.commands.items():
        assert model.help
        assert (model.epilog or "").startswith(f"Example: cpsched generate {name} ")
        assert [option for option in model.params if isinstance(option, click.Option) and not option.help] == []


def test_load_and_malleable_jobs(run: Run, tmp_path: Path) -> None:
    """--load makes the jobs come slower or faster; --malleable makes a share of them malleable, and says how many."""
    out = tmp_path / "workload.json"
    shown = run("generate", "lublin", "--jobs", 200, "--load", 0.5, "--malleable", 0.25, "--seed", 1, "-o", out)
    assert shown.stdout == f"200 jobs, 50 malleable, load 0.50 in {out}\n"
    workload = read_instance(out)
    assert offered_load(workload) == pytest.approx(0.5, rel=1e-3)
    assert [job.malleability for job in workload.jobs] == [
        job.malleability for job in with_malleable(lublin(200, 1), 1, share=0.25).jobs
    ]


def test_a_log_with_choices(run: Run, tmp_path: Path) -> None:
    """The jobs of a log arrive as they did; --moldable gives a share of them choices, and says how many."""
    swf, out = tmp_path / "log.swf", tmp_path / "workload.json"
    fields = "-1 {0} {1} -1 -1 {0} 900 -1 1 1 1 -1 1 -1 -1 -1"
    lines = [f"{number} {100 * number} {fields.format(4, 10 * number)}" for number in range(1, 9)]
    swf.write_text("\n".join(["; MaxNodes: 16", "; MaxProcs: 16", *lines]))
    shown = run("generate", "log", swf, "--moldable", 0.5, "--seed", 1, "-o", out)
    workload = read_instance(out)
    assert shown.stdout.startswith("8 jobs, 4 moldable, load ")
    assert [job.submit for job in workload.jobs] == list(range(0, 800, 100))
    before = replace(workload, jobs=tuple(replace(job, alternatives=()) for job in workload.jobs))
    assert with_moldable(before, 1, share=0.5) == workload
    run("generate", "log", swf, "--moldable", 0.5, "--seed", 1, "--resizable", 30, "-o", out)
    assert with_moldable(before, 1, share=0.5, resizable=30) == read_instance(out)
    assert {job.resizable for job in read_instance(out).jobs if job.alternatives} == {Resizable(cost=30)}


def test_what_goes_wrong_is_written_out(run: Run, tmp_path: Path) -> None:
    """Failures are outages of the document, and counted; other walltimes are those of its jobs."""
    out, options = tmp_path / "workload.json", ("--walltimes", "f=2", "--failures", "mtbf=500000 mttr=600 group=8")
    shown = run("generate", "lublin", "--jobs", 40, "--seed", 1, *options, "-o", out)
    failures = Failures(mtbf=500_000, mttr=600, group=8)
    expected = with_failures(with_walltimes(lublin(40, 1), 1, "f=2"), 1, failures)
    assert read_instance(out) == expected
    assert shown.stdout.startswith(f"40 jobs, {len(expected.outages)} failures, load ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("lubin",), "lubin"),
        (("lublin", "--moldable", -0.5), "-0.5"),
        (("lublin", "--resizable", 5), "--moldable"),
        (("lublin", "--nodes", 31), "31"),
        (("lublin", "--jobs", 0), "0"),
        (("lublin", "--jobs", 1, "--load", 0.5), "same second"),
        (("lublin", "--stream", "batch", "--stream", "batch"), "each stream once"),
        (("lublin", "--load", "nan"), "Expected a finite number, got nan"),
        (("lublin", "--load", "inf"), "Expected a finite number, got inf"),
        (("lublin", "--load", 0), "0"),
        (("lublin", "--malleable", 1.5), "1.5"),
        (("lublin", "--seed", -1), "-1"),
        (("cirne-like", "--nodes", 64), "Expected at most all 64 nodes, got 128"),
        (("job-mix", "--jobs", 10), "--jobs"),
        (("evolving", "--load", 1), "--load"),
        (("lublin", "--walltimes", "exact"), "Expected accurate, modal, or f=NUMBER"),
        (("lublin", "--failures", "mtbf=1"), "Expected mtbf=SECONDS mttr=SECONDS"),
        (("lublin", "--failures", "mtbf=1 mttr=1"), "Expected at most 1000000 failures"),
        (("evolving", "--nodes", 74), "74"),
    ],
)
def test_senseless_options_are_refused(
    run: Run, tmp_path: Path, line: tuple[str | int | float, ...], said: str
) -> None:
    """Values out of range, and options that a model does not have, are faults of usage; nothing is written."""
    out = tmp_path / "workload.json"
    shown = run("generate", *line, "-o", out)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert said in shown.stderr
    assert not out.exists()
