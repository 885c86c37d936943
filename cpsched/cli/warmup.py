"""``cpsched warmup``: compile now what the first plan would compile."""

from __future__ import annotations

import time

import click

__all__ = ["command"]


@click.command("warmup", epilog="Example: cpsched warmup")
def command() -> None:
    """Compile the planner's kernels now, for a fast next start."""
    from cpsched.planner import warmup

    click.echo("Compiling the planner's kernels ...", err=True)
    begin = time.perf_counter()
    warmup()
    click.echo(f"The kernels are ready after {time.perf_counter() - begin:.1f} s.")
