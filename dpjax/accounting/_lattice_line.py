"""One period of a line, for losses on a lattice: where it crosses, and what it says of delta.

If every total loss is anchor + h j for whole j, delta is linear in exp(epsilon) between two such
points, and at one of them, x = anchor + h m, with K the cumulant under P and any c > 0,

    delta(x) = sum over j > m of P(j) (1 - exp(x - L_j))
             = (1 / 2 pi) int exp(K(t) - (x + h) t) g(t) dw   over t = c + i w / h, |w| <= pi,

    g(t) = (1 - exp(-h)) / ((1 - exp(-h t)) (1 - exp(-h (t + 1)))),

for exp(-h t) g(t) = sum of (1 - exp(-h i)) exp(-h i t) over i > 0. As h goes to 0 this becomes the
integral of `contour`. The integrand is periodic, so its mean over N equidistant nodes is exactly

    S = sum over all i of delta(x + i T) exp(c i T),   T = N h,

whose terms but the one of i = 0 are positive aliases that Chernoff bounds, as in `contour`. Nodes
that are left out, near the end of the period, add at most their share of it times the proven decay
of one leak there (`log_decay_in_period`) and the bound on g at the first of them. Rounding is added
from the errors that the cumulants state.

All arrays are flat: one row a composition.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpjax.accounting._saddle import log_payoff
from dpjax.accounting.leaks._lattice import LatticeLeak
from dpjax.accounting.leaks.summed import releases
from dpjax.accounting.loss import PrivacyLoss

_UNIT = np.finfo(float).eps
_TOLERANCE = 1e-14  # aliases and tail, each, relative to the answer as first estimated
_RIGHT = np.array([0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24])  # steps of s in units of the line's width
_LEFT = np.array([0, 0.2, 0.4, 0.6, 0.8, 0.9])  # values of s in units of c
_ENDS = 2.0 ** (np.arange(4, 160) / 4)  # ends of the line tried, in units of its width
_DIFFERENCE = 3e-3  # relative step of the numerical derivatives, which only steer
_SETTLED = 1e-4
_MOST_NODES = 1 << 21
_BLOCK = 1 << 20  # complex values held at once


class Lattice(NamedTuple):
    """Where the total losses lie: anchor + step j; NaN steps where they share no lattice.

    `ends` says that the anchor is the largest loss, `spare` bounds what rounding moves a loss by.
    """

    step: np.ndarray
    anchor: np.ndarray
    ends: np.ndarray
    spare: np.ndarray


class Place(NamedTuple):
    """Where a line crosses the real axis, and what it then says: x + h, its width, log delta(x).

    `settled` where almost all of the tilted loss is the largest one: a larger c tells no more.
    """

    c: np.ndarray
    point: np.ndarray
    width: np.ndarray
    log_delta: np.ndarray
    settled: np.ndarray


@dataclass(frozen=True, eq=False)
class Line:
    """The nodes of half a period with the loss evaluated on them, one row a composition.

    Attributes:
        lattice: Of the rows.
        c: Where the line crosses the real axis; (rows,).
        y: Imaginary parts of the nodes; (rows, nodes).
        period: T; (rows,).
        cumulant: K(c), with its error bound; (rows,) each.
        values: exp(K(t) - K(c)) g(t) / N, doubled where w > 0; (rows, nodes).
        errors: Bound on the error of each value; (rows, nodes).
        tail: Bound on the nodes left out over exp(K(c) - (x + h) c); (rows,).
        chernoff_nodes, chernoff_logs: s and log a(s) + K(s) of the alias bounds, left ones first.
    """

    lattice: Lattice
    c: np.ndarray
    y: np.ndarray
    period: np.ndarray
    cumulant: np.ndarray
    cumulant_error: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    tail: np.ndarray
    chernoff_nodes: np.ndarray
    chernoff_logs: np.ndarray

    def log_delta(self, index: np.ndarray) -> np.ndarray:
        """Lower, estimate, upper of log delta at the losses of these indices; (3, rows)."""
        x = self.lattice.anchor + self.lattice.step * index
        point = self.lattice.anchor + self.lattice.step * (index + 1)
        terms = self.values * np.exp(-1j * (point[:, None] * self.y))
        total = np.real(terms).sum(1)
        reach = np.abs(self.lattice.anchor) + np.abs(self.lattice.step * index)
        phase = 4 * _UNIT * (8 + reach[:, None] * self.y)
        rounding = (self.errors + np.abs(terms) * phase).sum(1)
        scale = self.cumulant - point * self.c
        outside = self.cumulant_error + 4 * _UNIT * (2 + np.abs(self.cumulant) + 2 * reach * self.c)
        with np.errstate(divide="ignore"):
            ends = (
                np.log(np.maximum(total - self.tail - rounding - self._aliases(x, scale), 0))
                - outside,
                np.log(np.maximum(total, 0)),
                np.log(np.maximum(total + self.tail + rounding, 0)) + outside,
            )
        result = np.minimum(scale + np.stack(ends), 0)
        return np.where(self.lattice.ends & (index >= 0), -np.inf, result)

    def _aliases(self, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """The bound on both sides' aliases over exp(scale)."""
        log = self.chernoff_logs - self.chernoff_nodes * x[:, None] - scale[:, None]
        decay = -np.abs(self.chernoff_nodes - self.c[:, None]) * self.period[:, None]
        with np.errstate(over="ignore"):
            bound = np.exp(log + decay) / -np.expm1(decay)
        left = len(_LEFT)
        return bound[:, :left].min(1) + bound[:, left:].min(1)


def find(
    loss: PrivacyLoss, direction: str, lattice: Lattice, too_low: Callable[[Place], np.ndarray]
) -> Place:
    """The largest c that is too low and not settled, to a part in 1000 and a tenth of the width."""
    step, rows = lattice.step, lattice.step.size
    count = sum((n for _, n in loss.terms), np.zeros(rows))
    most = (80 + np.log1p(count)) / step
    log_top = loss.cumulant(most[:, None], direction)[:, 0] - most * lattice.anchor

    def at(c: np.ndarray) -> Place:
        gap = np.minimum(_DIFFERENCE * c, 0.05 / step)
        nodes = c[:, None] + gap[:, None] * np.array([-1, 0, 1])
        below, here, above = np.moveaxis(loss.cumulant(nodes, direction), 1, 0)
        with np.errstate(all="ignore"):
            slope = (above - below) / (2 * gap)
            bend = np.maximum((above - 2 * here + below) / gap**2, 0)
            u, v = step * c, step * (c + 1)
            point = slope - step / np.expm1(u) - step / np.expm1(v)
            bend = bend + (step / 2 / np.sinh(u / 2)) ** 2 + (step / 2 / np.sinh(v / 2)) ** 2
            width = np.minimum(1 / np.sqrt(bend), c)
            kernel = np.log(np.expm1(-step) / np.expm1(-u) / -np.expm1(-v))
            share = np.minimum(step * width / np.sqrt(2 * np.pi), 1)
            log_delta = here - point * c + kernel + np.log(share)
            settled = lattice.ends & (here - c * lattice.anchor - log_top < _SETTLED) & (u > 1)
        return Place(c, point, width, log_delta, settled)

    def grows(c: np.ndarray) -> np.ndarray:
        place = at(c)
        return too_low(place) & ~place.settled

    small = loss.cumulant(np.full((rows, 1), 1e-3), direction)[:, 0]
    high = 1e-3 / np.maximum(np.sqrt(small / 5e-4), 1)  # K(t) is about var t / 2 or less
    low = high * 1e-6
    for _ in range(60):
        grow = grows(high)
        if not grow.any():
            break
        low, high = np.where(grow, high, low), np.where(grow, 4 * high, high)
    for _ in range(60):
        if np.all((high <= low * 1.001) & (high - low <= 0.1 * at(low).width)):
            break
        middle = np.sqrt(low * high)
        up = grows(middle)
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return at(low)


def lines(
    loss: PrivacyLoss, direction: str, lattice: Lattice, place: Place
) -> Iterator[tuple[np.ndarray, Line]]:
    """Lines for groups of rows that are about as long and fit in memory together."""
    if lattice.step.size == 0:
        return
    plan = _plan(loss, direction, lattice, place)
    nodes = plan.nodes
    order = np.argsort(nodes)
    order = order[nodes[order] <= _MOST_NODES]
    start = 0
    while start < len(order):
        longest = nodes[order[start]] * 1.3 + 4
        room = start + max(1, int(_BLOCK // longest))
        rows = order[start:room]
        rows = rows[nodes[rows] <= longest]
        part = Plan(*(value[rows] for value in plan))
        yield rows, _draw(loss.take(rows), direction, Lattice(*(v[rows] for v in lattice)), part)
        start += len(rows)


class Plan(NamedTuple):
    """Lines that will do: c, the number N of nodes in the period, and how many are needed."""

    c: np.ndarray
    in_period: np.ndarray
    nodes: np.ndarray
    chernoff_nodes: np.ndarray
    chernoff_logs: np.ndarray


def _plan(loss: PrivacyLoss, direction: str, lattice: Lattice, place: Place) -> Plan:
    """Enough nodes for aliases and tail below the tolerance, for an answer near the place's."""
    c, width = place.c[:, None], place.width[:, None]
    s = np.concatenate([c * _LEFT, c + width * _RIGHT], 1)
    k = loss.cumulant(np.concatenate([c, s], 1), direction)
    here, k = k[:, :1], k[:, 1:]
    step, left = lattice.step[:, None], len(_LEFT)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = k + log_payoff(s)
        logs = np.where(np.isfinite(logs), logs, np.inf)
        wanted = place.log_delta[:, None] + np.log(_TOLERANCE)
        excess = logs - s * (place.point[:, None] - step) - wanted
        period = np.maximum(excess, 1) / np.abs(s - c)
        period = np.maximum(period[:, :left].min(1), period[:, left:].min(1))
        in_period = 2 * np.ceil(period / lattice.step / 2) + 3  # odd, so that w = pi is no node
    space = 2 * np.pi / (in_period * lattice.step)
    y = np.minimum(np.maximum(width * _ENDS, 2 * space[:, None]), np.pi / step)
    log_tail = _log_tail(loss, direction, lattice, c, y)
    enough = (log_tail <= wanted - here + c * place.point[:, None]) & (y < np.pi / step)
    first = np.where(enough.any(1), enough.argmax(1), y.shape[1] - 1)[:, None]
    end = np.take_along_axis(y, first, 1)[:, 0]
    half = (in_period - 1) / 2
    nodes = np.where(enough.any(1), np.minimum(np.ceil(end / space), half), half) + 1
    return Plan(place.c, in_period, nodes, s, logs)


def _log_tail(
    loss: PrivacyLoss, direction: str, lattice: Lattice, c: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Log of a bound on the integrand from y to the period's end, over exp(K(c) - (x + h) c)."""
    step = lattice.step[:, None]
    total = _log_kernel_bound(c, y, step)
    for leak, count in lattice_releases(loss):
        whole = np.abs(leak.step(direction) - step) <= 16 * _UNIT * step
        decay = leak.log_decay_in_period(c[:, None], y[:, None], direction)
        times = np.where(whole, count, 0)[..., None]
        total = total + np.where(times > 0, times * decay, 0).sum(-2)
    return total


def lattice_releases(loss: PrivacyLoss) -> Iterator[tuple[LatticeLeak, np.ndarray]]:
    """The leaks and counts of a flat loss, with one more axis for the releases of a sum."""
    for total, counts in loss.terms:
        leak, count = releases(total, counts)
        assert isinstance(leak, LatticeLeak)
        yield leak, count


def _log_kernel_bound(c: np.ndarray, y: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Log |g(c + iy)|, which falls in y up to pi / step."""
    u, v, turn = step * c, step * (c + 1), np.sin(np.minimum(y * step, np.pi) / 2) ** 2
    below = np.expm1(-u) ** 2 + 4 * np.exp(-u) * turn, np.expm1(-v) ** 2 + 4 * np.exp(-v) * turn
    return np.log(-np.expm1(-step)) - np.log(below[0]) / 2 - np.log(below[1]) / 2


def _draw(loss: PrivacyLoss, direction: str, lattice: Lattice, plan: Plan) -> Line:
    """Evaluate the loss on as many nodes as the longest of the lines needs."""
    step, n = lattice.step[:, None], plan.in_period[:, None]
    nodes = int(plan.nodes.max())
    j = np.arange(nodes)
    there = j <= (n - 1) / 2
    y = np.where(there, 2 * np.pi * j / (n * step), 0)
    c = plan.c[:, None]
    t = c + 1j * y
    value, error = loss.cumulant_with_error(t, direction)
    at_c, error_at_c = np.real(value[:, 0]), error[:, 0]
    kernel = np.expm1(-step) / np.expm1(-step * t) / -np.expm1(-step * (t + 1))
    weight = np.where(there, np.where(j == 0, 1, 2) / n, 0) * kernel
    falls = np.real(value) - at_c[:, None]
    values = np.exp(falls + 1j * np.imag(value)) * weight
    # (1 + e)^count - 1 would overflow, without harm, where a value is lost in its own rounding
    size = np.exp(falls + np.maximum(error - 1, 0)) * np.abs(weight)
    errors = size * np.expm1(np.minimum(error, 1)) * np.where(error > 1, np.e, 1)
    errors = errors + 32 * _UNIT * np.abs(values)
    full = nodes > (n[:, 0] - 1) / 2
    first = np.where(full, 0, 2 * np.pi * nodes / (n * step)[:, 0])[:, None]
    log_tail = _log_tail(loss, direction, lattice, c, first)[:, 0]
    share = np.maximum(1 - (2 * nodes - 1) / n[:, 0], 0)
    tail = np.where(full, 0, share * np.exp(log_tail))
    return Line(
        lattice,
        plan.c,
        y,
        (n * step)[:, 0],
        at_c,
        error_at_c,
        values,
        errors,
        tail,
        plan.chernoff_nodes,
        plan.chernoff_logs,
    )
