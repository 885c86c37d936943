"""The mapping policy: weights to the number, and that another policy gives other nodes."""

from __future__ import annotations

from collections.abc import Sequence

from cpsched.booking import CheapFirst, Ledger, Mapping, node_weight
from cpsched.domain import Cluster, Instance, Request
from tests.booking.small_windows import chunk, nodes, waiting, where_it_stands, window


def test_node_weights() -> None:
    """OCCS-26: 16 cores of 9,920 weigh 16; with 2 of the system's 32 GPUs 620; with priority 1 9,936."""
    plain, gpus, preferred = nodes("p", cores=16), nodes("g", cores=16, gpus=2), nodes("q", cores=16, priority=1)
    rest = nodes("r", cores=9920 - 3 * 16, gpus=30)
    cluster = Cluster(classes=(plain, gpus, preferred, rest))
    assert [node_weight(node, cluster) for node in (plain, gpus, preferred)] == [16, 620, 9936]


def test_node_weights_of_a_small_system() -> None:
    """OCCS-26: A and B with 16 cores, C with 32 and both GPUs weigh 16, 16 and 64, and are filled in this order
    (MAUI-10).
    """
    classes = (nodes("c", cores=32, gpus=2), nodes("a", cores=16), nodes("b", cores=16))
    cluster = Cluster(classes=classes)
    assert [node_weight(node, cluster) for node in classes] == [64, 16, 16]
    assert CheapFirst().node_order(cluster) == [1, 2, 0]


def test_priority_beats_every_share() -> None:
    """A step of priority outweighs all of a resource, up and down; equal weights keep the document's order."""
    classes = (nodes("a", cores=1, priority=1), nodes("b", cores=100, gpus=4), nodes("c", cores=8, priority=-1))
    assert CheapFirst().node_order(Cluster(classes=classes)) == [2, 1, 0]
    assert CheapFirst().node_order(Cluster(classes=(nodes("a b", cores=4), nodes("c", cores=4)))) == [0, 1, 2]


def test_nodes_without_anything() -> None:
    """A node without resources, or a cluster without cores, has a weight all the same."""
    idle, gpus = nodes("a"), nodes("b", gpus=2)
    cluster = Cluster(classes=(idle, gpus))
    assert [node_weight(node, cluster) for node in cluster.classes] == [0, 1]


def test_chunk_order() -> None:
    """OCCS-27: 1 of 2 GPUs (1/2) goes before 4 of 16 cores (1/4); equal ones as they are asked for."""
    cluster = Cluster(classes=(nodes("a", cores=16, mem=64), nodes("b", cores=8, mem=128, gpus=2)))
    asked = Request(chunks=(chunk(cores=4, mem=16), chunk(cores=1, gpus=1), chunk(cores=4)))
    assert CheapFirst().chunk_order(cluster, asked) == [1, 0, 2]


class ExpensiveFirst(CheapFirst):
    """The dearest nodes first."""

    def node_order(self, cluster: Cluster) -> list[int]:
        """Turn the order of the nodes around."""
        return super().node_order(cluster)[::-1]


class SmallFirst(CheapFirst):
    """The least demanding chunks first."""

    def chunk_order(self, cluster: Cluster, request: Request) -> list[int]:
        """Turn the order of the kinds around."""
        return super().chunk_order(cluster, request)[::-1]


def stands(instance: Instance, mapping: Mapping | None) -> Sequence[object]:
    """Return where the only job of a window stands with a policy."""
    ledger = Ledger(instance, instance.jobs, mapping)
    ledger.plan([instance.jobs[0].id])
    planned = ledger.planned(instance.jobs[0].id)
    assert planned is not None
    return where_it_stands(instance, planned)


def test_another_policy_takes_other_nodes() -> None:
    """Mapping is replaceable: with dear nodes first the job goes to C instead of A and B; starts do not differ
    (OCCS-31).
    """
    classes = (nodes("a b", cores=16), nodes("c", cores=32, gpus=2))
    instance = window(classes, waiting("j", 10, chunk(3, cores=8)))
    assert stands(instance, None) == (0, [("a", 0, 2), ("b", 0, 1)])
    assert stands(instance, ExpensiveFirst()) == (0, [("c", 0, 3)])


def test_another_policy_places_other_kinds_first() -> None:
    """The kind that is placed first gets the first node: of 4 cores, 3 leave no room for 2, and 2 none for 3."""
    instance = window([nodes("a b", cores=4)], waiting("j", 10, chunk(1, cores=2), chunk(1, cores=3)))
    assert stands(instance, None) == (0, [("a", 1, 1), ("b", 0, 1)])
    assert stands(instance, SmallFirst()) == (0, [("a", 0, 1), ("b", 1, 1)])


def test_a_policy_that_fails_is_not_the_last_word() -> None:
    """Small chunks first would fill A and B by halves; the kinds are then tried in other orders at the same start
    (OCCS-30).
    """
    instance = window([nodes("a b", cores=4)], waiting("j", 10, chunk(1, cores=4), chunk(2, cores=2)))
    scattered = window([nodes("a", cores=4), nodes("b", cores=4, gpus=1)], waiting("j", 10, chunk(cores=1), GPU))
    assert stands(instance, SmallFirst()) == (0, [("a", 1, 2), ("b", 0, 1)])
    assert stands(scattered, ExpensiveFirst()) == (0, [("b", 0, 1), ("b", 1, 1)])
    pressed = window([nodes("a", cores=4), nodes("b", cores=1, gpus=1)], waiting("j", 10, chunk(cores=1), GPU))
    assert stands(pressed, ExpensiveFirst()) == (0, [("a", 0, 1), ("b", 1, 1)])


GPU = chunk(cores=1, gpus=1)
