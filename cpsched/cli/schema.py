"""``cpsched schema``: the JSON Schema of a document, or of what a command prints."""

import click

from cpsched.cli.options import AS_JSON
from cpsched.cli.outputs import OUTPUTS, echo_output, output_schema
from cpsched.cli.screen import echo_json


@click.command("schema", epilog="Example: cpsched schema plan > plan.schema.json")
@click.argument("name", metavar="NAME", type=click.Choice(["instance", "plan", *OUTPUTS]), default="instance")
@AS_JSON
def command(name: str, as_json: bool) -> None:
    """Print the JSON Schema of a document, by default the instance.

    NAME is instance or plan, or a command: then the schema is that of what it prints with --json (docs/formats.md).
    """
    from cpsched.formats import instance_schema, plan_schema

    documents = {"instance": instance_schema, "plan": plan_schema}
    schema = documents[name]() if name in documents else output_schema(name)
    if as_json:
        echo_output("schema", {"name": name, "schema": schema})
    else:
        echo_json(schema)
