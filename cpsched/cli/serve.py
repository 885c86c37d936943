"""``cpsched serve``: a live page and an HTTP API over the daemon's store, or over an instance."""

from pathlib import Path

import click

from cpsched.cli.options import AS_JSON, EXISTING_FILE
from cpsched.cli.outputs import echo_output
from cpsched.text import how_to_install, printable


@click.command("serve", epilog="Example: cpsched serve site.toml --check; without --check: open http://127.0.0.1:8765/")
@click.argument("source")
@click.option("--host", default="127.0.0.1", help="Hosts other than loopback need --tokens.")
@click.option("--port", default=8765, type=click.IntRange(1, 65535), help="TCP port.")
@click.option("--plan", type=EXISTING_FILE, help="A plan of the instance.  [default: the planner makes one]")
@click.option(
    "--tokens",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Who may do what (docs/serve.md); only its owner may read it.",
)
@click.option("--check", is_flag=True, help="Read everything, and say what would be served; no more.")
@AS_JSON
def command(
    source: str, host: str, port: int, plan: Path | None, tokens: tuple[Path, ...], check: bool, as_json: bool
) -> None:
    """Serve a live page and an API: what runs, what waits, and why.

    SOURCE is the site's file of a daemon (.toml), its store (a URL, or a SQLite file), or an instance. SIGTERM and
    Ctrl-C end it cleanly.
    """
    try:
        from cpsched.site.daemon import make_log
        from cpsched.site.serve import (
            ServeSettings,
            is_loopback,
            open_source,
            read_tokens,
            refuse_open_host,
            run_server,
        )
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "cpsched":
            raise
        raise click.UsageError(f"serve needs {package}, which is not installed; {how_to_install('web')}") from error

    if as_json and not check:
        raise click.UsageError("--json needs --check.")
    known = tuple(token for path in tokens for token in read_tokens(path))
    refuse_open_host(host, known)
    settings = ServeSettings(tokens=known, is_loopback=is_loopback(host))
    opened = open_source(source, plan)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    if check:
        view = opened.source.read()
        count = 0 if view is None else len(view.rows)
        if as_json:
            content = {"source": opened.name, "kind": opened.source.kind, "jobs": count, "tokens": len(known)}
            echo_output("serve-check", content | {"address": address})
            return
        what = f"{opened.source.kind}, {count} jobs, {len(known)} tokens"
        click.echo(f"{printable(opened.name)}: in order; {what}, {printable(address)}")
        return
    click.echo(f"{printable(opened.name)}: {printable(address)}", err=True)
    if not settings.is_loopback:
        click.echo(
            "cpsched: tokens and answers travel as they are: let only a proxy with TLS reach this address", err=True
        )
    run_server(opened, settings, host=host, port=port, log=make_log(form="text"))
