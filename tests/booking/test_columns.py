"""The columns: how a cluster becomes runs, columns and sums, and which jobs share a demand."""

from __future__ import annotations

import pytest

from cpsched import problem
from cpsched.booking import CheapFirst
from cpsched.booking.columns import MOST_GROUPS, WHOLE_REQUEST, Columns
from cpsched.domain import AdmitCondition, Amounts, Cluster, FrozenMap, Job, KeepFree, NodeClass, NodeState
from tests.booking.small_windows import EXCLUSIVE, PACK, SCATTER, chunk, cores_for_gpus, nodes, waiting
from tests.problem.test_topology import job, window


def columns(*classes: NodeClass, **licenses: int) -> Columns:
    """Return the columns of a cluster."""
    return Columns(Cluster(classes=classes, licenses=Amounts(licenses)), CheapFirst())


def test_runs() -> None:
    """Neighbours in the filling order that differ only in name form a run, across entries of the document."""
    layout = columns(
        nodes("b1 b2", cores=8, gpus=1), nodes("a1", cores=8), nodes("a2 a3", cores=8), nodes("c", cores=4)
    )
    assert layout.node_names == ["c", "a1", "a2", "a3", "b1", "b2"]
    assert [run.length for run in layout.demands.layout.runs] == [1, 3, 2]
    assert [run.capacity for run in layout.demands.layout.runs] == [(4,), (8,), (8, 1)]


def test_columns_of_one_resource_lie_side_by_side() -> None:
    """Of 3 nodes, the columns of cores are 0 to 2, and the one GPU is column 3; what a node has not has no column."""
    layout = columns(nodes("a b", cores=8, gpus=0), nodes("c", cores=8, gpus=1))
    assert layout.demands.num_columns == 4
    assert layout.columns_on("b", Amounts({"cores": 3}), whole=False) == [(1, 3, 8)]
    assert layout.columns_on("c", Amounts({"cores": 3, "gpus": 1}), whole=False) == [(2, 3, 8), (3, 1, 1)]
    assert layout.columns_on("a", Amounts({"gpus": 1}), whole=False) == []


def test_kept_resources_have_columns() -> None:
    """OCCS-40: 16 cores of which 2 are kept for GPUs: 16 for all, 14 for jobs without GPUs, which take of both."""
    layout = columns(nodes("g", cores=16, gpus=2, keep_free=cores_for_gpus(2)))
    assert layout.run_columns == [{("cores", None): 16, ("gpus", None): 2, ("cores", "gpus"): 14}]
    assert [run.capacity for run in layout.demands.layout.runs] == [(16, 2, 14)]
    taken = {
        asked: [(amount, capacity) for _, amount, capacity in layout.columns_on("g", Amounts(asked), whole=False)]
        for asked in (Amounts({"cores": 3}), Amounts({"cores": 3, "gpus": 1}))
    }
    assert list(taken.values()) == [[(3, 16), (3, 14)], [(3, 16), (1, 2)]]
    assert [amount for _, amount, _ in layout.columns_on("g", Amounts({"cores": 3}), whole=True)] == [16, 2, 14]


def test_two_rules_for_the_same() -> None:
    """The stricter of two rules for one pair counts; rules for other pairs have columns of their own."""
    rules = (
        KeepFree(resource="cores", items=2, beneficiary="gpus"),
        KeepFree(resource="cores", items=5, beneficiary="gpus"),
        KeepFree(resource="cores", items=1, beneficiary="mics"),
    )
    layout = columns(nodes("g", cores=16, gpus=2, keep_free=rules))
    assert layout.run_columns == [
        {("cores", None): 16, ("gpus", None): 2, ("cores", "gpus"): 11, ("cores", "mics"): 15}
    ]


def test_more_kept_than_there_is() -> None:
    """A rule that keeps all leaves no column: nobody without the beneficiary is let in there anyway."""
    layout = columns(nodes("g", cores=4, gpus=1, keep_free=cores_for_gpus(9)))
    assert layout.run_columns == [{("cores", None): 4, ("gpus", None): 1}]


def test_sums_of_the_system() -> None:
    """A sum for each resource over all nodes that are up, one for each group of equal nodes, one for each licence."""
    layout = columns(
        nodes("a b", cores=8), nodes("c", cores=8, gpus=2), nodes("d", cores=64, state=NodeState.DOWN), solver=5
    )
    capacity = layout.demands.layout.system_capacity
    assert sorted(capacity) == sorted([24, 16, 8, 2, 2, 5])
    assert capacity[layout.license_number["solver"]] == 5
    by_class = {
        run_class.resources["cores"]: run
        for run_class, run in zip(layout.run_class, layout.demands.layout.runs, strict=True)
    }
    assert by_class[64].system == ((),)
    a_b = next(run for run in layout.demands.layout.runs if run.length == 2)
    assert sorted(capacity[number] for number in a_b.system[0]) == [16, 24]


def test_many_groups_are_not_summed_up() -> None:
    """With more groups than `MOST_GROUPS`, or only one, there are the sums of the whole system only."""
    some = columns(*(nodes(f"n{number}", cores=number) for number in range(1, MOST_GROUPS + 1)))
    many = columns(*(nodes(f"n{number}", cores=number) for number in range(1, MOST_GROUPS + 2)))
    assert len(some.demands.layout.system_capacity) == 1 + MOST_GROUPS
    assert many.demands.layout.system_capacity == (sum(range(1, MOST_GROUPS + 2)),)
    assert columns(nodes("a b", cores=4)).demands.layout.system_capacity == (8,)


def test_no_nodes_are_up() -> None:
    """A cluster that is down as a whole has columns, and sums of licences only."""
    layout = columns(nodes("a", cores=4, state=NodeState.DOWN), solver=1)
    assert layout.demands.num_columns == 1
    assert layout.demands.layout.system_capacity == (1,)


# ---- demands ----

CLASSES = (
    nodes("a b", cores=8, properties=FrozenMap({"rack": "1"})),
    nodes("s", cores=32, admits=(AdmitCondition(max_walltime=100),)),
)


def compiled(layout: Columns, *jobs: Job) -> list[int]:
    """Return the numbers of the jobs' demands."""
    return [layout.compile(job.request, job.licenses, job.walltime) for job in jobs]


def test_equal_jobs_share_a_demand() -> None:
    """Jobs that ask for the same share a demand, whatever their walltime, unless a guard tells them apart (OCCS-12)."""
    jobs = [waiting(str(walltime), walltime, chunk(cores=4)) for walltime in (10, 20, 100, 101, 500)]
    assert compiled(columns(*CLASSES, solver=2), *jobs) == [0, 0, 0, 1, 1]


def test_other_jobs_do_not() -> None:
    """Another count, place, property or licence makes another demand."""
    jobs = [
        waiting("1", 10, chunk(cores=4)),
        waiting("2", 10, chunk(2, cores=4)),
        waiting("3", 10, chunk(cores=4), place=EXCLUSIVE),
        waiting("4", 10, chunk(cores=4), place=SCATTER),
        waiting("5", 10, chunk(cores=4, where={"rack": "1"})),
        waiting("6", 10, chunk(cores=4), licenses=Amounts({"solver": 1})),
        waiting("7", 10, chunk(cores=4), place=PACK),
    ]
    assert compiled(columns(*CLASSES, solver=2), *jobs) == [0, 1, 2, 3, 4, 5, 6]


def test_kinds_are_numbered_through() -> None:
    """A kind of the table knows its place in its request; a packed request is one kind, all in one."""
    layout = columns(*CLASSES)
    compiled(layout, waiting("1", 10, chunk(cores=2), chunk(cores=4), place=PACK))
    compiled(layout, waiting("2", 10, chunk(cores=4)))
    assert [layout.kind_of(number) for number in range(2)] == [WHOLE_REQUEST, 0]


def test_several_kinds_have_other_orders() -> None:
    """A request of two kinds is mapped by the policy's order, then by both orders of its kinds: three demands."""
    layout = columns(*CLASSES)
    (number,) = compiled(layout, waiting("1", 10, chunk(cores=2), chunk(cores=4)))
    assert (number, len(layout.demands)) == (2, 3)
    assert sorted(layout.kind_of(kind) for kind in range(6)) == [0, 0, 0, 1, 1, 1]
    assert [layout.kind_of(kind) for kind in (4, 5)] == [1, 0]


def test_many_kinds_are_turned() -> None:
    """Beyond three kinds only rotations are tried: of four kinds, one order of the policy and four more."""
    layout = columns(*CLASSES)
    compiled(layout, waiting("1", 10, *(chunk(cores=cores) for cores in (1, 2, 3, 4))))
    assert len(layout.demands) == 5


@pytest.mark.parametrize(
    "place", ["free:within=switch", "scatter:excl:within=switch", "segment=2:within=switch", "free", "scatter:excl"]
)
def test_the_demands_for_other_numbers_of_chunks(place: str) -> None:
    """They are those that would be added one by one."""
    asked = [f"{count}:ncpus=1,place={place}" for count in (2, 4, 2, 6)]
    instance = problem.compiled(window(*(job(str(number), request) for number, request in enumerate(asked)))).instance
    known, anew = (Columns(instance.cluster, CheapFirst()) for _ in range(2))
    for one in instance.jobs:
        anew._of_one.clear()
        assert len({columns.compile(one.request, one.licenses, 10) for columns in (known, anew)}) == 1
    assert known.demands._rows == anew.demands._rows
    assert known._kinds == anew._kinds
