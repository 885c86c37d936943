"""What a result is named by: it changes with all that the result depends on, and with nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cpsched.domain import FrozenMap, RuntimeModel
from cpsched.formats.logs import LogOptions, MemoryField, Selection
from cpsched.lab.bench.campaign import Cell, Generated, InstanceFile, LogFile, digest_of
from cpsched.lab.bench.running import content_digest
from cpsched.lab.sim import Prediction
from tests.bench.fakes import fake_cell


def digest(cell: Cell) -> str:
    """Return a digest in which files are known by their names."""
    return digest_of(cell, lambda path: path.name)


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    """Return a cell on a part of a log."""
    selection = Selection(
        statuses=(1, 0),
        queues=(-1, "batch"),
    )
    source = LogFile(path=tmp_path / "log", options=LogOptions(cluster=tmp_path / "cluster", selection=selection))
    made = fake_cell(tmp_path, "fifo")
    return replace(made, workload=replace(made.workload, source=source))


def test_names_and_folders_do_not_count(cell: Cell, tmp_path: Path) -> None:
    """A workload, a policy or a folder by another name gives the same digest."""
    source = cell.workload.source
    assert isinstance(source, LogFile)
    moved = replace(source, path=tmp_path / "elsewhere" / "log")
    renamed = replace(
        cell,
        workload=replace(cell.workload, name="other", source=moved),
        contender=replace(cell.contender, label="other"),
    )
    assert digest(renamed) == digest(cell)


def test_everything_else_counts(cell: Cell, tmp_path: Path) -> None:
    """Each other field of a cell, and each field of each source, makes another digest."""
    workload, contender, source = cell.workload, cell.contender, cell.workload.source
    assert isinstance(source, LogFile)
    sources: list[InstanceFile | LogFile | Generated] = [
        replace(source, path=tmp_path / "other"),
        replace(source, options=replace(source.options, cluster=None)),
        replace(source, options=replace(source.options, selection=Selection(first=1))),
        replace(source, options=replace(source.options, cores_per_chunk=4)),
        replace(source, options=replace(source.options, memory_field=MemoryField.BYTES_PER_JOB)),
        replace(source, options=replace(source.options, dependencies=True)),
        replace(source, options=replace(source.options, feedback=True)),
        InstanceFile(path=tmp_path / "log"),
        Generated(generator="lublin", parameters=FrozenMap({"jobs": 1})),
        Generated(generator="lublin", parameters=FrozenMap({"jobs": 2})),
        Generated(generator="lublin", parameters=FrozenMap({"jobs": 2, "streams": ("batch",)})),
    ]
    changed = [
        *(replace(cell, workload=replace(workload, source=other)) for other in sources),
        replace(cell, workload=replace(workload, load=1.0)),
        replace(cell, workload=replace(workload, malleable=1.0)),
        replace(cell, workload=replace(workload, malleable=1.0, model=RuntimeModel.IDEAL)),
        replace(cell, workload=replace(workload, malleable=1.0, model=RuntimeModel.WORST)),
        replace(cell, workload=replace(workload, moved=600)),
        replace(cell, workload=replace(workload, walltimes="modal")),
        replace(cell, workload=replace(workload, failures="mtbf=1 mttr=1")),
        replace(cell, workload=replace(workload, resampled="users")),
        replace(cell, workload=replace(workload, resampled="weeks")),
        replace(cell, contender=replace(contender, scheduler="other")),
        replace(cell, contender=replace(contender, parameters=FrozenMap({"depth": 1}))),
        replace(cell, contender=replace(contender, predict=Prediction.ORDER)),
        replace(cell, contender=replace(contender, predict=Prediction.ALL)),
        replace(cell, contender=replace(contender, charge_overhead=True)),
        replace(cell, seed=2),
        replace(cell, seed=None),
        replace(cell, warm_up=0.1),
        replace(cell, cool_down=0.1),
    ]
    assert len({digest(one) for one in [cell, *changed]}) == len(changed) + 1


def test_the_content_of_a_file_counts(tmp_path: Path) -> None:
    """Two files of the same bytes have one digest, one that was changed has another."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("x")
    second.write_text("x")
    assert content_digest(first) == content_digest(second)
    second.write_text("y")
    assert content_digest(first) != content_digest(second)
