"""Short compositions on a fine grid of losses, with a proven bracket: where a line would be long.

With S the sum of independent losses L_i under P and x_i = exp(-L_i),

    delta(epsilon) = E[(1 - exp(epsilon) x_1 x_2 ...)_+],

which is convex and falling in each x_i. So, each law in its turn:

- spreading the mass of a cell to the two grid points around it, its mean of x kept, only raises
  delta (Jensen). This is "connect the dots" (Doroshenko et al. 2022, Section 3);
- gathering the mass of a cell at its mean of x only lowers delta. The cells' edges are chosen so
  that the mean lies almost on a grid point, all points are moved left by what is missing at most of
  them, and the rest goes a whole point to the left, which again only lowers delta.

Both mistakes are of second order in the grid's step. The laws are tilted by exp(c l), with c the
saddle, and composed by an FFT, whose rounding is small against the tilted law where it counts. On
a ring of N points the sum wraps around: what leaves the window is bounded by Chernoff. The bracket
adds it, the tails cut off, and the roundings of tails, losses, FFT (each of its log2 N stages errs
by some units of the sum of moduli) and powers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpjax.accounting import contour
from dpjax.accounting._roots import bracketed_root
from dpjax.accounting.leaks import Leak
from dpjax.accounting.loss import PrivacyLoss

_UNIT = np.finfo(float).eps
_CUT = 30.0  # tails are cut at exp(-30) of the answer
_FIRST, _MOST = 1 << 16, 1 << 21  # points of the ring
_FAR = 20.0  # units of 1 / c that an answer may be from the saddle's
_AIM = 2e-7  # relative width of a bracket at which no finer grid is tried
_COARSE = 1 << 12  # points of the laws that steer
_PLACES = 2.0 ** (np.arange(-20, 29) / 2)  # of Chernoff's bounds


class _Law(NamedTuple):
    """Masses on start + step * (0, 1, ...), the mass left out above, and the losses' rounding."""

    start: float
    step: float
    masses: np.ndarray
    lost: float
    slip: float


class _Cells(NamedTuple):
    """P and Q of cells, bounds on their errors, and on that of the cells' edges."""

    p: np.ndarray
    p_error: np.ndarray
    q: np.ndarray
    q_error: np.ndarray
    slip: float


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
    """The sum of coarse laws, of which only the cumulant is wanted: it steers."""

    laws: list[_Law]
    counts: list[float]

    @property
    def shape(self) -> tuple[int, ...]:
        """One row."""
        return (1,)

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Sum of count * log E exp(t l); t real, (1, nodes)."""
        total = np.zeros(t.shape)
        for law, count in zip(self.laws, self.counts, strict=True):
            points = law.start + law.step * np.arange(law.masses.size)
            logs = np.log(law.masses) - np.log(law.masses.sum())
            total += count * special.logsumexp(logs[:, None] + points[:, None] * t, 0)
        return total


def possible(loss: PrivacyLoss) -> bool:
    """Whether the tails of every leak are known."""
    return all(leak.has_tails for leak, count in loss.terms if np.any(count > 0))


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
        for_epsilon, size = answer is _solve, _FIRST
        part = loss.take(np.array([row]))
        plan = _plan(part, direction, wanted[row], known[:, row], for_epsilon)
        while plan is not None:
            pair = _compose(plan, direction, size)
            found = answer(pair, float(wanted[row]), result[:, row])
            lower, upper = max(found[0], result[0, row]), min(found[2], result[2, row])
            result[:, row] = lower, np.clip(found[1], lower, upper), upper
            width = (upper - lower) / (upper if for_epsilon else 1)
            if size == _MOST or not width > _AIM:
                break
            # the width falls with the square of the step
            finer = 2.0 ** np.ceil(np.log2(min(width / _AIM, 1e9)) / 2)
            size = int(min(size * finer, _MOST))
    return result


@dataclass(frozen=True, eq=False)
class _Composed:
    """The tilted law of the sum on the window's points, ready for delta.

    Attributes:
        points: The losses, rising.
        terms: exp(-c (points - origin)) times the masses; their sum, weighted, is the answer.
        noise: The same of the bound on the masses' errors.
        decay: exp(origin - points).
        rounding: Bound on the rounding of the sum of all terms from here on.
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
    decay: np.ndarray
    rounding: np.ndarray
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
        gain = 1 - np.exp(epsilon - self.origin) * self.decay[first:]
        total = float(terms @ gain)
        error = float(noise @ gain) + 8 * _UNIT * float(noise.sum()) + self.rounding[first]
        outside = np.exp(self.log_outside - self.c * epsilon - self.log_scale)
        error += outside + (self.lost * np.exp(-self.log_scale) if sign == 1 else 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(self.log_scale + np.log(np.maximum(total + sign * error, 0)))


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
    """Spreading adds step^2 / 6 to the variance and gathering takes step^2 / 12: 1 to 2 cancels."""
    ends = np.array([law.delta(epsilon, 0) for law in pair])
    return float(np.logaddexp(ends[0] + np.log(2 / 3), ends[1] + np.log(1 / 3)))


def _plan(
    loss: PrivacyLoss, direction: str, wanted: float, known: np.ndarray, for_epsilon: bool
) -> _Plan | None:
    """Where the grids lie, from coarse laws without the tails; None if that fails."""
    terms = [(leak, float(count[0])) for leak, count in loss.terms if count[0] > 0]
    size = wanted if for_epsilon else max(known[1], known[2] - 100)
    if not size > -600:  # the tails to be cut would underflow
        return None
    log_cut = size - _CUT - np.log(sum(count for _, count in terms))
    ranges = [_range(leak, direction, log_cut) for leak, _ in terms]
    laws = []
    for (leak, _), (low, high) in zip(terms, ranges, strict=True):
        step = (high - low) / _COARSE
        if not (np.isfinite(step) and step > 0):
            return None
        laws.append(_spread(leak, direction, low, step, _COARSE + 1, 0.0))
    coarse = _Coarse(laws, [count for _, count in terms])
    find = contour.saddle_for_delta if for_epsilon else contour.saddle_for_epsilon
    saddle = find(PrivacyLoss(((coarse, np.array([1])),)), direction, np.array([wanted]))
    c, origin = float(saddle.c[0]), float(saddle.epsilon[0])
    right = coarse.cumulant((c + _PLACES)[None], direction)[0]
    left = coarse.cumulant((c - _PLACES)[None], direction)[0]
    here = coarse.cumulant(np.array([[c]]), direction)[0, 0]
    bottoms, tops = (here - left - _CUT) / _PLACES, (right - here + _CUT) / _PLACES
    places = _PLACES[np.nanargmax(bottoms)], _PLACES[np.nanargmin(tops)]
    bottom, top = np.nanmax(bottoms), np.nanmin(tops)
    width = max([top - bottom, *(high - low for low, high in ranges)])
    if not (np.isfinite(width) and width > 0 and np.isfinite(c) and np.isfinite(origin)):
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
    both = []
    for law in (_gathered, _spread):
        parts = []
        for (leak, _), (low, high) in zip(plan.terms, plan.ranges, strict=True):
            end = _ends(leak, direction)[1]
            points = int(np.ceil((high - low) / step)) + 3
            start = end - step * (points - 2) if high == end else low - step
            parts.append(law(leak, direction, start, step, points, plan.c))
        both.append(_power(parts, plan, size))
    return both[0], both[1]


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
        found.append(outer)
    return found[0], found[1]


def _cells(leak: Leak, direction: str, edges: np.ndarray) -> _Cells:
    """P and Q of the cells (edge, next edge], bounds on their errors, and the losses' rounding.

    A difference of tails errs by their own errors: it is taken on the side where they are smaller.
    """

    def between(above: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = above[:-1] < 0.5, above[:-1]
        mass = np.where(low, high - above[1:], below[1:] - below[:-1])
        tail = np.where(low, high, below[1:])
        error = _UNIT * (8 - 4 * np.log(np.maximum(tail, 1e-300))) * tail + 1e-300
        return np.maximum(mass, 0), error

    tails = leak.tails(edges, direction)
    p, p_error = between(tails.p_above, tails.p_below)
    q, q_error = between(tails.q_above, tails.q_below)
    slip = float(np.max(tails.slip[np.isfinite(tails.slip)], initial=0))
    return _Cells(p, p_error, q, q_error, slip)


def _spread(leak: Leak, direction: str, start: float, step: float, size: int, c: float) -> _Law:
    """From above: cells between the points, each spread to both ends."""
    points = start + step * np.arange(size)
    p, p_error, q, q_error, slip = _cells(leak, direction, points)
    tails = leak.tails(points[[0, -1]], direction)
    p = p + p_error
    ratio = np.exp(np.minimum(points[:-1] + np.log(q / p), 0))
    share = (1 - ratio) / -np.expm1(-step)  # of the right end, to keep the mean of exp(-l)
    share = share + (p_error / p + q_error / np.maximum(q, 1e-300) + 8 * _UNIT) / step
    share = np.where(np.isnan(share), 1, np.clip(share, 0, 1))
    masses = np.zeros(size)
    masses[:-1] += p * (1 - share)
    masses[1:] += p * share
    masses[0] += tails.p_below[0]
    return _Law(start, step, masses, float(tails.p_above[1]) * (1 + 1e-12) + 1e-300, slip)


def _gathered(leak: Leak, direction: str, start: float, step: float, size: int, c: float) -> _Law:
    """From below: cells around the points, each gathered at its mean of exp(-l) and moved left."""
    points = start + step * np.arange(size)
    edges = np.concatenate([points - step / 2, [np.inf]])

    def gather() -> tuple[np.ndarray, np.ndarray, float]:
        """Masses, how far right of its point each has its mean, and the losses' rounding."""
        p, p_error, q, q_error, slip = _cells(leak, direction, edges)
        p = np.maximum(p - p_error, 0)
        past = -np.log((q + q_error) / p) - points - 4 * _UNIT * np.abs(points)
        return p, np.where(np.isnan(past), -step, past), slip

    p, past, slip = gather()
    for _ in range(2):  # edges that bring the means near the points
        shift = np.clip(past, -0.4 * step, 0.4 * step)
        moved = edges[1:-1] - (shift[1:] + shift[:-1]) / 2
        edges[1:-1] = np.clip(moved, points[1:] - 0.9 * step, points[1:] - 0.1 * step)
        p, past, slip = gather()
    # moved left by s, or by s + step those that are not even s left of their point
    order = np.argsort(past)
    left, weight = past[order], (p * np.exp(c * (points - points[-1])))[order]
    weight = weight / max(weight.sum(), 1e-300)
    cost = np.maximum(-left, 0) + step * (np.cumsum(weight) - weight)
    shift = max(-float(left[np.argmin(cost)]), 0.0)
    far = past < -shift
    masses = np.where(far, 0, p)
    masses[:-1] += np.where(far, p, 0)[1:]
    return _Law(start - shift, step, masses, 0.0, slip)


def _power(laws: list[_Law], plan: _Plan, size: int) -> _Composed:
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
        np.exp(origin - points),
        np.append(
            (72 + masses.size / 2) * _UNIT * np.cumsum(weights[::-1] * np.abs(masses)[::-1])[::-1],
            0.0,
        ),
        origin,
        c,
        log_scale - c * origin,
        log_scale + log_payoff + outside,
        lost,
        slip,
    )
