"""The composition of releases, with what each leaks: the one object every accountant reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting import saved
from dpjax.accounting.leaks import BOTH, REMOVE_ADD, Leak
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.laplace import Laplace
from dpjax.accounting.leaks.summed import summed


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """The privacy loss of independent releases, each leak repeated `count` times.

    Build one with the functions of this module, then `count * loss` and `loss + loss`. Shapes
    broadcast as in NumPy; adaptive composition costs no more (Zhu, Dong, Wang 2022, Theorem 10).

    Attributes:
        terms: The leaks, each with its count (int64, a scalar or an array over the grid).
    """

    terms: tuple[tuple[Leak, np.ndarray], ...] = ()

    __array_ufunc__ = None  # so that `array * loss` comes to __rmul__ whole

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the grid of compositions."""
        shapes = [s for leak, count in self.terms for s in (leak.shape, count.shape)]
        return np.broadcast_shapes(*shapes)

    @property
    def directions(self) -> tuple[str, ...]:
        """("both",) if the two directions of the adjacency leak alike, else ("remove", "add")."""
        symmetric = all(leak.directions == BOTH for leak, _ in self.terms)
        return BOTH if symmetric else REMOVE_ADD

    @property
    def is_pair(self) -> bool:
        """Whether a dominating pair is known, and not only a bound on the cumulant."""
        return all(leak.is_pair for leak, _ in self.terms)

    def __rmul__(self, count: Any) -> "PrivacyLoss":
        """The loss repeated `count` times: a whole number of at least 0, or an array of them."""
        times = _validate.count(count=count)
        return PrivacyLoss(tuple((leak, _product(times, before)) for leak, before in self.terms))

    __mul__ = __rmul__

    def __add__(self, other: "PrivacyLoss") -> "PrivacyLoss":
        """The loss of both, one after the other."""
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        both = PrivacyLoss(self.terms + other.terms)
        _ = both.shape  # grids that do not broadcast are an error here and not later
        return both

    def __radd__(self, other: Any) -> "PrivacyLoss":
        """The loss itself, added to the 0 that Python's `sum` starts from."""
        return self if other == 0 else NotImplemented

    def sum(self, axis: int | tuple[int, ...] | None = None) -> "PrivacyLoss":
        """The composition of all losses along axes of the grid, however many and different.

        Args:
            axis: One or several axes of the grid; None is all of them.

        Raises:
            ValueError: The grid has no such axis, or an axis is named twice.

        >>> from dpjax.accounting import loss
        >>> steps = loss.gaussian(np.linspace(50, 150, 10_000)).sum()
        >>> print(f"{steps.cumulant(1.0, 'both'):.6f}")
        1.333422
        """
        grid = self.shape
        named = range(len(grid)) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = tuple(a % len(grid) for a in named if -len(grid) <= a < len(grid))
        if len(axes) != len(named) or len(set(axes)) != len(axes):
            raise ValueError(f"axis = {axis}: expected different axes of a grid of shape {grid}")
        return PrivacyLoss(tuple(summed(leak, count, grid, axes) for leak, count in self.terms))

    def cumulant(self, t: Any, direction: str) -> np.ndarray:
        """K(t) = log E_P[exp(t L)], of L given that it is finite.

        The Rényi divergence of order a is K(a - 1) / (a - 1).

        Args:
            t: Nodes, real or complex, that broadcast with the grid on all axes but the last; a
                scalar is one node, and its axis is left out of the answer.
            direction: One of `directions`.

        Returns:
            Array of shape (*shape, nodes). Infinite where the loss is.
        """
        nodes = np.asarray(t)
        nodes = nodes if nodes.dtype.kind == "c" else nodes.astype(np.float64)
        along = np.atleast_1d(nodes)
        total = self._total(lambda leak: leak.cumulant(along, direction), np.zeros(1, along.dtype))
        total = np.broadcast_to(total, np.broadcast_shapes((*self.shape, 1), along.shape))
        return np.asarray(total[..., 0] if nodes.ndim == 0 else total)

    def supremum(self, direction: str) -> np.ndarray:
        """The largest finite loss, infinity if it has no end; (*shape,)."""
        largest = self._total(lambda leak: leak.supremum(direction)[..., None], np.zeros(1))
        return np.asarray(largest[..., 0])

    def infinite_mass(self, direction: str) -> np.ndarray:
        """P(L = infinity) = 1 - prod (1 - m_i); (*shape,)."""

        def log_finite(leak: Leak) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.log1p(-leak.infinite_mass(direction))[..., None]

        return np.asarray(0.0 - np.expm1(self._total(log_finite, np.zeros(1))[..., 0]))

    def given_mass(self, direction: str) -> np.ndarray:
        """The mass of infinite loss where it is that of one release, as given; else NaN."""
        mass, releases = np.zeros((2, *self.shape))
        for leak, count in self.terms:
            own = leak.infinite_mass(direction)
            mass = np.where((own > 0) & (count > 0), own if leak.mass_is_given else np.nan, mass)
            releases = releases + np.where(own > 0, count, 0)
        return np.where(releases == 1, mass, np.nan)

    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """A bound on log |M(c + iz) / M(c)| for every |z| >= y, M = exp(K); (*shape, nodes).

        Args:
            c: Positive, (*shape, 1).
            y: Non-negative, (*shape, nodes).
            direction: One of `directions`.
        """
        return self._total(lambda leak: leak.log_decay(c, y, direction), np.zeros(1))

    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """K at an array of nodes as computed, and e with |exp(K - true K) - 1| <= exp(e) - 1."""
        value, error = np.zeros((2, *np.broadcast_shapes((*self.shape, 1), t.shape)), t.dtype)
        error = np.real(error)
        for leak, count in self.terms:
            one, one_error = leak.cumulant_with_error(t, direction)
            value = value + count[..., None] * one
            error = error + count[..., None] * one_error
        return value, error

    def take(self, index: np.ndarray) -> "PrivacyLoss":
        """The compositions at flat positions of the grid, on one axis."""
        return PrivacyLoss(
            tuple(
                (leak.take(self.shape, index), np.broadcast_to(count, self.shape).ravel()[index])
                for leak, count in self.terms
            )
        )

    def group(self, size: Any) -> "PrivacyLoss":
        """The loss of a whole group of records: noise over a sensitivity that is `size` times.

        Args:
            size: Records of the group, whole and at least 1; an array broadcasts with the grid.

        Raises:
            ValueError: A leak is neither Gaussian nor Laplace, whose noise this describes.

        >>> from dpjax.accounting import loss
        >>> print((3 * loss.laplace(2.0)).group(4).supremum("both"))
        6.0
        """
        times = _validate.count(size=size)
        if np.any(times < 1):
            raise ValueError(f"size = {size}: expected a whole number of at least 1")
        for leak, _ in self.terms:
            if not isinstance(leak, Gaussian | Laplace):
                raise ValueError(f"loss has a {type(leak).__name__}: expected Gaussian or Laplace")
        return PrivacyLoss(
            tuple(
                (type(leak)(np.asarray(leak.noise_multiplier / times)), count)
                for leak, count in self.terms
                if isinstance(leak, Gaussian | Laplace)
            )
        )

    def to_json(self) -> str:
        """The loss as JSON text, for `from_json`: parameters and counts to the last bit.

        Raises:
            ValueError: The loss has a family that JSON does not hold.

        >>> from dpjax.accounting import loss
        >>> text = (12 * loss.gaussian(4.0)).to_json()
        >>> print(text[26:])
        "terms": [{"family": "gaussian", "noise_multiplier": 4.0, "count": 12}]}
        """
        return saved.dump(self.terms)

    def _total(self, value: Callable[[Leak], np.ndarray], start: np.ndarray) -> np.ndarray:
        """Sum of count * value(leak) on (*shape, nodes), with 0 * infinity = 0."""
        total = np.broadcast_to(start, (*self.shape, *start.shape))
        for leak, count in self.terms:
            times = count[..., None]
            with np.errstate(over="ignore", invalid="ignore"):
                total = total + np.where(times == 0, 0, times * value(leak))
        return total


def as_loss(loss: Any) -> PrivacyLoss:
    """The loss, where an accountant takes it in.

    Raises:
        TypeError: It is none.

    >>> as_loss(0.5)
    Traceback (most recent call last):
    ...
    TypeError: loss = 0.5: expected a PrivacyLoss, such as loss.gaussian(1.0)
    """
    if not isinstance(loss, PrivacyLoss):
        shown = " ".join(repr(loss).split())
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise TypeError(f"loss = {shown}: expected a PrivacyLoss, such as loss.gaussian(1.0)")
    return loss


def once(leak: Leak) -> PrivacyLoss:
    """One release of a leak."""
    return PrivacyLoss(((leak, np.asarray(1)),))


def _product(count: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Count times the count before; one beyond 64 bits is an error, for it would wrap."""
    _validate.count(count=count.astype(np.float64) * before)
    return np.asarray(count * before)
