"""Hooks of MkDocs: what pages take from the code (tables of keys, commands, schemas), and a search without a server.

A page has ``<!-- generated: NAME -->`` where a table belongs (`GENERATED` lists the names). Below each mechanism
stand the files that name its number. MkDocs loads this file as a hook (``mkdocs.yml``).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import cpsched
from cpsched.cli import main
from cpsched.cli.exits import ExitCode
from cpsched.formats import instance_schema, plan_schema
from cpsched.formats.kinds import kind_of, schema_of
from cpsched.lab.bench import campaign_model
from cpsched.lab.bench.figures import FIGURES
from cpsched.site.bridge.slurm import QueueModel
from cpsched.site.daemon import site_model

__all__ = ["GENERATED", "files_by_mechanism", "on_files", "on_page_markdown", "on_post_build"]

Schema = Mapping[str, Any]
_ROOT = Path(__file__).parents[1]
#: A mechanism in ``docs/mechanisms.md``, its number in a comment or docstring, and several numbers that name no one.
_MECHANISM = re.compile(r"^- ([A-Z]+-\d+): (.*)$", flags=re.MULTILINE)
_NUMBER = re.compile(r"\b(?:OCCS|BRIDI|SD|EVO|PBS|MAUI|MIX)-\d+\b")
_RANGE = re.compile(r"\b([A-Z]+)-\d+ to (?:\1-)?\d+")

#: The tables of a campaign's file, each with its heading.
_CAMPAIGN = {
    "The whole file": campaign_model.CampaignModel,
    "`[simulation]`": campaign_model.SimulationModel,
    "`[[workload]]`, made by a generator": campaign_model.GeneratedModel,
    "`[[workload]]`, a log": campaign_model.LogFileModel,
    "`selection` of a log": campaign_model.SelectionModel,
    "`[[workload]]`, instance documents": campaign_model.InstanceFileModel,
    "`[[policy]]`": campaign_model.PolicyModel,
    "`[[table]]`": campaign_model.Table,
    "`[[plot]]`": campaign_model.Plot,
    "`[[published]]`": campaign_model.Published,
}
#: The tables of a site's file, each with its heading.
_SITE = {
    "The whole file": site_model.SiteModel,
    '`[manager]` with `kind = "slurm"`': site_model.SlurmModel,
    "`[manager.queues.NAME]`": QueueModel,
    '`[manager]` with `kind = "memory"`': site_model.MemoryModel,
    '`[manager]` with `kind = "files"`': site_model.FilesModel,
    "`[planning]`": site_model.PlanningModel,
    "`[cycle]`": site_model.CycleModel,
    "`[promises]`": site_model.PromisesModel,
    "`[store]`": site_model.StoreModel,
    "`[metrics]`": site_model.MetricsModel,
    "`[log]`": site_model.LogModel,
    "`[watchdog]`": site_model.WatchdogModel,
}


def _commands() -> str:
    return "\n".join(_command(click.Context(main, info_name="cpsched", **main.context_settings)))


def _command(context: click.Context) -> Iterator[str]:
    """Yield the lines about a command and about those below it: what it does, its options, its example."""
    command = context.command
    if context.parent is not None:
        depth = len(context.command_path.split())
        yield from (f"{'#' * depth} {context.command_path}", "")
    yield from (inspect.cleandoc(command.help or ""), "")
    formatter = click.HelpFormatter(width=92)
    command.format_usage(context, formatter)
    command.format_options(context, formatter)
    command.format_epilog(context, formatter)
    yield from ("```text", formatter.getvalue().rstrip(), "```", "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _command(click.Context(below, info_name=name, parent=context))


def _exit_codes() -> str:
    rows = (f"| {code:d} | {code.meaning} |" for code in ExitCode)
    return "\n".join(("| code | meaning |", "|---|---|", *rows))


def _public_names() -> str:
    """Let mkdocstrings describe each public name: what is built, what is done, what goes wrong."""
    groups: dict[str, list[str]] = {"Classes": [], "Functions": [], "Errors": []}
    for name in sorted(cpsched.__all__, key=str.lower):
        found = getattr(cpsched, name)
        if inspect.isclass(found):
            groups["Errors" if issubclass(found, BaseException) else "Classes"].append(name)
        elif callable(found):
            groups["Functions"].append(name)
    lines = [
        line for title, names in groups.items() for line in (f"## {title}", *(f"::: cpsched.{one}" for one in names))
    ]
    return "\n\n".join(lines)


def _words() -> str:
    text = (_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(r"^\| word \|.*?(?=\n\n)", text, flags=re.MULTILINE | re.DOTALL)
    if found is None:
        raise PluginError("CONTRIBUTING.md: expected a table that begins with | word |")
    return found[0]


def files_by_mechanism() -> dict[str, list[str]]:
    """Return the files of the code, then those of the tests, that name the number of a mechanism, by number."""
    found: dict[str, list[str]] = {}
    for folder in ("cpsched", "models", "scripts", "tests"):
        for path in sorted((_ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".mzn", ""):
                for number in set(_NUMBER.findall(_RANGE.sub("", path.read_text(encoding="utf-8")))):
                    found.setdefault(number, []).append(path.relative_to(_ROOT).as_posix())
    return found


def _with_files(number: str, mechanism: str, files: Sequence[str]) -> str:
    return f"- **{number}** {mechanism}" + "".join(f"<br>`{name}`" for name in files)


def _tables(models: Mapping[str, type]) -> str:
    return "\n".join(line for heading, model in models.items() for line in _table(heading, model))


def _table(heading: str, model: type) -> Iterator[str]:
    """Yield the lines of a table with the keys of a model."""
    schema = schema_of(kind_of(model))
    yield from (
        f"## {heading}",
        "",
        schema["description"],
        "",
        "| key | value | default | meaning |",
        "|---|---|---|---|",
    )
    for key, value in schema["properties"].items():
        default = "needed" if key in schema.get("required", ()) else _default(value.get("default"))
        yield f"| `{key}` | {_values(value, schema)} | {default} | {value.get('description', '')} |"
    yield ""


def _default(value: object) -> str:
    return "" if value is None or isinstance(value, dict | list) else f"`{json.dumps(value)}`"


def _values(value: Schema, schema: Schema) -> str:
    """Say in words which values a key takes."""
    for several in ("anyOf", "oneOf"):
        if several in value:
            return " or ".join(dict.fromkeys(_values(one, schema) for one in value[several]))
    if "allOf" in value:
        return _values(value["allOf"][0], schema)
    if "$ref" in value:
        referred = schema["$defs"][value["$ref"].rpartition("/")[2]]
        return "a table" if referred.get("type") == "object" else _values(referred, schema)
    if "enum" in value or "const" in value:
        return ", ".join(f"`{json.dumps(one)}`" for one in value.get("enum", [value.get("const")]))
    if value.get("type") == "array":
        return f"a list of: {_values(value['items'], schema)}" if value.get("items") else "a list of tables"
    names = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`"}
    return names.get(value.get("type", ""), "a table" if value.get("type") == "object" else "any") + _bounds(value)


def _bounds(value: Schema) -> str:
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    said = [f"{words[key]} {value[key]:,}" for key in words if key in value]
    return f", {', '.join(said)}" if said else ""


#: What makes the table of each name.
GENERATED: dict[str, Callable[[], str]] = {
    "commands": _commands,
    "campaign file": lambda: _tables(_CAMPAIGN),
    "exit codes": _exit_codes,
    "figures": lambda: ", ".join(f"`{name}`" for name in FIGURES),
    "public names": _public_names,
    "site file": lambda: _tables(_SITE),
    "words": _words,
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the JSON Schemas of the two documents to the site."""
    for name, schema in (("instance", instance_schema()), ("plan", plan_schema())):
        text = json.dumps(schema, indent=2)
        files.append(File.generated(config, f"reference/{name}.schema.json", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put generated tables in their places, and take away the marks that only the tests of the examples read."""
    for name in re.findall(r"^<!-- generated: (.*) -->$", markdown, flags=re.MULTILINE):
        if name not in GENERATED:
            raise PluginError(f"{page.file.src_uri}: expected one of {', '.join(GENERATED)}, got {name!r}")
        markdown = markdown.replace(f"<!-- generated: {name} -->", GENERATED[name]())
    if page.file.src_uri == "mechanisms.md":
        found = files_by_mechanism()
        markdown = _MECHANISM.sub(lambda row: _with_files(row[1], row[2], found.get(row[1], [])), markdown)
    if page.file.src_uri.startswith(("concepts/", "guides/", "tutorial")):
        page.meta.setdefault("search", {"boost": 2})  # found before the long pages that they lead to
    return re.sub(r"^```console varying$", "```console", markdown, flags=re.MULTILINE)


@event_priority(-100)  # when the search plugin has written its index
def on_post_build(config: MkDocsConfig) -> None:
    """Write the search index as a script too: pages that are opened from a folder may load no other file."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index};\n", encoding="utf-8")
