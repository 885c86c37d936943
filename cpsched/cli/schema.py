"""``cpsched schema``: the JSON Schema of a document, or of what a command prints."""

from __future__ import annotations

import click

from cpsched.cli.outputs import OUTPUTS, output_schema

__all__ = ["command"]


@click.command("schema", epilog="Example: cpsched schema plan > plan.schema.json")
@click.argument("name", metavar="NAME", type=click.Choice(["instance", "plan", *OUTPUTS]), default="instance")
def command(name: str) -> None:
    """Print the JSON Schema of a document, by default the instance.

    NAME is instance or plan, or a command: then the schema is that of what it prints with --json (docs/formats.md).
    """
    from cpsched.cli.screen import echo_json
    from cpsched.formats import instance_schema, plan_schema

    if name in OUTPUTS:
        echo_json(output_schema(name))
    else:
        echo_json(instance_schema() if name == "instance" else plan_schema())
