"""Tables as CSV: written from rows, read back as columns."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

Cell = str | int | float | None  # None is an empty cell: no such value


class Table:
    """Columns of one length: float64 where every cell is a number or empty (NaN), else text."""

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self.columns = dict(columns)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def where(self, **equal: str | float) -> "Table":
        """The rows in which each named column has the given value."""
        keep = np.ones(len(self), bool)
        for name, value in equal.items():
            keep &= self.columns[name] == value
        return Table({name: column[keep] for name, column in self.columns.items()})

    def having(self, name: str) -> "Table":
        """The rows in which the named column of numbers is not empty."""
        keep = ~np.isnan(self.columns[name])
        return Table({name: column[keep] for name, column in self.columns.items()})


def to_csv(rows: Iterable[Mapping[str, Cell]], columns: Sequence[str]) -> str:
    """Rows as CSV text with a header; floats at nine significant digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(row[name]) for name in columns})
    return text.getvalue()


def read(path: Path, columns: Sequence[str]) -> Table:
    """The table of a CSV file.

    Raises:
        ValueError: the file's header is not the given columns, or a row is longer or shorter.
    """
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if header != list(columns):
        raise ValueError(f"{path}: header {','.join(header)!r}: expected {','.join(columns)!r}")
    if not rows or {len(row) for row in rows} != {len(columns)}:
        raise ValueError(f"{path}: expected rows of {len(columns)} cells each")
    cells = zip(*rows, strict=True)
    return Table({name: _column(column) for name, column in zip(header, cells, strict=True)})


def _cell(value: Cell) -> str:
    """One cell as text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return format(float(value), ".9g")


def _column(cells: Sequence[str]) -> np.ndarray:
    """Numbers if all cells are numbers or empty, else the text."""
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)
