"""Many releases of one family with different parameters, as one leak."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpjax import _validate
from dpjax.accounting.leaks import Leak

_BLOCK = 1 << 19  # values held at once
_FEWEST_NODES = 1 << 11


@dataclass(frozen=True, eq=False, repr=False)
class Summed(Leak):
    """The releases along the last axis of `leak` and `count`, all of them one after the other."""

    leak: Leak
    count: np.ndarray

    def __post_init__(self) -> None:
        """What the family says of itself."""
        nodes = max(self.leak.max_nodes // max(self.number, 1), _FEWEST_NODES)
        object.__setattr__(self, "max_nodes", min(nodes, self.leak.max_nodes))
        object.__setattr__(self, "directions", self.leak.directions)
        object.__setattr__(self, "is_pair", self.leak.is_pair)

    def __repr__(self) -> str:
        """One line, however many releases."""
        return f"Summed({self.number} of {type(self.leak).__name__})"

    @property
    def number(self) -> int:
        """How many releases there are, counts aside."""
        return self.count.shape[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid of the sums."""
        return self.count.shape[:-1]

    def take(self, shape: tuple[int, ...], index: np.ndarray) -> "Summed":
        """The sums at flat positions of a grid."""
        own = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        rows = np.broadcast_to(own, shape).ravel()[index]
        return self._pick(rows[..., None] * self.number + np.arange(self.number))

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """The sum of the cumulants."""
        full = np.broadcast_shapes((*self.shape, 1), t.shape)
        total = np.zeros(full, t.dtype)
        for leak, count in self._chunks(full):
            total = total + _weighted(count, leak.cumulant(t[..., None, :], direction))
        return total

    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Cumulants and errors add up; so does the rounding of the sum."""
        full = np.broadcast_shapes((*self.shape, 1), t.shape)
        value, error, size = np.zeros(full, t.dtype), np.zeros(full), np.zeros(full)
        for leak, count in self._chunks(full):
            each, each_error = leak.cumulant_with_error(t[..., None, :], direction)
            value = value + _weighted(count, each)
            error = error + _weighted(count, each_error)
            size = size + _weighted(count, np.abs(each))
        return value, error + np.finfo(float).eps * np.log2(self.number + 2) * size

    def supremum(self, direction: str) -> np.ndarray:
        """The sum of the largest losses."""
        return _weighted(self.count, self.leak.supremum(direction)[..., None])[..., 0]

    def infinite_mass(self, direction: str) -> np.ndarray:
        """One release with an infinite loss is enough."""
        with np.errstate(divide="ignore"):
            log_finite = np.log1p(-self.leak.infinite_mass(direction))
        return np.asarray(0.0 - np.expm1(_weighted(self.count, log_finite[..., None])[..., 0]))

    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """The sum of the bounds."""
        full = np.broadcast_shapes((*self.shape, 1), c.shape, y.shape)
        total = np.zeros(full)
        for leak, count in self._chunks(full):
            each = leak.log_decay(c[..., None, :], y[..., None, :], direction)
            total = total + _weighted(count, each)
        return total

    def _pick(self, index: np.ndarray) -> "Summed":
        """The releases at flat positions, the last axis of which is summed."""
        return Summed(self.leak.take(self.count.shape, index), self.count.ravel()[index])

    def _chunks(self, full: tuple[int, ...]) -> Iterator[tuple[Leak, np.ndarray]]:
        """Leaks and counts that fit in memory on the nodes of a full array."""
        width = max(1, _BLOCK // max(int(np.prod(full)), 1))
        positions = np.arange(self.count.size).reshape(self.count.shape)
        for start in range(0, self.number, width):
            part = self._pick(positions[..., start : start + width])
            yield part.leak, part.count


def summed(
    leak: Leak, count: np.ndarray, grid: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[Leak, np.ndarray]:
    """A leak and its count, summed over axes (from 0) of a grid that they broadcast to."""
    own = np.broadcast_shapes(leak.shape, count.shape)
    own = (1,) * (len(grid) - len(own)) + own
    times = int(np.prod([grid[a] for a in axes if own[a] == 1], dtype=object))
    _validate.count(count=count.astype(np.float64) * times)  # beyond 64 bits it would wrap
    leak, count = releases(leak, np.asarray(count * times))
    own, axes = (*own, leak.shape[-1]), (*axes, len(grid))
    count = np.broadcast_to(count, own)
    index = np.moveaxis(np.arange(int(np.prod(own))).reshape(own), axes, range(-len(axes), 0))
    rest = index.shape[: len(own) - len(axes)]
    index = index.reshape(*rest, int(np.prod(index.shape[len(rest) :])))
    leak, count = leak.take(own, index), np.asarray(count.ravel()[index])
    if index.shape[-1] == 1:
        return leak.take(leak.shape, np.arange(index.size).reshape(rest)), np.asarray(count[..., 0])
    return Summed(leak, count), np.asarray(1)


def releases(leak: Leak, count: np.ndarray) -> tuple[Leak, np.ndarray]:
    """A leak and its count with one more axis: what it is the total of, or itself alone."""
    if isinstance(leak, Summed):
        return leak.leak, count[..., None] * leak.count
    positions = np.arange(int(np.prod(leak.shape))).reshape(*leak.shape, 1)
    return leak.take(leak.shape, positions), count[..., None]


def _weighted(count: np.ndarray, each: np.ndarray) -> np.ndarray:
    """Sum of count * each over the releases, the axis before the nodes, with 0 * infinity = 0."""
    times = count[..., None]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.where(times == 0, 0, times * each).sum(-2))
