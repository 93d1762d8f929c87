"""The saddle of exp(K(t) - epsilon t) / (t (t + 1)), and Chernoff's bounds near it.

A line through it (see `contour.py`) decays fastest. All arrays are flat: one row a composition.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from dpjax.accounting.loss import PrivacyLoss

_DIFFERENCE = 3e-3  # relative step of the numerical derivatives, which only steer
_STENCIL = 1 + _DIFFERENCE * np.array([-1, 0, 1])
_NEAR = 2.0 ** (np.arange(-12, 5) / 4)  # places of Chernoff's bound, in units of the saddle
_HIGH = 10.0  # c from which on the search starts no higher
_CLOSE, _LEAP, _FAR = 1e-6, np.log(16), 80.0  # its least step in log c, its largest, and its range
_MAX_TURNS = 100


class Saddle(NamedTuple):
    """Where a line should cross the real axis, the peak's width, and rough answers there."""

    c: np.ndarray
    epsilon: np.ndarray
    width: np.ndarray
    log_delta: np.ndarray


def for_delta(loss: PrivacyLoss, direction: str, log_delta: np.ndarray) -> Saddle:
    """The saddle where log delta is about the wanted one."""

    def step(at: Saddle, rows: np.ndarray) -> np.ndarray:
        # log delta falls about as a power of c, with the slope -c^2 / width^2 in log c
        steepness = (at.c / at.width) ** 2 / -at.log_delta
        newton = np.log(at.log_delta / log_delta[rows]) / steepness
        return np.where(at.log_delta > np.maximum(log_delta[rows], -1), -_LEAP, newton)

    return _find(loss, direction, step, lambda mu: np.sqrt(-2 * log_delta) / mu)


def for_epsilon(loss: PrivacyLoss, direction: str, epsilon: np.ndarray) -> Saddle:
    """The saddle of K(t) - epsilon t - log t(t+1) for a wanted epsilon, below the largest loss."""

    def step(at: Saddle, rows: np.ndarray) -> np.ndarray:
        newton = (at.epsilon - epsilon[rows]) * at.width**2 / at.c
        return np.where(at.epsilon < np.minimum(epsilon[rows], -1), -_LEAP, newton)

    found = _find(loss, direction, step, lambda mu: epsilon / mu**2 + 1 / mu)
    return found._replace(epsilon=epsilon)


@np.errstate(all="ignore")  # overflow to infinity, and NaN from there, are too high a c
def _find(
    loss: PrivacyLoss,
    direction: str,
    step: Callable[[Saddle, np.ndarray], np.ndarray],
    of_gaussian: Callable[[np.ndarray], np.ndarray],
) -> Saddle:
    """A c that is too low, where `step` is below 0, by a tenth of the peak's width at most.

    The steps are Newton's, down in log c, from the c of a Gaussian loss of the same variance.
    """
    rows = loss.shape[0]
    small = loss.cumulant(np.full((rows, 1), 1e-3), direction)[:, 0]
    start = of_gaussian(np.sqrt(2e3 * np.maximum(small, 0)))
    log_c = np.log(np.clip(np.nan_to_num(start, nan=_HIGH), 1e-12, _HIGH))
    low, high = np.full(rows, -np.inf), np.full(rows, np.inf)
    best = Saddle(*np.full((4, rows), np.nan))
    todo = np.arange(rows)
    for turn in range(_MAX_TURNS):
        part = loss if todo.size == rows else loss.take(todo)
        here = log_c[todo]
        found = _saddle(part, direction, np.exp(here))
        down = np.nan_to_num(step(found, todo), nan=np.inf)
        is_low = down < 0
        for kept, value in zip(best, found, strict=True):
            kept[todo[is_low]] = value[is_low]
        low[todo], high[todo] = (
            np.where(is_low, here, low[todo]),
            np.where(is_low, high[todo], here),
        )
        close = np.maximum(np.nan_to_num(0.1 * found.width / found.c), _CLOSE)
        # a step beyond the root from above shows that it is there
        newton = here - np.clip(down + np.where(is_low, 0, close / 3), -_LEAP, _LEAP)
        middle = (low[todo] + high[todo]) / 2
        inside = (newton > low[todo]) & (newton < high[todo])
        log_c[todo] = np.where(inside & (turn < 12 or turn % 2) | np.isinf(middle), newton, middle)
        near = is_low & (down > -close) & inside
        todo = todo[~near & (high[todo] - low[todo] > close) & (np.abs(log_c[todo]) < _FAR)]
        if not todo.size:
            break
    return best


def _saddle(loss: PrivacyLoss, direction: str, c: np.ndarray) -> Saddle:
    """What the line through c would say, by differences of K."""
    below, here, above = np.moveaxis(loss.cumulant(c[:, None] * _STENCIL, direction), 1, 0)
    slope = (above - below) / (2 * _DIFFERENCE * c)
    bend = np.maximum((above - 2 * here + below) / (_DIFFERENCE * c) ** 2, 0)
    epsilon = slope - 1 / c - 1 / (1 + c)
    width = 1 / np.sqrt(bend + c**-2.0 + (1 + c) ** -2.0)
    log_delta = here - epsilon * c + np.log(width / (c * (1 + c)) / np.sqrt(2 * np.pi))
    return Saddle(c, epsilon, width, log_delta)


def log_payoff(s: np.ndarray) -> np.ndarray:
    """Log of s^s / (1 + s)^(1 + s), the largest exp(-s l) (1 - exp(-l)), for s at least 0.

    In s log(s / (1 + s)) the logarithm's rounding would count s times.
    """
    with np.errstate(divide="ignore"):
        return -special.xlog1py(s, 1 / s) - np.log1p(s)


def chernoff_epsilon(
    loss: PrivacyLoss, direction: str, log_delta: np.ndarray, saddle: Saddle
) -> np.ndarray:
    """A bound on epsilon: the least (K(s) + log a(s) - log delta) / s for s near the saddle."""
    s = saddle.c[:, None] * _NEAR
    logs = loss.cumulant(s, direction) + log_payoff(s)
    bound = (logs - log_delta[:, None]) / s
    return np.maximum(np.nanmin(np.where(np.isnan(bound), np.inf, bound), 1), 0) * (1 + 1e-12)


def chernoff_log_delta(
    loss: PrivacyLoss, direction: str, epsilon: np.ndarray, saddle: Saddle
) -> np.ndarray:
    """A bound on log delta: the least log a(s) + K(s) - s epsilon for s near the saddle."""
    s = saddle.c[:, None] * _NEAR
    logs = loss.cumulant(s, direction) + log_payoff(s)
    bound = logs - s * epsilon[:, None]
    bound = bound + 1e-12 * (1 + np.abs(logs) + np.abs(s * epsilon[:, None]))
    return np.minimum(np.min(np.where(np.isnan(bound), np.inf, bound), 1), 0)
