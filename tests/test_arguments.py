"""Arguments of public functions: each is checked at the door, in one way."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import cpsched
from cpsched.arguments import SECONDS, SEED, WORKERS
from cpsched.cli import main
from cpsched.domain import Instance, Plan
from cpsched.lab.bench import read_campaign
from cpsched.site.daemon import read_site

#: What no argument of a number, text, document or function is.
NOTHING = object()
SECONDS_WRONG = ["10", float("nan"), float("inf"), -1, SECONDS.most + 1, True, None, NOTHING, [1]]
SEED_WRONG = ["1", -1, 1.5, SEED.most + 1, True, np.float64(1), None, NOTHING]
WORKERS_WRONG = ["2", 0, -1, WORKERS.most + 1, 1.5, True, np.int64(0), NOTHING]
TEXT_WRONG = [3, None, b"text", ["text"], NOTHING]
PATH_WRONG = [3, None, {}, NOTHING]
CALLABLE_WRONG = [3, "print", NOTHING]
DOCUMENT_WRONG = ["file.json", Path("file.json"), {}, 3, None, NOTHING]
RECIPE: dict[str, list[Any]] = {
    "engine": TEXT_WRONG,
    "budget": SECONDS_WRONG,
    "seed": SEED_WRONG,
    "workers": WORKERS_WRONG,
    "bound": SECONDS_WRONG,
    "warm": ["plan.json", 3, {}],
    "solver": TEXT_WRONG,
    "live": [1, "yes", None],
}
BOTH = {"instance": DOCUMENT_WRONG, "plan": DOCUMENT_WRONG}

#: The bad values of each argument of each public function.
WRONG: dict[str, dict[str, list[Any]]] = {
    "prepare": {
        "engine": TEXT_WRONG,
        "workers": WORKERS_WRONG,
        "solver": TEXT_WRONG,
        "changing": [1, "yes", None],
        "linked": [1, "yes", None],
    },
    "solve": RECIPE
    | {
        "instance": DOCUMENT_WRONG,
        "team": ["search", 3],
        "progress": CALLABLE_WRONG,
        "on_plan": CALLABLE_WRONG,
        "steps": [0, -1, 1.5, "3", True],
    },
    "replan": BOTH | {"at": ["5", 1.5, True], "events": ["ended", 3, [3], None]},
    "simulate": {
        "instance": DOCUMENT_WRONG,
        "scheduler": ["easy", 3, None],
        "predict": ["order", True],
        "charge_overhead": [1, None],
        "feedback": [1, None],
        "progress": CALLABLE_WRONG,
        "checkpoint": ["file", 3],
    },
    "explain": BOTH | {"job_id": TEXT_WRONG, "at": ["5", 1.5, True]},
    "whatif": BOTH | {"request": ["drop", 3, {}], "budget": SECONDS_WRONG, "seed": SEED_WRONG},
    "Answers": BOTH,
    "WhatIf": {name: [3, [3], None] for name in ("add", "drop", "drain", "limit", "nodes")} | {"walltime": [3, "a=5"]},
    "verify_plan": BOTH,
    "verify_files": {"instance_path": PATH_WRONG, "plan_path": PATH_WRONG},
    "summarise": BOTH,
    "gantt_html": BOTH | {"is_embedded": [1, None]},
    "make_scheduler": {"name": TEXT_WRONG, "parameters": ["depth=3", 3, None]},
    "read_instance": {"source": PATH_WRONG, "on_warning": CALLABLE_WRONG},
    "read_plan": {"source": PATH_WRONG},
    "write_instance": {"instance": DOCUMENT_WRONG, "path": PATH_WRONG},
    "write_plan": {"plan": DOCUMENT_WRONG, "path": PATH_WRONG},
    "Model.solve": RECIPE,
    "Model.from_instance": {"instance": DOCUMENT_WRONG},
    "Model.from_dict": {"document": [3, "x", [1], None]},
    "Model.from_frame": {"jobs": [3, "jobs.csv", [{}], None]},
    "Model.add_license": {"name": TEXT_WRONG},
    "Model.add_queue": {"name": TEXT_WRONG},
    "Model.add_nodes": {"resources": [3, "cores"]},
}
#: What is checked elsewhere: a room, nouns that readers make, errors, and the document of a caller that has read one.
NOT_HERE = {"gym", "Instance", "Plan", "Fault", "Model", "__version__"}
NOT_CHECKED = {("solve", "document")}
CASES = [(name, key, value) for name, keys in WRONG.items() for key, values in keys.items() for value in values]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Return a good value for each argument without a default."""
    folder = tmp_path_factory.mktemp("arguments")
    model = cpsched.Model()
    model.add_nodes("n[1-2]", cores=4)
    model.add_job("2:ncpus=4", 600)
    model.add_job("ncpus=1", 60)
    instance = model.instance()
    return {
        "instance": instance,
        "plan": cpsched.solve(instance, budget=0),
        "scheduler": cpsched.make_scheduler("easy"),
        "job_id": instance.jobs[0].id,
        "request": cpsched.WhatIf(),
        "name": "easy",
        "source": folder / "in.json",
        "path": folder / "out.json",
        "instance_path": folder / "in.json",
        "plan_path": folder / "plan.json",
        "count": 1,
        "expected_wait": 1,
        "names": "n1",
    }


def called(name: str) -> Callable[..., Any]:
    """Return a public function, or a method of a new model."""
    owner, _, method = name.partition(".")
    found: Callable[..., Any] = getattr(cpsched, owner)
    return getattr(found(), method) if method else found


@pytest.mark.parametrize(("name", "key", "value"), CASES, ids=[f"{n}-{k}-{v!r:.20}" for n, k, v in CASES])
def test_a_bad_argument_is_told_with_its_name(name: str, key: str, value: object, good: Mapping[str, Any]) -> None:
    """Whatever the function and whatever the value: its name, what is expected, and what it is; nothing from inside."""
    function = called(name)
    parameters = inspect.signature(function).parameters
    given = {one: good[one] for one in parameters if one in good} | {key: value}
    with pytest.raises(ValueError, match=f"^{key}: Expected .+, got ") as caught:
        function(**given)
    assert type(caught.value) is ValueError
    assert re.search(re.escape(repr(value)[:40]), str(caught.value))


def test_every_public_function_is_in_the_table() -> None:
    """A new public function, or a new argument of one, is checked too."""
    errors = {
        name
        for name in cpsched.__all__
        if isinstance(found := getattr(cpsched, name), type) and issubclass(found, Exception)
    }
    assert set(cpsched.__all__) - errors - NOT_HERE == {name for name in WRONG if "." not in name}
    for name, keys in WRONG.items():
        if "." not in name:
            missing = set(inspect.signature(called(name)).parameters) - keys.keys()
            assert missing <= {key for function, key in NOT_CHECKED if function == name}, name


@pytest.mark.parametrize("number", [np.int64, np.int32, np.uint8])
def test_integers_of_numpy_are_integers(number: Callable[[int], Any], good: Mapping[str, Any]) -> None:
    """A seed out of an array is as good as another one."""
    plan = cpsched.solve(good["instance"], budget=number(0), seed=number(3), workers=number(2))
    assert plan.jobs == good["plan"].jobs


@pytest.mark.parametrize("number", [np.float32, np.float64, np.float16])
def test_floats_of_numpy_are_numbers(number: Callable[[float], Any], good: Mapping[str, Any]) -> None:
    """A budget of numpy is written in the plan as Python's float, which JSON has."""
    plan = cpsched.solve(good["instance"], engine="planner", budget=number(0.5))
    assert type(plan.engine.budget) is float
    assert plan.engine.budget == float(number(0.5))


def test_a_path_in_place_of_a_document_is_told_how_to_read_it(good: Mapping[str, Any]) -> None:
    """The most frequent slip has the way out in its message."""
    with pytest.raises(ValueError, match="read_plan reads one"):
        cpsched.solve(good["instance"], warm="plan.json")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="read_instance reads one"):
        cpsched.solve("window.json")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="make_scheduler makes one"):
        cpsched.simulate(good["instance"], "easy")  # type: ignore[arg-type]


def test_an_unknown_argument_is_told_by_python(good: Mapping[str, Any]) -> None:
    """A wrong keyword is Python's own error, with the function's name."""
    with pytest.raises(TypeError, match=r"^solve\(\) got an unexpected keyword argument 'sede'"):
        called("solve")(good["instance"], sede=3)


@pytest.mark.parametrize("given", ["a", ["a"], ("a",)])
def test_a_text_is_one_name(given: Any, good: Mapping[str, Any]) -> None:
    """Where several names may be, a text is one of them, not its letters."""
    assert cpsched.WhatIf(drop=given).drop == ("a",)


@pytest.mark.parametrize("bad", [{"seed": SEED.most + 1}, {"seed": -1}, {"workers": 0}, {"workers": WORKERS.most + 1}])
def test_the_same_limits_hold_everywhere(bad: dict[str, int], tmp_path: Path) -> None:
    """The command line, the site's file, campaigns and policies refuse the seeds and workers that Python refuses."""
    ((key, value),) = bad.items()
    (tmp_path / "in.json").write_text("{}")
    shown = CliRunner().invoke(main, ["solve", str(tmp_path / "in.json"), f"--{key}", str(value)])
    assert f"Expected an integer from {(SEED if key == 'seed' else WORKERS).least} to " in shown.output
    manager, store = '[manager]\nkind = "memory"\ninstance = "in.json"\n', '[store]\nurl = "sqlite://"\n'
    (tmp_path / "site.toml").write_text(f"{manager}{store}[planning]\n{key} = {value}\n")
    with pytest.raises(cpsched.DocumentError, match=rf"planning\.{key}: Expected an integer"):
        read_site(tmp_path / "site.toml")
    policy = f'[[policy]]\nscheduler = "search"\nparameters = {{{key} = {value}}}\n'
    (tmp_path / "campaign.toml").write_text(f'name = "c"\n[[workload]]\nname = "w"\ninstance = "in.json"\n{policy}')
    with pytest.raises(cpsched.DocumentError, match=rf"parameters\.{key}: Expected an integer from"):
        read_campaign(tmp_path / "campaign.toml")
    with pytest.raises(cpsched.DocumentError, match=f"{key}: Expected an integer from"):
        cpsched.make_scheduler("search", bad)


def test_the_fixture_is_good(good: Mapping[str, Any]) -> None:
    """Else a refusal could be of another argument."""
    assert isinstance(good["instance"], Instance)
    assert isinstance(good["plan"], Plan)
    assert not cpsched.verify_plan(good["instance"], good["plan"])
