"""The privacy loss of the Gaussian mechanism on a Poisson sample (DP-SGD's step)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from dpjax.accounting import gaussian
from dpjax.accounting.leaks import REMOVE_ADD, Cells, Leak, Tails
from dpjax.accounting.leaks._amplified import log_delta_of_sample, place_of_loss
from dpjax.accounting.leaks._decay import log_decay_of_floor
from dpjax.accounting.leaks._mixture import (
    EXPONENT,
    Grid,
    grids,
    log_moments,
    log_moments_with_error,
)

_UNIT = np.finfo(float).eps
_NARROW = 0.02  # (0.02)^6 / 3e5 < 3e-16
_NEAR = 20.0  # how far apart powers are, in units of s, that share their abscissas
_TURNS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])  # of the line of integration, in units of 1 / s
_MOST_TURN = 2.8
_MOST_NOISE = 1e100  # integrated; beyond, its square may overflow
_FAR = 2.0  # from here on, in units of 1 / the loss's spread, turning is worth its time


@dataclass(frozen=True, eq=False)
class PoissonGaussian(Leak):
    """B = (1-q) N(0, s^2) + q N(1, s^2) against A = N(0, s^2); "remove" is (B, A), "add" is (A, B).

    These pairs dominate a release of any dimension with clip norm 1 in which each record takes part
    with probability q, when a record is removed or added (Zhu, Dong, Wang 2022, Theorem 11).

    With l(x) = log(1 - q + q exp((2x - 1) / (2 s^2))) the moments are integrals over x ~ A: of
    exp((t+1) l) for remove and of exp(-t l) for add (see `_mixture.py`).
    """

    sampling_probability: np.ndarray
    noise_multiplier: np.ndarray

    directions = REMOVE_ADD
    max_nodes = 1 << 17
    has_tails = True

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log of the trapezoidal sum."""
        return self._integrate(t, direction, lambda grid, power: (log_moments(grid, power), 0))[0]

    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Log of the trapezoidal sum; its rounding and truncation."""
        return self._integrate(t, direction, log_moments_with_error)

    @np.errstate(all="ignore")  # log 0, and overflow to infinity, are the right limits throughout
    def _integrate(
        self, t: np.ndarray, direction: str, method: Callable[..., tuple[Any, Any]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """A value and an error of the method for each node."""
        full = np.broadcast_shapes((*self.shape, 1), t.shape)
        q, s = (np.broadcast_to(v, full[:-1]).ravel() for v in self._parameters().values())
        power = np.broadcast_to(t + 1 if direction == "remove" else -t, full)
        power = power.reshape(-1, full[-1])
        value, error = np.zeros(power.shape, power.dtype), np.zeros(power.shape)
        bare = (s == 0) & (q > 0)  # without noise what is left of L is the constant +-log(1 - q)
        constant = np.log1p(-q[bare])[:, None]
        value[bare] = constant * (power[bare] - (direction == "remove"))
        far = np.flatnonzero((s > _MOST_NOISE) & np.isfinite(s) & (q > 0))
        value[far], error[far] = _bound(q[far, None], s[far, None], power[far])
        todo = np.flatnonzero((s > 0) & (s <= _MOST_NOISE) & (q > 0))
        value[todo] = np.inf  # what would need too many abscissas stays so, which is a bound
        shared = list(_that_share(power[todo], s[todo]))
        while shared:
            some, columns = shared.pop()
            rows = todo[some]
            for block, grid in grids(q[rows], s[rows], power[rows][:, columns]):
                here = np.ix_(rows[block], columns)
                value[here], error[here] = method(grid, power[here])
            too_many = some[np.isinf(value[rows, columns[0]])]
            if too_many.size and columns.size > 1 and not np.iscomplexobj(power):
                shared += [(too_many, half) for half in np.array_split(columns, 2)]
        return value.reshape(full), error.reshape(full)

    @np.errstate(all="ignore")
    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """Log delta of one release, by amplification of the Gaussian's (Balle et al. 2018)."""
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        with np.errstate(divide="ignore"):
            mu = 1 / s
        return log_delta_of_sample(epsilon, q, direction, lambda e: gaussian.log_delta(e, mu=mu))

    @np.errstate(all="ignore")
    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Those of x on both sides of the abscissa whose loss it is."""
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        level = loss if direction == "remove" else -loss
        z = place_of_loss(level, q)
        x = s * z + 0.5 / s  # in units of the noise
        share = np.exp(np.minimum(np.log(q) + z - level, 0))  # the slope of the loss in z
        slip = 8 * _UNIT * (np.abs(level) + share * (1 + np.abs(z) + 1 / s**2))
        slip = np.where(share > 0, slip, 0)
        low, high = special.ndtr(x), special.ndtr(-x)
        mixed_low = (1 - q) * low + q * special.ndtr(x - 1 / s)
        mixed_high = (1 - q) * high + q * special.ndtr(1 / s - x)
        if direction == "remove":
            return Tails(mixed_high, mixed_low, high, low, slip)
        return Tails(low, high, mixed_low, mixed_high, slip)

    @np.errstate(all="ignore")
    def cells(self, edges: np.ndarray, direction: str) -> Cells:
        """Of two normal densities."""
        q, s = self.sampling_probability, self.noise_multiplier
        x = s * place_of_loss(edges if direction == "remove" else -edges, q) + 0.5 / s
        low, high = (x[:-1], x[1:]) if direction == "remove" else (x[1:], x[:-1])
        (a, a_error), (b, b_error) = (
            _normal_between(low, high),
            _normal_between(low - 1 / s, high - 1 / s),
        )
        mixed, error = (1 - q) * a + q * b, (1 - q) * a_error + q * b_error
        error = error + 4 * _UNIT * mixed
        of_a, of_mixture = (a, a_error), (mixed, error)
        p, q = (of_mixture, of_a) if direction == "remove" else (of_a, of_mixture)
        return Cells(*p, *q)

    def supremum(self, direction: str) -> np.ndarray:
        """Infinity for remove, -log(1 - q) for add."""
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        with np.errstate(divide="ignore"):
            largest = (
                np.where(s > 0, np.inf, np.log1p(-q)) if direction == "remove" else -np.log1p(-q)
            )
        return np.where((q == 0) | np.isinf(s), 0.0, largest)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """Without noise a removal shows with probability q."""
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        shows = (s == 0) & ((direction == "remove") | (q == 1))
        return np.where(shows, q, 0.0)

    @np.errstate(all="ignore")
    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """From a floor under the density of the tilted loss; by turning the line of x where lower.

        The floor is f = w / l' in each cell of x. Between two abscissas log w lies above its chord
        less h^2 / 8 of its largest curvature, (c+1) / (4 s^4) - 1 / s^2 for remove and negative for
        add; and |(log l')'| <= 1 / s^2.
        """
        q, s = (np.broadcast_to(v, self.shape).ravel() for v in self._parameters().values())
        c, y = (np.broadcast_to(v, (*self.shape, v.shape[-1])) for v in (c, y))
        shape, y = y.shape, y.reshape(-1, y.shape[-1])
        power = (c + 1 if direction == "remove" else -c).reshape(-1, 1)
        result = np.zeros(y.shape)
        todo = np.flatnonzero((s > 0) & (s <= _MOST_NOISE) & (q > 0))
        for block, grid in grids(q[todo], s[todo], power[todo], finer=3):
            rows = todo[block]
            p, variance = power[rows], grid.s**2
            log_w = grid.log_weight + p * grid.level - log_moments(grid, p)
            bend = np.maximum(p / (4 * variance**2) - 1 / variance, 0) * grid.h**2 / 8
            log_odds = np.log(grid.q) - np.log1p(-grid.q) + grid.z
            log_slope = -np.logaddexp(0, -log_odds) - np.log(variance)
            floor = np.minimum(log_w[:, 1:], log_w[:, :-1]) - bend - np.log(grid.h)
            ceiling = np.maximum(log_slope[:, 1:], log_slope[:, :-1]) + grid.h / (2 * variance)
            decay = log_decay_of_floor(grid.level, floor - ceiling, y[rows])
            share = np.exp(log_w)
            mean = (share * grid.level).sum(1, keepdims=True)
            spread = np.sqrt((share * (grid.level - mean) ** 2).sum(1, keepdims=True))
            far = np.flatnonzero((y[rows] * spread > _FAR).any(1))
            if far.size:
                part = Grid(*(v[far] for v in grid))
                turned = _log_decay_by_turning(part, p[far], log_w[far], y[rows][far])
                decay[far] = np.minimum(decay[far], turned)
            result[rows] = decay
        return result.reshape(shape)


def _bound(q: np.ndarray, s: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A bound above log E_A[exp(power l)] at real powers, and how far off it may be.

    The power of the mixture is convex in it but between 0 and 1: above 0 the moment is at most
    1 - q + q exp(power (power - 1) / (2 s^2)), and where concave it is between that and 1.
    """
    if np.iscomplexobj(power):
        return np.full(power.shape, np.inf), np.zeros(power.shape)
    exponent = power / s * ((power - 1) / s) / 2
    near = np.log1p(q * np.expm1(np.minimum(exponent, 1)))
    chord = np.where(exponent < 1, near, np.logaddexp(np.log1p(-q), np.log(q) + exponent))
    chord = chord * (1 + np.sign(chord) * 1e-14)
    return np.maximum(chord, 0), np.abs(chord)


def _log_decay_by_turning(
    grid: Grid, power: np.ndarray, log_w: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Log of a bound on |M(c + iy) / M(c)|, falling in y, by integrating along Im x = u s^2.

    There the modulus of exp((power + iy) l) w is exp(u^2 s^2 / 2 - y phi) r^power times that on the
    real line, with p as in `_mixture.py`, phi the argument of 1 - p + p exp(iu), which rises with
    x, and r its modulus. In each cell w is at most the larger of its ends, and a bit more for its
    curvature, which is above -1 / s^2 + min(power, 0) / (4 s^4); here log w has log h added.
    """
    variance = grid.s**2
    bend = (1 / variance - np.minimum(power, 0) / (4 * variance**2)) * grid.h**2 / 8
    log_mass = np.maximum(log_w[:, 1:], log_w[:, :-1]) + bend
    p = special.expit(np.log(grid.q) - np.log1p(-grid.q) + grid.z)
    left, right = p[:, :-1], p[:, 1:]
    spread = np.where(
        right < 0.5, right * (1 - right), np.where(left > 0.5, left * (1 - left), 0.25)
    )
    best = np.zeros(y.shape)
    for turn in _TURNS:
        u = np.minimum(turn / grid.s, _MOST_TURN)
        phi = np.arctan2(left * np.sin(u), 1 - left + left * np.cos(u))
        log_r = np.log1p(-4 * spread * np.sin(u / 2) ** 2) / 2
        growth = u**2 * variance / 2
        mass = np.exp(log_mass + growth + np.minimum(power, 0) * log_r)
        beyond = 4 * np.exp(growth + np.minimum(power, 0) * np.log(np.cos(u / 2)) - EXPONENT)
        bound = np.matmul(np.exp(-y[:, :, None] * phi[:, None, :]), mass[:, :, None])[..., 0]
        best = np.minimum(best, np.log(bound + beyond) + 1e-9)
    return best


def _that_share(power: np.ndarray, s: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns whose powers may share their abscissas: those near each other, or a line."""
    rows, nodes = power.shape
    real, turn = np.real(power), np.imag(power)
    every = np.arange(rows)
    if np.iscomplexobj(power):
        line = turn[:, -1:] * np.linspace(0, 1, nodes)
        if np.all(real == real[:, :1]) and np.allclose(turn, line, rtol=1e-14, atol=0):
            yield every, np.arange(nodes)
        else:
            yield from ((every, np.array([i])) for i in range(nodes))
        return
    start = 0
    while start < nodes and rows:
        least, most = (f.accumulate(real[:, start:], 1) for f in (np.minimum, np.maximum))
        near = most - least <= np.abs(least) + _NEAR * s[:, None]
        width = int(np.argmin(np.append(near.mean(0) > 0.8, False)))  # for most rows
        width = max(width, 1)  # a power that is NaN is not even near itself
        columns = np.arange(start, start + width)
        shared = near[:, width - 1]
        yield np.flatnonzero(shared), columns
        apart = np.flatnonzero(~shared)
        yield from ((apart, columns[[i]]) for i in range(width) if apart.size)
        start += width


def _normal_between(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The chance of a standard normal number between two, and a bound on its error.

    Next to each other the density's series around the middle m is right to (h (1 + |m|))^6 / 3e5.
    """
    width, m2 = high - low, ((low + high) / 2) ** 2
    series = 1 + (m2 - 1) * width**2 / 24 + (m2**2 - 6 * m2 + 3) * width**4 / 1920
    narrow = np.exp(-m2 / 2) * width * series / np.sqrt(2 * np.pi)
    side = low + high > 0  # there the upper tails are smaller
    near = np.where(side, special.ndtr(-low), special.ndtr(high))
    far = np.where(side, special.ndtr(-high), special.ndtr(low))
    error = _UNIT * (8 - 4 * np.log(np.maximum(near, 1e-300))) * near + 1e-300
    is_narrow = width * (1 + np.sqrt(m2)) < _NARROW
    value = np.where(is_narrow, narrow, np.maximum(near - far, 0))
    return value, np.where(is_narrow, _UNIT * (8 + 2 * m2) * narrow + 1e-300, error)
