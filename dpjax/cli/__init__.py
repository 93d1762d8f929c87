"""The command line: `dpjax plan | account | calibrate | crossover | sweep | audit`.

Each command is a file of its own, loaded when it is called, so that what needs no JAX loads none.
"""

import importlib
import os
from typing import Any

import click

COMMANDS = ("plan", "account", "calibrate", "crossover", "sweep", "audit", "completion")


class _Commands(click.Group):
    """Loads a command when it is named, and turns the library's refusals into messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"dpjax.cli.{cmd_name}").command

    def invoke(self, ctx: click.Context) -> Any:
        """Run, with one line in place of a traceback for what the arguments cannot do."""
        try:
            return super().invoke(ctx)
        except (ValueError, TypeError, ArithmeticError, OSError, MemoryError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise click.UsageError(text) from error


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        from dpjax.cli.output import installed_version

        click.echo(f"dpjax {installed_version()}")
        ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 the wish is impossible, or an audit contradicts a claim; 2 the"
    " arguments are wrong. Noise is for simulation: release real data with a hardened library.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Plan, account for, simulate and audit differentially private releases.

    \b
    Start here:
      dpjax plan --epsilon 1 --delta 1e-5 --queries 50
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
