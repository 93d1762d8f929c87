"""Compositions by the integral along a line of `contour`: proven brackets, each as wide as may be.

All arrays are flat: one row a composition. Lines of about the same length are drawn together.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from dpjax.accounting import _saddle, contour
from dpjax.accounting.loss import PrivacyLoss

_BLOCK = 1 << 20  # complex values held at once


@np.errstate(all="ignore")  # overflow to infinity and log 0 are the right limits throughout
def epsilon(
    loss: PrivacyLoss,
    direction: str,
    log_delta: np.ndarray,
    known: np.ndarray | None = None,
    best: ArrayLike = -np.inf,
    nodes: tuple[float, float] = (0, np.inf),
) -> np.ndarray:
    """Lower, estimate, upper of epsilon, within the brackets known; (3, rows).

    Rows whose answer is surely not above `best`, or whose line needs more or less `nodes` than
    between two numbers, the first left out, are only bounded.
    """
    saddle = _saddle.for_delta(loss, direction, log_delta)
    upper = _saddle.chernoff_epsilon(loss, direction, log_delta, saddle)
    upper = np.minimum(upper, np.maximum(loss.supremum(direction), 0))
    middle = np.clip(np.nan_to_num(saddle.epsilon), 0, upper)
    result = np.stack([np.zeros_like(upper), middle, upper])
    result = result if known is None else narrower(result, known)
    for where, line in _lines(loss, direction, log_delta, saddle, upper > best, nodes):
        ends = np.stack(contour.solve(line, log_delta[where], saddle.epsilon[where]))
        result[:, where] = narrower(ends, result[:, where])
    return result


@np.errstate(all="ignore")
def log_delta(
    loss: PrivacyLoss,
    direction: str,
    epsilon: np.ndarray,
    known: np.ndarray | None = None,
    best: ArrayLike = -np.inf,
    nodes: tuple[float, float] = (0, np.inf),
) -> np.ndarray:
    """Lower, estimate, upper of log delta, within the brackets known; (3, rows).

    Rows whose answer is surely not above `best`, or whose line needs more or less `nodes` than
    between two numbers, the first left out, are only bounded.
    """
    saddle = _saddle.for_epsilon(loss, direction, epsilon)
    upper = _saddle.chernoff_log_delta(loss, direction, epsilon, saddle)
    result = np.stack([np.full_like(upper, -np.inf), np.fmin(saddle.log_delta, upper), upper])
    result = result if known is None else narrower(result, known)
    for where, line in _lines(loss, direction, saddle.log_delta, saddle, upper > best, nodes):
        ends = np.stack(line.log_delta(epsilon[where])[:3])
        result[:, where] = narrower(ends, result[:, where])
    return result


def narrower(ends: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The narrower of two brackets, end by end, and the estimate of the narrower one; (3, rows)."""
    lower, upper = np.fmax(ends[0], known[0]), np.fmin(ends[2], known[2])
    middle = np.where(ends[2] - ends[0] < known[2] - known[0], ends[1], known[1])
    middle = np.where(np.isnan(middle), upper, middle)
    return np.stack([lower, np.clip(middle, lower, upper), upper])


def _lines(
    loss: PrivacyLoss,
    direction: str,
    log_delta: np.ndarray,
    saddle: _saddle.Saddle,
    is_open: np.ndarray,
    nodes: tuple[float, float],
) -> Iterator[tuple[np.ndarray, contour.Line]]:
    """Lines for groups of open rows that are about as long and fit in memory together."""
    if not is_open.any():
        return
    left = np.flatnonzero(is_open)
    loss, saddle = loss.take(left), _saddle.Saddle(*(value[left] for value in saddle))
    plan = contour.plan(loss, direction, log_delta[left], saddle)
    order = np.argsort(plan.nodes)
    sizes = plan.nodes[order]
    order = order[np.isfinite(sizes) & (sizes > nodes[0]) & (sizes <= nodes[1])]
    start = 0
    while start < len(order):
        most = plan.nodes[order[start]] * 1.3 + 4
        room = start + max(1, int(_BLOCK // most))
        rows = order[start:room]
        rows = rows[plan.nodes[rows] <= most]
        part = contour.Plan(*(value[rows] for value in vars(plan).values()))
        yield left[rows], contour.draw(loss.take(rows), direction, part)
        start += len(rows)
