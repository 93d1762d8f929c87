"""The points of a sweep, each with a name, a mechanism and a key of its own."""

import itertools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from dpjax.simulate import difference

Coordinate = str | int | float | np.number
"""Where a point lies on one axis of the grid."""


@dataclass(frozen=True)
class Point:
    """One simulation of a sweep.

    Attributes:
        coordinates: the point's place on each axis of the grid, text or numbers, which name it in
            tables and make its key, such as `{"mechanism": "laplace", "epsilon": 0.1}`.
        mechanism: as in `simulate`. Bind what differs from point to point with
            `functools.partial`, so that one compilation serves them all.
        value: the true answer; 0.0 where only the error matters.
        measure: pure `(answer, value) -> x`, what the statistics are of.
        edges: of a histogram of x, or None.
    """

    coordinates: Mapping[str, Any]
    mechanism: Callable[..., Any]
    value: ArrayLike = 0.0
    measure: Callable[[Any, Array], Array] = difference
    edges: ArrayLike | None = None

    @property
    def name(self) -> str:
        """The coordinates on one line, such as mechanism=laplace/epsilon=0.1."""
        return point_name(self.coordinates)


def grid(
    mechanism_at: Callable[..., Callable[..., Any]], **axes: Iterable[Coordinate]
) -> list[Point]:
    """The points of a full grid in row-major order, the last axis fastest.

    Args:
        mechanism_at: gives the mechanism of a point from its coordinates by name.
        **axes: the coordinates along each axis.

    >>> import dpjax, functools
    >>> points = grid(
    ...     lambda mechanism, epsilon: functools.partial(mechanisms[mechanism], scale=1 / epsilon),
    ...     mechanism=(mechanisms := {"laplace": dpjax.laplace}),
    ...     epsilon=[0.1, 1.0],
    ... )
    >>> [point.name for point in points]
    ['mechanism=laplace/epsilon=0.1', 'mechanism=laplace/epsilon=1.0']
    """
    places = (dict(zip(axes, place, strict=True)) for place in itertools.product(*axes.values()))
    return [Point(place, mechanism_at(**place)) for place in places]


def point_name(coordinates: Mapping[str, Any]) -> str:
    """Coordinates on one line."""
    return "/".join(f"{axis}={place}" for axis, place in coordinates.items())


def point_key(key: Array, coordinates: Mapping[str, Any], name: str = "") -> Array:
    """The key of one grid point: `key` folded with a hash (CRC-32) of the point's name.

    Independent of the other points: adding one or leaving one out changes no other. One key shared
    by all points would give them all the same relative error.

    Args:
        key: one typed key.
        coordinates: of the point, on each axis.
        name: of the experiment, so that two of them with equal coordinates differ.
    """
    return jax.random.fold_in(key, point_hash(coordinates, name))


def point_hash(coordinates: Mapping[str, Any], name: str = "") -> np.uint32:
    """CRC-32 of a point's name."""
    text = "/".join(part for part in (name, point_name(coordinates)) if part)
    return np.uint32(zlib.crc32(text.encode()))


def check(points: Sequence[Point], name: str = "") -> None:
    """Refuse points that a table or a key could not tell apart.

    Raises:
        ValueError: no points; other axes than the first point; twice the same coordinates or hash.
        TypeError: a coordinate that is neither text nor a number.
    """
    if not points:
        raise ValueError("points = []: expected at least one")
    axes = list(points[0].coordinates)
    seen: set[str] = set()
    hashes: dict[np.uint32, Point] = {}
    for i, point in enumerate(points):
        if list(point.coordinates) != axes:
            raise ValueError(f"points[{i}] = {point.name}: expected coordinates {', '.join(axes)}")
        for axis, place in point.coordinates.items():
            if not isinstance(place, Coordinate):
                kind = type(place).__name__
                raise TypeError(f"points[{i}] = {axis}={kind}: expected text or a number")
        if point.name in seen:
            raise ValueError(f"points[{i}] = {point.name}: expected other coordinates, seen before")
        seen.add(point.name)
        other = hashes.setdefault(point_hash(point.coordinates, name), point)
        if other is not point:
            raise ValueError(
                f"points: {other.name} and {point.name} have the same hash, hence one key; expected"
                " another name= of the sweep"
            )
