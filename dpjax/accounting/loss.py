"""PrivacyLoss: what a composition of releases leaks, the one object every accountant reads.

    >>> from dpjax.accounting import loss
    >>> queries = 12 * loss.gaussian(4.0) + 3 * loss.laplace(10.0)
    >>> print(f"{queries.cumulant(1.0, 'both'):.6f}")
    0.778933

Parameters may be arrays: the loss then stands for a grid of compositions.
"""

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting import saved
from dpjax.accounting.leaks import BOTH, REMOVE_ADD, Leak
from dpjax.accounting.leaks.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.laplace import Laplace
from dpjax.accounting.leaks.response import Response, UniformResponse
from dpjax.accounting.leaks.sampled_gaussian import PoissonGaussian
from dpjax.accounting.leaks.sampled_laplace import PoissonLaplace
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

        >>> steps = gaussian(np.linspace(50, 150, 10_000)).sum()
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

        def term(leak: Leak) -> np.ndarray:
            return leak.cumulant(along, direction)

        total = self._total(term, np.zeros(1, along.dtype))
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

        >>> print((3 * laplace(2.0)).group(4).supremum("both"))
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

        >>> text = (12 * gaussian(4.0)).to_json()
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


def gaussian(noise_multiplier: Any) -> PrivacyLoss:
    """One Gaussian release.

    Args:
        noise_multiplier: Standard deviation of the noise over the L2 sensitivity, 0 to infinity. At
            0 the loss is infinite, at infinity nothing leaks.

    Raises:
        ValueError: The noise multiplier is negative or NaN.

    >>> print(gaussian(2.0).cumulant(1.0, "both"))
    0.25
    """
    checked = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    return _once(Gaussian(checked))


def laplace(noise_multiplier: Any) -> PrivacyLoss:
    """One Laplace release, which is 1/noise_multiplier-DP.

    Args:
        noise_multiplier: Scale b of the noise over the L1 sensitivity, 0 to infinity. At 0 the
            loss is infinite, at infinity nothing leaks.

    Raises:
        ValueError: The noise multiplier is negative or NaN.

    >>> print(laplace(2.0).supremum("both"))
    0.5
    """
    checked = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    return _once(Laplace(checked))


def sampled_gaussian(
    sampling_probability: Any, noise_multiplier: Any, *, adjacency: str = "add_remove"
) -> PrivacyLoss:
    """One Gaussian release of a Poisson sample: DP-SGD's step.

    Args:
        sampling_probability: Chance of each record to take part, in [0, 1].
        noise_multiplier: Standard deviation of the noise over one record's clip norm, 0 to
            infinity.
        adjacency: "add_remove".

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> step = sampled_gaussian(0.01, 1.0)
    >>> step.directions
    ('remove', 'add')
    """
    q = _validate.probability(sampling_probability=sampling_probability)
    s = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    _validate.one_of(("add_remove",), adjacency=adjacency)
    return _once(PoissonGaussian(q, s))


def sampled_laplace(sampling_probability: Any, noise_multiplier: Any) -> PrivacyLoss:
    """One Laplace release of a Poisson sample, for a record that is removed or added.

    Args:
        sampling_probability: Chance of each record to take part, in [0, 1].
        noise_multiplier: Scale b of the noise over the L1 sensitivity, 0 to infinity. Below 1/600
            only the largest loss is known, not the cumulant.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> query = sampled_laplace(0.2, 1.0)
    >>> print(query.supremum("remove").round(6), query.supremum("add").round(6))
    0.295395 0.13516
    """
    q = _validate.probability(sampling_probability=sampling_probability)
    b = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    return _once(PoissonLaplace(q, b))


def pure(epsilon: Any) -> PrivacyLoss:
    """One release of which only its guarantee is known: epsilon-private.

    It counts as randomized response of that epsilon, which dominates every such release, so that
    `exact` of a sum of these is optimal composition (Kairouz, Oh, Viswanath 2015, Theorem 3.2).

    Args:
        epsilon: 0 to infinity.

    Raises:
        ValueError: Epsilon is negative or NaN.

    >>> print(pure(0.5).supremum("both"))
    0.5
    """
    return approximate(epsilon, 0.0)


def approximate(epsilon: Any, delta: Any) -> PrivacyLoss:
    """One release of which only its guarantee is known: (epsilon, delta)-private.

    As `pure`, with everything revealed with chance delta.

    Args:
        epsilon: 0 to infinity.
        delta: In [0, 1].

    Raises:
        ValueError: Epsilon or delta is outside its range or NaN.

    >>> print(approximate(0.5, 1e-6).infinite_mass("both"))
    1e-06
    """
    checked = _validate.non_negative_or_infinite(epsilon=epsilon)
    return _once(Response(checked, np.asarray(2.0), _validate.probability(delta=delta)))


def randomized_response(scale: Any) -> PrivacyLoss:
    """One person's yes or no by randomized response: `k_ary_response` with two categories.

    >>> print(randomized_response(2.0).supremum("both"))
    0.5
    """
    return k_ary_response(scale, 2)


def k_ary_response(
    scale: Any, num_categories: Any, *, adjacency: str = "replace_one"
) -> PrivacyLoss:
    """One person's category, answered with exp(1/scale) times the chance of each other one.

    Args:
        scale: 1/epsilon, as the mechanism takes it; 0 to infinity. At 0 the loss is infinite.
        num_categories: Whole and at least 2.
        adjacency: "replace_one", two answers of one person; or "add_remove", where a person who is
            not there answers uniformly.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> leak = k_ary_response(1.0, 3, adjacency="add_remove")
    >>> print(leak.supremum("remove").round(6), leak.supremum("add").round(6))
    0.547168 0.452832
    """
    checked = _validate.non_negative_or_infinite(scale=scale)
    k = _validate.count(num_categories=num_categories).astype(np.float64)
    if np.any(k < 2):
        raise ValueError(
            f"num_categories = {num_categories}: expected a whole number of at least 2"
        )
    _validate.one_of(("replace_one", "add_remove"), adjacency=adjacency)
    with np.errstate(divide="ignore", over="ignore"):
        epsilon = np.asarray(1 / checked)
    replaced = adjacency == "replace_one"
    return _once(Response(epsilon, k, np.zeros(())) if replaced else UniformResponse(epsilon, k))


def discrete_laplace(scale: Any, sensitivity: Any) -> PrivacyLoss:
    """One whole number with discrete Laplace noise: sensitivity/scale-private.

    Args:
        scale: Of the noise, P(x) proportional to exp(-|x|/scale); 0 to infinity.
        sensitivity: Largest change of the number, whole and at least 0.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> print(discrete_laplace(4.0, 2).supremum("both"))
    0.5
    """
    checked = _validate.non_negative_or_infinite(scale=scale)
    whole = _validate.count(sensitivity=sensitivity).astype(np.float64)
    return _once(DiscreteLaplace(checked, whole))


def discrete_gaussian(scale: Any, sensitivity: Any) -> PrivacyLoss:
    """One whole number with discrete Gaussian noise.

    Where the scale is small the losses lie far apart, and delta at one epsilon may rise with it.

    Args:
        scale: Of the noise, P(x) proportional to exp(-x^2/(2 scale^2)); 0 to infinity.
        sensitivity: Largest change of the number, whole and at least 0.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> print(discrete_gaussian(2.0, 1).cumulant(1.0, "both").round(12))
    0.25
    """
    checked = _validate.non_negative_or_infinite(scale=scale)
    whole = _validate.count(sensitivity=sensitivity).astype(np.float64)
    return _once(DiscreteGaussian(checked, whole))


def from_json(text: str) -> PrivacyLoss:
    """The loss in a text of `PrivacyLoss.to_json`, with every parameter checked as by its family.

    Raises:
        ValueError: The text is no such loss, of another version, or has a parameter out of range.
        TypeError: A parameter is not a number.

    >>> print(from_json((12 * gaussian(4.0)).to_json()).cumulant(1.0, "both"))
    0.75
    """
    terms = [PrivacyLoss((term,)) for term in saved.load(text)]
    return functools.reduce(operator.add, terms, PrivacyLoss())


def _product(count: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Count times the count before; one beyond 64 bits is an error, for it would wrap."""
    _validate.count(count=count.astype(np.float64) * before)
    return np.asarray(count * before)


def _once(leak: Leak) -> PrivacyLoss:
    """One release of a leak."""
    return PrivacyLoss(((leak, np.asarray(1)),))
