"""Exact (epsilon, delta) of compositions whose losses lie on a lattice, as a proven bracket.

Between two of its points delta is linear in exp(epsilon), and at each of them one finite sum over
a period of a line brackets it: see `_lattice_line.py`.
"""

from collections.abc import Callable

import numpy as np

from dpjax.accounting import _rounded
from dpjax.accounting._lattice_line import Lattice, Line, Place, find, lattice_releases, lines
from dpjax.accounting._saddle import log_payoff
from dpjax.accounting.leaks._lattice import LatticeLeak
from dpjax.accounting.leaks.summed import releases
from dpjax.accounting.loss import PrivacyLoss

_UNIT = np.finfo(float).eps
_NEAR = 2.0 ** (np.arange(-12, 13) / 4)  # places of Chernoff's bound, in units of c
_MOST_PIECES = 2.0**40  # of the largest step
_SURE = -38.0  # exp(-38) is below the rounding of 1
_DENOMINATORS = np.arange(1.0, 65)


def applies(loss: PrivacyLoss, direction: str) -> np.ndarray:
    """Rows whose losses lie on one lattice, or can be brought to one from both sides; (rows,)."""
    parts = [releases(leak, count) for leak, count in loss.terms]
    if not all(isinstance(leak, LatticeLeak) for leak, _ in parts):
        return np.zeros(loss.shape, bool)
    if _rounded.applies(loss):
        return np.ones(loss.shape, bool)
    return ~np.isnan(common_lattice(loss, direction).step)


def common_lattice(loss: PrivacyLoss, direction: str) -> Lattice:
    """The widest lattice of a composition of lattice leaks, row by row.

    Steps whose ratio is within rounding of a fraction with a denominator up to 64 are taken to have
    that ratio.
    """
    rows = (*loss.shape, 1)
    steps, anchor, spare = [np.zeros(rows)], np.zeros(loss.shape), np.zeros(loss.shape)
    ends = np.ones(loss.shape, bool)
    for leak, count in lattice_releases(loss):
        full = np.broadcast_shapes(leak.shape, count.shape, rows)
        step = np.where(count > 0, leak.step(direction), 0) + np.zeros(full)
        used = (step > 0) & np.isfinite(step)
        one = np.where((count > 0) & np.isfinite(leak.anchor(direction)), leak.anchor(direction), 0)
        steps.append(np.where(used, step, 0))
        anchor = anchor + (count * one).sum(-1)
        spare = spare + 4 * _UNIT * (count * (np.abs(one) + np.where(used, step, 0))).sum(-1)
        ends = ends & ~(used & np.isinf(leak.supremum(direction))).any(-1)
    every = np.moveaxis(np.concatenate(steps, -1), -1, 0)
    least = np.min(np.where(every > 0, every, np.inf), 0)
    least = np.where(np.isfinite(least), least, 1.0)
    ratio, step = every / least, np.full(loss.shape, np.nan)
    for q in _DENOMINATORS[::-1]:  # the smallest that fits comes last
        whole = np.round(q * ratio)
        fits = (np.abs(q * ratio - whole) <= 8 * _UNIT * whole) & (whole < _MOST_PIECES)
        step = np.where(fits.all(0), least / q, step)
    return Lattice(step, anchor, ends, spare)


def log_delta(loss: PrivacyLoss, direction: str, epsilon: np.ndarray) -> np.ndarray:
    """Lower, estimate, upper of log delta; flat arrays, (3, rows)."""
    result = np.zeros((3, epsilon.size))
    # 1 - delta = E[min(1, exp(epsilon - L))] is at most E[exp((epsilon - L) / 2)]
    log_rest = loss.cumulant(np.full((epsilon.size, 1), -0.5), direction)[:, 0] + epsilon / 2
    result[0] = np.where(log_rest < _SURE, -np.exp(np.minimum(log_rest, _SURE) + 1e-9), -np.inf)
    todo = np.flatnonzero(log_rest >= _SURE)
    result[:, todo] = _by_rows(_log_delta, loss.take(todo), direction, (epsilon[todo],))
    finite = np.isfinite(result[0])
    result[0, finite] -= 4 * _UNIT * (1 + np.abs(result[0, finite]))  # of the mixture and exp(-0)
    return result


def _log_delta(
    loss: PrivacyLoss, direction: str, lattice: Lattice, epsilon: np.ndarray
) -> np.ndarray:
    """Lower, estimate, upper of log delta along a line; flat arrays, (3, rows)."""
    place = find(loss, direction, lattice, lambda at: at.point < epsilon + lattice.step)
    s, logs = _chernoff(loss, direction, place)
    bound = np.minimum((logs - s * epsilon[:, None] * (1 - 1e-12)).min(1), 0)
    result = np.stack([np.full(epsilon.shape, -np.inf), bound, bound])
    for rows, line in lines(loss, direction, lattice, place):
        part, spare = line.lattice, 4 * _UNIT * epsilon[rows] + line.lattice.spare
        for end, at in enumerate((epsilon[rows] + spare, epsilon[rows], epsilon[rows] - spare)):
            index = np.floor((at - part.anchor) / part.step)
            over = np.clip(at - (part.anchor + part.step * index), 0, part.step)
            here, there = line.log_delta(index)[end], line.log_delta(index + 1)[end]
            with np.errstate(divide="ignore", invalid="ignore"):
                weight = np.exp(over - part.step) * np.expm1(-over) / np.expm1(-part.step)
                mixed = np.logaddexp(here + np.log1p(-weight), there + np.log(weight))
            result[end, rows] = np.where(weight == 0, here, np.where(weight == 1, there, mixed))
    with np.errstate(invalid="ignore"):  # of the mixture
        result[2] = np.fmin(result[2] + 4 * _UNIT * (1 + np.abs(result[2])), 0)
    result[:, lattice.ends & (epsilon > lattice.anchor + 2 * lattice.spare)] = -np.inf
    return np.stack([np.minimum(result[0], result[2]), np.clip(result[1], *result[::2]), result[2]])


def epsilon(
    loss: PrivacyLoss, direction: str, log_delta: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """Lower, estimate, upper of epsilon, at least 0; flat arrays, (3, rows).

    Rows whose epsilon is surely not above `known` are only bounded.
    """
    return _by_rows(_epsilon, loss, direction, (log_delta, known))


def _epsilon(
    loss: PrivacyLoss, direction: str, lattice: Lattice, log_delta: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """Lower, estimate, upper of epsilon by a line; flat arrays, (3, rows)."""
    place = find(loss, direction, lattice, lambda at: at.log_delta > log_delta)
    s, logs = _chernoff(loss, direction, place)
    upper = np.maximum(((logs - log_delta[:, None]) / s).min(1) * (1 + 1e-12), 0)
    upper = np.where(lattice.ends, np.minimum(upper, lattice.anchor), upper)
    result = np.stack([np.zeros_like(upper), upper, upper])
    todo = np.flatnonzero(upper > known)
    part = (Lattice(*(v[todo] for v in lattice)), Place(*(v[todo] for v in place)))
    for rows, line in lines(loss.take(todo), direction, *part):
        where = todo[rows]
        result[:, where] = _solve(line, log_delta[where], place.point[where], upper[where])
    return result


def _by_rows(
    method: Callable[..., np.ndarray],
    loss: PrivacyLoss,
    direction: str,
    arguments: tuple[np.ndarray, ...],
) -> np.ndarray:
    """A method on the rows that share a lattice at once, and on the others rounded, one by one."""
    result = np.zeros((3, arguments[0].size))
    lattice = common_lattice(loss, direction)
    shared = np.flatnonzero(~np.isnan(lattice.step))
    if shared.size:
        part = Lattice(*(value[shared] for value in lattice))
        given = (value[shared] for value in arguments)
        result[:, shared] = method(loss.take(shared), direction, part, *given)
    for row in np.flatnonzero(np.isnan(lattice.step)):
        given = [value[[row]] for value in arguments]
        below, above = (
            method(total, direction, part, *given)
            for total, part in _rounded.rounded(loss.take(np.array([row])))
        )
        middle = (below[1] + above[1]) / 2
        result[:, [row]] = np.stack([below[0], np.clip(middle, below[0], above[2]), above[2]])
    return result


def _solve(line: Line, target: np.ndarray, start: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Lower, estimate, upper of epsilon, each between two losses where the line shows it."""
    step, anchor, _, spare = line.lattice

    def excess(index: np.ndarray, end: int) -> np.ndarray:
        return line.log_delta(index)[end] - target

    # the last index at which the estimate is above the target, by guesses along exp(-c epsilon)
    high = np.ceil((bound - anchor) / step) + 1
    low = np.minimum(np.floor(-anchor / step), high - 1) - 1
    index = np.clip(np.round((start - anchor) / step) - 1, low + 1, high - 1)
    for turn in range(200):
        if np.all(high - low <= 1):
            break
        value = excess(index, 1)
        low, high = np.where(value >= 0, index, low), np.where(value >= 0, high, index)
        with np.errstate(invalid="ignore", over="ignore"):
            guess = index + np.floor(value / (line.c * step)) + (value < 0)
        middle = np.floor((low + high) / 2)
        guess = np.where(np.isfinite(guess) & (turn % 3 < 2), guess, middle)
        index = np.clip(guess, np.minimum(low + 1, high - 1), np.maximum(high - 1, low + 1))
    best = low
    # walk on until the lower end is above the target, and the upper end below it
    left, right = best, best + 1
    for widen in 2.0 ** np.arange(50):
        below, above = excess(left, 0) < 0, excess(right, 2) > 0
        if not np.any(below | above):
            break
        left = np.where(below, best - widen, left)
        right = np.where(above, best + 1 + widen, right)
    ends = np.stack(
        [
            _between(line, left, target, 0),
            _between(line, best, target, 1),
            _between(line, right - 1, target, 2),
        ]
    )
    lower, middle, upper = np.nan_to_num(ends, nan=0.0)
    upper = np.where(excess(right, 2) <= 0, np.minimum(upper + spare, bound), bound)
    lower = np.where(excess(left, 0) >= 0, lower - spare, 0)
    return np.maximum(np.stack([np.minimum(lower, upper), np.clip(middle, lower, upper), upper]), 0)


def _between(line: Line, index: np.ndarray, target: np.ndarray, end: int) -> np.ndarray:
    """Where delta, linear in exp(epsilon), meets the target between an index and the next."""
    step, anchor, _, _ = line.lattice
    here, there = line.log_delta(index)[end], line.log_delta(index + 1)[end]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.exp(target - here) * -np.expm1(there - target) / -np.expm1(there - here)
        share = np.clip(np.nan_to_num(share, nan=1.0), 0, 1)  # of the way back from the next
        return anchor + step * (index + 1) + np.log1p(share * np.expm1(-step))


def _chernoff(loss: PrivacyLoss, direction: str, place: Place) -> tuple[np.ndarray, np.ndarray]:
    """Some s > 0, and h with log delta(epsilon) <= h - s epsilon; (rows, s) each."""
    s = place.c[:, None] * _NEAR
    with np.errstate(over="ignore", invalid="ignore"):
        logs = loss.cumulant(s, direction) + log_payoff(s)
    return s, np.where(np.isnan(logs), np.inf, logs + 1e-12 * (1 + np.abs(logs)))
