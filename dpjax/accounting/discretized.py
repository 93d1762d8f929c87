"""Short compositions on a fine grid of losses, with a proven bracket: where a line would be long.

Each release's law is brought to one grid, from above and from below (see `_grid_laws.py`), and the
laws are composed by an FFT, tilted by exp(c l), with c the saddle (see `_ring.py`). The bracket
adds the tails cut off, what leaves the window, and the roundings of tails, losses, FFT and powers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpjax.accounting import contour
from dpjax.accounting._grid_laws import aligned, cells, gathered, moved_left, spread
from dpjax.accounting._ring import Composed, Window, composed
from dpjax.accounting._roots import bracketed_root
from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks.summed import Summed, releases
from dpjax.accounting.loss import PrivacyLoss

_CUT = 20.0  # tails are cut at exp(-20) of the answer
_FIRST, _MOST = 1 << 14, 1 << 18  # points of the ring
_FAR = 20.0  # units of 1 / c that an answer may be from the saddle's
_AIM = 2e-7  # relative width of a bracket at which no finer grid is tried
_POOR = 1e-2  # and from which on the plan may be at fault and not the grid
_TURNS = 4
_MOST_LAWS = 40  # different ones in a sum
_WIDENING = np.geomspace(1e-12, 1, 1200)  # edges of the laws that steer
_LADDER = np.geomspace(1e-12, 1, 120)  # where the end of a law is looked for first
_PLACES = 2.0 ** (np.arange(-20, 80) / 2)  # of Chernoff's bounds
_FINEST = 1 << 11  # places tried, in units of 1 over the widest law


class _Plan(NamedTuple):
    """Leaks and counts, the ranges of their losses, and where their sum is looked at."""

    terms: list[tuple[Leak, float]]
    ranges: list[tuple[float, float]]
    window: Window


@dataclass(frozen=True, eq=False)
class _Coarse(Leak):
    """The sum of laws without their tails, of which only the cumulant is wanted: it steers.

    `laws` holds losses and the log of their masses, in cells that widen with their distance from 0.
    """

    laws: list[tuple[np.ndarray, np.ndarray]]
    counts: list[float]

    @property
    def shape(self) -> tuple[int, ...]:
        """One row."""
        return (1,)

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Sum of count * log E exp(t l); t real, (1, nodes)."""
        total = np.zeros(t.shape)
        for (points, logs), count in zip(self.laws, self.counts, strict=True):
            terms = np.nan_to_num(logs[:, None] + points[:, None] * t, nan=-np.inf)
            peak = terms.max(0)
            total += count * (peak + np.log(np.exp(terms - peak).sum(0)))
        return total


class _Laws(NamedTuple):
    """Leaks and counts, the ranges of their losses, and their sum coarsely: moved left, as it is,
    and moved right."""

    terms: list[tuple[Leak, float]]
    ranges: list[tuple[float, float]]
    leftmost: _Coarse
    coarse: _Coarse
    rightmost: _Coarse


def possible(loss: PrivacyLoss) -> bool:
    """Whether the tails of every leak are known, and not too many are different."""
    used = [leak for leak, count in loss.terms if np.any(count > 0)]
    each = [leak.leak if isinstance(leak, Summed) else leak for leak in used]
    number = sum(leak.number if isinstance(leak, Summed) else 1 for leak in used)
    return number <= _MOST_LAWS and all(leak.has_tails for leak in each)


def _releases(loss: PrivacyLoss) -> list[tuple[Leak, float]]:
    """The leaks of a composition in an array of one, those of sums one by one, and their counts."""
    found = []
    for total, counts in loss.terms:
        leak, count = releases(total, counts)
        for i in np.flatnonzero(count[0] > 0):
            found.append((leak.take(count.shape, np.array([i])), float(count[0, i])))
    return found


@np.errstate(all="ignore")  # log 0, and overflow to infinity, are the right limits throughout
def epsilon(
    loss: PrivacyLoss, direction: str, log_delta: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """Lower, estimate, upper of epsilon, within the brackets known; (3, rows)."""
    return _refine(loss, direction, log_delta, known, _solve)


@np.errstate(all="ignore")
def log_delta(
    loss: PrivacyLoss, direction: str, epsilon: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """Lower, estimate, upper of log delta, within the brackets known; (3, rows)."""
    return _refine(loss, direction, epsilon, known, _evaluate)


def _refine(
    loss: PrivacyLoss,
    direction: str,
    wanted: np.ndarray,
    known: np.ndarray,
    answer: Callable[..., np.ndarray],
) -> np.ndarray:
    """Row by row on finer and finer grids, until the bracket is narrow; (3, rows)."""
    result = known.copy()
    for row in range(len(wanted)):
        part, place, size, turn = loss.take(np.array([row])), float(wanted[row]), _FIRST, 0
        for_epsilon = answer is _solve
        find = contour.saddle_for_delta if for_epsilon else contour.saddle_for_epsilon
        log_size = place if for_epsilon else max(known[1, row], known[2, row] - 100)
        laws, plan = _laws(part, direction, log_size), None
        while laws and (plan := _plan(laws, direction, log_size, find, place) or plan) is not None:
            found = answer(_compose(plan, direction, size), float(wanted[row]), result[:, row])
            lower, upper = np.fmax(found[0], result[0, row]), np.fmin(found[2], result[2, row])
            result[:, row] = lower, np.clip(np.nan_to_num(found[1], nan=upper), lower, upper), upper
            width = (upper - lower) / (upper if for_epsilon else 1)
            if not width > _AIM or turn == _TURNS or (turn > 0 and size == _MOST):
                break
            # the estimate steers better than what the first plan knew
            if for_epsilon:
                find, place = contour.saddle_for_epsilon, float(result[1, row])
            elif not abs(log_size - result[1, row]) < 1:
                log_size = float(result[1, row])
                laws = _laws(part, direction, log_size) or laws
            turn += 1
            if turn > 1 or width < _POOR:  # the width falls with the square of the step
                size = int(min(size * 2.0 ** np.ceil(np.log2(min(width / _AIM, 1e9)) / 2), _MOST))
    return result


def _solve(pair: tuple[Composed, Composed], log_delta: float, known: np.ndarray) -> np.ndarray:
    """Lower, estimate, upper of epsilon."""
    below, above = pair
    low = max(known[0], above.origin - _FAR / above.c, 0.0)
    high = max(low, min(known[2], above.origin + _FAR / above.c))
    middle = _root(lambda at: log_delta - _between(pair, at), low, high)[0]
    # the ends step out from there until they are shown to hold; log delta falls by about c
    lower, step = middle, _first_step(log_delta - below.delta(middle, -1), above.c, middle)
    while lower > known[0] and not below.delta(lower, -1) >= log_delta:
        lower, step = max(lower - step, known[0]), 2 * step
    upper, step = middle, _first_step(above.delta(middle, 1) - log_delta, above.c, middle)
    while upper < known[2] and not above.delta(upper, 1) <= log_delta:
        upper, step = min(upper + step, known[2]), 2 * step
    if above.delta(0.0, 1) <= log_delta:
        upper = 0.0
    return np.array([min(lower, upper), middle, upper])


def _first_step(missing: float, slope: float, epsilon: float) -> float:
    """How far off an end is first looked for."""
    step = 1.1 * missing / slope
    return max(step if np.isfinite(step) else 0.0, 1e-13 * epsilon, 1e-300)


def _root(value: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The two sides of the place where `value` rises above 0; an end where it does not."""

    def excess(at: ArrayLike) -> np.ndarray:
        return np.asarray(np.nan_to_num(value(float(np.asarray(at))), nan=-np.inf, posinf=np.inf))

    at_low, at_high = excess(np.asarray(low)), excess(np.asarray(high))
    if at_low > 0 or not at_high > 0:
        return (low, low) if at_low > 0 else (high, high)
    ends = bracketed_root(excess, low, high, at_low, at_high, 1e-11 * high)
    return float(ends[0]), float(ends[1])


def _evaluate(pair: tuple[Composed, Composed], epsilon: float, known: np.ndarray) -> np.ndarray:
    """Lower, estimate, upper of log delta."""
    return np.array(
        [pair[0].delta(epsilon, -1), _between(pair, epsilon), pair[1].delta(epsilon, 1)]
    )


def _between(pair: tuple[Composed, Composed], epsilon: float) -> float:
    """Spreading adds step^2 / 6 to the variance and gathering takes step^2 / 4: 3 to 2 cancels."""
    ends = np.array([law.delta(epsilon, 0) for law in pair])
    if np.isnan(ends[0]):  # a law too sharp for the grid
        return float(ends[1])
    return float(np.logaddexp(ends[0] + np.log(2 / 5), ends[1] + np.log(3 / 5)))


def _laws(loss: PrivacyLoss, direction: str, log_size: float) -> _Laws | None:
    """Coarse laws without the tails, where log delta is about `log_size`; None if that fails."""
    terms = _releases(loss)
    if not log_size > -600:  # the tails to be cut would underflow
        return None
    log_cut = log_size - _CUT - np.log(sum(count for _, count in terms))
    ranges = [_range(leak, direction, log_cut) for leak, _ in terms]
    laws: list[tuple[tuple[np.ndarray, np.ndarray], ...]] = []
    for (leak, _), (low, high) in zip(terms, ranges, strict=True):
        if not (np.isfinite(high - low) and high > low):
            return None
        edges = np.concatenate([low * _WIDENING[::-1], [0], high * _WIDENING])
        edges[0] -= 1e-9 * (high - low)  # an atom at the end is in the first cell
        p, _, q, _, _ = cells(leak, direction, edges)
        mean, log_p = np.clip(np.log(p / q), edges[:-1], edges[1:]), np.log(p / p.sum())
        p[[0, -1]] += np.exp(log_cut)  # what is cut off may be gathered at the ends
        log_more = np.log(p / p.sum())
        laws.append(((edges[:-1], log_more), (mean, log_p), (edges[1:], log_more)))
    counts = [count for _, count in terms]
    sums = (_Coarse(list(side), counts) for side in zip(*laws, strict=True))
    return _Laws(terms, ranges, *sums)


def _plan(
    laws: _Laws, direction: str, log_size: float, find: Callable[..., Any], wanted: float
) -> _Plan | None:
    """Where the grids lie; None if that fails.

    `log_size` is about the log of delta, and `find` gives the saddle of what is wanted.
    """
    terms, ranges, leftmost, coarse, rightmost = laws
    saddle = find(PrivacyLoss(((coarse, np.array([1])),)), direction, np.array([wanted]))
    c, origin = float(saddle.c[0]), float(saddle.epsilon[0])
    width = max(high - low for low, high in ranges)
    places = _PLACES[_PLACES * width <= _FINEST]  # beyond, the grid's own steps tell
    right = rightmost.cumulant(np.append(c, c + places)[None], direction)[0]
    left = leftmost.cumulant(np.append(c, c - places)[None], direction)[0]
    # the answer is a part of the whole tilted law, and what is cut off shall be a part of that
    share = min(log_size - float(coarse.cumulant(np.array([[c]]), direction)[0, 0]) + c * origin, 0)
    bottoms = (left[0] - left[1:] - _CUT + share) / places
    tops = (right[1:] - right[0] + _CUT - share) / places
    if np.all(np.isnan(bottoms)) or np.all(np.isnan(tops)):
        return None
    places = places[np.nanargmax(bottoms)], places[np.nanargmin(tops)]
    bottom, top = np.nanmax(bottoms), np.nanmin(tops)
    width = max(top - bottom, width)
    # beyond such a tilt the exponents' rounding is no longer small
    if not (0 < width < np.inf and np.isfinite(origin) and c * (width + abs(bottom)) < 1e7):
        return None
    return _Plan(terms, ranges, Window(c, origin, bottom, width, places))


def _compose(plan: _Plan, direction: str, size: int) -> tuple[Composed, Composed]:
    """The composition from below and from above on a ring of `size` points."""
    window, counts = plan.window, [count for _, count in plan.terms]
    step = window.width / (size - 2)
    for leak, _ in plan.terms:
        least, largest = _ends(leak, direction)
        if np.isfinite(largest - least) and largest - least > 2 * step:
            # a law between two ends may have atoms there: both on the grid
            step = (largest - least) / np.floor((largest - least) / step)
            break
    grids = []
    for (leak, _), (low, high) in zip(plan.terms, plan.ranges, strict=True):
        end = _ends(leak, direction)[1]
        points = int(np.ceil((high - low) / step)) + 3
        start = end - step * (points - 2) if high == end else low - step
        if high < end:
            start = aligned(leak, direction, start, step, points)
        grids.append((leak, direction, start, step, points))
    below, above = ([law(*grid) for grid in grids] for law in (gathered, spread))
    below = [
        law if law.masses.any() else moved_left(*grid, window.c)
        for law, grid in zip(below, grids, strict=True)
    ]
    return composed(below, counts, window, size), composed(above, counts, window, size)


def _ends(leak: Leak, direction: str) -> tuple[float, float]:
    """The least and the largest finite loss; the least is the other direction's largest."""
    other = {"remove": "add", "add": "remove"}.get(direction, direction)
    other = other if leak.directions != ("both",) else direction
    return -float(leak.supremum(other)[0]), float(leak.supremum(direction)[0])


def _range(leak: Leak, direction: str, log_cut: float) -> tuple[float, float]:
    """Losses beyond which, on either side, there is less than exp(log_cut)."""
    low, high = _ends(leak, direction)

    def cut(end: float, tail: str) -> float:
        places = end * _LADDER if np.isfinite(end) else np.copysign(1e12 * _LADDER**2, end)
        for _ in range(3):
            light = getattr(leak.tails(places, direction), tail) <= np.exp(log_cut)
            if not light.any():
                return end
            first = int(np.argmax(light))
            places = np.linspace(places[max(first - 1, 0)], places[first], 65)
        return end if abs(places[-1]) >= abs(end) * (1 - 1e-9) else float(places[-1])

    return cut(low, "p_below"), cut(high, "p_above")
