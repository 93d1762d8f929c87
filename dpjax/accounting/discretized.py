"""Short compositions on a fine grid of losses, with a proven bracket: where a line would be long.

Each release's law is brought to one grid, from above and from below (see `_grid_laws.py`), and the
laws are composed by an FFT, tilted by exp(c l) (see `_ring.py`). The bracket adds the tails cut
off, what leaves the window, and the roundings of tails, losses, FFT and powers. The grids reach
over the losses that matter one by one (see `_grid_plan.py`): a few releases of a small sample may
lose hundreds of times epsilon, with a chance that is all that counts.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpjax.accounting._grid_laws import aligned, gathered, moved_left, spread
from dpjax.accounting._grid_plan import Plan, coarse_laws, ends_of, guessed, guessed_size, planned
from dpjax.accounting._ring import Composed, composed
from dpjax.accounting._roots import bracketed_root
from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks.summed import Summed, releases
from dpjax.accounting.loss import PrivacyLoss

_FIRST, _MOST = 1 << 14, 1 << 18  # points of the ring
_FAR = 20.0  # units of 1 / c that an answer may be from the saddle's
_POOR = 1e-2  # relative width from which on the plan may be at fault and not the grid
_LOOSE = 1e-4  # and from which on a finer grid is tried whatever the last one gained
_TURNS, _MOST_FINER = 5, 4
_MOST_LAWS = 40  # different ones in a sum

AIM = 1e-6
"""Relative width of a bracket of epsilon at which no finer grid is tried."""

FALL = 5.0
"""Log delta falls by so much from 0 to epsilon, mostly more: widths of it may be as many times."""


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
    loss: PrivacyLoss,
    direction: str,
    log_delta: np.ndarray,
    known: np.ndarray,
    best: ArrayLike = -np.inf,
) -> np.ndarray:
    """Lower, estimate, upper of epsilon, within the brackets known; (3, rows).

    Rows whose answer is surely not above `best` may only be bounded.
    """
    return _refine(loss, direction, log_delta, known, best, _solve)


@np.errstate(all="ignore")
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
    return _refine(loss, direction, epsilon, known, best, _evaluate)


def _refine(
    loss: PrivacyLoss,
    direction: str,
    wanted: np.ndarray,
    known: np.ndarray,
    best: ArrayLike,
    answer: Callable[..., tuple[np.ndarray, float]],
) -> np.ndarray:
    """Row by row on finer and finer grids, until the bracket is narrow; (3, rows)."""
    result = known.copy()
    for row, enough in enumerate(np.broadcast_to(best, wanted.shape)):
        terms, points, hoped = _releases(loss.take(np.array([row]))), _FIRST, np.inf
        for turn in range(_TURNS):
            lower, middle, upper = result[:, row]
            if answer is _evaluate:
                at = float(wanted[row])
                size = middle if turn else guessed_size(terms, direction, at, result[:, row])
                laws = coarse_laws(terms, direction, size, (at, at))
            else:
                at, size = middle, float(wanted[row])
                if turn:
                    laws = coarse_laws(terms, direction, size, (lower, upper))
                else:
                    at, laws = guessed(terms, direction, size, upper)
            plan = laws and planned(laws, direction, size, at)
            if plan is None:
                break
            found, gap = answer(_compose(plan, direction, points), wanted[row], result[:, row])
            lower, upper = np.fmax(found[0], lower), np.fmin(found[2], upper)
            width = (upper - lower) / (upper if answer is _solve else FALL)
            middle = middle if gap > 2 * width < _POOR else found[1]
            middle = np.nan_to_num(middle, nan=upper)
            result[:, row] = lower, np.clip(middle, lower, upper), upper
            if not width > AIM or upper <= enough or (gap > hoped and width < _LOOSE):
                break
            if turn > 0 or gap < _POOR:
                finer = 2.0 ** np.ceil(np.log2(min(gap / AIM, 1e9)) / 2)
                finer = max(1.0, min(finer, _MOST // points, _MOST_FINER))
                # the gap falls with the square of the step, but for rounding; one side may lack yet
                hoped = gap / 2
                if finer == 1 or (width / 2 < gap * (points / _MOST) ** 2 and width < _LOOSE):
                    break
                points = int(points * finer)
    return result


def _solve(
    pair: tuple[Composed, Composed], log_delta: float, known: np.ndarray
) -> tuple[np.ndarray, float]:
    """Lower, estimate, upper of epsilon; and how far apart the two laws leave it, relatively."""
    below, above = pair
    low = max(known[0], above.origin - _FAR / above.c, 0.0)
    high = max(low, min(known[2], above.origin + _FAR / above.c))
    middle = _root(lambda at: log_delta - _between(pair, at), low, high)[0]
    # the ends step out from there until they are shown to hold
    near = middle + 0.1 / above.c
    at_least, at_most = below.delta(middle, -1), above.delta(middle, 1)
    slope = (at_most - above.delta(near, 1)) / (near - middle)
    lower, step = middle, _first_step(log_delta - at_least, slope, middle)
    while lower > known[0] and not below.delta(lower, -1) >= log_delta:
        lower, step = max(lower - step, known[0]), 2 * step
    upper, step = middle, _first_step(at_most - log_delta, slope, middle)
    while upper < known[2] and not above.delta(upper, 1) <= log_delta:
        upper, step = min(upper + step, known[2]), 2 * step
    if above.delta(0.0, 1) <= log_delta:
        upper = 0.0
    gap = np.nan_to_num((at_most - at_least) / slope / middle, nan=np.inf, posinf=np.inf)
    return np.array([min(lower, upper), middle, upper]), float(gap)


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


def _evaluate(
    pair: tuple[Composed, Composed], epsilon: float, known: np.ndarray
) -> tuple[np.ndarray, float]:
    """Lower, estimate, upper of log delta; and how far apart the two laws leave it, over `FALL`."""
    lower, upper = pair[0].delta(epsilon, -1), pair[1].delta(epsilon, 1)
    return np.array([lower, _between(pair, epsilon), upper]), (upper - lower) / FALL


def _between(pair: tuple[Composed, Composed], epsilon: float) -> float:
    """Spreading adds step^2 / 6 to the variance and gathering takes step^2 / 4: 3 to 2 cancels."""
    ends = np.array([law.delta(epsilon, 0) for law in pair])
    if np.isnan(ends[0]):  # a law too sharp for the grid
        return float(ends[1])
    return float(np.logaddexp(ends[0] + np.log(2 / 5), ends[1] + np.log(3 / 5)))


def _compose(plan: Plan, direction: str, size: int) -> tuple[Composed, Composed]:
    """The composition from below and from above on a ring of `size` points."""
    window, counts = plan.window, [count for _, count in plan.terms]
    step = window.width / (size - 2)
    for leak, _ in plan.terms:
        least, largest = ends_of(leak, direction)
        if np.isfinite(largest - least) and largest - least > 2 * step:
            # a law between two ends may have atoms there: both on the grid
            step = (largest - least) / np.floor((largest - least) / step)
            break
    grids = []
    for (leak, _), (low, high) in zip(plan.terms, plan.ranges, strict=True):
        end = ends_of(leak, direction)[1]
        points = int(np.ceil((high - low) / step)) + 3
        start = end - step * (points - 2) if high == end else low - step
        if high < end:  # `aligned` moves by two steps at most
            start, points = start - 3 * step, points + 6
            start = aligned(leak, direction, start, step, points)
        grids.append((leak, direction, start, step, points))
    below, above = ([law(*grid) for grid in grids] for law in (gathered, spread))
    below = [
        law if law.masses.any() else moved_left(*grid, window.c)
        for law, grid in zip(below, grids, strict=True)
    ]
    return composed(below, counts, window, size), composed(above, counts, window, size)
