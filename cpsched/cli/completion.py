"""``cpsched completion``: the script by which a shell completes commands, options, names and files."""

import click

from cpsched.cli.options import AS_JSON
from cpsched.cli.outputs import echo_output


@click.command("completion", epilog="Example: cpsched completion bash > cpsched.bash")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@AS_JSON
@click.pass_context
def command(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print what makes the Tab key complete cpsched in a shell.

    In ~/.bashrc: source <(cpsched completion bash). In ~/.zshrc, after compinit: source <(cpsched completion zsh). In
    ~/.config/fish/config.fish: cpsched completion fish | source.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"Expected a shell that click knows, got {shell}.")
    complete = kind(ctx.find_root().command, {}, "cpsched", "_CPSCHED_COMPLETE")
    # not `source`: it looks for the shell, to see how old it is
    script = complete.source_template % complete.source_vars()
    if as_json:
        echo_output("completion", {"shell": shell, "script": script})
    else:
        click.echo(script)
