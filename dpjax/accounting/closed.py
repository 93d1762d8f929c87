"""Compositions of one kind whose delta is a formula: Gaussians, one release, some Laplace releases.

All arrays are flat: one row a composition. Brackets carry the formula's own rounding.
"""

import numpy as np

from dpjax.accounting import _laplace_tilt, gaussian, laplace_sum
from dpjax.accounting._roots import bracketed_root
from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.laplace import Laplace
from dpjax.accounting.loss import PrivacyLoss

_FEW_BETWEEN = 40.0  # of the losses: up to here the finite sum takes milliseconds


def quick(loss: PrivacyLoss, direction: str) -> np.ndarray:
    """Rows whose formula is the best way; (rows,)."""
    return _possible(loss, direction, _FEW_BETWEEN)


def possible(loss: PrivacyLoss, direction: str) -> np.ndarray:
    """Rows that have a formula, quick or not; (rows,)."""
    return _possible(loss, direction, np.inf)


def log_delta(loss: PrivacyLoss, direction: str, epsilon: np.ndarray) -> np.ndarray:
    """Lower, estimate, upper of log delta on rows that have a formula; (3, rows)."""
    if _gaussians(loss):
        value = gaussian.log_delta(epsilon, mu=np.sqrt(_mu_squared(loss)))
        spare = 1e-13 * (1 + np.abs(value))
        return np.stack([value - spare, value, np.minimum(value + spare, 0)])
    # losses with atoms, and so the distances to them, are a bit off
    places = epsilon * (1 + _slip(loss, direction) * np.array([[1], [0], [-1]]))
    result = np.empty_like(places)
    many, most = _many(loss), loss.supremum(direction)
    once, sums = np.flatnonzero(~many), np.flatnonzero(many)
    if once.size:
        ends = zip(places[:, once], (-1, 0, 1), strict=True)
        part = loss.take(once)
        result[:, once] = [_once(part, direction, place, sign) for place, sign in ends]
    for row, (e0, count) in zip(sums, _sums(loss, sums), strict=True):
        tilt = _laplace_tilt.for_epsilon(e0, count, float(epsilon[row]))
        terms = laplace_sum.LaplaceSum(e0, count, tilt)
        for end, place in enumerate(places[:, row]):
            inside = place < most[row]
            result[end, row] = terms.log_delta(float(place))[end] if inside else -np.inf
    result[2] = np.minimum(result[2], 0)
    return result


def epsilon(loss: PrivacyLoss, direction: str, log_delta: np.ndarray) -> np.ndarray:
    """Lower, estimate, upper of epsilon on rows that have a formula; (3, rows)."""
    if _gaussians(loss):
        upper = gaussian.epsilon(np.exp(log_delta), mu=np.sqrt(_mu_squared(loss)))
        return np.stack([upper * (1 - 1e-13), upper, upper])
    ends = np.empty((3, log_delta.size))
    many = _many(loss)
    once, sums = np.flatnonzero(~many), np.flatnonzero(many)
    if once.size:
        ends[:, once] = _epsilon_once(loss.take(once), direction, log_delta[once])
    for row, (e0, count) in zip(sums, _sums(loss, sums), strict=True):
        wanted = float(log_delta[row])
        tilt, start = _laplace_tilt.for_log_delta(e0, count, wanted)
        ends[:, row] = laplace_sum.LaplaceSum(e0, count, tilt).epsilon(wanted, start)
    slip = _slip(loss, direction)
    most = loss.supremum(direction)
    return np.stack([ends[0] * (1 - slip), ends[1], np.minimum(ends[2] * (1 + slip), most)])


def _epsilon_once(loss: PrivacyLoss, direction: str, log_delta: np.ndarray) -> np.ndarray:
    """Lower, estimate, upper of epsilon on rows of one release; (3, rows)."""

    def excess(epsilon: np.ndarray, sign: int = 0) -> np.ndarray:
        return log_delta - _once(loss, direction, epsilon, sign)  # rises with epsilon

    most = loss.supremum(direction)
    low, high = np.zeros_like(log_delta), np.minimum(most, 1.0)
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
    return np.where(at_low >= 0, 0, np.stack([below, middle, above]))


def _possible(loss: PrivacyLoss, direction: str, most: float) -> np.ndarray:
    """Rows with a formula, where of a finite sum's losses at most so many lie between."""
    rows = loss.shape[0]
    if _gaussians(loss):
        return np.ones(rows, bool)
    leak, count = _alone(loss)
    if leak is None:
        return np.zeros(rows, bool)
    once = (count <= 1) & (leak.log_delta_once(np.zeros(rows), direction) is not None)
    if not isinstance(leak, Laplace):
        return once
    e0 = leak.pure_epsilon
    short = laplace_sum.mean_between(e0, count) <= most
    return once | short & laplace_sum.applies(e0, count)


def _many(loss: PrivacyLoss) -> np.ndarray:
    """Rows of Laplace releases that are several; (rows,)."""
    leak, count = _alone(loss)
    return (count > 1) & isinstance(leak, Laplace)


def _sums(loss: PrivacyLoss, rows: np.ndarray) -> list[tuple[float, int]]:
    """e0 and the count of rows of several Laplace releases."""
    leak, count = _alone(loss)
    if not isinstance(leak, Laplace):
        return []
    e0 = np.broadcast_to(leak.pure_epsilon, loss.shape)
    return [(float(e0[row]), int(count[row])) for row in rows]


def _once(loss: PrivacyLoss, direction: str, epsilon: np.ndarray, sign: int) -> np.ndarray:
    """Log delta of one release, with the bound on its error added or subtracted by the sign."""
    leak, _ = _alone(loss)
    assert leak is not None
    value = leak.log_delta_once(epsilon, direction)
    assert value is not None
    inside = epsilon < loss.supremum(direction)
    return np.where(inside, value + sign * leak.once_error * (1 + np.abs(value)), -np.inf)


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
