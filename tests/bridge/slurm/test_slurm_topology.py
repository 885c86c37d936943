"""Slurm's topology in each of its forms, and jobs that ask for one switch or one block."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cpsched.formats import instance_to_document, parse_instance
from cpsched.site.bridge import Snapshot
from cpsched.site.bridge.slurm import make_snapshot, read_directory
from cpsched.site.bridge.slurm.json_reader import read_answer
from cpsched.site.bridge.slurm.snapshot import SnapshotMaker
from cpsched.site.bridge.slurm.text_reader import read_text
from cpsched.site.bridge.slurm.topology import read_topology
from tests.bridge.slurm.answers import NOW, node, number, waiting

SHOWN = """SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[3-5]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-5] Switches=s[0-1]
"""
CONF = """# two leaves
SwitchName=s0 Nodes=n[1-2]
switchname=s1 nodes=n[3-5]   # the wider one
SwitchName=top Switches=s[0-1]
"""
YAML = """---
- topology: flat
  flat: true
- topology: tree
  cluster_default: true
  tree:
    switches:
      - switch: top
        children: s[0-1]
      - switch: s0
        nodes: n[1-2]
      - switch: s1
        nodes: "n[3-5]"
- topology: other
  block:
    block_sizes:
      - 2
    blocks:
      - block: b1
        nodes: n[1-2]
"""
TREE = {"switch1": {"top": ("n1", "n2", "n3", "n4", "n5")}, "switch": {"s0": ("n1", "n2"), "s1": ("n3", "n4", "n5")}}
WIDER = {**TREE, "switch1": {"top": ("n5", "n6", "n1", "n2", "n3", "n4")}}
PAIRS = {"b1": ("n1", "n2"), "b2": ("n3", "n4")}
BLOCKS = """BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2
BlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2
AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4
"""


@pytest.mark.parametrize("text", [SHOWN, CONF, YAML], ids=["scontrol", "topology.conf", "topology.yaml"])
def test_a_tree_is_the_same_in_each_form(text: str) -> None:
    """Switches by their height, each with all nodes below it, the highest first."""
    found = read_topology(text, "test")
    assert (found.levels, found.block_size, found.notes) == (TREE, 0, ())
    assert list(found.levels) == ["switch1", "switch"]


def test_blocks() -> None:
    """Blocks are a level, with the least of their sizes; what Slurm makes of several of them is none."""
    found = read_topology(BLOCKS, "test")
    assert (found.levels, found.block_size, found.notes) == ({"block": PAIRS}, 2, ())


@pytest.mark.parametrize(
    ("sizes", "least"), [("BlockSizes=4", 4), ("", 3), ("blocksizes=2,4", 2)], ids=["given", "none given", "several"]
)
def test_the_least_size_of_blocks(sizes: str, least: int) -> None:
    """That of topology.conf, or the number of nodes of the smallest block."""
    text = f"BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-7]\n{sizes}\n"
    assert read_topology(text, "test").block_size == least


def test_the_size_of_blocks_in_yaml() -> None:
    """The first of the list, in either of YAML's forms."""
    for sizes in ("[4, 8]", "\n      - 4\n      - 8"):
        blocks = "    blocks:\n      - block: b1\n        nodes: n[1-5]\n"
        text = f"- topology: b\n  block:\n    block_sizes: {sizes}\n{blocks}"
        assert read_topology(text, "test").block_size == 4


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
        "SwitchName=a Nodes=n[1-\n",
        "SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n",
        "- topology: t\n  tree:\n    switches:\n    - switch: a\n      children: b\n    - nodes: n1\n      switch: b\n",
        "SwitchName=a Nodes=n[1-2]\nSwitchName=top Switches=a,b\n",
        "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[3-4]\n",
        "SwitchName=a Nodes=n[0-99999999]\n",
        "SwitchName=a Nodes=n[1-6]\nSwitchName=b Nodes=m[1-6]\n",
        "SwitchName=s0 Nodes=n1\n" + "".join(f"SwitchName=s{k + 1} Switches=s{k}\n" for k in range(2000)),
        "SwitchName=s0 Nodes=n1\n"
        + "".join(f"SwitchName={k}{n} Switches=a{n - 1},b{n - 1}\n" for n in range(40) for k in "ab").replace(
            "a-1,b-1", "s0"
        ),
        "- topology: t\n  tree:\n    switches:\n    - {switch: a, nodes: n1}\n",
        "- topology: t\n  tree:\n    switches:\n    - switch: a\n      nodes:\n      - n1\n",
    ],
    ids=range(12),
)
def test_what_is_no_tree_costs_the_topology(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch below itself, there twice, or known only as one below another, a host list that cannot be read, nodes
    before their switch or in two of a level, more nodes or levels than any machine has, and YAML of other forms.
    """
    monkeypatch.setattr("cpsched.site.bridge.slurm.topology.MAX_NODES", 10)
    found = read_topology(text, "test")
    assert not found.levels
    assert [note.path for note in found.notes] == ["test"]


def test_without_a_topology_the_others_are_planned() -> None:
    """Jobs that ask for a switch are left to Slurm, with what is wrong with the topology."""
    asks, asks_not = asking(3, required_switches=1), waiting(8, node_count=3, cpus=3, tasks=3)
    snapshot = look("SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[3-4]\n", asks, asks_not)
    (note,), (left,) = snapshot.notes, snapshot.left
    assert "n3" in note.message
    assert [job.id for job in snapshot.instance.jobs] == ["8"]
    assert (left.id, str(note) in left.reason) == ("7", True)


@pytest.mark.parametrize(
    ("text", "where", "levels"),
    [
        (CONF + "SwitchName=s9\n", ["s9"], TREE),
        (CONF + "SwitchName=s9 Node=n6\n", ["s9", "s9"], TREE),
        (CONF + "Depth=3\n", ["top"], TREE),
        ("Depth=3\n" + CONF, ["before all switches"], TREE),
        (CONF.replace("Switches=", "Nodes=n[5-6] Switches="), ["top"], WIDER),
        (BLOCKS.replace("BlockSize=2", "BlockSize=3"), ["BlockSizes"], {"block": PAIRS}),
    ],
    ids=["empty switch", "misspelt key", "unknown key", "unknown key first", "nodes and switches", "sizes of blocks"],
)
def test_what_counts_for_nothing_is_noted(text: str, where: list[str], levels: dict[str, dict[str, Any]]) -> None:
    """The rest of the topology holds."""
    found = read_topology(text, "test")
    assert [note.path for note in found.notes] == [f"test: {one}" for one in where]
    assert found.levels == levels


def look(topology: str, *jobs: dict[str, Any]) -> Snapshot:
    """Return the snapshot of six nodes with a topology and jobs; its instance passes the reader of documents."""
    answer = {"jobs": list(jobs), "nodes": [node(f"n{place}") for place in range(1, 7)]}
    records = replace(read_answer(answer, "test"), topology=read_topology(topology, "test"))
    snapshot = make_snapshot(records, NOW)
    assert parse_instance(instance_to_document(snapshot.instance), source="test") == snapshot.instance
    return snapshot


def asking(nodes: int, **fields: Any) -> dict[str, Any]:
    """Return a job on some nodes."""
    return waiting(7, node_count=nodes, cpus=nodes, tasks=nodes, **fields)


@pytest.mark.parametrize(
    ("topology", "job", "level"),
    [
        (SHOWN, asking(3, required_switches=1), "switch"),
        (SHOWN, asking(3, minimum_switches=number(1)), "switch"),
        (SHOWN, asking(1, required_switches=1), None),
        (SHOWN, asking(3), None),
        (BLOCKS, asking(2, segment_size=2, maximum_switch_wait_time=0), "block"),
        (BLOCKS, asking(2), "block"),
        (BLOCKS, asking(1), None),
        (BLOCKS, asking(3), None),
        (SHOWN, asking(3, required_switches=1, maximum_switch_wait_time=601), "switch"),
        (SHOWN, asking(3, required_switches=1, maximum_switch_wait_time=600), None),
        (SHOWN, asking(4, required_switches=1, maximum_switch_wait_time=600), None),
        (SHOWN, asking(3, required_switches=1, maximum_switch_wait_time=600, eligible_time=NOW + 9), None),
    ],
)
def test_one_switch_or_block_is_a_place(topology: str, job: dict[str, Any], level: str | None) -> None:
    """``--switches=1`` until its time has passed since the submission, and a job not wider than blocks are at least."""
    snapshot = look(topology, job)
    assert not snapshot.left
    assert snapshot.instance.jobs[0].request.place.within == level


def test_segments_are_a_place() -> None:
    """``--segment=2`` of four nodes: two at a time are in one block, and another size of segments is another job."""
    snapshot, other = (look(BLOCKS, asking(4, segment_size=size)) for size in (2, 1))
    assert not snapshot.left
    place = snapshot.instance.jobs[0].request.place
    assert (place.within, place.segment) == ("block", 2)
    assert snapshot.jobs["7"].revision != other.jobs["7"].revision


def test_segments_are_left_where_orders_name_nodes() -> None:
    """A real Slurm has a job of segments wait for ever where it asks for nodes by name."""
    answer = {"jobs": [asking(4, segment_size=2)], "nodes": [node(f"n{place}") for place in range(1, 7)]}
    records = replace(read_answer(answer, "test"), topology=read_topology(BLOCKS, "test"))
    (left,) = SnapshotMaker().make(records, NOW).left
    assert "--segment" in left.reason


def test_text_and_time_alone_end_the_wait_for_a_switch() -> None:
    """The same records in the text of scontrol, of which the time that Slurm waits passes between two snapshots."""
    text = f"JobId=7 JobState=PENDING SubmitTime={NOW} NumNodes=3 NumCPUs=3 NumTasks=3 TimeLimit=00:10:00"
    nodes = "".join(f"NodeName=n{place} CPUTot=16 State=IDLE Partitions=normal\n" for place in range(1, 7))
    records = read_text(f"{nodes}{text} Partition=normal Switches=1@1-00:00:10\n", "test")
    records = replace(records, topology=read_topology(SHOWN, "test"))
    maker, over = SnapshotMaker(), NOW + 86410
    places = [maker.make(records, second).instance.jobs[0].request.place.within for second in (NOW, over - 1, over)]
    assert places == ["switch", "switch", None]


@pytest.mark.parametrize(
    ("topology", "job", "reason"),
    [
        (SHOWN, asking(3, required_switches=2), "it asks for several switches"),
        (SHOWN, asking(4, required_switches=1), "no switch has the 4 nodes"),
        (BLOCKS, asking(3, segment_size=2), "it asks for segments that its nodes do not divide into"),
        (BLOCKS, asking(6, segment_size=3), "no block has the segments of 3 nodes"),
        (BLOCKS, asking(2, required_switches=1), "no switch has the 2 nodes"),
    ],
)
def test_what_cannot_be_said_is_left(topology: str, job: dict[str, Any], reason: str) -> None:
    """Several switches or segments, and more nodes than any switch has, are left to Slurm."""
    (left,) = look(topology, job).left
    assert reason in left.reason


def test_a_directory_may_have_a_topology(tmp_path: Path) -> None:
    """Next to the answers of commands lies topology.conf, with a mark of its encoding and a node that Slurm does not
    tell of.
    """
    (tmp_path / "nodes.txt").write_text("".join(f"NodeName=n{place} CPUTot=4 State=IDLE\n" for place in range(1, 5)))
    (tmp_path / "topology.conf").write_text(CONF, encoding="utf-8-sig")
    reading = read_directory(tmp_path)
    assert "topology.conf" in reading.used
    snapshot = make_snapshot(reading.records, NOW)
    assert snapshot.instance.cluster.topology["switch"] == {"s0": ("n1", "n2"), "s1": ("n3", "n4")}
