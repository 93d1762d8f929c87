"""The result of a sweep: moments with their coordinates, as a tidy table."""

import csv
import io
import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dpjax.statistics import Moments
from dpjax.sweep.grid import Coordinate, Point

STATISTICS = (
    "mean",
    "mean_standard_error",
    "variance",
    "variance_standard_error",
    "rmse",
    "rmse_standard_error",
    "mae",
    "mae_standard_error",
    "min",
    "max",
)
"""Columns of the table after the coordinates and `num_trials`, in the units of the answer."""

Table = dict[str, list[Any]]
"""Columns of one length by name; an empty cell is None."""


@dataclass(frozen=True)
class SweepResult:
    """Statistics with labels.

    Attributes:
        points: as `sweep` was given them.
        moments: of each point, in the same order.
    """

    points: tuple[Point, ...]
    moments: tuple[Moments, ...]

    def at(self, **coordinates: Coordinate) -> Moments:
        """The moments of the one point with these coordinates.

        Raises:
            KeyError: no point has them, or several.
        """
        wanted = coordinates.items()
        found = [
            moments
            for point, moments in zip(self.points, self.moments, strict=True)
            if wanted <= dict(point.coordinates).items()
        ]
        if len(found) != 1:
            raise KeyError(f"{coordinates}: expected one point, found {len(found)}")
        return found[0]

    def table(self) -> Table:
        """One row for each point, or for each entry of a longer answer: coordinates, statistics.

        Columns: the coordinates; `index_0`, `index_1`, ... for each axis of the answers, where they
        have any; `num_trials`; STATISTICS.
        """
        axes = max(np.ndim(moments.min) for moments in self.moments)
        rows = []
        for point, moments in zip(self.points, self.moments, strict=True):
            columns = [np.asarray(getattr(moments, name)) for name in STATISTICS]
            count = np.broadcast_to(moments.count, np.shape(moments.min))
            for index in np.ndindex(count.shape):
                row = _labels(point, index, axes) | {"num_trials": int(count[index])}
                values = (float(column[index]) for column in columns)
                rows.append(row | dict(zip(STATISTICS, values, strict=True)))
        return {name: [row[name] for row in rows] for name in rows[0]}

    def histogram_table(self) -> Table:
        """One row for each bin of each point's histogram: coordinates, left, right, num_trials.

        Bins hold left <= x < right; the first reaches to -inf and the last to inf. Points without
        edges are left out.

        Raises:
            ValueError: no point has edges.
        """
        axes = max(np.ndim(moments.min) for moments in self.moments)
        rows = []
        for point, moments in zip(self.points, self.moments, strict=True):
            if moments.histogram is None:
                continue
            ends = [-np.inf, *np.asarray(moments.histogram.edges, float).tolist(), np.inf]
            counts = moments.histogram.counts
            for *index, i in np.ndindex(counts.shape):
                row = _labels(point, tuple(index), axes) | {"left": ends[i], "right": ends[i + 1]}
                rows.append(row | {"num_trials": int(counts[(*index, i)])})
        if not rows:
            raise ValueError("points: expected edges of a histogram in at least one")
        return {name: [row[name] for row in rows] for name in rows[0]}

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the table as CSV, with all digits; whole or not at all."""
        text = io.StringIO()
        table = self.table()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
        part = Path(f"{os.fspath(path)}.part")
        part.write_text(text.getvalue(), encoding="utf-8")
        os.replace(part, path)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the table as Parquet, whole or not at all; needs pyarrow."""
        import pyarrow  # pyright: ignore[reportMissingImports]
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]

        part = f"{os.fspath(path)}.part"
        parquet.write_table(pyarrow.table(self.table()), part)
        os.replace(part, path)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame; needs pandas."""
        import pandas  # pyright: ignore[reportMissingImports]

        return pandas.DataFrame(self.table())

    def to_xarray(self) -> Any:
        """The table as an xarray Dataset, one axis for each coordinate; needs xarray.

        Places of the grid where there is no point are NaN.
        """
        frame = self.to_pandas()
        labels = [name for name in frame.columns if name not in ("num_trials", *STATISTICS)]
        return frame.set_index(labels).to_xarray()


def _labels(point: Point, index: tuple[int, ...], axes: int) -> dict[str, Any]:
    """The cells that say where a row belongs."""
    padded = (*index, *[None] * (axes - len(index)))
    coordinates = {
        axis: place.item() if isinstance(place, np.number) else place
        for axis, place in point.coordinates.items()
    }
    return coordinates | {f"index_{axis}": place for axis, place in enumerate(padded)}
