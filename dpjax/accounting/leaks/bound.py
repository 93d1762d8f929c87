"""Leaks of which only a bound on the cumulant is known, and no pair."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpjax.accounting.leaks import Leak


class Bound(Leak):
    """A leak of which only a bound on the cumulant is known, for real t and both directions."""

    is_pair = False


@dataclass(frozen=True, eq=False)
class Concentrated(Bound):
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
class BoundedRange(Bound):
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
class Curve(Bound):
    """K(t) by chords between (0, 0) and the points (order - 1, (order - 1) divergence)."""

    divergences: np.ndarray
    orders: tuple[float, ...]

    def __post_init__(self) -> None:
        """Rising orders above 1, one for each divergence."""
        order, known = np.asarray(self.orders), self.divergences
        if order.ndim != 1 or np.any(order <= 1) or np.any(np.diff(order) <= 0):
            raise ValueError(f"orders = {self.orders}: expected rising numbers above 1")
        if known.shape[-1:] != order.shape or order.size == 0:
            raise ValueError(f"divergences have shape {known.shape}: expected (..., {order.size})")

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
        t = np.broadcast_to(t, full).reshape(-1, full[-1])
        rows = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        rows = np.broadcast_to(rows, full[:-1]).ravel()
        result = np.empty(t.shape)
        for i, row in enumerate(rows):
            x, k, slope = self._hulls[row]
            past = t[i] > x[-1]
            with np.errstate(invalid="ignore", over="ignore"):
                line = k[-1] + (t[i] - x[-1]) * slope
            result[i] = np.where(past, line, np.interp(t[i], x, k))
        return result.reshape(full)

    @cached_property
    def _hulls(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Corners of the lower convex hull of (0, 0) and the points, and the slope past the last.

        All chords are above it, and some on it. The last corner is the one from which a line with
        the largest loss as slope is below all points.
        """
        order = np.array(self.orders)
        at, hulls = np.append(0, order[np.isfinite(order)] - 1), []
        largest = self.supremum("both").reshape(-1)
        for row, slope in zip(self.divergences.reshape(-1, order.size), largest, strict=True):
            corners = [(0.0, 0.0)]
            for x, value in zip(
                at[1:].tolist(), (at[1:] * row[: at.size - 1]).tolist(), strict=True
            ):
                if np.isinf(value):
                    continue
                while len(corners) > 1:
                    (x0, k0), (x1, k1) = corners[-2:]
                    if (k1 - k0) * (x - x0) < (value - k0) * (x1 - x0):
                        break
                    corners.pop()
                corners.append((x, value))
            while len(corners) > 1 and np.isfinite(slope):
                (x0, k0), (x1, k1) = corners[-2:]
                if k1 - k0 < slope * (x1 - x0):
                    break
                corners.pop()
            x, k = np.array(corners).T
            hulls.append((x, k, float(slope)))
        return hulls

    def supremum(self, direction: str) -> np.ndarray:
        """The divergence of order infinity, if given."""
        given = np.isinf(self.orders[-1])
        return self.divergences[..., -1] if given else np.full(self.shape, np.inf)


def _upper_half(t: np.ndarray) -> np.ndarray:
    """T, or -1 - t below -1/2: bounds hold in both directions, and K(-1 - t) is the other's."""
    return np.where(t < -0.5, -1 - t, t)
