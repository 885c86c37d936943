"""``cpsched example``: the instances and the campaign that come with the package."""

from pathlib import Path

import click

from cpsched.cli.options import AS_JSON, OUTPUT_FILE
from cpsched.cli.outputs import echo_output
from cpsched.text import printable

#: The file that says what is known about the instances.
_ABOUT = "README.md"


def _examples() -> dict[str, Path]:
    """Return the files by their places, ``instances/tiny-bridi.json``: in the wheel, or in the repository."""
    package = Path(__file__).parents[1]
    inside = package / "examples"
    top = inside if inside.is_dir() else package.parent
    folders = (top / "instances", top / "campaigns")
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    # in the repository there are campaigns that need logs, which do not come with the package
    shipped = [path for path in files if path.suffix != ".toml" or path.name in ("quick.toml", "demo.toml")]
    return {path.relative_to(top).as_posix(): path for path in shipped}


@click.command("example", epilog="Example: cpsched example eurora-like-0200 -o window.json.gz")
@click.argument("name", required=False)
@click.option(
    "-o", "--output", type=OUTPUT_FILE, help="File for it.  [default: its own name, in the working directory]"
)
@click.option("--all", "is_all", is_flag=True, help="Write all, in the folders instances and campaigns.")
@AS_JSON
def command(name: str | None, output: Path | None, is_all: bool, as_json: bool) -> None:
    """List the examples that come with cpsched, or write one.

    They are instances, machines without jobs, a site's file and a campaign. NAME is a file of the list, or its name
    without folder and ending. What exists is not overwritten.
    """
    if is_all and (name is not None or output is not None):
        raise click.UsageError("--all writes every example under its own name.")
    if output is not None and name is None:
        raise click.UsageError("Expected the NAME of an example beside -o.")
    examples = _examples()
    written: str | None = None
    if is_all:
        for place, path in examples.items():
            _write(path, Path(place))
        written = str(Path.cwd())
    elif name is not None:
        path = _named(name, examples)
        _write(path, output or Path(path.name))
        written = str(output or path.name)
    if as_json:
        listed = [
            {"name": place, "what": _what(path), "bytes": path.stat().st_size} for place, path in examples.items()
        ]
        echo_output("example", {"examples": listed, "written": written})
    elif written is None:
        width = max(map(len, examples))
        for place, path in examples.items():
            click.echo(f"{place:<{width}}  {_what(path)}")
    else:
        click.echo(f"{len(examples)} files in instances and campaigns" if is_all else printable(written))


def _named(name: str, examples: dict[str, Path]) -> Path:
    for place, path in examples.items():
        if name in (place, path.name, path.name.split(".")[0]) and path.name != _ABOUT:
            return path
    raise click.BadParameter(f"Expected an example of the list, got {printable(name)!r}.", param_hint="NAME")


def _what(path: Path) -> str:
    from cpsched.formats import read_instance

    if path.name == _ABOUT:
        return "what is known about each instance"
    if path.suffix == ".toml":
        return (
            "a campaign, for bench" if path.parent.name == "campaigns" else "the file of a site, for daemon and serve"
        )
    if path.parent.name == "machines":
        return "a machine, for convert and simulate --cluster"
    instance = read_instance(path)
    running = sum(job.running is not None for job in instance.jobs)
    nodes = len(instance.cluster.node_names)
    return f"{running} running and {len(instance.jobs) - running} waiting jobs on {nodes} nodes"


def _write(source: Path, target: Path) -> None:
    """Copy an example; what is there already, with another content, stays."""
    from cpsched.writing import whole_file

    content = source.read_bytes()
    if target.exists():
        if target.is_file() and target.read_bytes() == content:
            return
        raise click.UsageError(f"{printable(str(target))} exists; choose another name with -o, or remove it.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as unfinished:
        unfinished.write_bytes(content)
