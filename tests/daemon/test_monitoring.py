"""The alert rules and the board in ``scripts/monitoring``: they name what the daemon exports, and all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from cpsched.site.daemon import Daemon
from tests.bridge.small_world import job, world
from tests.daemon.making import LIVE, daemon_on
from tests.daemon.test_service import Forbidding

#: A metric in an expression, and what it asks of its labels.
SELECTOR = re.compile(r"\b(cpsched_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r"(\w+)(=|!=|=~|!~)\"([^\"]*)\"")
#: Labels that Prometheus itself adds.
FOREIGN = {"instance", "job", "le"}


@dataclass(frozen=True)
class Files:
    """Both files, as they are read."""

    rules: list[dict[str, object]]
    board: dict[str, list[dict[str, list[dict[str, str]]]]]

    def expressions(self) -> Iterator[str]:
        """Yield all expressions."""
        yield from (str(rule["expr"]) for rule in self.rules)
        yield from (target["expr"] for panel in self.board["panels"] for target in panel["targets"])


@pytest.fixture
def files(repository: Path) -> Files:
    """Read both files."""
    folder = repository / "scripts" / "monitoring"
    (group,) = yaml.safe_load((folder / "alerts.yml").read_text())["groups"]
    return Files(group["rules"], json.loads((folder / "grafana.json").read_text()))


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    """Return a daemon that has lost its rights, so that it counts what goes wrong too."""
    there = world(*(job(name, "2:ncpus=4", walltime=1000, runtime=1000) for name in "abc"), gate_is_closed=False)
    daemon, _ = daemon_on(there, tmp_path, LIVE, manager=Forbidding(there))
    for _ in range(3):
        there.advance(there.now + 8)
        daemon.cycle()
    return daemon


def test_each_metric_and_label_is_exported(files: Files, daemon: Daemon) -> None:
    """Each selector has a sample of that name, with labels of these names, and the value that it asks for."""
    samples = [sample for family in daemon.metrics.registry.collect() for sample in family.samples]
    found = [(*one.groups(""), text) for text in files.expressions() for one in SELECTOR.finditer(text)]
    assert len(found) > 20
    for name, matchers, text in found:
        asked = [one for one in MATCHER.findall(matchers) if one[0] not in FOREIGN]
        fitting = [
            one
            for one in samples
            if one.name == name
            and all(label in one.labels and (sign != "=" or one.labels[label] == value) for label, sign, value in asked)
        ]
        assert fitting, (name, matchers, text)


def test_each_metric_is_shown_or_alarms(files: Files, daemon: Daemon) -> None:
    """A metric of the daemon that neither file names would be forgotten."""
    named = {one.group(1) for text in files.expressions() for one in SELECTOR.finditer(text)}
    for family in daemon.metrics.registry.collect():
        assert any(name.startswith(family.name) for name in named), family.name


def test_the_rules_are_alert_rules(files: Files) -> None:
    """As Prometheus reads them: known keys, durations, closed brackets, a severity and a summary."""
    names = [rule["alert"] for rule in files.rules]
    assert len(set(names)) == len(names) > 5
    for rule in files.rules:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[smh]", str(rule.get("for", "5m")))
        labels, annotations = rule["labels"], rule["annotations"]
        assert isinstance(labels, dict)
        assert isinstance(annotations, dict)
        assert labels["severity"] in ("warning", "critical")
        assert annotations["summary"]
    for text in files.expressions():
        for opening, closing in ("()", "[]", "{}"):
            assert text.count(opening) == text.count(closing), text


def test_the_panels_of_the_board_do_not_overlap(repository: Path) -> None:
    """Each has its own number and its own place within the 24 columns."""
    cells = list[tuple[int, int]]()
    panels = json.loads((repository / "scripts" / "monitoring" / "grafana.json").read_text())["panels"]
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells += [(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])]
    assert len(set(cells)) == len(cells)
    assert len({panel["id"] for panel in panels}) == len(panels)
