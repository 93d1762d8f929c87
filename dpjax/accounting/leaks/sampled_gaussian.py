"""The privacy loss of the Gaussian mechanism on a Poisson sample (DP-SGD's step)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from dpjax.accounting import gaussian
from dpjax.accounting.leaks import REMOVE_ADD, Leak, Tails
from dpjax.accounting.leaks._amplified import log_delta_of_sample
from dpjax.accounting.leaks._decay import log_decay_of_floor
from dpjax.accounting.leaks._series import log1p

_EXPONENT = 45.0  # quadrature errors are about exp(-45) of the integral
_REACH = 9.5  # standard deviations kept on each side: exp(-9.5^2 / 2) = exp(-45)
_ANGLES = np.array([0.02, 0.1, 0.3, 0.6, 1.0, 1.5, 2.1, 2.9])
_COARSE = 64
_MOST = 1 << 18  # abscissas of one integral
_BLOCK = 1 << 20  # values of the integrand held at once


@dataclass(frozen=True, eq=False)
class PoissonGaussian(Leak):
    """B = (1-q) N(0, s^2) + q N(1, s^2) against A = N(0, s^2); "remove" is (B, A), "add" is (A, B).

    These pairs dominate a release of any dimension with clip norm 1 in which each record takes part
    with probability q, when a record is removed or added (Zhu, Dong, Wang 2022, Theorem 11).

    With l(x) = log(1 - q + q exp(z)), z = (2x - 1) / (2 s^2), the moments are integrals over x ~ A:
    of exp((t+1) l) for remove and of exp(-t l) for add. The trapezoidal rule errs on them by less
    than 2 G / (exp(2 pi a / h) - 1), with G the integral of the modulus on the lines Im x = +-a,
    |a| < pi s^2 (Trefethen, Weideman 2014, Theorem 5.1). With u = a / s^2, with the posterior
    p = q exp(z) / (1 - q + q exp(z)) and with r^2 = 1 - 4 p (1 - p) sin(u/2)^2, the modulus there
    is at most exp(u^2 s^2 / 2 + |Im t| u min(1, p / r)) of that on the real line, and for add r^-c
    more. `_range` picks u and h so that the error is below 2 exp(-45) of the moment at Re t.
    """

    sampling_probability: np.ndarray
    noise_multiplier: np.ndarray

    directions = REMOVE_ADD
    max_nodes = 1 << 11
    has_tails = True

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log of the trapezoidal sum."""
        return self.cumulant_with_error(t, direction)[0]

    @np.errstate(all="ignore")  # log 0, and overflow to infinity, are the right limits throughout
    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Log of the trapezoidal sum; its rounding and truncation."""
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        full = np.broadcast_shapes((*self.shape, 1), t.shape)
        power = np.broadcast_to(t + 1 if direction == "remove" else -t, full)
        # nodes on one line share their abscissas, all others have their own
        rows = power.reshape(-1, full[-1])
        if np.any(np.real(rows) != np.real(rows[:, :1])) or not np.iscomplexobj(rows):
            rows = rows.reshape(-1, 1)
        repeat = rows.shape[0] // max(q.size, 1)
        q, s = (np.repeat(v.ravel(), repeat) for v in (q, s))
        value = np.zeros(rows.shape, rows.dtype)
        error = np.zeros(rows.shape)
        bare = (s == 0) & (q > 0)  # without noise what is left of L is the constant +-log(1 - q)
        with np.errstate(divide="ignore"):
            constant = np.log1p(-q[bare])[:, None]
        sign = 1 if direction == "remove" else -1
        value[bare] = sign * constant * (sign * rows[bare] - (sign == 1))
        todo = np.flatnonzero((s > 0) & np.isfinite(s) & (q > 0))
        value[todo] = np.inf  # what would need too many abscissas stays so, which is a bound
        for block, grid in _blocks(q, s, rows, todo):
            value[block], error[block] = _moments(grid, q[block], s[block], rows[block])
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
        rest = np.maximum(np.expm1(np.minimum(level, 1)) / q + 1, 0)
        far = level - np.log(q) + np.log1p(-(1 - q) * np.exp(-np.maximum(level, 1)))
        z = np.where(level < 1, np.log(rest), far)
        x = s * z + 0.5 / s  # in units of the noise
        share = np.exp(np.minimum(np.log(q) + z - level, 0))  # the slope of the loss in z
        slip = 8 * np.finfo(float).eps * (np.abs(level) + share * (1 + np.abs(z) + 1 / s**2))
        slip = np.where(share > 0, slip, 0)
        low, high = special.ndtr(x), special.ndtr(-x)
        mixed_low = (1 - q) * low + q * special.ndtr(x - 1 / s)
        mixed_high = (1 - q) * high + q * special.ndtr(1 / s - x)
        if direction == "remove":
            return Tails(mixed_high, mixed_low, high, low, slip)
        return Tails(low, high, mixed_low, mixed_high, slip)

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
        """From a floor under the density of the tilted loss, f = w / l' in each cell of x.

        Between two abscissas log w lies above its chord less h^2 / 8 of its largest curvature,
        (c+1) / (4 s^4) - 1 / s^2 for remove and negative for add; and |(log l')'| <= 1 / s^2.
        """
        q, s = (np.broadcast_to(v, self.shape).ravel() for v in self._parameters().values())
        c, y = (np.broadcast_to(v, (*self.shape, v.shape[-1])) for v in (c, y))
        shape, y = y.shape, y.reshape(-1, y.shape[-1])
        power = (c + 1 if direction == "remove" else -c).reshape(-1, 1)
        result = np.zeros(y.shape)
        todo = np.flatnonzero((s > 0) & np.isfinite(s) & (q > 0))
        for block, (x, h) in _blocks(q, s, power, todo, finer=3):
            s_, p_ = s[block, None], power[block]
            z, level, log_weight = _integrand(x, q[block, None], s_)
            log_moment = _moments((x, h), q[block], s[block], p_)[0]
            log_w = log_weight + p_ * level - log_moment
            bend = np.maximum(p_ / (4 * s_**4) - 1 / s_**2, 0) * h[:, None] ** 2 / 8
            log_slope = -np.logaddexp(
                0, np.log1p(-q[block, None]) - np.log(q[block, None]) - z
            ) - 2 * np.log(s_)
            floor = np.minimum(log_w[:, 1:], log_w[:, :-1]) - bend
            ceiling = np.maximum(log_slope[:, 1:], log_slope[:, :-1]) + h[:, None] / (2 * s_**2)
            result[block] = log_decay_of_floor(level, floor - ceiling, y[block])
        return result.reshape(shape)


def _integrand(x: np.ndarray, q: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, ...]:
    """z, l = log(1 - q + q exp(z)) and the log density of A at x."""
    z = (2 * x - 1) / (2 * s**2)
    small = (z < 1) & (-q * np.expm1(np.minimum(z, 0)) < 0.5)
    with np.errstate(divide="ignore"):
        near = np.log1p(q * np.expm1(np.where(small, z, 0)))
        level = np.where(small, near, np.logaddexp(np.log1p(-q), np.log(q) + z))
    return z, level, -(x**2) / (2 * s**2) - np.log(s * np.sqrt(2 * np.pi))


def _moments(
    grid: tuple[np.ndarray, np.ndarray], q: np.ndarray, s: np.ndarray, power: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log E_A[exp(power l)] and the error of `cumulant_with_error`, on (rows, nodes)."""
    x, h = grid
    q, s = q[:, None], s[:, None]
    z, level, log_weight = _integrand(x, q, s)
    log_weight = log_weight + np.log(h)[:, None]
    real, turn = np.real(power[:, :1]), np.abs(np.imag(power))
    exponent = real * level
    peak = (exponent + log_weight).max(1, keepdims=True)
    scale = np.where(peak < 600, 0, peak)  # beyond, all is relative to exp(peak)
    weight, grown = np.exp(log_weight - scale), np.exp(exponent + log_weight - scale)
    # weight (exp(exponent) - 1 - power (exp(l) - 1)): the last has mean 0 and keeps the sum small
    gain = np.where(np.abs(exponent) < 1, weight * np.expm1(exponent), grown - weight)
    centred = _centred(q[:, 0], power)[:, None]
    gain = np.where(centred, gain, grown)
    shift = np.where(centred, q * (np.exp(log_weight + z - scale) - weight), 0)
    spread = 6 + x**2 / (2 * s**2)  # rounding of the weights, in units

    def total(terms: np.ndarray) -> np.ndarray:
        return terms.sum(1, keepdims=True)

    slip = total((spread + np.abs(z)) * np.abs(shift))
    error = total(spread * np.abs(gain) + 6 * np.abs(exponent) * grown) + np.abs(real) * slip
    error = error + turn * (total((spread + 6) * np.abs(level) * grown) + slip)
    ends = (grown[:, :1] + grown[:, -1:]) * s / (_REACH * h[:, None])
    cut = 2 * np.exp(-_EXPONENT) * (total(grown) + np.exp(-scale) * (np.abs(power) + 1))
    unity = np.exp(-scale)
    mean = np.where(centred, total(gain) - power * total(shift), total(grown) - unity)
    if np.iscomplexobj(power):
        mean = mean + _turned(grown, level, np.imag(power))
    error = np.finfo(float).eps * error + ends + cut + np.finfo(float).eps * (scale > 0)
    with np.errstate(divide="ignore"):
        value = np.where(scale == 0, log1p(mean), scale + np.log(mean + unity))
        relative = error / np.abs(mean + unity)
    return value, np.log1p(relative) + np.finfo(float).eps * np.abs(np.real(value))


def _turned(grown: np.ndarray, level: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Sum over x of grown (exp(i turn level) - 1), on (rows, nodes)."""
    nodes = turn.shape[1]
    if nodes > 4 and np.array_equal(turn, turn[:, 1:2] * np.arange(nodes)):
        # with E(n) = exp(i n step level) - 1, E(m + n) = E(m) E(n) + E(m) + E(n): a matrix product
        inner = int(np.ceil(np.sqrt(nodes)))
        steps = turn[:, 1:2] * np.arange(inner)
        blocks = turn[:, 1:2] * (inner * np.arange(-(-nodes // inner)))
        fine = _expm1_turn(steps, level)
        coarse = _expm1_turn(blocks, level) * grown[:, None, :]
        sums = np.matmul(fine, grown[:, :, None])[:, None, :, 0]
        result = np.matmul(coarse, np.swapaxes(fine, 1, 2)) + coarse.sum(2)[:, :, None] + sums
        return result.reshape(len(turn), -1)[:, :nodes]
    result = np.empty(turn.shape, complex)
    width = max(1, _BLOCK // level.size)
    for i in range(0, nodes, width):
        part = _expm1_turn(turn[:, i : i + width], level)
        result[:, i : i + width] = np.matmul(part, grown[:, :, None])[..., 0]
    return result


def _expm1_turn(turn: np.ndarray, level: np.ndarray) -> np.ndarray:
    """exp(i turn level) - 1 on (rows, nodes, x), several times faster than by complex exp."""
    half = turn[:, :, None] * (level / 2)[:, None, :]
    result = np.empty(half.shape, complex)
    sine = np.sin(half)
    result.real = -2 * sine * sine
    result.imag = 2 * sine * np.cos(half)
    return result


def _blocks(
    q: np.ndarray, s: np.ndarray, power: np.ndarray, todo: np.ndarray, finer: float = 1.0
) -> Iterator[tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]]:
    """Rows that need about as many abscissas, with those abscissas and their spacing."""
    low, high, step = _range(q[todo], s[todo], power[todo])
    points = np.ceil((high - low) / step * finer) + 1
    order = np.argsort(points)
    order = order[points[order] <= _MOST]
    start = 0
    while start < len(order):
        stop = start + 1
        while (
            stop < len(order)
            and points[order[stop]] <= 1.25 * points[order[start]] + 16
            and points[order[stop]] * (stop - start) * power.shape[1] < _BLOCK
        ):
            stop += 1
        rows = order[start:stop]
        size = int(points[rows[-1]])
        h = (high[rows] - low[rows]) / (size - 1)
        yield todo[rows], (low[rows, None] + h[:, None] * np.arange(size), h)
        start = stop


def _centred(q: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Whether the moment may be so near 1 that its distance is worth a sum of its own."""
    return (np.real(power[:, 0]) >= 0) | (-np.real(power[:, 0]) * q < 0.05)


def _range(q: np.ndarray, s: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, ...]:
    """Ends and spacing of the abscissas, from bounds on the integrand in coarse cells."""
    real, turn = np.real(power[:, :1]), np.abs(np.imag(power)).max(1)[:, None]
    q, s = q[:, None], s[:, None]
    rising = np.maximum(real, 0)
    with np.errstate(divide="ignore"):
        log_odds = np.log(q) - np.log1p(-q)
    # a falling power moves the mode down to -c p, and p falls with x
    low = np.minimum(real, 0) * special.expit(log_odds - 1 / (2 * s**2)) - _REACH * s
    # beyond high = power p(beyond) + reach s the integrand falls by exp(-reach / s) and more; the
    # power 1 is that of exp(l)
    high = np.maximum(rising, 1) + _REACH * s
    for _ in range(8):
        p = special.expit(log_odds + (2 * high - 1) / (2 * s**2))
        high = np.maximum(rising, 1) * p + _REACH * s
    ends = low + (high - low) * np.linspace(0, 1, _COARSE + 1)
    z = (2 * ends - 1) / (2 * s**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.log1p(-q) + np.logaddexp(0, np.minimum(log_odds, 1e300) + z)
        level = np.where(q == 1, z, level)
    nearest = np.where(ends[:, 1:] < 0, ends[:, 1:], np.maximum(ends[:, :-1], 0))
    bound = -(nearest**2) / (2 * s**2) + np.where(
        real >= 0, real * level[:, 1:], real * level[:, :-1]
    )
    bound = bound + np.log((high - low) / (_COARSE * s))
    # beyond `high` less than exp(-45) is left of a moment, which is at least 1
    tails = np.logaddexp.accumulate(bound[:, ::-1], 1)[:, ::-1]
    cell = np.where(tails[:, -1:] <= -_EXPONENT, (tails <= -_EXPONENT).argmax(1)[:, None], _COARSE)
    high = np.take_along_axis(ends, cell, 1)
    high = np.where(_centred(q[:, 0], power)[:, None], np.maximum(high, ends[:, -1:]), high)
    # a large power lives around x = power alone: below, where z <= log(1/q) + 40, the integrand is
    # under exp(-power reach / 2s) of the moment, and exp(-reach^2 / 2) between there and low
    heavy = 0.5 + s**2 * (40 - np.log(q))
    alone = (rising - _REACH * s >= 2 * heavy) & (rising >= 10 * s)
    low = np.where(alone, rising - _REACH * s, low)
    growth = _ANGLES**2 * s**2 / 2 + np.minimum(real, 0) * np.log(np.cos(_ANGLES / 2))
    fine = np.flatnonzero((turn[:, 0] > 0) | (real[:, 0] < -100))
    if fine.size:
        moment = np.maximum(rising * np.log(q) + rising * (rising - 1) / (2 * s**2), 0)[fine]
        p = special.expit((log_odds + z[:, 1:])[fine, :, None])
        modulus = np.sqrt(1 - 4 * np.where(p < 0.5, p * (1 - p), 0.25) * np.sin(_ANGLES / 2) ** 2)
        more = turn[fine, :, None] * _ANGLES * np.minimum(1, p / modulus)
        more += np.minimum(real, 0)[fine, :, None] * np.log(modulus)
        more = special.logsumexp(bound[fine, :, None] + more, 1) - moment
        growth[fine] = _ANGLES**2 * s[fine] ** 2 / 2 + np.maximum(more, 0)
    step = (2 * np.pi * s**2 * _ANGLES / (_EXPONENT + growth)).max(1)
    return low[:, 0], high[:, 0], step
