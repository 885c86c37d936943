"""Simulations that are interrupted, and gone on with from their checkpoint."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Instance, Plan
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import (
    BackfillRule,
    Checkpoint,
    Decision,
    History,
    Interrupted,
    Moment,
    News,
    Order,
    Prediction,
    QueueRule,
    Scheduler,
    Site,
    rule_choice,
    simulate,
)
from cpsched.lab.sim.arrays import C
from cpsched.lab.sim.checkpoint import Keeper
from cpsched.lab.sim.load import Load
from cpsched.lab.sim.world import SimWorld
from cpsched.lab.workloads import lublin, with_malleable
from cpsched.metrics import load_over_time
from cpsched.verify import verify
from tests.oracle.random_workloads import restricted_workloads, rules, workloads
from tests.sim.interrupted import forged, written
from tests.sizes import examples

EASY = QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING)


class OneByOne:
    """A scheduler that is not compiled: the first of the queue, if it fits, each job in seconds of its own, so that one
    that is asked twice in a second says nothing new. The user may interrupt it as it thinks.
    """

    name = "one by one"

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.interrupt_at = interrupt_at
        self.decisions = 0

    def begin(self, site: Site) -> None:
        """Make ready: there is nothing to remember."""

    def decide(self, site: Site, news: News) -> Decision:
        """Start the first one if it is its turn and it fits."""
        self.decisions += 1
        if self.decisions == self.interrupt_at:
            raise KeyboardInterrupt
        first = int(site.queue[0])
        if news.now % 7 != first % 7:
            return Decision(wake=news.now + (first - news.now) % 7)
        start = site.fit_now(first)
        return Decision() if start is None else Decision(starts=(start,), wake=news.now + 1)


def what_happened(history: History) -> tuple[Plan, list[str]]:
    """Return all that is known of the jobs, without the seconds that it took."""
    record = history.record()
    return replace(record, engine=replace(record.engine, elapsed=0.0)), history.allocations()


def interrupting(look: int) -> Callable[[Moment], None]:
    """Return a callback that interrupts at the given call, counted from 1."""
    calls = iter(range(1, look))

    def count(_: Moment) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return count


def in_pieces(
    workload: Instance, scheduler: QueueRule | Scheduler, path: Path, looks: int, *, predict: Prediction | None = None
) -> tuple[History, int]:
    """Simulate, interrupted after so many looks each time; return what happened, and the number of pieces."""
    checkpoint, pieces = Checkpoint(path=path, scheduler="any"), 1
    while True:
        try:
            progress = interrupting(looks)
            return simulate(workload, scheduler, predict=predict, progress=progress, checkpoint=checkpoint), pieces
        except Interrupted:
            checkpoint, pieces = replace(checkpoint, resume=True), pieces + 1


@pytest.mark.slow
@examples(20)
@given(
    workloads() | restricted_workloads(),
    rules(),
    st.sampled_from([None, *Prediction]),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_a_rule_goes_on_as_if_nothing_had_been(
    workload: Instance, rule: QueueRule, predict: Prediction | None, portion: int, looks: int
) -> None:
    """However often a queue rule is interrupted, each job has the same start, end and nodes as without."""
    whole = simulate(workload, rule, predict=predict)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_choice, "_PORTION", portion)
        path = Path(folder) / "checkpoint"
        pieced, _ = in_pieces(workload, rule, path, looks, predict=predict)
    assert what_happened(pieced) == what_happened(whole)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [EASY, replace(EASY, order=Order.WFP3, depth=5)], ids=["easy", "wfp3"])
def test_a_long_workload_in_many_pieces(rule: QueueRule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of jobs that need more room than there was at first, in pieces of 50 passes; nothing is left beside the
    file, which has the times of all decisions.
    """
    workload = lublin(700, 5, nodes=128, cores=4)
    whole = simulate(workload, rule)
    monkeypatch.setattr(rule_choice, "_PORTION", 50)
    pieced, pieces = in_pieces(workload, rule, tmp_path / "state", 1)
    assert pieces > 10
    assert what_happened(pieced) == what_happened(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert len(pieced.decision_seconds) >= pieces - 1


@pytest.mark.slow
@pytest.mark.parametrize("looks", [2, 7])
def test_other_schedulers_begin_anew(tmp_path: Path, looks: int) -> None:
    """One that is not compiled is asked at once when it is resumed; as this one remembers nothing, all is the same."""
    workload = lublin(40, 2, nodes=32)
    whole = simulate(workload, OneByOne())
    pieced, pieces = in_pieces(workload, OneByOne(), tmp_path / "state", looks)
    assert pieces >= 80 // looks
    assert what_happened(pieced) == what_happened(whole)


@pytest.mark.parametrize("decision", [1, 2, 17, 40])
def test_an_interrupt_while_a_scheduler_thinks(tmp_path: Path, decision: int) -> None:
    """What it was asked when the interrupt came it is asked again."""
    workload = lublin(40, 2, nodes=32)
    checkpoint = Checkpoint(path=tmp_path / "state", scheduler="any")
    with pytest.raises(Interrupted) as interrupted:
        simulate(workload, OneByOne(interrupt_at=decision), checkpoint=checkpoint)
    runs = interrupted.value.history.runs
    started = {name: start for name, start in zip(runs.ids, runs.start.tolist(), strict=True) if start >= 0}
    assert len(started) < 40
    resumed = simulate(workload, OneByOne(), checkpoint=replace(checkpoint, resume=True))
    assert what_happened(resumed) == what_happened(simulate(workload, OneByOne()))
    assert started.items() <= dict(zip(resumed.runs.ids, resumed.runs.start.tolist(), strict=True)).items()
    assert not verify(instance_to_document(workload), plan_to_document(resumed.record()))


def test_an_interrupt_without_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has what happened so far; who does not look at it sees an interrupt like any other."""
    monkeypatch.setattr(rule_choice, "_PORTION", 50)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        simulate(lublin(200, 1), EASY, progress=interrupting(2))
    assert isinstance(interrupt.value, Interrupted)
    history, whole = interrupt.value.history, simulate(lublin(200, 1), EASY).runs
    runs, now = history.runs, history.runs.horizon
    assert 0 < runs.over.sum() < len(runs) < 200
    assert set(runs.ids) == {name for name, submit in zip(whole.ids, whole.submit, strict=True) if submit <= now}
    assert (runs.end[runs.running] == now).all()
    steps, running = load_over_time(runs), (whole.start <= now) & (whole.end > now)
    assert steps.queue_length[-1] == ((whole.submit <= now) & (whole.start > now)).sum()
    assert running.sum() == runs.running.sum()
    assert len(history.allocations()) == len(runs)


@pytest.mark.parametrize(("interval", "writings"), [(0.0, 4), (3600.0, 0)])
def test_the_state_is_written_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: float, writings: int
) -> None:
    """With no time in between it is written at each look, of which there are 4, and else when the interval is over."""
    monkeypatch.setattr(rule_choice, "_PORTION", 50)
    path, seen = tmp_path / "state", list[Path]()

    def look(_: Moment) -> None:
        if path.exists():
            path.rename(tmp_path / f"state-{len(seen)}")
            seen.append(path)

    simulate(lublin(200, 1), EASY, progress=look, checkpoint=Checkpoint(path=path, scheduler="easy", interval=interval))
    assert len(seen) == writings


@pytest.fixture
def state(tmp_path: Path) -> Checkpoint:
    """Return a checkpoint of EASY on a small workload, to resume from."""
    checkpoint = Checkpoint(path=tmp_path / "state", scheduler="easy")
    with pytest.raises(Interrupted):
        simulate(lublin(30, 1), OneByOne(interrupt_at=5), checkpoint=checkpoint)
    return replace(checkpoint, resume=True)


def test_the_checkpoint_of_something_else_is_refused(state: Checkpoint) -> None:
    """Another workload, or another scheduler, cannot go on from there."""
    with pytest.raises(DocumentError, match="a checkpoint of this workload"):
        simulate(lublin(30, 2), OneByOne(), checkpoint=state)
    with pytest.raises(DocumentError, match="a checkpoint of this scheduler, sjf, got one of easy"):
        simulate(lublin(30, 1), OneByOne(), checkpoint=replace(state, scheduler="sjf"))


def one_array() -> bytes:
    """Return an array as a file."""
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


def some_arrays() -> bytes:
    """Return an archive of arrays as a file."""
    stream = io.BytesIO()
    np.savez(stream, identity=np.zeros(3))
    return stream.getvalue()


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[: len(content) // 2], lambda _: b"", lambda _: b"{}", lambda _: one_array(),
     lambda _: some_arrays(), lambda content: content[:2000] + bytes(500) + content[2500:]],
    ids=["half", "empty", "text", "array", "archive", "holes"],
)  # fmt: skip
def test_a_damaged_checkpoint_is_refused(state: Checkpoint, damage: Callable[[bytes], bytes]) -> None:
    """A file that is no checkpoint, or not any more, is named."""
    state.path.write_bytes(damage(state.path.read_bytes()))
    with pytest.raises(DocumentError, match=r"state: 1 fault\n.*Expected a checkpoint"):
        simulate(lublin(30, 1), OneByOne(), checkpoint=state)


def test_a_checkpoint_with_other_arrays_is_refused(state: Checkpoint) -> None:
    """Arrays that are too short, or of another type, would be read beyond their ends."""
    with np.load(state.path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for wrong in (arrays["state.queue"][:-1], arrays["state.queue"].astype(np.int32)):
        with state.path.open("wb") as stream:
            np.savez(stream, **{**arrays, "state.queue": wrong})
        with pytest.raises(DocumentError, match=r"Expected an array state\.queue like that of this workload"):
            simulate(lublin(30, 1), OneByOne(), checkpoint=state)


def test_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    """To resume from no file, or to write where there is no folder, is refused; so is a negative interval."""
    path = tmp_path / "missing" / "state"
    with pytest.raises(DocumentError, match="No such file"):
        simulate(lublin(5, 1), EASY, checkpoint=Checkpoint(path=path, scheduler="easy", resume=True))
    with pytest.raises(DocumentError, match="Expected to write it, got: No such file"):
        simulate(lublin(5, 1), OneByOne(), checkpoint=Checkpoint(path=path, scheduler="any", interval=0))
    with pytest.raises(ValueError, match="interval"):
        Checkpoint(path=path, scheduler="easy", interval=-1)


def changed_values(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield an array with all of its values, or one of up to three, changed to small and huge numbers."""
    values: list[object] = [np.nan, -1.0, 1e300, 0.5] if array.dtype.kind == "f" else [-1, 127, -128, 1]
    if array.dtype.kind == "i":
        values += [np.iinfo(array.dtype).max, np.iinfo(array.dtype).min]
    places: list[int] = np.linspace(0, array.size - 1, min(array.size, 3), dtype=int).tolist() if array.size else []
    for value in values:
        yield np.full_like(array, value)
        for place in places:
            other = array.copy()
            other.flat[place] = value
            yield other


@pytest.mark.slow
@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.large)])
def test_a_changed_checkpoint_is_refused(state: Checkpoint, every: int) -> None:
    """Each array and each scalar, changed in value, length, shape or type, or left out, leads to one line."""
    whole, tried, refused, world = written(state.path), 0, 0, SimWorld(Load(lublin(30, 1)))
    for name, array in whole.items():
        if array.dtype.kind == "U":
            others = [np.array("x"), np.array('{"a": 1}'), np.array("[" * 5000), np.array("[]")]
        else:
            others = [*changed_values(array), array[..., None], array.astype(np.float32), array.astype(str)]
            others += [] if array.ndim == 0 else [array[:-1], np.concatenate([array, array]), array.T.copy()]
        for other in [*others, None]:
            if other is not None and other.dtype == array.dtype and np.array_equal(other, array, equal_nan=True):
                continue
            tried += 1
            if tried % every:
                continue
            with state.path.open("wb") as stream:
                np.savez(
                    stream,
                    allow_pickle=False,
                    **{key: value for key, value in {**whole, name: other}.items() if value is not None},
                )
            with pytest.raises(DocumentError) as caught:
                Keeper(state, world, [])
            (fault,) = caught.value.faults
            assert fault.message.startswith("Expected ")
            assert len(fault.message.splitlines()) == 1
            refused += 1
    assert refused > 300 / every


#: Arrays whose values kernels use as indices and counts.
INDICES: tuple[str, ...] = (
    "queue",
    "ends",
    "heap",
    "pool",
    "runs",
    "attempts",
    "fixed",
    "fixed_columns",
    "changes",
    "modes",
)
INDICES += ("demand", "links_of", "links", "user", "outages", "out", "clock")


def eventful_workload() -> Instance:
    """Return malleable jobs with dependencies and a licence, one that runs already, and nodes that go down twice."""
    document = instance_to_document(with_malleable(lublin(60, 1, nodes=32, cores=4), 0, share=0.7))
    document["cluster"]["licenses"] = {"matlab": 2}
    document["outages"] = [
        {"nodes": "node[01-16]", "start": 5000, "end": 5600},
        {"nodes": "node[01-32]", "start": 12_000, "end": 12_600},
    ]
    jobs = document["jobs"]
    for job in jobs:
        job["submit"] //= 8
    for number in (10, 20, 30):
        jobs[number]["after"] = [{"job": jobs[number - 5]["id"], "type": "afterany"}]
    jobs.append(
        {
            "id": "r", "submit": 0, "walltime": 20_000, "runtime": 15_000, "request": "1:ncpus=2",
            "licenses": {"matlab": 1},
            "running": {"start": 0, "allocation": [{"node": "node32", "resources": {"cores": 2}}]},
        }
    )  # fmt: skip
    return parse_instance(document)


def test_indices_are_checked_even_where_the_digest_is_right(tmp_path: Path) -> None:
    """Somebody who forges a digest gets no index to a kernel that lies outside of its array; all arrays are in use."""
    checkpoint = Checkpoint(path=tmp_path / "state", scheduler="sd_10")
    workload = eventful_workload()
    with pytest.raises(Interrupted):
        simulate(workload, make_scheduler("sd_10", {}), progress=interrupting(110), checkpoint=checkpoint)
    whole, world = written(checkpoint.path), SimWorld(Load(workload))
    Keeper(replace(checkpoint, resume=True), SimWorld(Load(workload)), [])
    counters = {
        "queue": C.QUEUED, "ends": C.RUNNING, "heap": C.HEAP, "pool": C.POOL,
        "attempts": C.ATTEMPTS, "fixed_columns": C.FIXED, "changes": C.CHANGES,
        "modes": C.MODES,
    }  # fmt: skip
    for name in INDICES:
        array = whole[f"state.{name}"]
        used = int(whole["state.clock"][counters[name]]) if name in counters else len(array)
        assert used > 0, name
        for value in (np.iinfo(array.dtype).max, np.iinfo(array.dtype).min):
            other = array.copy()
            other[:used] = value
            forged({**whole, f"state.{name}": other}, checkpoint.path)
            with pytest.raises(DocumentError, match=rf"Expected arrays of a simulation .*state\.{name}"):
                Keeper(replace(checkpoint, resume=True), world, [])
    heap = whole["state.heap"].copy()
    heap[0, 0] = 2**40  # later than the events below it
    forged({**whole, "state.heap": heap}, checkpoint.path)
    with pytest.raises(DocumentError, match=r"state\.heap"):
        Keeper(replace(checkpoint, resume=True), world, [])


@pytest.mark.parametrize(("place", "moment"), [(0, 0), (-1, 0), (-1, -1)])
def test_events_lie_ahead(state: Checkpoint, place: int, moment: int) -> None:
    """An event of the past would turn the clock back: the simulation did not end."""
    whole = written(state.path)
    heap = whole["state.heap"].copy()
    heap[: int(whole["state.clock"][C.HEAP])][place, 0] = moment
    forged({**whole, "state.heap": heap}, state.path)
    with pytest.raises(DocumentError, match=r"state\.heap"):
        Keeper(state, SimWorld(Load(lublin(30, 1))), [])


def test_a_checkpoint_that_counts_otherwise_is_refused(state: Checkpoint) -> None:
    """Arrays that no event changes are compared before others are counted by them."""
    whole = written(state.path)
    counts = whole["state.choices_of"].copy()
    counts[0] = 1
    forged({**whole, "state.choices_of": counts}, state.path)
    with pytest.raises(DocumentError, match=r"state\.choices_of"):
        Keeper(state, SimWorld(Load(lublin(30, 1))), [])


def test_a_packed_or_oversized_archive_is_refused(state: Checkpoint) -> None:
    """Arrays are read only if they are as large as they say, and no larger than the file."""
    whole: dict[str, Any] = written(state.path)
    with state.path.open("wb") as stream:
        np.savez_compressed(stream, **whole)
    with pytest.raises(DocumentError, match=r"larger than the file|packed"):
        simulate(lublin(30, 1), OneByOne(), checkpoint=state)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"shape": (10**15,), "fortran_order": False, "descr": "<i8"})
    with zipfile.ZipFile(state.path, "w") as archive:
        archive.writestr("identity.npy", header.getvalue())
    with pytest.raises(DocumentError, match="not as large as it says"):
        simulate(lublin(30, 1), OneByOne(), checkpoint=state)
