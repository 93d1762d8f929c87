"""Compositions whose line decays too slowly, or never, as of atoms beside any lattice: a bracket.

One more release, of Gaussian noise with a mean shift mu so small that it hardly leaks, makes the
line fall like exp(-(mu y)^2 / 2). The delta U of the sum with it is above delta:

    U(epsilon) = E[delta(epsilon + u)],    u ~ N(-mu^2 / 2, mu^2), for which E[exp(u)] = 1.

And not by much: as a function of exp(epsilon) delta is convex, so that on either side of epsilon it
is below its chords to epsilon - a and epsilon + a, and U at these is above it. With the chords'
weights, and Chernoff's bound on delta beyond,

    U(epsilon) <= w delta(epsilon) + w_left U(epsilon - a) + w_right U(epsilon + a) + rest.

So delta lies between two numbers that differ by the order of mu^2 where it is smooth, as after many
releases.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpjax.accounting import _saddle, contour
from dpjax.accounting.integrated import narrower
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.summed import releases
from dpjax.accounting.loss import PrivacyLoss

_FINE = 2.0 ** -np.array([13, 11, 9])  # mu tried, in units of the composition's spread
_REACH = 8.0  # a in units of mu
_FEWEST = 2  # releases from which on it is tried
_SLACK = 1e-12  # relative, for rounding
_MOST_STEPS = 30


class _Smoothed(NamedTuple):
    """The line of the sum with the Gaussian, one row; its mu, and log delta <= h - c epsilon."""

    line: contour.Line
    mu: float
    h: float
    c: float

    def log_delta(self, epsilon: float) -> np.ndarray:
        """Lower, estimate, upper of log U."""
        return np.array(self.line.log_delta(np.array([epsilon]))[:3])[:, 0]

    def lower(self, epsilon: float) -> float:
        """A lower end of log delta.

        With e = P(|Z| < mu / 2) for a normal Z, E[1 - exp(u); -a < u < 0] and
        E[exp(u) - 1; 0 < u < a] are both e, less some 1e-14 of it.
        """
        a, mu, c = _REACH * self.mu, self.mu, self.c
        e = special.erf(mu / np.sqrt(8))
        to_left, to_right = e / -np.expm1(-a), e / np.expm1(a)
        stays = 1 - (to_left + to_right) * (1 - _SLACK)
        beyond = special.log_ndtr(-_REACH + mu / 2 + c * mu) + c * (1 + c) * mu**2 / 2
        after = special.ndtr(-_REACH - mu / 2)
        here = np.exp(self.log_delta(epsilon)[0])
        before, past = (np.exp(self.log_delta(epsilon + side)[2]) for side in (-a, a))
        taken = to_left * before + (to_right + after) * past
        taken = taken + np.exp(self.h - c * epsilon + beyond) + _SLACK * (here + before)
        return float(np.log(np.maximum(here - taken, 0)) - np.log(stays))


def possible(loss: PrivacyLoss) -> bool:
    """Whether there are enough releases."""
    counts = (releases(leak, count)[1] for leak, count in loss.terms)
    return bool(sum(np.max(count.sum(-1), initial=0) for count in counts) >= _FEWEST)


@np.errstate(all="ignore")  # log 0, and overflow to infinity, are the right limits throughout
def log_delta(
    loss: PrivacyLoss,
    direction: str,
    epsilon: np.ndarray,
    known: np.ndarray,
    best: ArrayLike = -np.inf,
) -> np.ndarray:
    """Lower, estimate, upper of log delta, within the brackets known; (3, rows).

    Rows whose answer is surely not above `best` may only be bounded.
    """
    result = known.copy()
    for row in np.flatnonzero(~(known[2] <= best)):
        wanted = epsilon[row]
        part = loss.take(np.array([row]))
        saddle = _saddle.for_epsilon(part, direction, np.array([wanted]))
        smoothed = _smoothed(part, direction, saddle)
        if smoothed is not None:
            ends = smoothed.log_delta(float(wanted))
            ends[0] = smoothed.lower(float(wanted))
            result[:, row] = narrower(ends, result[:, row])
    return result


@np.errstate(all="ignore")
def epsilon(
    loss: PrivacyLoss,
    direction: str,
    log_delta: np.ndarray,
    known: np.ndarray,
    best: ArrayLike = -np.inf,
) -> np.ndarray:
    """Lower, estimate, upper of epsilon, within the brackets known; (3, rows).

    Rows whose answer is surely not above `best` may only be bounded.
    """
    result = known.copy()
    for row in np.flatnonzero(~(known[2] <= best)):
        wanted = log_delta[row]
        part = loss.take(np.array([row]))
        saddle = _saddle.for_delta(part, direction, np.array([wanted]))
        smoothed = _smoothed(part, direction, saddle)
        if smoothed is None:
            continue
        ends = np.array(contour.solve(smoothed.line, np.array([wanted]), saddle.epsilon))[:, 0]
        lower = ends[0]
        for turn in range(_MOST_STEPS):  # steps out until an end is shown to hold
            missing = wanted - smoothed.lower(lower)
            if missing <= 0 or lower <= 0:
                break
            missing = np.nan_to_num(missing, posinf=1.0)
            lower = max(lower - 1.5**turn * missing / smoothed.c, 0.0)
        ends[0] = lower if lower > 0 and smoothed.lower(lower) >= wanted else 0.0
        result[:, row] = narrower(ends, result[:, row])
    return result


def _smoothed(part: PrivacyLoss, direction: str, saddle: _saddle.Saddle) -> _Smoothed | None:
    """The line through the saddle of one composition; None if it would be too long."""
    if not np.all(np.isfinite(saddle.width) & (saddle.width > 0)):
        return None
    for mu in _FINE / saddle.width:
        noise = (Gaussian(np.array([1 / mu])), np.ones(1, np.int64))
        with_noise = PrivacyLoss((*part.terms, noise))
        plan = contour.plan(with_noise, direction, saddle.log_delta, saddle)
        if np.all(np.isfinite(plan.nodes)):
            break
    else:
        return None
    c = saddle.c
    h = part.cumulant(c[:, None], direction)[:, 0] + _saddle.log_payoff(c)
    h = h + 1e-9 * (1 + np.abs(h))
    return _Smoothed(contour.draw(with_noise, direction, plan), float(mu), float(h[0]), float(c[0]))
