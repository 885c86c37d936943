"""The dependencies behind a plan as a page: names are texts, nothing is loaded, and each wait is an arrow."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from cpsched.cli import main
from cpsched.formats import write_instance, write_plan
from cpsched.report import workflow_html
from tests.metrics.test_workflow import planned, window


def test_a_page_has_a_bar_for_each_job_and_an_arrow_for_each_wait() -> None:
    """The jobs of the critical path are marked, and a job that never starts has a row without a bar."""
    instance = window(
        {"id": "a"},
        {"id": "b", "after": [{"job": "a", "type": "afterany"}]},
        {"id": "c", "after": [{"job": "a", "type": "afterany"}], "walltime": 10},
        {"id": "wide", "request": "1:ncpus=9", "after": [{"job": "a", "type": "afterany"}]},
    )
    page = workflow_html(instance, planned(instance))
    assert page.count("<rect ") == 3
    assert page.count('marker-end="url(#tip)"') == 2
    assert page.count('<g class="critical">') == 2
    assert "wide: no start" in page


def test_an_array_after_an_array_has_a_point_between_them() -> None:
    """Lines are as many as elements, not as pairs: those of the first end where the arrows of the second begin."""
    array = {"array": {"indices": "0-5"}}
    instance = window({"id": "many", **array}, {"id": "more", **array, "after": [{"job": "many", "type": "afterany"}]})
    page = workflow_html(instance, planned(instance))
    ends = re.findall(r'd="M[\d.]+ \d+H([\d.]+)V(\d+)"/>', page)
    arrows = re.findall(r'marker-end="url\(#tip\)" d="M([\d.]+) (\d+)V\d+H[\d.]+"/>', page)
    assert (len(ends), len(arrows)) == (6, 6)
    assert len({*ends, *arrows}) == 1


def test_an_arrow_leaves_the_second_that_counts() -> None:
    """A job that waits for the start of another one has its arrow from the start of that one's bar."""
    instance = window({"id": "a"}, {"id": "b", "after": [{"job": "a", "type": "after"}]})
    page = workflow_html(instance, planned(instance))
    assert re.findall(r' d="M([\d.]+) \d+V', page) == re.findall(r'<rect x="([\d.]+)"', page)[:1]


def test_an_arrow_that_others_imply_is_not_critical() -> None:
    """Of a chain of three jobs, all critical, the first one's arrow to the last does not hold it back; a delay may."""
    after = [{"job": "a", "type": "afterany"}, {"job": "b", "type": "afterany"}]
    for delay, kinds in ((0, ["critical", "critical", "wait"]), (150, ["critical", "wait", "wait"])):
        instance = window(
            {"id": "a"}, {"id": "b", "after": after[:1]}, {"id": "c", "after": [{**after[0], "delay": delay}, after[1]]}
        )
        page = workflow_html(instance, planned(instance))
        assert sorted(re.findall(r'<path class="(\w+)" marker-end', page)) == kinds


def test_names_reach_a_page_as_texts() -> None:
    """Markup in an id is shown, not obeyed; the policy admits one style and no script."""
    instance = window(
        {"id": "<script>x</script>"}, {"id": "b", "after": [{"job": "<script>x</script>", "type": "afterany"}]}
    )
    page = workflow_html(instance, planned(instance))
    assert "<script" not in page
    assert "&lt;script&gt;x&lt;/script&gt;: " in page
    assert re.search(r"default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'", page)


def test_show_prints_and_writes_the_graph(tmp_path: Path) -> None:
    """As a table with the critical path marked, and as a page; the graph is no Gantt chart."""
    instance = window(
        {"id": "a"},
        {"id": "b", "after": [{"job": "a", "type": "afterany"}]},
        {"id": "c", "after": [{"job": "a", "type": "afterany"}], "walltime": 10},
    )
    files = [str(tmp_path / "instance.json"), str(tmp_path / "plan.json")]
    write_instance(instance, files[0])
    write_plan(planned(instance), files[1])
    page = tmp_path / "graph.html"
    printed = CliRunner().invoke(main, ["show", *files, "--graph"])
    assert re.search(r"^\*\s+b\s+now \+ 1 min 40 s .* a$", printed.output, re.MULTILINE), printed.output
    assert re.search(r"^\s+c\s+.*1 min 30 s  a$", printed.output, re.MULTILINE), printed.output
    assert CliRunner().invoke(main, ["show", *files, "--graph", "--html", str(page)]).output == f"graph: {page}\n"
    assert page.read_text().startswith("<!doctype html>")
    assert CliRunner().invoke(main, ["show", *files, "--graph", "--gantt"]).exit_code == 2
