"""The arrows between the rooms, checked in the source text: which room may import which, and which library lives where.

A new room, or a new arrow, is a change to the tables below, made on purpose.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "cpsched"

#: From the ground up; a room imports only from layers below its own, so siblings are strangers.
LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(layer.split())
    for layer in (
        "arguments doors errors gc_pauses text",
        "domain rusv verify writing",
        "charts engine formats metrics problem workloads",
        "booking",
        "planner",
        "sim rules search cp mzn bridge report forecast",
        "portfolio",
        "answers daemon modelling policies",
        "bench gym",
        "serve",
        "cli",
    )
)

ALL_ROOMS = frozenset().union(*LAYERS)

#: The rooms that each room imports, of those that exist: no others, and none that is not needed.
ARROWS: dict[str, frozenset[str]] = {
    room: frozenset(needed.split())
    for room, needed in {
        "arguments": "",
        "errors": "",
        "doors": "",
        "gc_pauses": "",
        "text": "",
        "domain": "arguments doors text",
        "rusv": "gc_pauses",
        "verify": "errors",
        "writing": "errors",
        "booking": "doors domain problem rusv",
        "charts": "errors text",
        "engine": "domain",
        "formats": "arguments errors domain writing text",
        "problem": "domain",
        "metrics": "arguments domain errors writing text",
        "workloads": "domain",
        "planner": "doors errors problem domain rusv booking engine metrics",
        "sim": "arguments doors errors problem domain rusv booking formats metrics planner writing",
        "rules": "doors errors problem domain rusv booking engine planner",
        "policies": "arguments doors errors problem domain rusv engine portfolio rules sim text",
        "cp": "doors errors problem domain booking engine metrics planner",
        "mzn": "doors errors problem domain engine metrics planner text",
        "forecast": "doors domain problem rusv booking planner",
        "report": "arguments charts doors domain errors metrics formats text",
        "bridge": "errors domain formats text writing",
        "search": "doors domain problem rusv booking engine metrics planner",
        "portfolio": (
            "arguments doors errors domain engine formats metrics planner rules problem search cp mzn text verify"
        ),
        "bench": "arguments charts doors errors domain formats metrics policies report sim workloads writing text",
        "gym": "doors domain metrics sim text",
        "answers": "arguments doors errors domain rusv booking formats metrics planner portfolio problem report text",
        "daemon": (
            "arguments doors errors gc_pauses bridge domain engine forecast formats planner portfolio text verify "
            "writing"
        ),
        "modelling": "arguments doors domain formats portfolio text",
        "serve": "arguments doors errors answers daemon domain engine formats metrics portfolio report",
        "cli": (
            "arguments errors answers bench bridge charts daemon forecast formats metrics planner policies portfolio "
            "report serve sim verify workloads writing text"
        ),
    }.items()
}

#: Who may import a room that is not for everybody above it.
GUESTS: dict[str, frozenset[str]] = {
    "verify": frozenset({"portfolio", "daemon", "cli"}),
    "workloads": frozenset({"cli", "bench"}),
}

#: The folders with the rooms of a wing: the laboratory plays histories, the site runs a cluster. All other rooms are
#: the core, which plans. The wings do not know each other, the core knows neither, and the command line knows all.
WINGS: dict[str, frozenset[str]] = {
    "lab": frozenset({"sim", "policies", "workloads", "bench", "gym"}),
    "site": frozenset({"bridge", "daemon", "serve"}),
}

#: Modules that others may import besides the door of their room: what few need, and is a subject of its own.
SIDE_DOORS = frozenset(
    {
        "cpsched.site.bridge.oar",
        "cpsched.site.bridge.pbs",
        "cpsched.site.bridge.slurm",
        "cpsched.formats.logs",
        "cpsched.formats.swf",
    }
)

#: The modules above all rooms: the package's own names, and ``python -m cpsched``.
OPENINGS = frozenset({"", "__main__"})

#: The rooms that use each library from outside, and no others. A library that is neither here nor in the standard
#: library is not used.
HOMES: dict[str, frozenset[str]] = {
    library: frozenset(homes.split())
    for library, homes in {
        "alembic": "daemon",
        "click": "cli",
        "cronsim": "formats problem",
        "dask_jobqueue": "bench",
        # portfolio: lanes on the workers of a Dask cluster
        "distributed": "bench portfolio",
        "fastapi": "serve",
        "gymnasium": "gym",
        "matplotlib": "charts",
        "minizinc": "mzn",
        "msgspec": "bridge daemon",
        "networkx": "formats metrics",
        "llvmlite": "rusv",
        "numba": "rusv",
        "numpy": (
            "answers bench booking charts cp forecast gym metrics planner policies report rules rusv search sim "
            "workloads"
        ),
        "ortools": "cp",
        # domain: a plan makes a table of itself
        "pandas": "domain metrics modelling",
        "plotly": "charts",
        "prometheus_client": "daemon serve",
        "pyarrow": "bench",
        "pydantic": "serve",
        "rich": "cli report",
        "sqlalchemy": "daemon",
        "starlette": "serve",
        "structlog": "daemon",
        # policies: schedulers of Batsim are asked over it
        "zmq": "policies",
        "uvicorn": "serve",
        # cp: multiprocessing would run the unguarded script of whoever calls us a second time
        # bridge: the commands of a resource manager
        "subprocess": "bridge cp",
    }.items()
}

#: What a bare ``import cpsched`` must not load.
HEAVY = frozenset(
    {"ClusterShell", "distributed", "minizinc", "networkx", "numba", "numpy", "ortools", "pandas", "pydantic"}
)


@dataclass(frozen=True, slots=True)
class Import:
    """One imported thing: the dotted module, and the name taken from it (None for a plain ``import``)."""

    module: str
    name: str | None
    line: int


#: What a statement can be inside of.
_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def imports_of(tree: ast.Module, package: str) -> Iterator[Import]:
    """Yield what a module of `package` imports when it runs; ``if TYPE_CHECKING:`` is left out."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending.extend(node.orelse)
            continue
        # imports are statements: what is inside of expressions need not be looked at
        pending.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, _WITH_STATEMENTS))
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, None, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parts, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(module, alias.name, node.lineno)


def room_of(module: str) -> str:
    """Return the room of a dotted module name; the package itself and ``__main__`` are rooms of their own."""
    parts = [*without_wing(module).split("."), ""]
    return parts[1]


def without_wing(module: str) -> str:
    """Return the dotted name of a module as if its room were right below ``cpsched``."""
    parts = module.split(".")
    if len(parts) > 2 and parts[0] == "cpsched" and parts[1] in WINGS:
        del parts[1]
    return ".".join(parts)


def target_of(found: Import) -> tuple[str, str | None]:
    """Return (module, name) with ``from cpsched import room`` read as the import of that room."""
    if found.module.split(".") in [["cpsched"], *(["cpsched", wing] for wing in WINGS)] and found.name in ALL_ROOMS:
        return f"{found.module}.{found.name}", None
    return found.module, found.name


def faults_of(imports: Iterable[Import], module: str, doors: dict[str, frozenset[str]]) -> list[str]:
    """List the faults in the imports of a module, in words.

    Parameters
    ----------
    imports
        What it imports.
    module
        Its dotted name, ``cpsched.booking.ledger``.
    doors
        The public names of each module.
    """
    room = room_of(module)
    faults = []
    for found in imports:
        target, name = target_of(found)
        top = target.partition(".")[0]
        where = f"{module}:{found.line}"
        if top != "cpsched":
            faults += [f"{where}: {fault}" for fault in outside_faults(room, top)]
        elif room_of(target) != room:
            faults += [f"{where}: {fault}" for fault in arrow_faults(room, target, name, doors)]
    return faults


def outside_faults(room: str, library: str) -> Iterator[str]:
    """Yield a fault where a room imports a library that has no home there."""
    if library in HOMES:
        if room not in HOMES[library]:
            yield f"{library} lives in {', '.join(sorted(HOMES[library]))}, not in {room or 'cpsched/__init__'}"
    elif library not in sys.stdlib_module_names:
        yield f"{library} has no home in this house"


def arrow_faults(room: str, target: str, name: str | None, doors: dict[str, frozenset[str]]) -> Iterator[str]:
    """Yield the faults of an import of `target` (and of `name` in it) by another room."""
    host = room_of(target)
    if not host:
        yield f"{room} may not import the package itself, whose names are for users"
        return
    if room not in OPENINGS and host not in ARROWS.get(room, frozenset()):
        yield f"{room} may not import {host}"
    yield from door_faults(target, name, doors)


def door_faults(target: str, name: str | None, doors: dict[str, frozenset[str]]) -> Iterator[str]:
    """Yield the faults of an import from another room that does not go through its door."""
    host = room_of(target)
    if without_wing(target).count(".") > 1 and target not in SIDE_DOORS:
        yield f"{target} is behind the door of {host}"
    elif name is not None and name not in doors.get(target, frozenset()):
        yield f"{name} is no public name of {target}"


def module_name(path: Path) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(path: Path) -> str:
    """Return the dotted name of the package that a source file is in, or is."""
    return ".".join(path.relative_to(ROOT).parts[:-1])


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a source file."""
    return ast.parse(path.read_text())


@cache
def imported_by(path: Path) -> tuple[Import, ...]:
    """Return the imports of a source file."""
    return tuple(imports_of(tree_of(path), package_of(path)))


def imported_by_test(path: Path) -> Iterator[Import]:
    """Yield the imports of a module of tests, whose tree is of no further use."""
    return imports_of(ast.parse(path.read_text()), package_of(path))


@cache
def public_names(path: Path) -> frozenset[str]:
    """Return the names that a module offers to other rooms: a door, or a room of one module, those that it defines or
    imports from its room.
    """
    if path.name != "__init__.py" and path.parent != PACKAGE:
        return frozenset()
    own = own_names(path, package_of(path) if path.name == "__init__.py" else module_name(path))
    return frozenset(name for name in own if not name.startswith("_"))


def own_names(path: Path, package: str) -> frozenset[str]:
    """Return the names that a module defines, imports from modules in `package`, or imports ``as`` something."""
    names = set[str]()
    pending: list[ast.stmt] = list(tree_of(path).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If):
            pending += [*node.body, *node.orelse]
        elif isinstance(node, ast.ImportFrom):
            is_inside = f"{node.module}.".startswith(f"{package}.")
            names |= {one.asname or one.name for one in node.names if is_inside or one.asname}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return frozenset(names)


SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def all_doors() -> dict[str, frozenset[str]]:
    """Return the public names of each module."""
    return {module_name(path): public_names(path) for path in SOURCES}


def test_every_import_follows_an_arrow_through_a_door() -> None:
    """No module imports a room that it has no arrow to, a module behind a door, or a library that lives elsewhere."""
    doors = all_doors()
    faults = [fault for path in SOURCES for fault in faults_of(imported_by(path), module_name(path), doors)]
    assert not faults, "\n".join(faults)


def faults_of_test(imports: Iterable[Import], module: str, doors: dict[str, frozenset[str]]) -> list[str]:
    """List the imports of a module of tests that reach behind the door of a room other than that of its folder."""
    faults = []
    for found in imports:
        target, name = target_of(found)
        if target.startswith("cpsched.") and room_of(target) != room_of(module):
            faults += [f"{module}:{found.line}: {fault}" for fault in door_faults(target, name, doors)]
    return faults


def test_tests_enter_other_rooms_by_the_door() -> None:
    """Tests that look behind the door of a room are in its folder, ``tests/ROOM``; all others use public names."""
    doors = all_doors()
    assert len(TESTS) > 300
    faults = [fault for path in TESTS for fault in faults_of_test(imported_by_test(path), module_name(path), doors)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("source", "module", "expected"),
    [
        ("from cpsched.booking.ledger import Ledger", "tests.booking.test_ledger", []),
        ("from cpsched.domain import Job", "tests.test_writing", []),
        ("from cpsched.booking.ledger import Ledger", "tests.planner.test_solve", ["behind the door of booking"]),
        ("import cpsched.booking.ledger", "tests.test_writing", ["behind the door of booking"]),
        ("from cpsched.domain import secret", "tests.oracle.naive", ["secret is no public name"]),
    ],
)
def test_what_tests_may_import(source: str, module: str, expected: list[str]) -> None:
    """A test may look behind the door of its own folder's room, and of no other."""
    imports = imports_of(ast.parse(source), module.rpartition(".")[0])
    faults = faults_of_test(imports, module, {"cpsched.domain": frozenset({"Job"})})
    assert [next(one for one in expected if one in fault) for fault in faults] == expected


@pytest.mark.parametrize("room", sorted(ARROWS))
def test_every_arrow_is_needed(room: str) -> None:
    """The table has no arrow that no module uses: what a room may import is what it does import."""
    used = {
        room_of(target_of(found)[0])
        for path in SOURCES
        if room_of(module_name(path)) == room
        for found in imported_by(path)
    }
    assert ARROWS[room] <= used, f"{room} does not use {sorted(ARROWS[room] - used)}"


@pytest.mark.parametrize("library", sorted(HOMES))
def test_every_home_is_lived_in(library: str) -> None:
    """The table names no room for a library that the room does not use."""
    users = {
        room_of(module_name(path))
        for path in SOURCES
        for found in imported_by(path)
        if found.module.partition(".")[0] == library
    }
    assert users == HOMES[library]


@pytest.mark.parametrize("room", sorted(ARROWS))
def test_every_arrow_points_down(room: str) -> None:
    """The arrows of a room lead to lower layers only, and to guarded rooms only where they are let in."""
    layer_of = {name: height for height, layer in enumerate(LAYERS) for name in layer}
    for host in ARROWS[room]:
        assert layer_of[host] < layer_of[room], f"{room} -> {host} does not point down"
        assert room in GUESTS.get(host, {room}), f"{host} is not open to {room}"


def test_production_does_not_depend_on_the_laboratory() -> None:
    """A wing is entered by its own rooms and by the command line alone."""
    for name, wing in WINGS.items():
        assert wing == {path.name for path in (PACKAGE / name).iterdir() if path.is_dir()} - {"__pycache__"}
        entered = {room: sorted(hosts & wing) for room, hosts in ARROWS.items() if hosts & wing and room not in wing}
        assert entered.keys() <= {"cli"}, f"the {name} is entered by {entered}"


def test_every_room_has_its_arrows() -> None:
    """Each room that exists stands in the table, and the table has no room that does not exist."""
    existing = {room_of(module_name(path)) for path in SOURCES} - OPENINGS - WINGS.keys()
    assert existing == set(ARROWS)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("__init__.py")), ids=module_name)
def test_every_door_says_what_is_behind_it(path: Path) -> None:
    """Each package opens with a docstring and has public names; a wing has none besides its rooms."""
    assert ast.get_docstring(tree_of(path)), f"{path} has no docstring"
    assert bool(public_names(path)) == (path.parent not in {PACKAGE / wing for wing in WINGS})


def test_no_name_is_listed_twice() -> None:
    """Only the package itself has an ``__all__``: a door has imports, and a module what it defines."""
    inside = [path for path in SOURCES if path != PACKAGE / "__init__.py"]
    assert len(inside) > 300
    assert [module_name(path) for path in inside if "__all__" in path.read_text()] == []


def test_names_are_imported_from_where_they_are_defined() -> None:
    """No module takes from another one of its room what that has only imported itself; its doors may hand names on."""
    defined = {module_name(path): own_names(path, module_name(path)) for path in SOURCES}
    faults = [
        f"{module_name(path)}:{found.line}: {found.name} is not defined in {found.module}"
        for path in SOURCES
        for found in imported_by(path)
        if found.module.startswith("cpsched.") and found.name is not None
        if f"{found.module}.{found.name}" not in defined and found.name not in defined[found.module]
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("source", "module", "expected"),
    [
        ("from cpsched.planner import plan_queue", "cpsched.booking.ledger", "booking may not import planner"),
        ("import cpsched.planner", "cpsched.rusv.value", "rusv may not import planner"),
        ("from cpsched import planner", "cpsched.rusv.value", "rusv may not import planner"),
        ("from ..planner import plan_queue", "cpsched.booking.ledger", "booking may not import planner"),
        ("def f():\n    import cpsched.domain", "cpsched.verify.rules", "verify may not import domain"),
        ("from cpsched.rusv.kernels import fit", "cpsched.booking.ledger", "behind the door of rusv"),
        ("from cpsched.domain import secret", "cpsched.booking.ledger", "secret is no public name"),
        ("from cpsched import solve", "cpsched.booking.ledger", "booking may not import the package itself"),
        ("from cpsched.metrics import x", "cpsched.booking.ledger", "booking may not import metrics"),
        ("import numba", "cpsched.planner.planner", "numba lives in rusv, not in planner"),
        ("from ortools.sat import python", "cpsched.planner.planner", "ortools lives in cp, not in planner"),
        ("import requests", "cpsched.cli.solve", "requests has no home"),
        ("import pydantic", "cpsched", "pydantic lives in serve, not in"),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import numba", "cpsched.planner.planner", "numba lives in"),
        ("try:\n    pass\nexcept OSError:\n    import numba", "cpsched.planner.planner", "numba lives in"),
        ("match 1:\n    case 1:\n        import numba", "cpsched.planner.planner", "numba lives in"),
    ],
)
def test_forbidden_imports_are_found(source: str, module: str, expected: str) -> None:
    """The checker finds a forbidden import in a made-up source text, however it is written."""
    imports = imports_of(ast.parse(source), module.rpartition(".")[0])
    faults = faults_of(imports, module, {"cpsched.domain": frozenset({"Job"})})
    assert len([fault for fault in faults if expected in fault]) == 1, faults


@pytest.mark.parametrize(
    "source",
    [
        "from cpsched.domain import Job",
        "from cpsched.booking.tree import Tree",
        "from . import tree",
        "import json, numpy",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numba\n    from cpsched.planner import X",
    ],
)
def test_allowed_imports_are_let_through(source: str) -> None:
    """The checker is content with rooms below, the room itself, the standard library and imports for types only."""
    doors = {"cpsched.domain": frozenset({"Job"})}
    imports = imports_of(ast.parse(source), "cpsched.booking")
    assert faults_of(imports, "cpsched.booking.ledger", doors) == []


def kernels_of(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions of a module that numba compiles, by whichever decorator of ``rusv/jit.py``."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [one for one in functions if any(decorator_of(by) in DECORATORS for by in one.decorator_list)]


def decorator_of(node: ast.expr) -> str:
    """Return the last name of a decorator: ``kernel`` of ``@kernel``, ``@jit.kernel`` and ``@kernel(...)``."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


#: What makes a kernel of a function: all that ``rusv/jit.py`` has for it.
DECORATORS = frozenset(
    node.name
    for node in tree_of(PACKAGE / "rusv" / "jit.py").body
    if isinstance(node, ast.FunctionDef) and node.name.endswith("kernel")
)


def test_all_kernels_are_seen() -> None:
    """Every decorator for kernels is known, and found however it is written."""
    assert {"kernel", "inner_kernel", "allocating_kernel"} <= DECORATORS
    for written in [*DECORATORS, "jit.kernel", "kernel(inline=True)"]:
        assert len(kernels_of(ast.parse(f"@{written}\ndef f(): pass"))) == 1
    assert not kernels_of(ast.parse("@cache\ndef f(): pass"))


def test_kernels_take_named_tuples() -> None:
    """Arrays that belong together are one named tuple: a kernel takes at most ten arguments, none of one letter."""
    found = [(path, kernel) for path in SOURCES for kernel in kernels_of(tree_of(path))]
    assert len(found) > 100
    assert [f"{path.name}: {kernel.name}" for path, kernel in found if len(kernel.args.args) > 10] == []
    short = [f"{kernel.name}: {one.arg}" for _, kernel in found for one in kernel.args.args if len(one.arg) == 1]
    assert short == []


def loaded_by(statement: str) -> list[str]:
    """Return the modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    process = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return list(json.loads(process.stdout))


def test_a_bare_import_loads_nothing_heavy() -> None:
    """The package, the nouns, the problem and the command line start without compiler, solvers and validators."""
    loaded = loaded_by("import cpsched, cpsched.domain, cpsched.cli, cpsched.problem")
    assert {module.partition(".")[0] for module in loaded} & HEAVY == set()


def test_a_door_loads_no_compiler() -> None:
    """The import of a room loads neither compiler nor solvers before they are needed; rusv is the compiler's home."""
    rooms = ARROWS.keys() - HOMES["numba"]
    doors = {module for module in all_doors() if without_wing(module) in {f"cpsched.{room}" for room in rooms}}
    loaded = {module.partition(".")[0] for module in loaded_by(f"import {', '.join(sorted(doors))}")}
    assert loaded & {"llvmlite", "minizinc", "numba", "ortools"} == set()


def test_no_public_name_is_that_of_a_module() -> None:
    """The import of a module cannot put itself in the place of a name that a lazy door has not fetched yet."""
    doors = [path for path in sorted(PACKAGE.rglob("__init__.py")) if "= opener(" in path.read_text()]
    assert len(doors) > 5
    both = {path.parent.name: public_names(path) & {one.stem for one in path.parent.iterdir()} for path in doors}
    assert {room: names for room, names in both.items() if names} == {}


def test_the_verifier_is_independent() -> None:
    """The judge loads no room but the error tree, so that it can share no mistake with them."""
    modules = loaded_by("import cpsched.verify")
    assert {room_of(module) for module in modules if module.startswith("cpsched.")} == {"errors", "verify"}
