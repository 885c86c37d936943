"""``cpsched warmup``: compile the kernels before the first plan or simulation needs them."""

from __future__ import annotations

import time

import click

__all__ = ["command"]


@click.command("warmup", epilog="Example: cpsched warmup")
def command() -> None:
    """Compile all kernels now, for a fast next start."""
    from cpsched.portfolio import prepare
    from cpsched.sim import warm_up_simulation

    click.echo("Compiling the kernels ...", err=True)
    begin = time.perf_counter()
    prepare("portfolio")
    warm_up_simulation()
    click.echo(f"The kernels are ready after {time.perf_counter() - begin:.1f} s.")
