"""Short compositions on a fine grid of losses, with a proven bracket: where a line would be long.

Each release's law is brought to one grid, from above and from below (see `_grid_laws.py`). The laws
are tilted by exp(c l), with c the saddle, and composed by an FFT, whose rounding is small against
the tilted law where it counts. On a ring of N points the sum wraps around: what leaves the window
is bounded by Chernoff. The bracket adds it, the tails cut off, and the roundings of tails, losses,
FFT (each of its log2 N stages errs by some units of the sum of moduli) and powers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpjax.accounting import contour
from dpjax.accounting._grid_laws import Law, aligned, cells, gathered, moved_left, spread
from dpjax.accounting._roots import bracketed_root
from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks.summed import Summed, releases
from dpjax.accounting.loss import PrivacyLoss

_UNIT = np.finfo(float).eps
_CUT = 20.0  # tails are cut at exp(-20) of the answer
_FIRST, _MOST = 1 << 14, 1 << 18  # points of the ring
_FAR = 20.0  # units of 1 / c that an answer may be from the saddle's
_AIM = 2e-7  # relative width of a bracket at which no finer grid is tried
_POOR = 1e-2  # and from which on the plan may be at fault and not the grid
_TURNS = 4
_MOST_LAWS = 40  # different ones in a sum
_WIDENING = np.geomspace(1e-12, 1, 1200)  # edges of the laws that steer
_PLACES = 2.0 ** (np.arange(-20, 80) / 2)  # of Chernoff's bounds
_FINEST = 1 << 11  # places tried, in units of 1 over the widest law


class _Plan(NamedTuple):
    """Leaks and counts, the ranges of their losses, the tilt, a loss near the answer, the window.

    `places` are the s of Chernoff's bounds on what lies left and right of the window.
    """

    terms: list[tuple[Leak, float]]
    ranges: list[tuple[float, float]]
    c: float
    origin: float
    bottom: float
    width: float
    places: tuple[float, float]


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
            total += count * special.logsumexp(terms, 0)
        return total


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
        plan = None
        while (plan := _plan(part, direction, log_size, find, place) or plan) is not None:
            found = answer(_compose(plan, direction, size), float(wanted[row]), result[:, row])
            lower, upper = np.fmax(found[0], result[0, row]), np.fmin(found[2], result[2, row])
            result[:, row] = lower, np.clip(np.nan_to_num(found[1], nan=upper), lower, upper), upper
            width = (upper - lower) / (upper if for_epsilon else 1)
            if not width > _AIM or turn == _TURNS or (turn > 0 and size == _MOST):
                break
            # the estimate steers better than what the first plan knew
            if for_epsilon:
                find, place = contour.saddle_for_epsilon, float(result[1, row])
            else:
                log_size = float(result[1, row])
            turn += 1
            if turn > 1 or width < _POOR:  # the width falls with the square of the step
                size = int(min(size * 2.0 ** np.ceil(np.log2(min(width / _AIM, 1e9)) / 2), _MOST))
    return result


@dataclass(frozen=True, eq=False)
class _Composed:
    """The tilted law of the sum on the window's points, ready for delta.

    Attributes:
        points: The losses, rising.
        terms: exp(-c (points - origin)) times the masses; their sum, weighted, is the answer.
        noise: The same of the bound on the masses' errors.
        origin: A loss near the answer.
        c: The tilt.
        log_scale: What `terms` are relative to.
        log_outside: Log of the bound on what lies outside of the window, at epsilon = 0.
        lost: Bound on the mass left out.
        slip: Bound on the error of the points.
    """

    points: np.ndarray
    terms: np.ndarray
    noise: np.ndarray
    origin: float
    c: float
    log_scale: float
    log_outside: float
    lost: float
    slip: float

    def delta(self, epsilon: float, sign: int) -> float:
        """Log of delta, with its errors added (sign 1), subtracted (-1) or left out (0)."""
        epsilon = epsilon - sign * self.slip
        first = int(np.searchsorted(self.points, epsilon, side="right"))
        terms, noise = self.terms[first:], self.noise[first:]
        gain = -np.expm1(epsilon - self.points[first:])
        part = terms * gain
        total = float(part.sum())
        error = float((noise * gain).sum()) + 64 * _UNIT * float(np.abs(part).sum())
        outside = np.exp(self.log_outside - self.c * epsilon - self.log_scale)
        error += 1.001 * outside + (self.lost * np.exp(-self.log_scale) if sign == 1 else 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.log_scale + np.log(np.maximum(total + sign * error, 0))
        return float(value + sign * 4 * _UNIT * (abs(self.log_scale) + self.c * abs(self.origin)))


def _solve(pair: tuple[_Composed, _Composed], log_delta: float, known: np.ndarray) -> np.ndarray:
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


def _evaluate(pair: tuple[_Composed, _Composed], epsilon: float, known: np.ndarray) -> np.ndarray:
    """Lower, estimate, upper of log delta."""
    return np.array(
        [pair[0].delta(epsilon, -1), _between(pair, epsilon), pair[1].delta(epsilon, 1)]
    )


def _between(pair: tuple[_Composed, _Composed], epsilon: float) -> float:
    """Spreading adds step^2 / 6 to the variance and gathering takes step^2 / 4: 3 to 2 cancels."""
    ends = np.array([law.delta(epsilon, 0) for law in pair])
    if np.isnan(ends[0]):  # a law too sharp for the grid
        return float(ends[1])
    return float(np.logaddexp(ends[0] + np.log(2 / 5), ends[1] + np.log(3 / 5)))


def _plan(
    loss: PrivacyLoss, direction: str, log_size: float, find: Callable[..., Any], wanted: float
) -> _Plan | None:
    """Where the grids lie, from coarse laws without the tails; None if that fails.

    `log_size` is about the log of delta, and `find` gives the saddle of what is wanted.
    """
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
    leftmost, coarse, rightmost = (_Coarse(list(side), counts) for side in zip(*laws, strict=True))
    saddle = find(PrivacyLoss(((coarse, np.array([1])),)), direction, np.array([wanted]))
    c, origin = float(saddle.c[0]), float(saddle.epsilon[0])
    width = max(high - low for low, high in ranges)
    places = _PLACES[_PLACES * width <= _FINEST]  # beyond, the grid's own steps tell
    right = rightmost.cumulant(np.append(c, c + places)[None], direction)[0]
    left = leftmost.cumulant(np.append(c, c - places)[None], direction)[0]
    bottoms = (left[0] - left[1:] - _CUT) / places
    tops = (right[1:] - right[0] + _CUT) / places
    places = places[np.nanargmax(bottoms)], places[np.nanargmin(tops)]
    bottom, top = np.nanmax(bottoms), np.nanmin(tops)
    width = max(top - bottom, width)
    # beyond such a tilt the exponents' rounding is no longer small
    if not (0 < width < np.inf and np.isfinite(origin) and c * (width + abs(bottom)) < 1e7):
        return None
    return _Plan(terms, ranges, c, origin, bottom, width, places)


def _compose(plan: _Plan, direction: str, size: int) -> tuple[_Composed, _Composed]:
    """The composition from below and from above on a ring of `size` points."""
    step = plan.width / (size - 2)
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
        law if law.masses.any() else moved_left(*grid, plan.c)
        for law, grid in zip(below, grids, strict=True)
    ]
    return _power(below, plan, size), _power(above, plan, size)


def _ends(leak: Leak, direction: str) -> tuple[float, float]:
    """The least and the largest finite loss; the least is the other direction's largest."""
    other = {"remove": "add", "add": "remove"}.get(direction, direction)
    other = other if leak.directions != ("both",) else direction
    return -float(leak.supremum(other)[0]), float(leak.supremum(direction)[0])


def _range(leak: Leak, direction: str, log_cut: float) -> tuple[float, float]:
    """Losses beyond which, on either side, there is less than exp(log_cut)."""
    low, high = _ends(leak, direction)
    above = leak.cumulant(_PLACES[None], direction)[0]
    below = leak.cumulant(-_PLACES[None], direction)[0]
    ends = (
        max(low, float(np.nanmax((log_cut - below) / _PLACES))),
        min(high, float(np.nanmin((above - log_cut) / _PLACES))),
    )
    found = []
    for end, tail in zip(ends, ("p_below", "p_above"), strict=True):
        inner, outer = 0.0, end  # Chernoff's ends may lie far out
        for _ in range(60):
            middle = (inner + outer) / 2
            light = getattr(leak.tails(np.array([middle]), direction), tail)[0] <= np.exp(log_cut)
            inner, outer = (inner, middle) if light else (middle, outer)
        found.append(end if abs(outer - end) <= 1e-9 * abs(end) else outer)
    return found[0], found[1]


def _power(laws: list[Law], plan: _Plan, size: int) -> _Composed:
    """The law of the sum, on the points of the window."""
    c, step, origin = plan.c, laws[0].step, plan.origin
    counts = [count for _, count in plan.terms]
    stages = 8 * _UNIT * np.log2(size)
    start = float(sum(n * law.start for n, law in zip(counts, laws, strict=True)))
    log_scale = 0.0
    product = np.ones(size // 2 + 1, complex)
    log_bound, log_loss = np.zeros(size // 2 + 1), np.zeros(size // 2 + 1)
    chernoff = np.zeros(2)
    slip = _UNIT * abs(start)
    for law, count in zip(laws, counts, strict=True):
        points = law.start + step * np.arange(law.masses.size)
        logs = np.log(law.masses) + c * points
        peak = float(np.asarray(special.logsumexp(logs)))
        tilted = np.exp(logs - peak)
        log_scale += count * peak
        largest = float(np.max(np.abs(points)))
        folded = np.zeros(-(-tilted.size // size) * size)
        folded[: tilted.size] = tilted
        wave = np.fft.rfft(folded.reshape(-1, size).sum(0))
        product = product * wave**count
        modulus = np.abs(wave)
        own = stages + _UNIT * (16 + 4 * abs(c) * largest + 2 * np.abs(peak))
        log_bound += count * np.log(modulus + own + 16 * _UNIT * modulus)
        log_loss += count * np.log1p(16 * _UNIT + own / modulus)
        slip += count * (law.slip + 4 * _UNIT * largest)
        for i, place in enumerate((-plan.places[0], plan.places[1])):
            log_moment = np.asarray(special.logsumexp(logs - peak + place * points))
            chernoff[i] += count * float(log_moment)
    bound = np.exp(log_bound)
    twice = np.full(size // 2 + 1, 2.0)
    twice[[0, -1]] = 1
    error = float(twice @ (bound * -np.expm1(-log_loss) + stages * bound)) / size
    first = np.floor((plan.bottom - start) / step)
    masses = np.roll(np.fft.irfft(product, size), -int(first % size))
    points = start + step * (first + np.arange(size))
    outside = chernoff + np.array([plan.places[0] * points[0], -plan.places[1] * points[-1]])
    outside = float(np.logaddexp(*np.minimum(outside, 0)))
    log_payoff = c * np.log(c / (1 + c)) - np.log1p(c)  # sup of exp(-c l) (1 - exp(-l))
    weights = np.exp(-c * (points - origin)) * (1 + 16 * _UNIT)
    lost = float(sum(n * law.lost for n, law in zip(counts, laws, strict=True)))
    return _Composed(
        points,
        weights * masses,
        weights * (error + 4 * _UNIT * (1 + np.abs(c * (points - origin))) * np.abs(masses)),
        origin,
        c,
        log_scale - c * origin,
        log_scale + log_payoff + outside,
        lost,
        slip,
    )
