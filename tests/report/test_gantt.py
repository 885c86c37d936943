"""The HTML page of a plan: safe and small by its text; ``tests/browser`` opens it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from cpsched.domain import FrozenMap, NodeState
from cpsched.report import gantt_html
from cpsched.text import printable
from tests.report.report_plans import HOSTILE, a_plan


def embedded(page: str) -> dict[str, Any]:
    """Read the data back out of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_page_needs_nothing_from_outside() -> None:
    """No address, no reference to a file, and a policy that would refuse both."""
    page = gantt_html(*a_plan(("a", "b")))
    assert not re.search(r"\b(https?:|file:|src=|href=|@import|url\()", page)
    assert "default-src 'none'" in page
    assert "unsafe" not in page


def test_names_cannot_leave_the_data() -> None:
    """The data holds no character of markup, names come back as they are drawn, and nothing is filled into them."""
    page = gantt_html(*a_plan(HOSTILE))
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in page
    assert "<!--" not in page
    assert "\u2028" not in page
    data = embedded(page)
    drawn = tuple(map(printable, HOSTILE))
    assert tuple(row[0] for row in data["jobs"]) == drawn
    assert tuple(data["queues"]) == drawn


def test_half_a_character_can_be_written() -> None:
    """A lone surrogate, which a JSON document may hold, does not keep the page from being written as UTF-8."""
    instance, plan = a_plan(("a", "b"))
    assert b"\\ud800" in gantt_html(replace(instance, name="\ud800"), plan).encode()


def test_neighbours_with_the_same_are_one_run() -> None:
    """A job on two neighbouring nodes is one triple: first node, how many, what each gives."""
    data = embedded(gantt_html(*a_plan(("a", "b"))))
    first, second = data["jobs"]
    assert first[-1] == [[-60, 1140, [0, 2, 0]]]
    assert second[-1] == [[600, 1800, [1, 1, 0]]]
    assert data["held"] == [[4, 2048]]
    assert "2:ncpus=4:mem=2g:a=a" in data["texts"]


def test_nodes_of_a_group_are_neighbours() -> None:
    """Nodes stand by group, the widest groups first, those in none last; runs of jobs and classes follow."""
    instance, plan = a_plan(("a", "b"), nodes=5)
    names = instance.cluster.node_names
    (kind,) = instance.cluster.classes
    other = replace(kind, names=(names[1],), state=NodeState.DRAIN)
    classes = (replace(kind, names=(names[0],)), other, replace(kind, names=names[2:]))
    levels = {
        "switch": FrozenMap({"s1": (names[0], names[3]), "s2": (names[1],), "s3": (names[2],)}),
        "rack": FrozenMap({"r1": (names[0], names[3], names[2]), "r2": (names[1],)}),
    }
    cluster = replace(instance.cluster, classes=classes, topology=FrozenMap(levels))
    data = embedded(gantt_html(replace(instance, cluster=cluster), plan))
    assert data["nodes"] == [names[place] for place in (0, 3, 2, 1, 4)]
    assert data["levels"] == [
        ["rack", [["r1", 0, 3], ["r2", 3, 1]]],
        ["switch", [["s1", 0, 2], ["s3", 2, 1], ["s2", 3, 1]]],
    ]
    assert [(row["first"], row["count"], row["alike"], row["state"]) for row in data["classes"]] == [
        (0, 1, 1, "up"),
        (1, 2, 3, "up"),
        (3, 1, 1, "drain"),
        (4, 1, 3, "up"),
    ]
    assert data["jobs"][0][-1] == [[-60, 1140, [0, 1, 0, 3, 1, 0]]]


def test_use_of_resources_is_in_the_page() -> None:
    """Two nodes of four cores until 1140, a third from 600 to 1800."""
    cores = embedded(gantt_html(*a_plan(("a", "b"))))["resources"][0]
    assert cores == {
        "name": "cores",
        "total": 64,
        "mean": (8 * 1140 + 4 * 1200) / (64 * 1800),
        "times": [0, 600, 1140, 1800],
        "amounts": [8, 12, 4, 0],
    }


def test_a_thousand_jobs_are_less_than_a_megabyte() -> None:
    """The page of 1,000 jobs on 64 nodes stays below 1 MB, and the same plan gives the same page."""
    instance, plan = a_plan(tuple(f"{k}" for k in range(1000)), nodes=64)
    page = gantt_html(instance, plan)
    assert len(page.encode()) < 1_000_000
    assert page == gantt_html(instance, plan)


def test_a_foreign_node_is_refused() -> None:
    """A plan for another cluster is a mistake, not an empty chart."""
    _, plan = a_plan(("a", "b"), nodes=9)
    instance, _ = a_plan(("a", "b"), nodes=1)
    with pytest.raises(ValueError, match="node 'b1' is not in the instance"):
        gantt_html(instance, plan)


def test_the_page_has_the_offset_of_now() -> None:
    """In a time zone it is that of now, or of the epoch where now is beyond the calendar."""
    instance, plan = a_plan(("a", "b"))
    assert embedded(gantt_html(instance, plan))["epoch"][1] == 0
    berlin = replace(instance, time_zone="Europe/Berlin")
    assert embedded(gantt_html(berlin, plan))["epoch"][1] == 7200
    assert embedded(gantt_html(replace(berlin, now=10**12), plan))["epoch"][1] == 0


def test_how_the_plan_was_found_is_in_the_page() -> None:
    """Each incumbent with its value as a number and in words, the bound, and what else happened."""
    data = embedded(gantt_html(*a_plan(("a", "b"))))
    assert data["found"] == [[0.5, 52.9, "52.90", "a"], [2, 45, "45.00", "b"], [9.125, 41.27, "41.27", "a"]]
    assert data["bound"] == [40.02, "40.02"]
    assert data["elapsed"] == 9.7
    assert data["events"] == [["1.25 s", "a", "b"]]
