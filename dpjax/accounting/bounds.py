"""Losses of which only a bound on the cumulant is known, for `rdp` and not for `exact`.

No single pair of output laws dominates every mechanism with such a guarantee, so that `exact`
refuses them by name: a Gaussian of the same rho, say, would understate.

    >>> from dpjax.accounting import loss, rdp
    >>> queries = 5 * bounded_range(0.1) + 10 * zcdp(0.002) + loss.gaussian(10.0)
    >>> print(f"{rdp.epsilon(queries, 1e-5):.6f}")
    1.007995
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting.leaks import Leak
from dpjax.accounting.loss import PrivacyLoss


def zcdp(rho: Any) -> PrivacyLoss:
    """One release that is rho-zCDP: a Rényi divergence of at most rho times the order.

    Args:
        rho: 0 to infinity.

    Raises:
        ValueError: Rho is negative or NaN.

    Source: Bun and Steinke 2016, Definition 1.1.

    >>> print(zcdp(0.5).cumulant(3.0, "both"))
    6.0
    """
    return _once(Concentrated(_validate.non_negative_or_infinite(rho=rho)))


def bounded_range(epsilon: Any) -> PrivacyLoss:
    """One release whose losses lie in some interval of length epsilon: the exponential mechanism.

    Permute-and-flip and report-noisy-max with Laplace noise are not of bounded range: count them as
    `loss.pure`.

    Args:
        epsilon: Length of the range, 0 to infinity. With scores of sensitivity D it is 2 D / scale
            for weights exp(score / scale), and D / scale if a record moves all scores one way.

    Raises:
        ValueError: Epsilon is negative or NaN.

    Source: Durfee and Rogers 2019, Definition 4.1; Dong, Durfee, Rogers 2020, Section 3.

    >>> print(bounded_range(1.0).supremum("both"), zcdp(1 / 8).cumulant(1.0, "both"))
    1.0 0.25
    >>> print(bounded_range(1.0).cumulant(1.0, "both").round(6))
    0.240229
    """
    return _once(BoundedRange(_validate.non_negative_or_infinite(epsilon=epsilon)))


def renyi_curve(orders: Any, divergences: Any) -> PrivacyLoss:
    """One release with known Rényi divergences at some orders, in both directions.

    Between orders the cumulant is bounded by its chord, for it is convex and 0 at order 1; beyond
    the last order nothing is known, unless that is infinity. Where the last finite order is the
    best, `rdp` stops short of it: `rdp.to_epsilon` on the orders alone is then a little lower.

    Args:
        orders: Above 1 and rising, (n,); infinity, the largest loss, may come last.
        divergences: At least 0, (*grid, n); infinite where unknown.

    Raises:
        ValueError: An argument is outside its range, the orders do not rise, or the shapes differ.

    >>> curve = renyi_curve([2, 4, np.inf], [0.1, 0.2, 0.5])
    >>> print(curve.cumulant(2.0, "both").round(6), curve.cumulant(5.0, "both").round(6))
    0.35 1.6
    """
    order = np.atleast_1d(_validate.non_negative_or_infinite(orders=orders))
    known = np.atleast_1d(_validate.non_negative_or_infinite(divergences=divergences))
    if order.ndim != 1 or np.any(order <= 1) or np.any(np.diff(order) <= 0):
        raise ValueError(f"orders = {orders}: expected rising numbers above 1")
    if known.shape[-1:] != order.shape:
        raise ValueError(f"divergences have shape {known.shape}: expected (..., {order.size})")
    return _once(Curve(known, tuple(order.tolist())))


class _Bound(Leak):
    """A leak of which only a bound on the cumulant is known, for real t and both directions."""

    is_pair = False


@dataclass(frozen=True, eq=False)
class Concentrated(_Bound):
    """K(t) <= rho t (t + 1)."""

    rho: np.ndarray

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """The bound; 0 from -1 to 0, where K is not positive."""
        t = np.maximum(_upper_half(t), 0)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.where(t == 0, 0, self.rho[..., None] * t * (t + 1))

    def supremum(self, direction: str) -> np.ndarray:
        """Infinity, unless nothing leaks."""
        return np.where(self.rho > 0, np.inf, 0.0)


@dataclass(frozen=True, eq=False)
class BoundedRange(_Bound):
    """Of all pairs with losses in [u - epsilon, u] the worst have the ends alone, for some u.

    E_Q[exp(L)] = 1 gives their chances, and E[exp(tL)] = v^t (1 - (v - 1) s) with v = exp(u) and
    s = (1 - exp(-t epsilon)) / (exp(epsilon) - 1). Its largest value over u is at
    v = t (1 + s) / (s (t + 1)), between 1 and exp(epsilon).
    """

    epsilon: np.ndarray

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """T log v + log((1 + s) / (t + 1)), or t (t + 1) epsilon^2 / 8 where that is precise."""
        e = self.epsilon[..., None]
        t = np.maximum(_upper_half(t), 0)
        concentrated = t * (t + 1) * e**2 / 8  # an upper bound, as t e falls ever more precise
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            s = -np.expm1(-t * e) / np.expm1(e)
            log_v = np.log1p((t - s) / (s * (t + 1)))
            log_v = np.where(np.isfinite(log_v), log_v, e + np.log(t / (t + 1)))  # s is 0: large e
            value = t * log_v + np.log1p((s - t) / (t + 1))
            value = value + 4e-16 * (1 + np.abs(t * log_v))  # the bound is not rounded down
        value = np.minimum(np.where(np.isnan(value), np.inf, value), concentrated)
        return np.where((t == 0) | (e == 0), 0, np.minimum(value, t * e))

    def supremum(self, direction: str) -> np.ndarray:
        """Epsilon: 0 is always in the range."""
        return self.epsilon


@dataclass(frozen=True, eq=False)
class Curve(_Bound):
    """K(t) by chords between (0, 0) and the points (order - 1, (order - 1) divergence)."""

    divergences: np.ndarray
    orders: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid, without the orders."""
        return self.divergences.shape[:-1]

    def take(self, shape: tuple[int, ...], index: np.ndarray) -> "Curve":
        """The curves at flat positions of a grid."""
        number = len(self.orders)
        rows = np.broadcast_to(self.divergences, (*shape, number)).reshape(-1, number)
        return Curve(rows[index], self.orders)

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """The least of all chords and, beyond them, of all lines with the largest loss as slope."""
        t = np.maximum(_upper_half(t), 0)
        full = np.broadcast_shapes((*self.shape, 1), t.shape)
        result = np.where(t == 0, 0.0, np.full(full, np.inf))
        largest = self.supremum(direction)[..., None]
        at = [0.0, *(order - 1 for order in self.orders if np.isfinite(order))]
        values = [np.zeros((*self.shape, 1))]
        values += [x * self.divergences[..., i, None] for i, x in enumerate(at[1:])]
        with np.errstate(invalid="ignore", over="ignore"):
            for i, (x, k) in enumerate(zip(at, values, strict=True)):
                line = np.where(t >= x, k + np.where(t == x, 0, (t - x) * largest), np.inf)
                result = np.fmin(result, line)
                for y, k_y in zip(at[i + 1 :], values[i + 1 :], strict=True):
                    share = np.clip((t - x) / (y - x), 0, 1)
                    inside = (t >= x) & (t <= y)
                    chord = np.where(share == 1, k_y, k + share * (k_y - k))
                    result = np.fmin(result, np.where(inside, chord, np.inf))
        return result

    def supremum(self, direction: str) -> np.ndarray:
        """The divergence of order infinity, if given."""
        given = np.isinf(self.orders[-1])
        return self.divergences[..., -1] if given else np.full(self.shape, np.inf)


def _upper_half(t: np.ndarray) -> np.ndarray:
    """T, or -1 - t below -1/2: bounds hold in both directions, and K(-1 - t) is the other's."""
    return np.where(t < -0.5, -1 - t, t)


def _once(leak: Leak) -> PrivacyLoss:
    """One release."""
    return PrivacyLoss(((leak, np.asarray(1)),))
