"""``cpsched warmup``: compile the kernels before the first plan or simulation needs them."""

import time

import click

from cpsched.cli.options import AS_JSON
from cpsched.cli.outputs import echo_output


@click.command("warmup", epilog="Example: cpsched warmup")
@AS_JSON
def command(as_json: bool) -> None:
    """Compile all kernels now, for a fast next start."""
    from cpsched.forecast import warm_up_forecasts
    from cpsched.lab.sim import warm_up_simulation
    from cpsched.portfolio import prepare

    click.echo("Compiling the kernels ...", err=True)
    begin = time.perf_counter()
    prepare("portfolio")
    warm_up_simulation()
    warm_up_forecasts()
    seconds = time.perf_counter() - begin
    if as_json:
        echo_output("warmup", {"seconds": round(seconds, 3)})
    else:
        click.echo(f"The kernels are ready after {seconds:.1f} s.")
