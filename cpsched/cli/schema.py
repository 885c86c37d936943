"""``cpsched schema``: the JSON Schema of a document."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("schema", epilog="Example: cpsched schema plan > plan.schema.json")
@click.argument("document", type=click.Choice(["instance", "plan"]), default="instance")
def command(document: str) -> None:
    """Print the JSON Schema of a document, by default the instance."""
    from cpsched.cli.screen import echo_json
    from cpsched.formats import instance_schema, plan_schema

    echo_json(instance_schema() if document == "instance" else plan_schema())
