"""The command line: `dpjax plan | account | calibrate | crossover | sweep | audit`.

Each command is a file of its own, loaded when it is called, so that what needs no JAX loads none.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Collection, Iterator
from typing import Any

import click

COMMANDS = ("plan", "account", "calibrate", "crossover", "sweep", "audit", "completion")
_FLAGS = {  # of what the library names otherwise
    "num_trials": "trials",
    "num_queries": "queries",
    "target_epsilon": "epsilon",
    "target_delta": "delta",
    "interval": "every",
    "level": "confidence",
}
_INTERRUPTED, _READER_GONE = 130, 141  # as a shell says of a program ended by SIGINT or SIGPIPE


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

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the arguments, and print help and version."""
        with _told():
            if sys.stdout is None:  # as Python has it after >&-
                raise Failed("standard output: closed")
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run, with one line in place of a traceback for what the arguments cannot do."""
        try:
            with _told():
                return super().invoke(ctx)
        except (ValueError, TypeError, ArithmeticError) as error:
            from dpjax.cli.output import ImpossibleWish, one_line
            from dpjax.plan import ImpossibleError

            if isinstance(error, ImpossibleError):
                raise ImpossibleWish(one_line(error)) from error
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            flags = {param.name for param in command.params} if command else set()
            raise click.UsageError(_with_flag(one_line(error), flags)) from error


class Failed(click.ClickException):
    """Exit code 3: the arguments are in order, but the machine could not do what they ask."""

    exit_code = 3


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What ends a run that is no fault of the arguments, in a line and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except BrokenPipeError:
        _drop_output()
        raise click.exceptions.Exit(_READER_GONE) from None
    except MemoryError as error:
        raise Failed("not enough memory") from error
    except OSError as error:
        where = error.filename
        if where is None and error.errno is not None:
            where = "standard output"
            _drop_output()
        reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
        raise Failed(f"{where}: {reason}" if where else reason) from error


def _drop_output() -> None:
    """Send what is still to be written nowhere, so that the last flush of Python is silent."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a number is not the shell's
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _with_flag(text: str, flags: Collection[str | None]) -> str:
    """`name = value: ...` of the library as `--name value: ...` of the command."""
    name, equals, rest = text.partition(" = ")
    name = _FLAGS.get(name, name)
    return f"--{name.replace('_', '-')} {rest}" if equals and name in flags else text


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        from dpjax.cli.output import installed_version

        click.echo(f"dpjax {installed_version()}")
        ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Print the version and exit.",
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Plan, account for, simulate and audit differentially private releases.

    \b
    Start here:
      dpjax plan --epsilon 1 --delta 1e-5 --queries 50

    Numbers may be written as 1e-5 or 1_000_000, and names with - or _ between their words.

    \b
    Exit codes:
      0    done
      1    the answer is no: no design fulfils the wish, an audit contradicts the
           claim, or a simulation does not agree with its plan
      2    the arguments are wrong, or a file or a function that they name
      3    the machine failed: the output could not be written, or memory ran out
      130  interrupted
      141  whatever read the output has closed it

    Noise is for simulation: release real data with a library that is hardened for it.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
