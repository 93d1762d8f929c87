"""Options that several commands share, and numbers as people write them."""

import math
import os
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import click


class Command(click.Command):
    """A command that refuses what is given twice, of which click would take the last."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, once each option is known to be there once."""
        *_, order = self.make_parser(ctx).parse_args(args=list(args))
        given: dict[str | None, click.Option] = {}
        for option in order:
            if not isinstance(option, click.Option) or option.multiple or ctx.resilient_parsing:
                continue
            before = given.setdefault(option.name, option)
            if before is not option:
                raise click.UsageError(f"{before.opts[0]} and {option.opts[0]}: give one of them")
            if order.count(option) > 1 and not option.is_flag:
                raise click.UsageError(f"{option.opts[0]} is given twice: expected it once")
        return super().parse_args(ctx, args)


class _Number(click.ParamType):
    """A finite number; 1e-5 and 1_000 are taken."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The float, or a message that repeats what was given."""
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number + 0.0  # no -0


class _Delta(_Number):
    """A number in [0, 1); at 1 everything may leak."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The float, or a message that repeats what was given."""
        number = super().convert(value, param, ctx)
        if not 0 <= number < 1:
            self.fail(f"{value!r} is not a number in [0, 1)", param, ctx)
        return number


class _Whole(click.ParamType):
    """A whole number in a range; 1e6 and 1_000_000 are taken."""

    name = "whole"

    def __init__(self, least: int = 1, most: int = 2**63 - 1) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The int, or a message that repeats what was given and has the range."""
        number = None if isinstance(value, bool) else _whole(str(value))
        if number is None or not self.least <= number <= self.most:
            most = f"{self.most:g}" if float(f"{self.most:g}") == self.most else self.most
            self.fail(f"{value!r} is not a whole number from {self.least} to {most}", param, ctx)
        return number


class _Several(click.ParamType):
    """Some values separated by commas."""

    def __init__(self, kind: click.ParamType) -> None:
        self.kind = kind
        self.name = f"{kind.name}[,{kind.name}...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The values in order."""
        parts = str(value).split(",") if not isinstance(value, list | tuple) else value
        return tuple(self.kind.convert(part, param, ctx) for part in parts)


class Name(click.Choice):
    """One of some names; the library writes them with _ where the shell has -, both are taken."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__([name.replace("_", "-") for name in names])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name as the library has it."""
        return super().convert(str(value).replace("_", "-"), param, ctx).replace("-", "_")


def _whole(text: str) -> int | None:
    """A whole number, in digits or as 1e6; None if it is none, or beyond 20 digits."""
    try:
        number = Decimal(text)
        is_whole = number.is_finite() and number.adjusted() < 20 and number == int(number)
    except (ArithmeticError, ValueError):
        return None
    return int(number) if is_whole else None


NUMBER = _Number()
DELTA = _Delta()
WHOLE = _Whole()
SEED = _Whole(least=0, most=2**32 - 1)
DEVICES = _Whole(most=4096)
PLACE = _Whole(least=0, most=4095)
NUMBERS = _Several(NUMBER)
DELTAS = _Several(DELTA)
QUERIES = _Whole(most=10**9)
TRIALS = _Whole(most=10**14)
MANY_TRIALS = _Whole(least=2, most=10**14)
WHOLES = _Several(QUERIES)
MECHANISMS = ("laplace", "gaussian", "discrete_laplace", "discrete_gaussian")
MECHANISM = Name(MECHANISMS)
MEASURES = ("rmse", "mae", "quantile")


def output(command: Callable) -> Callable:
    """--json and --csv."""
    command = click.option(
        "--csv", "form", flag_value="csv", help="Print the table as CSV, with all digits."
    )(command)
    return click.option(
        "--json",
        "form",
        flag_value="json",
        help="Print everything as JSON, with all digits; null is a value that is not finite.",
    )(command)


def delta(command: Callable) -> Callable:
    """--delta, in [0, 1)."""
    return click.option(
        "--delta", type=DELTA, required=True, help="Total delta, in [0, 1): well below 1 / people."
    )(command)


def mechanism(command: Callable) -> Callable:
    """--mechanism, --sensitivity and --sampling-probability."""
    command = click.option(
        "--sampling-probability",
        type=NUMBER,
        help="Chance of each record to take part (Poisson sampling), in [0, 1].",
    )(command)
    command = click.option(
        "--sensitivity",
        type=NUMBER,
        default=1.0,
        show_default=True,
        help="Largest change of the answer, above 0 and in its units: L1 for Laplace noise, L2 for"
        " Gaussian.",
    )(command)
    return click.option("--mechanism", type=MECHANISM, required=True, help="What adds the noise.")(
        command
    )


def measure(command: Callable) -> Callable:
    """--measure and --confidence."""
    command = click.option(
        "--confidence",
        type=NUMBER,
        default=0.95,
        show_default=True,
        help="Of intervals and of --measure quantile, in (0, 1).",
    )(command)
    return click.option(
        "--measure",
        type=click.Choice(MEASURES),
        help="The error of one answer: root mean square, mean absolute, or the quantile of the"
        " absolute error at --confidence.  [default: rmse]",
    )(command)


def level_of(measure: str, confidence: float) -> float | None:
    """The level that the library takes for this measure."""
    return confidence if measure == "quantile" else None


def check_writable(name: str, path: Path | None, endings: tuple[str, ...] = ()) -> None:
    """Refuse a file that cannot be written before anything is computed for it."""
    if path is None:
        return
    if endings and path.suffix not in endings:
        *most, last = endings
        raise click.UsageError(
            f"--{name} {path}: expected a name that ends in {', '.join(most)} or {last}"
        )
    if not path.parent.is_dir():
        raise click.UsageError(f"--{name} {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.UsageError(f"--{name} {path}: not allowed to write there")


def text_of(path: Path) -> str:
    """What a file holds.

    Raises:
        ValueError: it cannot be read, or is no text in UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError("expected TOML in UTF-8") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
