"""Compositions of one kind whose delta is a formula: Gaussians, one release, some Laplace releases.

All arrays are flat: one row a composition. Brackets carry the formula's own rounding.
"""

import numpy as np
from numpy.typing import ArrayLike

from dpjax.accounting import gaussian, laplace_sum
from dpjax.accounting._roots import bracketed_root
from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.laplace import Laplace
from dpjax.accounting.loss import PrivacyLoss

_QUICK_COUNT = 20  # up to here the finite sum takes milliseconds


def quick(loss: PrivacyLoss, direction: str) -> np.ndarray:
    """Rows whose formula is the best way; (rows,)."""
    return _possible(loss, direction, _QUICK_COUNT)


def possible(loss: PrivacyLoss, direction: str) -> np.ndarray:
    """Rows that have a formula, quick or not; (rows,)."""
    return _possible(loss, direction, np.inf)


def log_delta(loss: PrivacyLoss, direction: str, epsilon: np.ndarray) -> np.ndarray:
    """Lower, estimate, upper of log delta on rows that have a formula; (3, rows)."""
    value, spare = _value(loss, direction, epsilon)
    lower, upper = value, value
    if not _gaussians(loss):  # losses with atoms, and so the distances to them, are a bit off
        slip = _slip(loss, direction)
        lower, _ = _value(loss, direction, epsilon * (1 + slip))
        upper, _ = _value(loss, direction, epsilon * (1 - slip))
    return np.stack([lower - spare, value, np.minimum(upper + spare, 0)])


def epsilon(
    loss: PrivacyLoss, direction: str, log_delta: np.ndarray, near: ArrayLike = 1.0
) -> np.ndarray:
    """Lower, estimate, upper of epsilon on rows that have a formula; (3, rows).

    `near` is where the search starts from above.
    """
    if _gaussians(loss):
        upper = gaussian.epsilon(np.exp(log_delta), mu=np.sqrt(_mu_squared(loss)))
        return np.stack([upper * (1 - 1e-13), upper, upper])

    def excess(epsilon: np.ndarray, sign: int = 0) -> np.ndarray:
        value, spare = _value(loss, direction, epsilon)
        return log_delta - value - sign * spare  # rises with epsilon

    most = loss.supremum(direction)
    low, high = np.zeros_like(log_delta), np.minimum(most, np.minimum(near, 1.0))
    at_low, at_high = excess(low, 1), excess(high, 1)
    while np.any(at_high <= 0):
        high = np.where(at_high <= 0, np.minimum(2 * high, most), high)
        at_high = excess(high, 1)
    below, above = bracketed_root(excess, low, high, np.minimum(at_low, 0), at_high, 0.0)
    # the ends step out from the root until the formula's error is covered, at first by the slope
    at_root, beyond = excess(above), excess(above * (1 + 1e-4))
    spare = (at_root - excess(above, 1)) * 1e-4 * above / (beyond - at_root)
    first = np.fmax(1e-14, 1.1 * np.where(np.isfinite(spare / above), spare / above, 0))
    step = first * above
    while np.any(short := (excess(above, 1) < 0) & (above < high)):
        above, step = np.where(short, np.minimum(above + step, high), above), 4 * step
    middle, step = below, first * below
    while np.any(short := (excess(below, -1) > 0) & (below > 0)):
        below, step = np.where(short, np.maximum(below - step, 0), below), 4 * step
    slip = _slip(loss, direction)
    ends = np.stack([below * (1 - slip), middle, np.minimum(above * (1 + slip), most)])
    return np.where(at_low >= 0, 0, ends)


def _possible(loss: PrivacyLoss, direction: str, most: float) -> np.ndarray:
    """Rows with a formula, where the finite sum may have `most` releases."""
    rows = loss.shape[0]
    if _gaussians(loss):
        return np.ones(rows, bool)
    leak, count = _alone(loss)
    if leak is None:
        return np.zeros(rows, bool)
    zeros = np.zeros(rows)
    once = (count <= 1) & (leak.log_delta_once(zeros, direction) is not None)
    if not isinstance(leak, Laplace):
        return once
    pairs = zip(np.broadcast_to(leak.pure_epsilon, rows), count, strict=True)
    return once | np.array([k <= most and laplace_sum.applies(e0, int(k)) for e0, k in pairs])


def _value(loss: PrivacyLoss, direction: str, epsilon: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log delta, and a bound on its error."""
    if _gaussians(loss):
        value = gaussian.log_delta(epsilon, mu=np.sqrt(_mu_squared(loss)))
        return value, 1e-13 * (1 + np.abs(value))
    leak, count = _alone(loss)
    assert leak is not None
    value, spare = np.full(epsilon.shape, -np.inf), np.zeros(epsilon.shape)
    inside = epsilon < loss.supremum(direction)
    once = leak.log_delta_once(epsilon, direction)
    if once is not None:
        single = inside & (count <= 1)
        value[single], spare[single] = once[single], 1e-12 * (1 + np.abs(once[single]))
        inside &= ~single
    if isinstance(leak, Laplace):
        e0 = np.broadcast_to(leak.pure_epsilon, epsilon.shape)
        for row in np.flatnonzero(inside):
            answer = laplace_sum.log_delta(float(e0[row]), int(count[row]), float(epsilon[row]))
            value[row], spare[row] = answer
    return value, spare


def _slip(loss: PrivacyLoss, direction: str) -> np.ndarray:
    """The relative error of losses with an atom; (rows,)."""
    leak, _ = _alone(loss)
    return np.full(loss.shape, 1e-15) if leak is None else leak.loss_slip(direction)


def _gaussians(loss: PrivacyLoss) -> bool:
    """Whether all leaks are Gaussian."""
    return all(isinstance(leak, Gaussian) for leak, _ in loss.terms)


def _mu_squared(loss: PrivacyLoss) -> np.ndarray:
    """The squared mean shift of a composition of Gaussians."""
    parts = [n * leak.mu_squared for leak, n in loss.terms if isinstance(leak, Gaussian)]
    return np.asarray(sum(parts, np.zeros(loss.shape)))


def _alone(loss: PrivacyLoss) -> tuple[Leak | None, np.ndarray]:
    """The only leak that is used, if there is one, with its count."""
    used = [(leak, n) for leak, n in loss.terms if np.any(n > 0)]
    return used[0] if len(used) == 1 else (None, np.zeros(loss.shape))
