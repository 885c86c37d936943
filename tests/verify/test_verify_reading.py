"""What the judge reads: files, short texts, and documents that are none."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.errors import DocumentError, SyntaxFault
from cpsched.verify import Violation, documents, verify, verify_files
from cpsched.verify.documents import load
from cpsched.verify.model import Chunk
from cpsched.verify.syntax import Place, expand_hosts, expand_indices, parse_items, parse_place, parse_request
from tests.formats.pipes import assert_pipes_are_read
from tests.sizes import examples
from tests.verify.small_documents import Document, at, cluster, instance, job, on, plan

ONE = instance(job())
COUNTABLE = ("cores", "mem", "gpus", "mics")


def _path_of(document: object, answer: object = None) -> str:
    """Return where the first fault is."""
    with pytest.raises(DocumentError) as caught:
        verify(document, plan() if answer is None else answer)  # type: ignore[arg-type]  # documents of any kind
    return caught.value.faults[0].path


def test_files_plain_and_packed(tmp_path: Path) -> None:
    """Both documents may be packed or not, and the answer is the same as for the documents themselves."""
    first, second = tmp_path / "i.json.gz", tmp_path / "p.json"
    first.write_bytes(gzip.compress(json.dumps(ONE).encode()))
    second.write_text(json.dumps(plan([at("a", -1)])), encoding="utf-8")
    assert verify_files(first, second) == verify(ONE, plan([at("a", -1)]))
    assert str(verify_files(first, second)[0]).startswith("earliest_start: a: starts at -1")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": NaN}',
        b'{"a": 1, "a": 2}',
        gzip.compress(b'{"format": "cpsched-plan/1"}')[:-9],
        b"\x1f\x8b broken",
        b"1" * 5000,
        b"[]",
        b'{"format": "cpsched-instance/1"}',
        b'{"format": "cpsched-plan/2", "jobs": []}',
        b'{"format": "cpsched-plan/1", "jobs": {}}',
    ],
    ids=range(13),
)
def test_what_is_no_plan(tmp_path: Path, content: bytes) -> None:
    """A file that is no plan at all raises `DocumentError` with its name."""
    first, second = tmp_path / "i.json", tmp_path / "p.json"
    first.write_text(json.dumps(ONE), encoding="utf-8")
    second.write_bytes(content)
    with pytest.raises(DocumentError) as caught:
        verify_files(first, second)
    assert caught.value.source == str(second)


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    """A missing file is a refused document."""
    with pytest.raises(DocumentError, match="No such file"):
        verify_files(tmp_path / "none.json", tmp_path / "none.json")


def test_hostile_length_is_read(tmp_path: Path) -> None:
    """Neither 200,000 names between commas nor a key that stands again after 9,998 others are too much."""
    assert len(list(expand_hosts(",".join(f"n{number}" for number in range(200_000))))) == 200_000
    document = tmp_path / "wide.json"
    document.write_text("{" + ",".join(f'"k{number}":0' for number in (*range(9_999), 9_998)) + "}", encoding="utf-8")
    with pytest.raises(DocumentError, match="k9998' occurs twice"):
        load(document)


EVERY_MINUTE = {"cron": "* * * * *"}
CALENDAR_LIMIT = {"consumer": {"user": "a"}, "resource": "*", "items": "1", "validity": EVERY_MINUTE}
POOL = {"resource": "cores", "items": "1"}
KEPT = {"resource": "cores", "items": 1, "for": "fpgas"}
STEP = {"walltime": 5, "request": "ncpus=1"}
PACKED = {"walltime": 5, "request": "ncpus=1,place=pack"}
OUTAGE = {"id": "r", "start": 0, "end": 9, "request": "ncpus=1", "kind": "downtime"}
FACT: Document = {"start": -1, "allocation": [{"node": "n1", "resources": {"cores": 1}}]}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({**ONE, "format": "other"}, "format"),
        ({**ONE, "nodes": 1}, "nodes"),
        ({**ONE, "epoch": "2026-01-01T00:00:00"}, "epoch"),
        ({**ONE, "objective": "beauty"}, "objective"),
        ({**ONE, "objective": {}}, "objective"),
        ({**ONE, "cluster": {"nodes": []}}, "cluster.nodes"),
        ({**ONE, "cluster": cluster({"names": "n1"}, {"names": "n[1-2]"})}, "cluster.nodes[1].names"),
        ({**ONE, "cluster": cluster({"names": "n1", "state": "idle"})}, "cluster.nodes[0].state"),
        ({**ONE, "cluster": cluster({"names": "n1", "resources": {"cores": -1}})}, "cluster.nodes[0].resources.cores"),
        (instance(job(), job()), "jobs[1].id"),
        (instance(job("a[1]"), job(array={"indices": "1"})), "jobs[1].id"),
        (instance(job(wallime=3)), "jobs[0].wallime"),
        (instance(job(walltime=True)), "jobs[0].walltime"),
        (instance(job(walltime=0)), "jobs[0].walltime"),
        (instance(job(walltime=10**18)), "jobs[0].walltime"),
        (instance(job(request="ncpus=x")), "jobs[0].request"),
        (instance(job(request="rack=8")), "jobs[0].request"),
        (instance(job(request=[{"count": 1, "resources": {"cores": 0}}])), "jobs[0].request[0].resources"),
        (instance(job(request="ncpus=1,place=pack", place="pack")), "jobs[0].place"),
        (instance(job(request="ncpus=1,sim=1", licenses={"sim": 1})), "jobs[0].licenses"),
        (instance(job(queue="q")), "jobs[0].queue"),
        (instance(job(reservation="r")), "jobs[0].reservation"),
        (instance(job(after=[{"job": "ghost", "type": "after"}])), "jobs[0].after"),
        (instance(job(steps=[])), "jobs[0].walltime"),
        (instance(job(walltime=None)), "jobs[0].id"),
        (instance(job(walltime=None, request=None, steps=[STEP], expand_limit=0.5)), "jobs[0].expand_limit"),
        (instance(job(expand_limit=2)), "jobs[0].expand_limit"),
        (instance(job(told={"start": 1}, running=FACT)), "jobs[0].told"),
        (instance(job(expected=101)), "jobs[0].expected"),
        (instance(job(expected=10, malleable={"shares": [0.5]})), "jobs[0].expected"),
        (instance(job(told={"price": 1})), "jobs[0].told.start"),
        (instance(job(told={"start": 1, "price": -0.25})), "jobs[0].told.price"),
        (instance(job(), queues={"q": {"expected_wait": 5, "max_wait": {}}}), "queues.q.max_wait.seconds"),
        (instance(queues={"q": {"expected_wait": 5, "max_wait": {"seconds": 0}}}), "queues.q.max_wait.seconds"),
        (
            instance(queues={"q": {"expected_wait": 5, "max_wait": {"seconds": 1, "price": -1}}}),
            "queues.q.max_wait.price",
        ),
        (instance(queues={"q": {"expected_wait": 5, "max_wait": {"seconds": 1, "hard": 1}}}), "queues.q.max_wait.hard"),
        (instance(queues={"q": {"expected_wait": 5, "max_wait": {"seconds": 1, "s": 1}}}), "queues.q.max_wait.s"),
        (instance(job(walltime=None, request=None, steps=[STEP], malleable={"shares": [0.5]})), "jobs[0].malleable"),
        (instance(job(walltime=None, request=None, steps=[STEP, PACKED])), "jobs[0].steps[1].request"),
        (instance(job(malleable={"shares": [2]})), "jobs[0].malleable.shares[0]"),
        (instance(job(malleable={"shares": [0.5, 0.5]})), "jobs[0].malleable.shares[1]"),
        (instance(job(malleable={"shares": [0.5], "stretch": {"0.6": 2}})), "jobs[0].malleable.stretch.0.6"),
        (instance(job(request=[{"resources": {"cores": 1}}])), "jobs[0].request[0].count"),
        (instance(job(request="ncpus=1 ")), "jobs[0].request"),
        (instance(job("x" * 252, array={"indices": "0-1000"})), "jobs[0].id"),
        (instance(job(priority=2**31)), "jobs[0].priority"),
        (instance(job(weight=0)), "jobs[0].weight"),
        (instance() | {"priorities": "loose"}, "priorities"),
        (instance(job(weight="2")), "jobs[0].weight"),
        (instance(queues={"q": {"expected_wait": 1, "weight": -0.5}}), "queues.q.weight"),
        (instance(job(runtime=0)), "jobs[0].runtime"),
        (instance(outages=[{"nodes": "n1", "start": 5, "end": 5}]), "outages[0].end"),
        (instance(outages=[{"nodes": "n[1-3]", "start": 5, "end": 6}]), "outages[0].nodes"),
        (instance(outages=[{"nodes": "n1,n1", "start": 5, "end": 6}]), "outages[0].nodes"),
        (instance(outages=[{"nodes": "n1", "start": 5, "end": 6, "why": "x"}]), "outages[0].why"),
        (instance(job(running=FACT), outages=[{"nodes": "n1", "start": 0, "end": 6}]), "outages[0].nodes"),
        (instance(job(after=[{"job": "a", "type": "after"}])), "jobs[0].after"),
        (instance(job(reservation="r"), reservations=[OUTAGE]), "jobs[0].reservation"),
        (instance(job(running={**FACT, "allocation": FACT["allocation"] * 2})), "jobs[0].running.allocation[1]"),
        (instance(job(running={**FACT, "allocation": [on("n1", None, None)]})), "jobs[0].running.allocation[0]"),
        (instance(job(running={**FACT, "allocation": [on("n1", 1, 1, cores=1)]})), "jobs[0].running.allocation"),
        (instance(job(running={**FACT, "allocation": [on("n1", cores=1)] * 2})), "jobs[0].running.allocation[1]"),
        (instance(job(running={**FACT, "start": 1})), "jobs[0].running.start"),
        (instance(job(array={"indices": "1"}), job("b", array={"indices": "1-1000000"})), "jobs[1].array"),
        (instance(job(running={"start": -1})), "jobs[0].running"),
        (instance(job(running={"start": 0, "segments": []})), "jobs[0].running.segments"),
        (instance(job(running={**FACT, "allocation": []})), "jobs[0].running.allocation"),
        (instance(job(malleable={})), "jobs[0].malleable.shares"),
        (instance(job(request=None, walltime=None, steps=[])), "jobs[0].steps"),
        (instance(job(request=[])), "jobs[0].request"),
        (instance(job(running=FACT, array={"indices": "1"})), "jobs[0].running"),
        (instance(limits=[{**CALENDAR_LIMIT, "consumer": {"user": "a", "group": "b"}}]), "limits[0].consumer"),
        (instance(limits=[{"consumer": {"user": "a"}, "resource": "x"}]), "limits[0].resource"),
        (instance(limits=[CALENDAR_LIMIT]), "limits[0].validity"),
        (instance(limits=[{"consumer": {"user": "a"}, "resource": "*"}]), "limits[0]"),
        (instance(limits=[{**CALENDAR_LIMIT, "validity": {"from": 5, "until": 5}}]), "limits[0].validity"),
        (instance(limits=[{**CALENDAR_LIMIT, "items": "unlimited"}]), "limits[0].items"),
        (instance(limits=[{**CALENDAR_LIMIT, "duration": 0}]), "limits[0].duration"),
        (instance(usage=[{"consumer": {"each": "user"}, "resource": "cores", "area": 1}]), "usage[0].consumer"),
        (instance(usage=[{"consumer": {"user": "a"}, "resource": "gold", "area": 1}]), "usage[0].resource"),
        (instance(free_pools=[{"resource": "cores", "items": 1}]), "free_pools[0].items"),
        (instance(free_pools=[{"resource": "cores", "items": "1", "nodes": "n1,n1"}]), "free_pools[0].nodes"),
        (instance(free_pools=[{**POOL, "open_to": {"asks_for": ["gold"]}}]), "free_pools[0].open_to.asks_for[0]"),
        (instance(free_pools=[{**POOL, "open_to": {"max": {"gold": 1}}}]), "free_pools[0].open_to.max.gold"),
        (instance(cluster=cluster({"names": "n1"}, cores=3)), "cluster.licenses.cores"),
        (instance(cluster=cluster({"names": "n1"}, place=3)), "cluster.licenses.place"),
        (instance(cluster=cluster({"names": "n1", "admits": [{}]})), "cluster.nodes[0].admits[0]"),
        (instance(cluster=cluster({"names": "n1", "admits": [{"min": {"x": 1}}]})), "cluster.nodes[0].admits[0].min.x"),
        (instance(cluster=cluster({"names": "n1", "keep_free": [KEPT]})), "cluster.nodes[0].keep_free[0].for"),
        (instance(epoch="2026-01-01T00:00:00.5+01:00"), "epoch"),
        ({**ONE, "objective": {"wait": 0}}, "objective.wait"),
        ({**ONE, "name": "half \ud800"}, "name"),
        (instance(free_pools=[{**POOL, "open_to": {}, "nodes": "n9"}]), "free_pools[0].nodes"),
        (instance(reservations=[{"id": "r", "start": 1, "end": 1, "request": "ncpus=1"}]), "reservations[0].end"),
        ([], ""),
    ],
)  # fmt: skip
def test_an_instance_that_is_out_of_order(document: object, path: str) -> None:
    """A plan cannot be judged against such an instance; the fault has its path."""
    assert _path_of(document) == path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("cn[008-011]", ["cn008", "cn009", "cn010", "cn011"]),
        ("n[1,3-7/2]x,m", ["n1x", "n3x", "n5x", "n7x", "m"]),
        ("n[0-10/5]", ["n0", "n5", "n10"]),
        ("r[1-2]n[8-9]", ["r1n8", "r1n9", "r2n8", "r2n9"]),
    ],
)
def test_host_lists(text: str, names: list[str]) -> None:
    """Ranges unfold in order and keep their leading zeros."""
    assert list(expand_hosts(text)) == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n[",
        "n[]",
        "n[2-1]",
        "n[1-]",
        "a,,b",
        "n]",
        "n[1-9999999]",
        "n[1-1000][1-1001]",
        "a[1-999999],b[1-9]",
        "a[1-9,1-999999]",
        "n1, n2",
        "n[8-011]",
        "n[\u0661-\u0662]",
        "n*",
        "n" * 257,
    ],
)
def test_what_is_no_host_list(text: str) -> None:
    """Broken and huge lists are refused."""
    with pytest.raises(SyntaxFault):
        list(expand_hosts(text))


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("ncpus=2", [Chunk(1, {"cores": 2}, {})]),
        ("8:ncpus=2:mem=10g:ngpus=1", [Chunk(8, {"cores": 2, "mem": 10240, "gpus": 1}, {})]),
        ("2:nmics=1:rack=8+cores=1:ngpus=0", [Chunk(2, {"mics": 1}, {"rack": "8"}), Chunk(1, {"cores": 1}, {})]),
        ("mem=1025k", [Chunk(1, {"mem": 2}, {})]),
        ("mem=5", [Chunk(1, {"mem": 5}, {})]),
        ("mem=1TB", [Chunk(1, {"mem": 2**20}, {})]),
    ],
)
def test_requests(text: str, chunks: list[Chunk]) -> None:
    """Chunks by the grammar: aliases, sizes rounded up to MiB, zero as not asked, properties."""
    assert parse_request(text, COUNTABLE) == (tuple(chunks), None, {})


def test_what_stands_after_the_chunks() -> None:
    """Place and licences follow after commas."""
    assert parse_request("ncpus=1,place=scatter:excl,sim=2", COUNTABLE)[1:] == ("scatter:excl", {"sim": 2})


@pytest.mark.parametrize(
    "text",
    ["", "8", "0:ncpus=1", "ncpus", "ncpus=", "=1", "ncpus=-1", "ncpus=1k", "ncpus=1:cores=2", "mem=1.5g", "ncpus=1+",
     "ncpus=1,place", "ncpus=1,a=1,a=2", "ncpus=1,a=x", "ncpus=99999999999", "ncpus=0"],
)  # fmt: skip
def test_what_is_no_request(text: str) -> None:
    """A request outside the grammar is refused, with a caret."""
    with pytest.raises(SyntaxFault, match="expected"):
        parse_request(text, COUNTABLE)


def test_small_notations() -> None:
    """Array indices, places and item bounds."""
    assert expand_indices("0-20:5") == (0, 5, 10, 15, 20)
    assert expand_indices("1,3,5-7") == (1, 3, 5, 6, 7)
    assert parse_place("pack") == Place("pack", exclusive=False)
    assert parse_place("scatter:excl") == Place("scatter", exclusive=True)
    assert parse_place("excl:segment=2:within=a=b") == Place("free", exclusive=True, within="a=b", segment=2)
    assert [parse_items("30/45%").of(avail) for avail in (100, 50)] == [45, 30]
    assert parse_items("45%").of(50) == 22
    for wrong in ("", "5-3", "1,1", "1, 2", "0-9:0", "0-9999999", "2147483648"):
        with pytest.raises(SyntaxFault):
            expand_indices(wrong)
    assert parse_place("free:exclusive") == parse_place("exclusive") == Place("free", exclusive=True)
    for parse, wrong in ((parse_place, "anywhere"), (parse_items, "unlimited"), (parse_items, "101%")):
        with pytest.raises(SyntaxFault):
            parse(wrong)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**19), 10**19), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=4,
)


def _paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all parts of a document."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, child in children for deeper in _paths(child, (*path, key)))]


def _replaced(value: Document, path: tuple[str | int, ...], new: object) -> Document:
    """Return a copy of a document in which one part is another."""
    copy = json.loads(json.dumps(value))
    if not path:
        return new  # type: ignore[return-value]  # whatever was drawn
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return copy


RICH = instance(
    job("r", running=FACT),
    job("e", request=None, walltime=None, steps=[{"walltime": 5, "request": "ncpus=1"}], expand_limit=2.5),
    job(
        "m",
        walltime=101,
        malleable={"shares": [0.5], "stretch": {"0.5": 1.5}},
        licenses={"sim": 1},
        queue="q",
        user="u",
        told={"start": 3, "price": 0.5},
    ),
    job("v", after=[{"job": "m", "type": "after"}], array={"indices": "0-1"}, reservation="d"),
    epoch="2026-01-01T00:00:00+01:00",
    queues={"q": {"expected_wait": 5, "max_walltime": 1000, "max_wait": {"seconds": 9, "price": 0.5, "hard": True}}},
    reservations=[{"id": "d", "start": 5, "end": 9, "request": "ncpus=1"}],
    limits=[{"consumer": {"each": "user"}, "resource": "*", "items": "5/5%", "validity": {"cron": "* 5 * * *"}}],
    free_pools=[{"resource": "cores", "items": "1", "open_to": {"max": {"cores": 1}}, "nodes": "n1"}],
    usage=[{"consumer": {"user": "u"}, "resource": "cores", "area": 5}],
    objective={"slowdown": 1, "tardiness": 0.5},
)
ANSWER = plan(
    [at("m", 5), at("v[0]", 5), at("e", 1, walltime=5)],
    [{"id": "v[1]", "reason": "not_mapped", "detail": "x"}],
    reservations=[{"id": "d", "start": 5, "end": 9, "allocation": [{"node": "n1", "resources": {"cores": 1}}]}],
    incumbents=[{"at": 0.5, "value": 1, "by": "x"}],
    events=[{"at": 0.5, "by": "x", "what": "y"}],
)


def _judged(document: object, answer: object) -> tuple[Violation, ...]:
    """Return the violations, none where a document is refused; anything else that is raised is a fault of the judge."""
    with contextlib.suppress(DocumentError):
        return verify(document, answer)  # type: ignore[arg-type]  # documents of any kind
    return ()


def test_the_rich_documents_are_judged() -> None:
    """The documents that the next tests mutate get as far as the rules."""
    assert {"presence", "objective", "reservation", "malleable"} <= {one.rule for one in _judged(RICH, ANSWER)}


@examples(150, deadline=None)
@given(st.sampled_from(_paths(ANSWER)), JSON)
def test_mutated_plans_never_crash_the_judge(path: tuple[str | int, ...], new: object) -> None:
    """Whatever stands in a plan, the judge answers with violations or refuses the document."""
    assert all(one.subject and one.message for one in _judged(RICH, _replaced(ANSWER, path, new)))


@examples(150, deadline=None)
@given(st.sampled_from(_paths(RICH)), JSON)
def test_mutated_instances_never_crash_the_judge(path: tuple[str | int, ...], new: object) -> None:
    """Whatever stands in an instance, the judge reads it or refuses it."""
    assert all(one.subject and one.message for one in _judged(_replaced(RICH, path, new), ANSWER))


REAL = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.mark.skipif(not REAL.is_dir(), reason=f"no real workloads in {REAL}")
@pytest.mark.parametrize("files", ["eurora/window-*.json.gz", "snapshots/*.json.gz"])
def test_real_instances_are_in_order(files: str) -> None:
    """The judge reads every real window: of an empty plan it says of each job that it is missing, and no more."""
    for path in sorted(REAL.glob(files)):
        document = load(path)
        assert isinstance(document, dict)
        empty = plan(instance=document["name"], now=document.get("now", 0))
        violations = verify(document, empty)
        assert {violation.rule for violation in violations} == {"presence"}, path
        assert len(violations) == len(document["jobs"]), path


def test_pipes_and_devices(tmp_path: Path) -> None:
    """A named pipe is read when somebody writes to it, and is not waited for without end; a device is refused."""
    assert_pipes_are_read(
        tmp_path,
        lambda path: verify_files(path, path),
        lambda seconds: patch.object(documents, "PATIENCE", seconds),
    )
