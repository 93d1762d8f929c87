"""Totals of many simulations that are exact, so that they add up to the same bits in any order.

Floating-point sums depend on the order of their terms. Here each sum of a part becomes a whole
number of 2^-64 units (Python's integers have no limit), and is a float64 again only at the end,
correctly rounded. So it does not matter which device or process computed which part, or when.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpjax.statistics import Histogram, Moments

_ONE = 1 << 64


@dataclass(frozen=True)
class Total:
    """Moments whose sums are whole numbers.

    Attributes:
        min: float64, of the shape of one measured x.
        max: float64, likewise.
        unit: float64, likewise; parts add up only if they share it.
        sums: (..., 6) Python integers in an object array, in 2^-64 units; inf and NaN stay floats.
        edges: (bins - 1,) of the histogram, or None.
        counts: (..., bins) Python integers, or None.
    """

    min: Any
    max: Any
    unit: Any
    sums: Any
    edges: Any
    counts: Any


def total(part: Moments) -> Total:
    """A simulation's moments, fetched to the host, as a total."""
    bins = part.histogram
    return Total(
        min=np.asarray(part.min, np.float64) + 0.0,  # which makes -0.0 and 0.0 the same
        max=np.asarray(part.max, np.float64) + 0.0,
        unit=np.asarray(part.unit, np.float64),
        sums=_to_whole(_joined(part.sums, part.residues)),
        edges=None if bins is None else np.asarray(bins.edges, np.float64),
        counts=None if bins is None else _to_whole(_joined(bins.sums, bins.residues)),
    )


def add(first: Total | None, second: Total | None) -> Total | None:
    """Both together, exactly; None is nothing."""
    if first is None or second is None:
        return second if first is None else first
    if not np.array_equal(first.unit, second.unit):
        raise ValueError(f"units = {first.unit}, {second.unit}: expected the same")
    return Total(
        min=np.minimum(first.min, second.min),
        max=np.maximum(first.max, second.max),
        unit=first.unit,
        sums=first.sums + second.sums,
        edges=first.edges,
        counts=None if first.counts is None else first.counts + second.counts,
    )


def moments(whole: Total) -> Moments:
    """The statistics of a total, its sums rounded once to float64."""
    sums = _to_float(whole.sums)
    histogram = None
    if whole.counts is not None:
        counts = _to_float(whole.counts)
        histogram = Histogram(whole.edges, counts, np.zeros_like(counts))
    return Moments(whole.min, whole.max, whole.unit, sums, np.zeros_like(sums), histogram)


def to_json(whole: Total | None) -> dict[str, Any] | None:
    """A total as JSON can hold it without loss."""
    if whole is None:
        return None
    return {
        name: None if part is None else {"shape": part.shape, "flat": part.ravel().tolist()}
        for name, part in vars(whole).items()
    }


def from_json(fields: dict[str, Any] | None) -> Total | None:
    """What `to_json` was given."""
    if fields is None:
        return None

    def array(name: str) -> Any:
        if fields[name] is None:
            return None
        dtype = object if name in ("sums", "counts") else np.float64
        return np.array(fields[name]["flat"], dtype).reshape(fields[name]["shape"])

    return Total(**{name: array(name) for name in fields})


def _joined(sums: Any, residues: Any) -> np.ndarray:
    """Sums with what rounding left out of them, in float64."""
    return np.asarray(sums, np.float64) + np.asarray(residues, np.float64)


def _whole(number: float) -> int | float:
    """A finite float as a whole number of 2^-64, rounded down."""
    if not math.isfinite(number):
        return number
    numerator, denominator = number.as_integer_ratio()
    return numerator * _ONE // denominator


def _to_whole(array: np.ndarray) -> np.ndarray:
    """An object array of whole numbers."""
    return np.array([_whole(number) for number in array.ravel().tolist()], object).reshape(
        array.shape
    )


def _to_float(array: np.ndarray) -> np.ndarray:
    """Whole numbers of 2^-64 as float64, each rounded correctly."""
    return np.array([number / _ONE for number in array.ravel()], np.float64).reshape(array.shape)
