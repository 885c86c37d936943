"""The package as its users get it: built, installed with what it requires and no more, and run outside the repository.

Kernels are interpreted here: the code is the same, and compiling it for another folder would take longer than all else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution, requires
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from click import Context
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cpsched.cli import main
from tests.sizes import some

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

#: The folders of the repository that are released as source; a wheel has the package, the models and the examples.
SOURCE = (".github", "campaigns", "cpsched", "docs", "instances", "models", "scripts", "tests")


def files_in(folder: Path) -> set[str]:
    """Return the files of a folder, except those that Python and the tools leave there."""
    paths = {path.relative_to(ROOT) for path in folder.rglob("*") if path.is_file()}
    return {path.as_posix() for path in paths if not any(part.endswith(("__", "_cache")) for part in path.parts[:-1])}


def build(target: str, source: Path, folder: Path) -> Path:
    """Build the sdist or the wheel of a source tree into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.tar.gz" if target == "sdist" else "*.whl")
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sdist of the repository."""
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that is built of the sdist, as an index does it."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return build("wheel", next(path for path in folder.iterdir() if path.is_dir()), folder)


def required(requirements: Sequence[str]) -> Iterator[str]:
    """Yield the distributions that requirements need with their extras, and those that these need."""
    pending = [Requirement(one) for one in requirements]
    found = set[tuple[str, str]]()
    while pending:
        one = pending.pop()
        name = canonicalize_name(one.name)
        for extra in {"", *one.extras}:
            if (name, extra) not in found:
                found.add((name, extra))
                needed = (
                    PROJECT["optional-dependencies"].get(extra, ()) if name == PROJECT["name"] else requires(name) or ()
                )
                for other in map(Requirement, needed):
                    if other.marker is None or other.marker.evaluate({"extra": extra}):
                        pending.append(other)
    yield from sorted({name for name, _ in found} - {PROJECT["name"]})


def link(names: Iterable[str], site: Path) -> None:
    """Link installed distributions into another environment."""
    for name in names:
        library = distribution(name)
        for top in {file.parts[0] for file in library.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(library.locate_file(top))))


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment with cpsched, and a folder far from the repository with the examples and a plan."""

    environment: Path
    folder: Path

    def run(
        self, *arguments: str, program: str = "cpsched", extra: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, with what an extra adds."""
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "NUMBA_DISABLE_JIT": "1"}
        if (
            extra is not None
        ):  # compiled kernels go by their source, wherever it lies: those of the other tests are found
            del variables["NUMBA_DISABLE_JIT"]
            cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
            variables |= {"PYTHONPATH": str(self.folder / "extras" / extra), "XDG_CACHE_HOME": cache}
        return subprocess.run(  # noqa: S603 - ours
            [self.environment / "bin" / program, *arguments],
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the wheel, beside links to those packages that it requires."""
    environment, folder = tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("folder")
    venv.create(environment, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, *options, str(wheel)], check=True)  # noqa: S603 - ours
    (site,) = environment.glob("lib/python*/site-packages")
    link(required(PROJECT["dependencies"]), site)
    there = Installed(environment, folder)
    for line in ("example --all", "solve instances/tiny-bridi.json --engine planner -o plan.json --quiet"):
        done = there.run(*line.split())
        assert (done.returncode, done.stderr) == (0, "")
    return there


def test_the_sdist_is_the_repository(sdist: Path) -> None:
    """All that is needed to build, to test and to read is in it."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    alone = {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md"}
    alone |= {"constraints.txt", "mkdocs.yml", "pyproject.toml"}
    expected = alone.union(*(files_in(ROOT / folder) for folder in SOURCE))
    assert names - {"PKG-INFO", ".gitignore"} == expected


def test_the_wheel_is_the_package_with_models_and_examples(wheel: Path) -> None:
    """It has the code, `py.typed`, what the code reads, the models, the examples, and nothing else."""
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        described = archive.read(metadata).decode()
    models = {name.replace("models", "cpsched/mzn/models", 1) for name in files_in(ROOT / "models")}
    examples = {f"cpsched/examples/{name}" for name in files_in(ROOT / "instances") | {"campaigns/quick.toml"}}
    assert names == files_in(ROOT / "cpsched") | models | examples
    assert "cpsched/py.typed" in names  # without it type checkers do not read the annotations (PEP 561)
    assert described.partition("\n\n")[2] == (ROOT / "README.md").read_text()


def test_an_index_takes_the_metadata(wheel: Path) -> None:
    """It is valid by the standard, says what the package is and who may use it, and has a README that indexes show."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        metadata = Metadata.from_email(archive.read(name), validate=True)
    assert (metadata.name, str(metadata.version), metadata.license_expression) == (
        "cpsched",
        PROJECT["version"],
        "Apache-2.0",
    )
    assert metadata.summary
    assert metadata.description_content_type == "text/markdown"
    assert metadata.requires_python is not None


def test_the_workflow_that_publishes_has_no_secret() -> None:
    """A trusted publisher: only its last job may ask for a token, after the files were built, checked and tried."""
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text()
    workflow = yaml.safe_load(text)
    assert "secrets." not in text
    assert workflow["permissions"] == {"contents": "read"}
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert "permissions" not in build
    assert publish["permissions"] == {"id-token": "write"}
    assert (publish["needs"], publish["environment"]["name"]) == ("build", "pypi")
    commands = " ".join(step.get("run", "") for step in build["steps"])
    assert all(command in commands for command in ("python -m build", "twine check --strict", "cpsched verify"))


def test_what_is_required_is_lean() -> None:
    """Neither SciPy nor what only an extra needs is installed with cpsched alone."""
    core = set(required(PROJECT["dependencies"]))
    extras = PROJECT["optional-dependencies"]
    optional = {re.split(r"[\[>]", one)[0].lower() for extra in extras for one in extras[extra]} - {"cpsched"}
    assert core.isdisjoint(optional | {"scipy"})
    assert {"numba", "numpy", "ortools", "pandas"} <= core


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--version", f"cpsched {PROJECT['version']}"),
        ("example", "instances/tiny-bridi.json"),
        ("solve instances/tiny-bridi.json --engine planner -o new.json --gantt new.html", "verified: no violations"),
        ("verify instances/tiny-bridi.json plan.json", "No violations"),
        ("show instances/tiny-bridi.json plan.json --gantt", "node001"),
        ("explain instances/tiny-bridi.json plan.json a", "job a"),
        ("generate lublin --jobs 20 --nodes 32 -o workload.json", "20 jobs"),
        ("simulate instances/tiny-order.json --policy easy -o out", "results: out"),
        ("schema plan", "cpsched-plan/1"),
        ("completion bash", "_CPSCHED_COMPLETE"),
    ],
)
def test_commands_work_outside_the_repository(line: str, said: str, installed: Installed) -> None:
    """With the package and what it requires, and with the examples that it brings."""
    done = installed.run(*line.split())
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.slow
def test_the_models_are_found_where_they_are_installed(installed: Installed) -> None:
    """Each is in the package, also for those who import it."""
    code = "from cpsched.mzn.solver import model_path; print(model_path('window'))"
    found = installed.run("-c", code, program="python")
    assert Path(found.stdout.strip()).is_relative_to(installed.environment), found.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", some(main.list_commands(Context(main)), 4))
def test_each_command_has_help_outside_the_repository(command: str, installed: Installed) -> None:
    """Without any extra, as what a command needs is loaded when it runs."""
    done = installed.run(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"cpsched {command}" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "line"),
    [
        ("bench", "bench campaigns/quick.toml --workers 1 -o campaign"),
        ("daemon", "daemon --config instances/site/demo.toml --once"),
        ("daemon", "show instances/site/demo.toml"),
        ("minizinc", "solve instances/tiny-bridi.json --engine minizinc --budget 5 -o minizinc.json"),
        ("report", "report plan.json --instance instances/tiny-bridi.json -o report.html"),
        ("report", "report plan.json --instance instances/tiny-bridi.json -o report.pdf"),
        ("web", "serve instances/tiny-bridi.json --check"),
    ],
)
def test_an_extra_alone_does_what_its_page_says(extra: str, line: str, installed: Installed) -> None:
    """With what the extra requires beside cpsched, and nothing of any other one."""
    if extra == "minizinc" and shutil.which("minizinc") is None:
        pytest.skip("MiniZinc itself is not here")
    site = installed.folder / "extras" / extra
    site.mkdir(parents=True, exist_ok=True)
    link(required([f"{PROJECT['name']}[{extra}]"]), site)
    done = installed.run(*line.split(), extra=extra)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("bench campaigns/quick.toml", "bench"),
        ("daemon --config instances/site/demo.toml --once", "daemon"),
        ("report plan.json --instance instances/tiny-bridi.json -o report.html", "report"),
        ("report plan.json --instance instances/tiny-bridi.json -o report.pdf", "report"),
        ("serve instances/tiny-bridi.json --check", "web"),
        ("show instances/site/demo.toml", "daemon"),
        ("solve instances/tiny-bridi.json --engine minizinc", "minizinc"),
        ("solve instances/tiny-bridi.json --dask tcp://127.0.0.1:1", "bench"),
    ],
)
def test_an_extra_that_is_missing_is_named(line: str, extra: str, installed: Installed) -> None:
    """A command that needs more says what to install, without a traceback."""
    done = installed.run(*line.split())
    assert done.returncode in (2, 4)
    assert f"pip install '.[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_tour_reads_is_among_the_examples() -> None:
    """Its commands work in any folder after ``cpsched example --all``."""
    commands = re.findall(r"^\$ (cpsched .*)$", (ROOT / "docs" / "commands.md").read_text(), flags=re.MULTILINE)
    read = {word for command in commands for word in command.split() if word.startswith(("instances/", "campaigns/"))}
    assert len(read) > 2
    assert all((ROOT / name).is_file() for name in read)
    assert {name for name in read if name.startswith("campaigns/")} == {"campaigns/quick.toml"}


def test_each_extra_has_its_row() -> None:
    """The page about the installation says what each extra is for."""
    page = (ROOT / "docs" / "reference" / "installation.md").read_text()
    listed = [name for row in re.findall(r"^\| (`.*?) \|", page, flags=re.MULTILINE) for name in row.split(", ")]
    assert sorted(name.strip("`") for name in listed) == sorted(PROJECT["optional-dependencies"])


def test_how_it_is_cited_is_how_it_is_released() -> None:
    """CITATION.cff has the project's name, version, licence and keywords."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["cff-version"] == "1.2.0"
    assert (cited["title"], cited["version"], cited["license"], cited["abstract"], cited["keywords"]) == (
        PROJECT["name"],
        PROJECT["version"],
        PROJECT["license"],
        PROJECT["description"],
        PROJECT["keywords"],
    )
    assert all(author["name"] for author in cited["authors"])
    assert cited["message"]
