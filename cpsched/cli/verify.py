"""``cpsched verify``: the verdict of the independent judge on a plan."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.exits import ExitCode
from cpsched.cli.options import AS_JSON, INPUT_FILE
from cpsched.cli.outputs import echo_output
from cpsched.cli.screen import warn
from cpsched.errors import DocumentError
from cpsched.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpsched.verify import Violation


@click.command("verify", epilog="Example: cpsched verify window.json plan.json")
@click.argument("instance", type=INPUT_FILE)
@click.argument("plan", type=INPUT_FILE)
@AS_JSON
@click.pass_context
def command(ctx: click.Context, instance: Path, plan: Path, as_json: bool) -> None:
    """Check a plan against its instance.

    Every rule of docs/formats.md is checked. The judge reads the two documents itself and shares no code with the
    planner. Exit code 0: no violations; 1: all violations are listed; 2: a document could not be read.
    """
    from cpsched.verify import Judge

    judge = Judge(_loaded(instance), str(instance))
    if judge.warnings:
        warn(judge.warnings, "warning")
    violations = judge.violations(_loaded(plan), str(plan))
    if as_json:
        warnings = [dataclasses.asdict(warning) for warning in judge.warnings]
        listed = [dataclasses.asdict(violation) for violation in violations]
        content = {"instance": str(instance), "plan": str(plan), "warnings": warnings, "violations": listed}
        echo_output("verify", content)
    elif violations:
        echo_violations(violations)
    else:
        click.echo("No violations: the plan keeps every rule.")
    ctx.exit(ExitCode.VIOLATIONS if violations else ExitCode.FINE)


def _loaded(path: Path) -> object:
    """Read a document as the judge does; of a log or a table say what it is."""
    from cpsched.formats import load_json
    from cpsched.verify import load

    try:
        return load(path)
    except DocumentError:
        load_json(path)
        raise


def echo_violations(violations: Sequence[Violation], *, err: bool = False) -> None:
    """Print the number of violations, and each in a line."""
    click.echo(f"{len(violations)} violation{'s' if len(violations) > 1 else ''}:", err=err)
    for violation in violations:
        click.echo(f"  {printable(str(violation))}", err=err)
