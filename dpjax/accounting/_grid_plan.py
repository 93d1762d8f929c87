"""Where the grids of `discretized` lie, found from coarse laws.

They steer. Of what is found here only the least losses, with the chance of less, enter a proof.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpjax.accounting import _saddle
from dpjax.accounting._grid_laws import cells
from dpjax.accounting._ring import Window
from dpjax.accounting.leaks import Leak
from dpjax.accounting.loss import PrivacyLoss

_CUT = 17.0  # tails are cut at exp(-17) of the answer
_WIDENING = np.geomspace(1e-12, 1, 300)  # edges of the coarse laws
_TILTS = np.geomspace(0.03, 1, 16)  # in units of the saddle
_MOST_HIDDEN = 15.0  # logs of the answer's part of the tilted law, for one release
_LADDER = np.geomspace(1e-12, 1, 120)  # where the end of a law is looked for first
_PLACES = 2.0 ** np.arange(-10, 40)  # of Chernoff's bounds
_FINEST = 1 << 11  # places tried, in units of 1 over the widest law
_GUESSES = 4


class Plan(NamedTuple):
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


class Laws(NamedTuple):
    """What is known of the releases before there are grids.

    Attributes:
        terms: Leaks and counts.
        ranges: The losses of each that matter one by one.
        least: The least loss of each, but for a chance of `cut` at most for all together.
        infinite: About the chance of a loss above the ranges that counts as infinite.
        leftmost, coarse, rightmost: Their sum, moved left, as it is, and moved right.
    """

    terms: list[tuple[Leak, float]]
    ranges: list[tuple[float, float]]
    least: list[float]
    cut: float
    infinite: float
    leftmost: PrivacyLoss
    coarse: PrivacyLoss
    rightmost: PrivacyLoss


def log_of_one(terms: list[tuple[Leak, float]], direction: str, epsilon: Any) -> Any:
    """Log delta as if one release alone lost all: a guess, good where tails are heavy."""
    total = np.zeros(np.shape(epsilon))
    for leak, count in terms:
        once = leak.log_delta_once(np.atleast_1d(epsilon), direction)
        total = total + (0 if once is None else count * np.exp(once).reshape(total.shape))
    return np.log(total)


def guessed(
    terms: list[tuple[Leak, float]], direction: str, log_delta: float, most: float
) -> tuple[float, Laws | None]:
    """About epsilon, and laws that are good enough for it; `most` is an upper bound.

    First as if one release alone lost all, then by the saddle of coarse laws.
    """
    places = most * _LADDER
    for _ in range(2):
        first = int(np.argmax(log_of_one(terms, direction, places) <= log_delta))
        places = np.linspace(places[max(first - 1, 0)], places[first], 33)
    guess, laws = float(places[0]), None
    for _ in range(_GUESSES):
        laws = coarse_laws(terms, direction, log_delta, (guess / 2, 1.5 * guess))
        if laws is None:
            break
        finite = np.exp(log_delta) - laws.infinite
        before, guess = guess, min(2 * guess, most)
        if finite > 0:
            saddle = _saddle.for_delta(laws.coarse, direction, np.log([finite]))
            if not saddle.epsilon[0] > 0:  # it may be 0
                return before, coarse_laws(terms, direction, log_delta, (0.0, 1.5 * before))
            guess = min(float(saddle.epsilon[0]), most)
        if abs(guess / before - 1) < 1 / 3:
            break
    return guess, laws


def guessed_size(
    terms: list[tuple[Leak, float]], direction: str, epsilon: float, known: np.ndarray
) -> float:
    """About log delta, by the same two steps, within a bracket; or else the bracket's estimate."""
    _, middle, upper = known
    for size in (log_of_one(terms, direction, epsilon), middle):
        laws = coarse_laws(terms, direction, float(size), (epsilon, epsilon))
        if laws is not None:
            saddle = _saddle.for_epsilon(laws.coarse, direction, np.array([epsilon]))
            finite = float(np.nan_to_num(saddle.log_delta[0], nan=-np.inf))
            return min(float(np.logaddexp(finite, np.log(laws.infinite))), upper)
    return middle


def coarse_laws(
    terms: list[tuple[Leak, float]], direction: str, log_size: float, ends: tuple[float, float]
) -> Laws | None:
    """Coarse laws without the tails, where log delta is about `log_size`; None if that fails.

    `ends` are those between which epsilon lies, most likely.
    """
    if not log_size > -600:  # the tails to be cut would underflow
        return None
    counts = [count for _, count in terms]
    log_cut = log_size - _CUT - np.log(sum(counts))
    ranges = [_range(leak, direction, log_cut) for leak, _ in terms]
    least = [low for low, _ in ranges]
    ranges = _needed(ranges, counts, ends)
    laws: list[tuple[tuple[np.ndarray, np.ndarray], ...]] = []
    infinite = 0.0
    for (leak, count), (low, high) in zip(terms, ranges, strict=True):
        if not (np.isfinite(high - low) and high > low):
            return None
        sliver = 1e-9 * (high - low)  # an atom at an end has a cell of its own
        even = np.append(np.linspace(low, high, 129), [low + sliver, high - sliver])
        edges = np.concatenate([low * _WIDENING, [0], high * _WIDENING, even])
        edges = np.unique(np.clip(edges, low, high))
        edges[0] -= sliver
        (p, _, q, _), _ = cells(leak, direction, edges)
        mean = np.clip(np.log(p / q), edges[:-1], edges[1:])
        tails = leak.tails(edges[[0, -1]], direction)
        p[0] += tails.p_below[0]
        at_end = np.fmin(tails.p_above[1], np.exp(high + np.log(tails.q_above[1])))
        p[-1] += at_end
        infinite += count * (tails.p_above[1] - at_end)
        log_p = np.log(p / p.sum())
        p[[0, -1]] += np.exp(log_cut)  # what is cut off may be gathered at the ends
        log_more = np.log(p / p.sum())
        laws.append(((edges[:-1], log_more), (mean, log_p), (edges[1:], log_more)))
    sides = (_Coarse(list(side), counts) for side in zip(*laws, strict=True))
    sums = (PrivacyLoss(((side, np.array([1])),)) for side in sides)
    cut = sum(counts) * float(np.exp(log_cut))
    return Laws(terms, ranges, least, cut, float(infinite), *sums)


def _needed(
    ranges: list[tuple[float, float]], counts: list[float], ends: tuple[float, float]
) -> list[tuple[float, float]]:
    """The losses that matter one by one, for an epsilon between two ends.

    Above, whatever the others lose, delta needs only P and Q of a release (see `_grid_laws`).
    Below, nothing the others lose, while finite, can bring the sum up to epsilon.
    """
    lowest = sum(n * low for n, (low, _) in zip(counts, ranges, strict=True))
    ranges = [(low, min(high, ends[1] - lowest + low)) for low, high in ranges]
    highest = sum(n * high for n, (_, high) in zip(counts, ranges, strict=True))
    return [(max(low, ends[0] - highest + high), high) for low, high in ranges]


def planned(found: Laws, direction: str, log_size: float, epsilon: float) -> Plan | None:
    """Where the grids lie; None if that fails.

    `log_size` is about the log of delta, and `epsilon` about its place.
    """
    terms, ranges, least_losses, cut, _, leftmost, coarse, rightmost = found
    saddle = _saddle.for_epsilon(coarse, direction, np.array([epsilon]))
    widest = max(high - low for low, high in ranges)
    places = _PLACES[_PLACES * widest <= _FINEST]  # beyond, the grid's own steps tell
    t = np.unique(np.concatenate([-places, saddle.c[0] * _TILTS, saddle.c[0] + places]))
    left, here, right = (
        law.cumulant(t[None], direction)[0] for law in (leftmost, coarse, rightmost)
    )
    # the answer is a part of the whole tilted law, and what is cut off shall be a part of that
    share = np.minimum(log_size - here + t * epsilon, 0)
    from_c = t - t[:, None]
    tops = (right - right[:, None] + _CUT - share[:, None]) / from_c
    tops = np.where((from_c > 0) & ~np.isnan(tops), tops, np.inf)
    bottoms = (left[:, None] - left - _CUT + share[:, None]) / -from_c
    bottoms = np.where((from_c < 0) & ~np.isnan(bottoms), bottoms, -np.inf)
    # a tilt less than the saddle's takes less of the far losses that no answer needs
    width = tops.min(1) - bottoms.max(1)
    width = np.where((t > 0) & (t <= saddle.c[0]), width, np.inf)
    hidden = _MOST_HIDDEN - np.log(sum(count for _, count in terms))  # each rounds the transform
    least = min(float(np.max(share, where=np.isfinite(width), initial=-np.inf)), -hidden)
    best = int(np.argmin(np.where(share >= least, width, np.inf)))
    c, top, bottom = float(t[best]), tops[best].min(), bottoms[best].max()
    sides = float(-from_c[best, bottoms[best].argmax()]), float(from_c[best, tops[best].argmin()])
    width = float(max(top - bottom, widest))
    # beyond such a tilt the exponents' rounding is no longer small
    if not (0 < width < np.inf and c * (width + abs(bottom)) < 1e7):
        return None
    return Plan(terms, ranges, Window(c, epsilon, float(bottom), width, sides, least_losses, cut))


def ends_of(leak: Leak, direction: str) -> tuple[float, float]:
    """The least and the largest finite loss; the least is the other direction's largest."""
    other = {"remove": "add", "add": "remove"}.get(direction, direction)
    other = other if leak.directions != ("both",) else direction
    return -float(leak.supremum(other)[0]), float(leak.supremum(direction)[0])


def _range(leak: Leak, direction: str, log_cut: float) -> tuple[float, float]:
    """Losses beyond which, on either side, there is less than exp(log_cut)."""
    low, high = ends_of(leak, direction)

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
