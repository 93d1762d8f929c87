"""Options that several commands share, and numbers as people write them."""

import math
from collections.abc import Callable
from typing import Any

import click


class _Number(click.ParamType):
    """A finite number; 1e-5 and 1_000 are taken."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The float, or a message that repeats what was given."""
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class _Whole(click.ParamType):
    """A whole number of at least 1; 1e6 and 1_000_000 are taken."""

    name = "whole"

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The int, or a message that repeats what was given."""
        try:
            number = int(value) if isinstance(value, int) else _whole(str(value))
        except (ValueError, OverflowError):
            number = self.least - 1
        if not self.least <= number < 2**63:
            self.fail(f"{value!r} is not a whole number of at least {self.least}", param, ctx)
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


def _whole(text: str) -> int:
    """A whole number, in digits or as 1e6."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if number != math.floor(number) or abs(number) > 2**53:
            raise ValueError(text) from None
        return int(number)


NUMBER = _Number()
WHOLE = _Whole()
SEED = _Whole(least=0)
NUMBERS = _Several(NUMBER)
WHOLES = _Several(WHOLE)
MECHANISMS = ("laplace", "gaussian", "discrete-laplace", "discrete-gaussian")
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
        help="Print everything as JSON, with all digits; no finite value is null.",
    )(command)


def delta(command: Callable) -> Callable:
    """--delta, in [0, 1)."""
    return click.option(
        "--delta", type=NUMBER, required=True, help="Total delta, well below 1 / people."
    )(command)


def mechanism(command: Callable) -> Callable:
    """--mechanism, --sensitivity and --sampling-probability."""
    command = click.option(
        "--sampling-probability",
        type=NUMBER,
        help="Chance of each record to take part (Poisson sampling), for Laplace and Gaussian.",
    )(command)
    command = click.option(
        "--sensitivity",
        type=NUMBER,
        default=1.0,
        show_default=True,
        help="Largest change of the answer: L1 for Laplace noise, L2 for Gaussian.",
    )(command)
    return click.option(
        "--mechanism", type=click.Choice(MECHANISMS), required=True, help="What adds the noise."
    )(command)


def measure(command: Callable) -> Callable:
    """--measure and --confidence."""
    command = click.option(
        "--confidence",
        type=NUMBER,
        default=0.95,
        show_default=True,
        help="Of intervals, and of the quantile of --measure quantile.",
    )(command)
    return click.option(
        "--measure",
        type=click.Choice(MEASURES),
        default="rmse",
        show_default=True,
        help="The error of one answer: root mean square, mean absolute, or that quantile of it.",
    )(command)


def level_of(measure: str, confidence: float) -> float | None:
    """The level that the library takes for this measure."""
    return confidence if measure == "quantile" else None
