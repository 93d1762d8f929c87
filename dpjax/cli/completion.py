"""`dpjax completion`: what makes the shell complete commands and options."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    For bash, once:
      dpjax completion bash >> ~/.bashrc
    """
    from dpjax.cli import main

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(main, {}, "dpjax", "_DPJAX_COMPLETE").source())
