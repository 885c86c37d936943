"""How a plan of a model is handed on: as a document and as a figure."""

from __future__ import annotations

import io

import pytest
from matplotlib.collections import PolyCollection

import cpsched
from cpsched.formats import parse_plan


@pytest.fixture
def model() -> cpsched.Model:
    """Return two nodes and a job on each, and one that has no place."""
    model = cpsched.Model("two")
    model.add_nodes("n[1-2]", cores=4)
    model.add_job("2:ncpus=4", walltime=600, id="wide")
    model.add_job("ncpus=1", walltime=60, id="after", after="wide")
    model.add_job("ncpus=8", walltime=60, id="never")
    return model


def test_a_model_is_solved_as_an_instance_is(model: cpsched.Model) -> None:
    """`solve` takes both, and says so of what is neither."""
    plan = cpsched.solve(model, engine="planner", budget=0)
    assert plan.jobs == model.solve(engine="planner", budget=0).jobs
    with pytest.raises(ValueError, match="instance: Expected an Instance or a ModelLike, got 3"):
        cpsched.solve(3)  # type: ignore[arg-type]  # refused


def test_a_plan_is_its_document(model: cpsched.Model) -> None:
    """`to_dict` has values of JSON, and reading them gives the same plan."""
    plan = model.solve(engine="planner", budget=0)
    document = plan.to_dict()
    assert document["format"] == "cpsched-plan/1"
    assert parse_plan(document, source="here") == plan


def test_a_plan_draws_itself(model: cpsched.Model) -> None:
    """A row for each node, and a bar for each job on it."""
    figure = model.solve(engine="planner", budget=0).plot()
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["n1", "n2"]
    (bars,) = (one for one in axes.collections if isinstance(one, PolyCollection))
    assert sorted(tuple(path.get_extents().intervalx) for path in bars.get_paths()) == [(0, 600), (0, 600), (600, 660)]
    figure.savefig(io.BytesIO(), format="svg")


def test_a_plan_without_jobs_draws_itself() -> None:
    """There are no rows, and that is no error."""
    model = cpsched.Model()
    model.add_nodes("n1", cores=1)
    figure = model.solve(engine="planner", budget=0).plot()
    assert len(figure.axes[0].get_yticks()) == 0


def test_a_line_is_wanted_only_where_plans_are_improved(
    model: cpsched.Model, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a budget there is nothing to follow."""
    model.solve(engine="planner", budget=0, live=True)
    assert capsys.readouterr().err == ""
