"""Real cells: workloads of each kind are made and simulated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.domain import FrozenMap, Malleability, RuntimeModel
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document
from cpsched.formats.logs import LogOptions, Selection, read_workload
from cpsched.lab.bench.campaign import Cell, Contender, Generated, InstanceFile, LogFile, Workload
from cpsched.lab.bench.figures import rows_of
from cpsched.lab.bench.loading import GENERATORS, load_workload, play
from cpsched.lab.workloads import (
    Failures,
    eurora_stream,
    moved,
    offered_load,
    resampled_users,
    resampled_weeks,
    with_failures,
    with_walltimes,
)
from tests.formats.job_logs import TORQUE

CASES = Path(__file__).parents[1] / "cases"

LOG = """; MaxNodes: 4
; MaxProcs: 8
1 0 5 60 2 -1 -1 2 120 -1 1 7 1 -1 1 -1 -1 -1
2 30 5 60 1 -1 -1 1 600 -1 1 8 1 -1 1 -1 -1 -1
3 60 5 60 8 -1 -1 8 60 -1 1 8 1 -1 1 -1 -1 -1
4 90 5 -1 1 -1 -1 1 60 -1 1 8 1 -1 1 -1 -1 -1
this is no job
"""

EURORA = Generated(generator="eurora", parameters=FrozenMap({"jobs": 40}))


def workload_of(source: InstanceFile | LogFile | Generated) -> Workload:
    """Return a workload as its source has it."""
    return Workload(name="w", source=source, load=None, malleable=None)


def cell_of(workload: Workload, *, scheduler: str = "easy", warm_up: float = 0.0) -> Cell:
    """Return a cell of a scheduler as it is."""
    contender = Contender(
        label=scheduler, scheduler=scheduler, parameters=FrozenMap(), predict=None, charge_overhead=False
    )
    return Cell(workload=workload, contender=contender, seed=1, warm_up=warm_up, cool_down=0.0)


@pytest.fixture
def log(tmp_path: Path) -> LogFile:
    """Return a log of three jobs that can be simulated."""
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return LogFile(path=path, options=LogOptions())


def test_a_cell_gives_figures_of_its_jobs() -> None:
    """The result of a cell is a document with all figures; the same cell gives the same ones."""
    result = play(cell_of(workload_of(EURORA), warm_up=0.25))
    total = rows_of(json.loads(json.dumps(result)))[0].figures
    assert (result["jobs"], total["jobs"], total["waiting"]) == (40, 30, 0)
    assert result["seconds"] > 0
    again = rows_of(play(cell_of(workload_of(EURORA), warm_up=0.25)))[0].figures
    timed = {"seconds", "decisions.mean", "decisions.p50", "decisions.p99"}
    assert {name: again[name] for name in again if name not in timed} == {
        name: total[name] for name in total if name not in timed
    }


def test_each_user_has_figures() -> None:
    """The result of a cell has a group for each user, and these have all jobs between them."""
    users = [row for row in rows_of(play(cell_of(workload_of(EURORA)))) if row.by == "user"]
    assert len({row.key for row in users}) == len(users) > 1
    assert sum(row.figures["jobs"] or 0 for row in users) == 40


def test_a_log_is_simulated_and_what_was_left_out_is_told(log: LogFile) -> None:
    """Job 3 needs the whole machine and waits for 1, to 60, and for 2, to 90: 30 s from its submission at 60."""
    result = play(cell_of(workload_of(log)))
    assert result["jobs"] == 3
    assert rows_of(result)[0].figures["wait.max"] == 30
    assert result["remarks"]["left out: lines that are not jobs"] == 1
    assert result["remarks"]["left out: no run time"] == 1
    assert any("4 equal nodes of 2 cores" in remark for remark in result["remarks"])


def test_a_selection_and_a_cluster_file_are_heeded(log: LogFile, tmp_path: Path) -> None:
    """Only what is selected is taken, and what was kept out is counted."""
    cluster = tmp_path / "machine.json"
    cluster.write_text(json.dumps({"cluster": {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}}]}}))
    loaded = load_workload(
        workload_of(replace(log, options=LogOptions(cluster=cluster, selection=Selection(jobs=2)))), None
    )
    assert (len(loaded.instance.jobs), len(loaded.instance.cluster.node_names)) == (2, 2)
    assert loaded.remarks["left out by --first and --jobs"] == 2


def test_a_campaign_takes_logs_of_all_kinds(tmp_path: Path) -> None:
    """Accounting of Torque is a workload as in cpsched simulate; its queues have names, those of SWF have numbers."""
    path = tmp_path / "log.acct"
    path.write_text(TORQUE)
    chosen = LogOptions(selection=Selection(queues=("batch", -1)))
    loaded = load_workload(workload_of(LogFile(path=path, options=chosen)), None)
    assert (loaded.instance, loaded.remarks["left out: no run time"]) == (read_workload(path)[0], 1)
    assert {job.id for job in loaded.instance.jobs} == {"1", "2"}
    swf = tmp_path / "log.swf"
    swf.write_text(LOG)
    with pytest.raises(DocumentError, match=r'queue: Expected numbers in a log .*, got "batch"'):
        load_workload(workload_of(LogFile(path=swf, options=chosen)), None)


def test_warnings_of_a_document_are_remarks(tmp_path: Path) -> None:
    """A running job on a node that is down is accepted, and the result of the cell says so."""
    loaded = load_workload(workload_of(InstanceFile(path=CASES / "running-on-down.json")), None)
    assert loaded.remarks == {"warnings": 1}


def test_ids_that_no_document_may_have_are_left_out() -> None:
    """A job of a log whose id has a tab is left out of a campaign, and counted."""
    loaded = load_workload(workload_of(LogFile(path=CASES / "tab.acct", options=LogOptions())), None)
    assert loaded.remarks["left out: beyond the bounds of a document"] == 1
    assert all(job.id.isprintable() for job in loaded.instance.jobs)


def test_a_document_is_a_workload(tmp_path: Path) -> None:
    """An instance file is simulated as it is, whatever the seed."""
    path = tmp_path / "w.json"
    path.write_text(json.dumps(instance_to_document(eurora_stream(40, 1))))
    from_file, generated = (
        rows_of(play(cell_of(workload_of(source))))[0].figures for source in (InstanceFile(path=path), EURORA)
    )
    assert from_file["wqt"] == generated["wqt"]


def test_load_and_malleable_share_are_changed() -> None:
    """A workload comes at the load that is asked for, with as many malleable jobs."""
    source = Generated(generator="lublin", parameters=FrozenMap({"jobs": 40}))
    workload = replace(workload_of(source), load=0.5, malleable=0.25)
    instance = load_workload(workload, 1).instance
    assert offered_load(instance) == pytest.approx(0.5, rel=0.01)
    assert sum(job.malleability is not None for job in instance.jobs) == 10


def test_malleable_jobs_work_by_the_model() -> None:
    """Where a model is said, malleable jobs run on a half of their cores, and work as it has it (SD-3)."""
    source = Generated(generator="cirne-like", parameters=FrozenMap({"jobs": 10, "cores": 4}))
    workload = replace(workload_of(source), malleable=1.0, model=RuntimeModel.WORST)
    instance = load_workload(workload, 1).instance
    assert {job.malleability for job in instance.jobs} == {Malleability(shares=(0.5,), model=RuntimeModel.WORST)}


def test_guests_and_mates_are_counted() -> None:
    """A cell of SD-Policy has its counts as figures, that of a rule has none (SD-12)."""
    source = Generated(generator="cirne-like", parameters=FrozenMap({"jobs": 60, "nodes": 16, "widest": 8}))
    workload = replace(workload_of(source), malleable=1.0, model=RuntimeModel.IDEAL)
    found = {
        scheduler: rows_of(play(cell_of(workload, scheduler=scheduler)))[0].figures for scheduler in ("sd_inf", "easy")
    }
    assert min(found["sd_inf"]["guests"] or 0, found["sd_inf"]["mates"] or 0) > 0
    assert (found["easy"]["guests"], found["easy"]["mates"]) == (None, None)


@pytest.mark.parametrize("name", GENERATORS)
def test_each_generator_takes_a_seed(name: str) -> None:
    """Every name stands for a generator whose workload another seed changes."""
    parameters = FrozenMap({"jobs": 5} if name in ("lublin", "cirne-like", "openccs", "eurora") else {})
    workload = workload_of(Generated(generator=name, parameters=parameters))
    assert load_workload(workload, 1).instance.jobs != load_workload(workload, 2).instance.jobs


def test_what_goes_wrong_is_drawn_for_each_seed(log: LogFile) -> None:
    """Walltimes and outages are those of the models and of the cell's seed."""
    workload = replace(workload_of(log), walltimes="f=9", failures="mtbf=100 mttr=10")
    plain = load_workload(workload_of(log), None).instance
    for seed in (1, 2):
        expected = with_failures(with_walltimes(plain, seed, "f=9"), seed, Failures(mtbf=100, mttr=10))
        assert load_workload(workload, seed).instance == expected
        assert expected.outages


def test_users_look_at_results_first(log: LogFile) -> None:
    """With feedback the second job of user 8 comes 5 s after the first one ends, which it does 25 s before the log."""
    told = LogFile(path=log.path, options=LogOptions(feedback=True))
    log.path.write_text(LOG.replace("3 60 5 60 8", "3 120 5 60 8").replace("2 30 5 60", "2 30 25 60"))
    both = [rows_of(play(cell_of(workload_of(source))))[0].figures for source in (log, told)]
    assert [figures["makespan"] for figures in both] == [180, 155]


def test_a_workload_without_jobs_is_refused(log: LogFile) -> None:
    """A selection that leaves nothing fails with the workload's name."""
    with pytest.raises(ValueError, match="the workload w has no jobs"):
        play(cell_of(workload_of(replace(log, options=LogOptions(selection=Selection(first=10))))))


def test_replicas_are_other_workloads_for_each_seed(log: LogFile) -> None:
    """Weeks or users that are drawn, and moved submissions, are those of the cell's seed."""
    plain = load_workload(Workload(name="log", source=log, load=None, malleable=None), None).instance
    for resampled, draw in (("users", resampled_users), ("weeks", resampled_weeks)):
        workload = Workload(name="log", source=log, load=None, malleable=None, resampled=resampled, moved=600)
        assert workload.is_random
        for seed in (1, 2):
            assert load_workload(workload, seed).instance == moved(draw(plain, seed), 600, seed)
