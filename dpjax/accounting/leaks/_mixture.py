"""Moments of the sampled Gaussian's loss by the trapezoidal rule, with what they err by.

With l(x) = log(1 - q + q exp(z)), z = (2x - 1) / (2 s^2), and A = N(0, s^2), a moment is the
integral of exp(power l(x)) over x ~ A. The trapezoidal rule with step h errs on it by less than
2 G / (exp(2 pi a / h) - 1), with G the integral of the modulus on the lines Im x = +-a, |a| < pi
s^2 (Trefethen, Weideman 2014, Theorem 5.1). With u = a / s^2, with the posterior
p = q exp(z) / (1 - q + q exp(z)) and with r^2 = 1 - 4 p (1 - p) sin(u/2)^2, the modulus there is at
most exp(u^2 s^2 / 2 + |Im power| u min(1, p / r)) of that on the real line, and for a power below
0 r^power more. `_ends`, `_step` and `_trimmed_and_step` choose the abscissas so that the error is
below 2 exp(-45) of the moment at Re power.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import special

from dpjax.accounting.leaks._amplified import log_mixed_ratio
from dpjax.accounting.leaks._line_sums import line_sums
from dpjax.accounting.leaks._series import log1p

EXPONENT = 45.0  # quadrature errors are about exp(-45) of the integral
REACH = 9.5  # standard deviations kept on each side: exp(-9.5^2 / 2) = exp(-45)
_ANGLES = np.array([0.02, 0.1, 0.3, 0.6, 1.0, 1.5, 2.1, 2.9])
_COARSE = 64
_MOST = 1 << 18  # abscissas of one integral
_SOME = 256  # rows whose coarse cells are looked at together
_BLOCK = 1 << 17  # abscissas times nodes held at once
_UNIT = np.finfo(float).eps


class Grid(NamedTuple):
    """Abscissas x of some rows, (rows, points), with what is needed there.

    `z` and `level` are z(x) and l(x), `log_weight` and `weight` the density of A times the spacing,
    and `shift` is weight (exp(l) - 1); q, s and the spacing h are columns, (rows, 1).
    """

    q: np.ndarray
    s: np.ndarray
    h: np.ndarray
    x: np.ndarray
    z: np.ndarray
    level: np.ndarray
    log_weight: np.ndarray
    weight: np.ndarray
    shift: np.ndarray


def grids(
    q: np.ndarray, s: np.ndarray, power: np.ndarray, finer: float = 1.0
) -> Iterator[tuple[np.ndarray, Grid]]:
    """Rows that need about as many abscissas, with those that serve all their powers.

    Args:
        q: In (0, 1], (rows,).
        s: Positive and finite, (rows,).
        power: (rows, nodes); complex ones of a row have one real part.
        finer: How many times smaller the spacing is than it need be.

    Rows that would need too many are left out.
    """
    low, high = _ends(q, s, power)
    least, turn = np.real(power).min(1), np.abs(np.imag(power)).max(1)
    step = _step(s, least)
    fine = np.flatnonzero((turn > 0) | (least < -100))
    for i in range(0, fine.size, _SOME):
        some = fine[i : i + _SOME]
        given = (v[some, None] for v in (q, s, least, turn, low, high))
        trimmed, step[some] = _trimmed_and_step(*given)
        if np.iscomplexobj(power):
            high[some] = trimmed
    points = np.ceil((high - low) / step * finer) + 1
    order = np.argsort(points)
    order = order[points[order] <= _MOST]
    start = 0
    while start < len(order):
        most = 1.25 * points[order[start]] + 16
        nodes = power.shape[1]  # complex ones are only added to the abscissas
        values = most + nodes if np.iscomplexobj(power) else most * nodes
        room = start + max(1, int(_BLOCK // values))
        rows = order[start:room]
        rows = rows[points[rows] <= most]
        size = int(points[rows[-1]])
        h = ((high[rows] - low[rows]) / (size - 1))[:, None]
        yield rows, _grid(q[rows, None], s[rows, None], h, low[rows, None] + h * np.arange(size))
        start += len(rows)


def _grid(q: np.ndarray, s: np.ndarray, h: np.ndarray, x: np.ndarray) -> Grid:
    """The integrand's parts on the abscissas."""
    z = (2 * x - 1) / (2 * s**2)
    level = log_mixed_ratio(z, q)
    log_weight = -(x**2) / (2 * s**2) + np.log(h / (s * np.sqrt(2 * np.pi)))
    weight = np.exp(log_weight)
    shift = np.where(np.abs(z) < 1, weight * np.expm1(z), np.exp(log_weight + z) - weight)
    return Grid(q, s, h, x, z, level, log_weight, weight, q * shift)


def log_moments(grid: Grid, power: np.ndarray) -> np.ndarray:
    """Log E_A[exp(power l)] on (rows, nodes)."""
    if np.iscomplexobj(power):
        return _log_moments(grid, power)[0]
    apart = Grid(*(part[:, None] for part in grid))  # one more axis, for the nodes
    return _sums(apart, power[..., None]).log_moment()[..., 0]


def log_moments_with_error(grid: Grid, power: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """And a bound e with |exp(computed - true) - 1| <= exp(e) - 1."""
    if np.iscomplexobj(power):
        return _log_moments(grid, power)
    columns = [_log_moments(grid, power[:, [i]]) for i in range(power.shape[1])]
    value, error = (np.concatenate(part, 1) for part in zip(*columns, strict=True))
    return value, error


class _Sums(NamedTuple):
    """The moment at a real power, as 1 + exp(scale) mean.

    The integrand is `grown`, or weight (exp(power l) - 1 - power (exp(l) - 1)) = gain - power shift
    where the moment may be near 1: the last part has mean 0 and keeps the sum small.
    """

    scale: np.ndarray
    mean: np.ndarray
    grown: np.ndarray
    gain: np.ndarray
    shift: np.ndarray

    def log_moment(self) -> np.ndarray:
        """Log of the moment."""
        large = self.scale + np.log(self.mean + np.exp(-self.scale))
        return np.where(self.scale == 0, log1p(self.mean), large)


def _sums(grid: Grid, power: np.ndarray) -> _Sums:
    """The sums at real powers, (..., 1), over the last axis of the grid."""
    exponent = power * grid.level
    total = exponent + grid.log_weight
    peak = total.max(-1, keepdims=True)
    scale = np.where(peak < 600, 0, peak)  # beyond, all is relative to exp(peak)
    unity = np.exp(-scale)
    grown, weight = np.exp(total - scale), grid.weight * unity
    centred = _centred(grid.q, power)
    gain = np.where(np.abs(exponent) < 1, weight * np.expm1(exponent), grown - weight)
    gain = np.where(centred, gain, grown)
    shift = np.where(centred, unity * grid.shift, 0)
    mean = gain.sum(-1, keepdims=True) - power * shift.sum(-1, keepdims=True)
    return _Sums(scale, mean - np.where(centred, 0, unity), grown, gain, shift)


def _log_moments(grid: Grid, power: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The moments at powers of one real part, and their errors; (rows, nodes)."""
    real, turn = np.real(power[:, :1]), np.abs(np.imag(power))
    sums = _sums(grid, real)
    mean, scale = sums.mean, sums.scale
    spread = 6 + grid.x**2 / (2 * grid.s**2)  # rounding of the weights, in units

    def total(terms: np.ndarray) -> np.ndarray:
        return terms.sum(1, keepdims=True)

    slip = total((spread + 4 + np.abs(grid.z)) * np.abs(sums.shift))
    size = np.abs(real * grid.level)
    error = total(spread * np.abs(sums.gain) + 6 * size * sums.grown) + np.abs(real) * slip
    error = error + turn * (total((spread + 6) * np.abs(grid.level) * sums.grown) + slip)
    error = _UNIT * (error + (scale > 0))
    error = error + (sums.grown[:, :1] + sums.grown[:, -1:]) * grid.s / (REACH * grid.h)
    cut = total(sums.grown) + np.exp(-scale) * (np.abs(power) + 1)
    error = error + 2 * np.exp(-EXPONENT) * cut
    if np.iscomplexobj(power):
        step, nodes = np.imag(power[:, -1]) / max(power.shape[1] - 1, 1), max(power.shape[1], 2)
        turned, rounding = line_sums(sums.grown, grid.level, step, nodes)
        mean = mean + turned[:, -power.shape[1] :]
        error = error + rounding[:, -power.shape[1] :]
    value = sums._replace(mean=mean).log_moment()
    relative = error / np.abs(mean + np.exp(-scale))
    return value, np.log1p(relative) + _UNIT * np.abs(np.real(value))


def _ends(q: np.ndarray, s: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the abscissas: beyond is less than exp(-45) of each moment."""
    falling, rising = (np.real(power).min(1), np.maximum(np.real(power).max(1), 1))
    log_odds = np.log(q) - np.log1p(-q)
    # a falling power moves the mode down to -c p, and p falls with x
    low = np.minimum(falling, 0) * special.expit(log_odds - 1 / (2 * s**2)) - REACH * s
    # beyond high = power p(beyond) + reach s the integrand falls by exp(-reach / s) and more; the
    # power 1 is that of exp(l)
    high = rising + REACH * s
    for _ in range(8):
        high = rising * special.expit(log_odds + (2 * high - 1) / (2 * s**2)) + REACH * s
    # a large power lives around x = power alone: below, where z <= log(1/q) + 40, the integrand is
    # under exp(-power reach / 2s) of the moment, and exp(-reach^2 / 2) between there and low
    heavy = 0.5 + s**2 * (40 - np.log(q))
    alone = (falling - REACH * s >= 2 * heavy) & (falling >= 10 * s)
    return np.where(alone, falling - REACH * s, low), high


def _step(s: np.ndarray, power: np.ndarray) -> np.ndarray:
    """The spacing that is fine enough for real powers from this one on; (rows,)."""
    s, power = s[:, None], np.minimum(power, 0)[:, None]
    u = _angles(s)
    growth = u**2 * s**2 / 2 + power * np.log(np.cos(u / 2))
    return (2 * np.pi * s**2 * u / (EXPONENT + growth)).max(1)


def _angles(s: np.ndarray) -> np.ndarray:
    """The u tried, of a column s: (rows, angles); the last is the best where much noise rules."""
    return np.concatenate([_ANGLES + 0 * s, np.minimum(REACH / s, _ANGLES[-1])], 1)


def _trimmed_and_step(
    q: np.ndarray,
    s: np.ndarray,
    real: np.ndarray,
    turn: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """An upper end for one real power, and the spacing, from bounds on the integrand in cells.

    For real powers from this one on the spacing serves too: if it is below 0, the integral of the
    modulus is log-convex in the power, and 1 at 0. All arguments are columns.
    """
    log_odds = np.log(q) - np.log1p(-q)
    ends = low + (high - low) * np.linspace(0, 1, _COARSE + 1)
    z = (2 * ends - 1) / (2 * s**2)
    level = np.log1p(-q) + np.logaddexp(0, np.minimum(log_odds, 1e300) + z)
    level = np.where(q == 1, z, level)
    nearest = np.where(ends[:, 1:] < 0, ends[:, 1:], np.maximum(ends[:, :-1], 0))
    bound = -(nearest**2) / (2 * s**2)
    bound = bound + real * np.where(real >= 0, level[:, 1:], level[:, :-1])
    bound = bound + np.log((high - low) / (_COARSE * s))
    # beyond `high` less than exp(-45) is left of a moment, which is at least 1
    tails = np.logaddexp.accumulate(bound[:, ::-1], 1)[:, ::-1]
    cell = np.where(tails[:, -1:] <= -EXPONENT, (tails <= -EXPONENT).argmax(1)[:, None], _COARSE)
    trimmed = np.where(_centred(q, real), high, np.take_along_axis(ends, cell, 1))
    moment = np.where(real > 0, np.maximum(real * np.log(q) + real * (real - 1) / (2 * s**2), 0), 0)
    p = special.expit((log_odds + z[:, 1:])[:, :, None])
    spread = np.where(p < 0.5, p * (1 - p), 0.25)
    u = _angles(s)
    # by log1p: next to 1 the modulus itself would lose what a large power makes of it
    log_modulus = np.log1p(-4 * spread * np.sin(u[:, None] / 2) ** 2) / 2
    more = turn[:, :, None] * u[:, None] * np.minimum(1, p / np.exp(log_modulus))
    more += np.minimum(real, 0)[:, :, None] * log_modulus
    more = special.logsumexp(bound[:, :, None] + more, 1) - moment
    growth = u**2 * s**2 / 2 + np.maximum(more, 0)
    step = (2 * np.pi * s**2 * u / (EXPONENT + growth)).max(1)
    return trimmed[:, 0], step


def _centred(q: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Whether the moment may be so near 1 that its distance is worth a sum of its own."""
    return (power >= 0) | (-power * q < 0.05)
