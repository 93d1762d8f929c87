"""The law of a sum of independent losses on a ring of points, tilted, ready for delta.

The laws are tilted by exp(c l) and multiplied by an FFT, whose rounding is small against the tilted
law where it counts: each of its log2 N stages errs by some units of the sum of moduli, or of the
root of the sum of squares. On a ring of N points the sum wraps around: what leaves the window is
bounded by Chernoff.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpjax.accounting._grid_laws import Law
from dpjax.accounting._saddle import log_payoff

_UNIT = np.finfo(float).eps


class Window(NamedTuple):
    """The tilt, a loss near the answer, and the losses that the points are to reach over.

    `places` are the s of Chernoff's bounds on what lies left and right of the window. `least` are
    the least losses of each release but for a chance that is at most `cut` for all together.
    """

    c: float
    origin: float
    bottom: float
    width: float
    places: tuple[float, float]
    least: list[float]
    cut: float


@dataclass(frozen=True, eq=False)
class Composed:
    """The tilted law of the sum on the window's points, ready for delta.

    Attributes:
        points: The losses, rising.
        terms: exp(-c (points - origin)) times the masses; their sum, weighted, is the answer.
        weights: exp(-c (points - origin)).
        noise: Bound on the relative error of `terms`.
        largest, root_square: Bounds on the other error of each mass, and on the root of the sum of
            the squares of all.
        origin: A loss near the answer.
        c: The tilt.
        log_scale: What `terms` are relative to.
        log_outside: Log of the bound on what lies outside of the window, at epsilon = 0.
        infinite, slack: Chance of an infinite loss, and its relative error.
        most: The largest epsilon up to which that chance counts from below.
        slip: Bound on the error of the points.
    """

    points: np.ndarray
    terms: np.ndarray
    weights: np.ndarray
    noise: np.ndarray
    largest: float
    root_square: float
    origin: float
    c: float
    log_scale: float
    log_outside: float
    infinite: float
    slack: float
    most: float
    slip: float

    def delta(self, epsilon: float, sign: int) -> float:
        """Log of delta, with its errors added (sign 1), subtracted (-1) or left out (0)."""
        epsilon = epsilon - sign * self.slip
        first = int(np.searchsorted(self.points, epsilon, side="right"))
        gain = -np.expm1(epsilon - self.points[first:])
        part, weight = self.terms[first:] * gain, self.weights[first:] * gain
        total = float(part.sum())
        error = float((np.abs(part) * (self.noise[first:] + 64 * _UNIT)).sum())
        by_squares = self.root_square * float(np.sqrt((weight**2).sum()))  # Cauchy and Schwarz
        error += 1.001 * min(self.largest * float(weight.sum()), by_squares)
        log_outside = self.log_outside - self.c * epsilon + 1e-3
        error += np.exp(log_outside - self.log_scale) if sign == -1 else 1e-290  # of underflow
        infinite = self.infinite * (1 + sign * self.slack) if epsilon <= self.most else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.log_scale + np.log(np.maximum(total + sign * error, 0))
            if sign == 1:  # in logarithms, for neither may vanish beside a large scale
                value = np.logaddexp(value, log_outside)
            value = np.logaddexp(value, np.log(infinite))
        return float(value + sign * 4 * _UNIT * (abs(self.log_scale) + self.c * abs(self.origin)))


def composed(laws: list[Law], counts: list[float], window: Window, size: int) -> Composed:
    """The law of the sum, on the points of the window."""
    c, step, origin = window.c, laws[0].step, window.origin
    stages = 8 * _UNIT * np.log2(size)
    start = float(sum(n * law.start for n, law in zip(counts, laws, strict=True)))
    log_scale = 0.0
    product = np.ones(size // 2 + 1, complex)
    log_bound, log_loss = np.zeros(size // 2 + 1), np.zeros(size // 2 + 1)
    chernoff = np.zeros(2)
    slip, excess, log_finite = _UNIT * abs(start), 0.0, 0.0
    for law, count in zip(laws, counts, strict=True):
        points = law.start + step * np.arange(law.masses.size)
        logs = np.log(law.masses) + c * points
        peak = _log_sum(logs)
        tilted = np.exp(logs - peak)
        log_scale += count * peak
        largest = float(np.max(np.abs(points)))
        folded = np.zeros(-(-tilted.size // size) * size)
        folded[: tilted.size] = tilted
        wave = np.fft.rfft(folded.reshape(-1, size).sum(0))
        product = product * _power(wave, int(count))
        modulus = np.abs(wave)
        own = stages + _UNIT * (16 + 4 * abs(c) * largest + 2 * np.abs(peak))
        log_bound += count * np.log(modulus + own + 16 * _UNIT * modulus)
        log_loss += count * np.log1p(16 * _UNIT + own / modulus)
        slip += count * (law.slip + 4 * _UNIT * largest)
        excess += count * max(float(law.masses.sum()) + law.infinite - 1, 0.0)
        log_finite += count * np.log1p(-min(law.infinite, 1.0))
        for i, place in enumerate((-window.places[0], window.places[1])):
            chernoff[i] += count * _log_sum(logs - peak + place * points)
    bound = np.exp(log_bound)
    twice = np.full(size // 2 + 1, 2.0)
    twice[[0, -1]] = 1
    wrong = bound * -np.expm1(-log_loss) + stages * bound
    first = np.floor((window.bottom - start) / step)
    masses = np.roll(np.fft.irfft(product, size), -int(first % size))
    points = start + step * (first + np.arange(size))
    outside = chernoff + np.array([window.places[0] * points[0], -window.places[1] * points[-1]])
    outside = float(np.logaddexp(*np.minimum(outside, 0)))
    payoff = float(log_payoff(np.array([c]))[0])
    away = c * (points - origin)
    weights = np.exp(-away) * (1 + 16 * _UNIT)
    # a release's end counts as F says while the others, at their least, leave no more of epsilon
    least = sum(n * low for n, low in zip(counts, window.least, strict=True))
    most = least + min(law.end - low for law, low in zip(laws, window.least, strict=True))
    return Composed(
        points,
        weights * masses,
        weights,
        4 * _UNIT * (1 + np.abs(away)),
        float((twice * wrong).sum()) / size,
        float(np.sqrt((twice * wrong**2).sum() / size)),
        origin,
        c,
        log_scale - c * origin,
        log_scale + payoff + outside,
        float(-np.expm1(log_finite)),
        float(window.cut + 1e-14 + np.expm1(excess)),
        float(most - slip),
        slip,
    )


def _power(base: np.ndarray, count: int) -> np.ndarray:
    """By squaring: faster than complex **, with a relative error of some units times the count."""
    result = np.ones_like(base)
    while count:
        if count % 2:
            result = result * base
        base, count = base * base, count // 2
    return result


def _log_sum(logs: np.ndarray) -> float:
    """Log of the sum of exponentials."""
    peak = float(logs.max())
    return peak + float(np.log(np.exp(logs - peak).sum()))
