"""What a command prints: text for people, JSON and CSV for programs."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

Row = Mapping[str, Any]
_LONGEST = 600  # letters of a message


class ImpossibleWish(click.ClickException):
    """Exit code 1: the arguments are in order, but no design fulfils them."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        """The reason, with the nearest possible wish."""
        click.echo(f"Impossible: {self.message}", err=True)


def emit(
    form: str | None, command: str, result: Row, rows: Sequence[Row], text: Iterable[str]
) -> None:
    """Print a result in the form that was asked for.

    Args:
        form: "json", "csv" or None for text.
        command: the name of the command, part of the JSON.
        result: all there is, for JSON.
        rows: its main table, for CSV; of equal keys.
        text: lines for people.

    Raises:
        ArithmeticError: a number of the result is NaN.
    """
    whole = _plain({"command": command, "dpjax": installed_version()} | dict(result))
    if form == "json":
        click.echo(json.dumps(whole, indent=2, allow_nan=False, ensure_ascii=False))
    elif form == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(
            ["" if cell is None else cell for cell in _plain(row).values()] for row in rows
        )
        click.echo(buffer.getvalue(), nl=False)
    else:
        for line in text:
            click.echo(line)


def table(
    header: Sequence[str], rows: Iterable[Sequence[Any]], best: int | None = None
) -> list[str]:
    """Lines of a table: text to the left, numbers to the right, six digits; one row in bold."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    numeric = [any(isinstance(row[i], float | int) for row in rows) for i in range(len(header))]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        parts = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(parts).rstrip()

    lines = [click.style(line(header), underline=True)]
    for i, row in enumerate(cells):
        lines.append(click.style(line(row), bold=True, fg="green") if i == best else line(row))
    return lines


def several(count: int, one: str, many: str) -> str:
    """A count with its noun."""
    return f"{count} {one if count == 1 else many}"


def one_line(error: BaseException) -> str:
    """What an error says, on one line of bounded length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def up(value: float) -> float:
    """The least number of six digits that is no smaller: noise and epsilon as people read them.

    >>> up(18.893338), up(1.25), up(0.0), up(math.inf)
    (18.8934, 1.25, 0.0, inf)
    """
    shown = float(f"{value:.6g}")
    if shown >= value:
        return shown
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 5)
    return float(f"{shown + unit:.6g}")


def number(value: float | None) -> str:
    """Six digits; what is infinite or missing in words."""
    if value is None:
        return "none"
    return "infinite" if math.isinf(value) else f"{value:.6g}"


def paragraph(heading: str, lines: Iterable[str]) -> list[str]:
    """A heading with lines below it, and an empty line before."""
    return ["", click.style(heading, bold=True), *(f"  {line}" for line in lines)]


def risk_lines(risk: Row) -> list[str]:
    """What an attacker can do, from the fields of `advice.Risk`."""
    lines = [
        "the odds that anyone is in the data change by at most a factor"
        f" {number(risk['odds_factor'])}: 50 % becomes at most {risk['belief']:.1%}",
        f"an attacker with 1 % false alarms finds at most {risk['true_positive_rate']:.1%} of those"
        " who are in",
        f"true less false positive rate is at most {risk['advantage']:.1%} for any mechanism of"
        " this guarantee",
    ]
    if risk["advantage_of_release"] is not None:
        lines[-1] += f", {risk['advantage_of_release']:.1%} for this one"
    return lines


def _cell(value: Any) -> str:
    """One cell of a text table."""
    if isinstance(value, int):
        return str(value)  # counts have all digits
    return value if isinstance(value, str) else number(value)


def _plain(value: Any) -> Any:
    """Plain Python for JSON and CSV: infinity is None, and a NaN a mistake of ours."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        if math.isnan(value):
            raise ArithmeticError("a result is not a number")
        return float(value) if math.isfinite(value) else None
    return value


def installed_version() -> str:
    """The installed version of dpjax."""
    try:
        return version("dpjax")
    except PackageNotFoundError:
        return "from source"
