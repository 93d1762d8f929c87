"""delta(epsilon) of a composition by one integral along a line, with a proven bracket.

With K the cumulant of the total loss L under P, and any c > 0,

    delta(epsilon) = E[(1 - exp(epsilon - L))_+]
                   = (1 / 2 pi i) int exp(K(t) - epsilon t) / (t (t + 1)) dt   over t = c + iy,

since 1 / (t (t + 1)) is the transform of the payoff. Summed on the nodes y = n h instead of
integrated, Poisson's summation formula gives exactly, with T = 2 pi / h,

    S = sum over all m of delta(epsilon + m T) exp(c m T),

whose term m = 0 is the answer and whose others, the aliases, are positive: delta <= S. By
Chernoff's bound, for every s > 0,

    delta(x) <= a(s) exp(K(s) - s x),    a(s) = s^s / (1 + s)^(1 + s),

so the aliases are at most two geometric series, with some s > c for m > 0 and some s < c for m < 0.
The nodes beyond n = N add at most exp(K(c) - epsilon c) D(N h) / (pi N h), with D the proven decay
of the loss along the line (`log_decay`). What rounding can do is added from the errors that the
cumulants state. These three make the bracket. T and N are chosen to keep the first two below 1e-12
of the answer, and c near the saddle, where nothing cancels; the choices steer the bracket's width
and not its truth.

All arrays are flat: one row a composition.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpjax.accounting.loss import PrivacyLoss

_TOLERANCE = 1e-12  # aliases and tail, each, relative to the answer as first estimated
_ROUNDING = 4 * np.finfo(float).eps
_RIGHT = np.array([0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24])  # steps of s in units of the line's width
_LEFT = np.array([0, 0.2, 0.4, 0.55, 0.7, 0.8, 0.85, 0.9])  # values of s in units of the saddle
_LEFTWARD = (1, 0.85, 0.7, 0.55, 0.4)  # lines tried, in units of the saddle
_ENDS = 2.0 ** (np.arange(4, 160).reshape(-1, 12) / 4)  # of the line tried, in units of its width
_DIFFERENCE = 3e-3  # relative step of the numerical derivatives, which only steer
_STENCIL = 1 + _DIFFERENCE * np.array([-1, 0, 1])
_NEAR = 2.0 ** (np.arange(-12, 5) / 4)  # places of Chernoff's bound, in units of the saddle
_HIGH = 10.0  # c from which on the search for a saddle starts no higher
_CLOSE, _LEAP, _FAR = 1e-6, np.log(16), 80.0  # its least step in log c, its largest, and its range
_MAX_TURNS = 100
_MAX_NEWTON = 50
_MAX_WIDENINGS = 40


@dataclass(frozen=True, eq=False)
class Plan:
    """Lines that will do, one row a composition: fields as in `Line`, and the nodes each needs.

    `nodes` is infinite where the line would be too long.
    """

    c: np.ndarray
    step: np.ndarray
    nodes: np.ndarray
    tail: np.ndarray
    chernoff_nodes: np.ndarray
    chernoff_logs: np.ndarray


@dataclass(frozen=True, eq=False)
class Line:
    """A line of nodes with the loss evaluated on it, one row a composition.

    Attributes:
        c: Where the line crosses the real axis; (rows,).
        step: Spacing h of the nodes; (rows,).
        cumulant: K(c), with its error bound; (rows,).
        values: exp(K(t) - K(c)) / (t (t + 1)) h / pi, halved at y = 0; (rows, nodes).
        errors: Bound on the error of each value; (rows, nodes).
        tail: Bound on the left-out nodes over exp(K(c) - epsilon c); (rows,).
        chernoff_nodes: The s of the alias bounds; (rows, s).
        chernoff_logs: log a(s) + K(s); (rows, s).
    """

    c: np.ndarray
    step: np.ndarray
    cumulant: np.ndarray
    cumulant_error: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    tail: np.ndarray
    chernoff_nodes: np.ndarray
    chernoff_logs: np.ndarray

    def log_delta(
        self, epsilon: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(lower, estimate, upper) of log delta(epsilon), and the estimate's slope in epsilon."""
        nodes = self.values.shape[1]
        y = self.step[:, None] * np.arange(nodes)
        terms = self.values * np.exp(-1j * epsilon[:, None] * y)
        total = np.real(terms).sum(1)
        slope = -np.real((self.c[:, None] + 1j * y) * terms).sum(1)
        scale = self.cumulant - epsilon * self.c
        phase = _ROUNDING * (8 + np.abs(epsilon)[:, None] * y)
        rounding = (self.errors + np.abs(terms) * phase).sum(1)
        upper = total + self.tail + rounding
        lower = total - self.tail - rounding - self._aliases(epsilon, scale)
        outside = self.cumulant_error + _ROUNDING * (
            2 + np.abs(self.cumulant) + 2 * np.abs(epsilon * self.c)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return (
                scale - outside + np.log(np.maximum(lower, 0)),
                scale + np.log(np.maximum(total, 0)),
                np.minimum(scale + outside + np.log(np.maximum(upper, 0)), 0),
                slope / total,
            )

    def _aliases(self, epsilon: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """The bound on both sides' aliases over exp(K(c) - epsilon c)."""
        period = 2 * np.pi / self.step
        log = self.chernoff_logs - self.chernoff_nodes * epsilon[:, None] - scale[:, None]
        side = self.chernoff_nodes - self.c[:, None]
        decay = -np.abs(side) * period[:, None]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            bound = np.exp(log + decay) / -np.expm1(decay)
        left, right = (np.where(sign * side > 0, bound, np.inf).min(1) for sign in (-1, 1))
        return left + right


class Saddle(NamedTuple):
    """Where a line should cross the real axis, the peak's width, and rough answers there."""

    c: np.ndarray
    epsilon: np.ndarray
    width: np.ndarray
    log_delta: np.ndarray


def saddle_for_delta(loss: PrivacyLoss, direction: str, log_delta: np.ndarray) -> Saddle:
    """The saddle where log delta is about the wanted one."""

    def step(at: Saddle, rows: np.ndarray) -> np.ndarray:
        # log delta falls about as a power of c, with the slope -c^2 / width^2 in log c
        steepness = (at.c / at.width) ** 2 / -at.log_delta
        newton = np.log(at.log_delta / log_delta[rows]) / steepness
        return np.where(at.log_delta > np.maximum(log_delta[rows], -1), -_LEAP, newton)

    return _find(loss, direction, step, lambda mu: np.sqrt(-2 * log_delta) / mu)


def saddle_for_epsilon(loss: PrivacyLoss, direction: str, epsilon: np.ndarray) -> Saddle:
    """The saddle of K(t) - epsilon t - log t(t+1) for a wanted epsilon, below the largest loss."""

    def step(at: Saddle, rows: np.ndarray) -> np.ndarray:
        newton = (at.epsilon - epsilon[rows]) * at.width**2 / at.c
        return np.where(at.epsilon < np.minimum(epsilon[rows], -1), -_LEAP, newton)

    found = _find(loss, direction, step, lambda mu: epsilon / mu**2 + 1 / mu)
    return found._replace(epsilon=epsilon)


@np.errstate(all="ignore")  # overflow to infinity, and NaN from there, are too high a c
def _find(
    loss: PrivacyLoss,
    direction: str,
    step: Callable[[Saddle, np.ndarray], np.ndarray],
    of_gaussian: Callable[[np.ndarray], np.ndarray],
) -> Saddle:
    """A c that is too low, where `step` is below 0, by a tenth of the peak's width at most.

    The steps are Newton's, down in log c, from the c of a Gaussian loss of the same variance.
    """
    rows = loss.shape[0]
    small = loss.cumulant(np.full((rows, 1), 1e-3), direction)[:, 0]
    start = of_gaussian(np.sqrt(2e3 * np.maximum(small, 0)))
    log_c = np.log(np.clip(np.nan_to_num(start, nan=_HIGH), 1e-12, _HIGH))
    low, high = np.full(rows, -np.inf), np.full(rows, np.inf)
    best = Saddle(*np.full((4, rows), np.nan))
    todo = np.arange(rows)
    for turn in range(_MAX_TURNS):
        part = loss if todo.size == rows else loss.take(todo)
        here = log_c[todo]
        found = _saddle(part, direction, np.exp(here))
        down = np.nan_to_num(step(found, todo), nan=np.inf)
        is_low = down < 0
        for kept, value in zip(best, found, strict=True):
            kept[todo[is_low]] = value[is_low]
        low[todo], high[todo] = (
            np.where(is_low, here, low[todo]),
            np.where(is_low, high[todo], here),
        )
        close = np.maximum(np.nan_to_num(0.1 * found.width / found.c), _CLOSE)
        # a step beyond the root from above shows that it is there
        newton = here - np.clip(down + np.where(is_low, 0, close / 3), -_LEAP, _LEAP)
        middle = (low[todo] + high[todo]) / 2
        inside = (newton > low[todo]) & (newton < high[todo])
        log_c[todo] = np.where(inside & (turn < 12 or turn % 2) | np.isinf(middle), newton, middle)
        near = is_low & (down > -close) & inside
        todo = todo[~near & (high[todo] - low[todo] > close) & (np.abs(log_c[todo]) < _FAR)]
        if not todo.size:
            break
    return best


def _saddle(loss: PrivacyLoss, direction: str, c: np.ndarray) -> Saddle:
    """What the line through c would say, by differences of K."""
    below, here, above = np.moveaxis(loss.cumulant(c[:, None] * _STENCIL, direction), 1, 0)
    slope = (above - below) / (2 * _DIFFERENCE * c)
    bend = np.maximum((above - 2 * here + below) / (_DIFFERENCE * c) ** 2, 0)
    epsilon = slope - 1 / c - 1 / (1 + c)
    width = 1 / np.sqrt(bend + c**-2.0 + (1 + c) ** -2.0)
    log_delta = here - epsilon * c + np.log(width / (c * (1 + c)) / np.sqrt(2 * np.pi))
    return Saddle(c, epsilon, width, log_delta)


def chernoff_epsilon(
    loss: PrivacyLoss, direction: str, log_delta: np.ndarray, saddle: Saddle
) -> np.ndarray:
    """A bound on epsilon: the least (K(s) + log a(s) - log delta) / s for s near the saddle."""
    s = saddle.c[:, None] * _NEAR
    logs = loss.cumulant(s, direction) + s * np.log(s / (1 + s)) - np.log1p(s)
    bound = (logs - log_delta[:, None]) / s
    return np.maximum(np.nanmin(np.where(np.isnan(bound), np.inf, bound), 1), 0) * (1 + 1e-12)


def chernoff_log_delta(
    loss: PrivacyLoss, direction: str, epsilon: np.ndarray, saddle: Saddle
) -> np.ndarray:
    """A bound on log delta: the least log a(s) + K(s) - s epsilon for s near the saddle."""
    s = saddle.c[:, None] * _NEAR
    logs = loss.cumulant(s, direction) + s * np.log(s / (1 + s)) - np.log1p(s)
    bound = logs - s * epsilon[:, None]
    bound = bound + 1e-12 * (1 + np.abs(logs) + np.abs(s * epsilon[:, None]))
    return np.minimum(np.min(np.where(np.isnan(bound), np.inf, bound), 1), 0)


def plan(loss: PrivacyLoss, direction: str, log_delta: np.ndarray, saddle: Saddle) -> Plan:
    """The line that needs the widest steps among some that cross at or left of the saddle.

    Where K bends up sharply just right of the saddle, a line further left has far smaller aliases.
    """
    width = saddle.width[:, None]
    s = np.concatenate([saddle.c[:, None] * _LEFT, saddle.c[:, None] + width * _RIGHT], 1)
    lines = saddle.c[:, None] * np.array(_LEFTWARD[::-1])
    k = loss.cumulant(np.concatenate([s[:, : len(_LEFT)], lines, s[:, len(_LEFT) :]], 1), direction)
    here = k[:, len(_LEFT) : len(_LEFT) + len(_LEFTWARD)]
    k = np.delete(k, np.s_[len(_LEFT) : len(_LEFT) + len(_LEFTWARD)], 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = k + np.where(s > 0, s * np.log(s / (1 + s)), 0) - np.log1p(s)
        logs = np.where(np.isfinite(logs), logs, np.inf)
        wanted = log_delta[:, None] + np.log(_TOLERANCE)
        excess = np.maximum(logs - s * saddle.epsilon[:, None] - wanted, 1)[:, None]
        gap = s[:, None] - lines[:, :, None]
        left = np.where(gap < -1e-3 * lines[:, :, None], excess / -gap, np.inf).min(2)
        right = np.where(gap > 0, excess / gap, np.inf).min(2)
        # the peak's height over the answer lengthens the line, and brings rounding
        period = np.maximum(left, right)
        height = here - lines * saddle.epsilon[:, None] - log_delta[:, None]
    best = np.argmin(np.where(np.isnan(height), np.inf, period * np.sqrt(50 + height)), 1)[:, None]
    c, here, period = (np.take_along_axis(v, best, 1) for v in (lines, here, period))
    step = 2 * np.pi / period
    with np.errstate(invalid="ignore"):
        room = wanted - here + c * saddle.epsilon[:, None]
    most = min(leak.max_nodes for leak, _ in loss.terms)
    end, tail = _end(loss, direction, c, width, 4 * step, most * step[:, 0], room)
    with np.errstate(divide="ignore", invalid="ignore"):
        nodes = np.where((step > 0)[:, 0], np.ceil(end / step[:, 0]) + 1, np.inf)
        nodes = np.where(nodes <= most, nodes, np.inf)
    return Plan(c[:, 0], step[:, 0], nodes, tail, s, logs)


def _end(
    loss: PrivacyLoss,
    direction: str,
    c: np.ndarray,
    width: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    room: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Where lines may end, infinite if not before `most`, and the bound on what is left out."""
    end, tail = np.full(len(c), np.inf), np.zeros(len(c))
    todo = np.arange(len(c))
    for ends in _ENDS:
        y = np.maximum(width[todo] * ends, least[todo])
        part = loss if todo.size == len(c) else loss.take(todo)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_tail = part.log_decay(c[todo], y, direction) - np.log(np.pi * y)
            enough = log_tail <= room[todo]
        found = enough.any(1)
        first = enough.argmax(1)[:, None]
        rows = todo[found]
        end[rows] = np.take_along_axis(y, first, 1)[found, 0]
        tail[rows] = np.exp(np.take_along_axis(log_tail, first, 1)[found, 0])
        todo = todo[~found & (y[:, -1] < most[todo])]
        if not todo.size:
            break
    return end, tail


def draw(loss: PrivacyLoss, direction: str, plan: Plan) -> Line:
    """Evaluate the loss on the nodes of the longest of the lines."""
    nodes = int(plan.nodes.max())
    t = plan.c[:, None] + 1j * (plan.step[:, None] * np.arange(nodes))
    value, error = loss.cumulant_with_error(t, direction)
    weight = np.full(nodes, 1 / np.pi)
    weight[0] /= 2
    weight = weight * plan.step[:, None] / (t * (t + 1))
    values = np.exp(value - np.real(value[:, :1])) * weight
    # (1 + e)^count - 1 would overflow, without harm, where a value is lost in its own rounding
    size = np.exp(np.real(value) - np.real(value[:, :1]) + np.maximum(error - 1, 0)) * np.abs(
        weight
    )
    errors = size * np.expm1(np.minimum(error, 1)) * np.where(error > 1, np.e, 1)
    return Line(
        plan.c,
        plan.step,
        np.real(value[:, 0]),
        error[:, 0],
        values,
        errors,
        plan.tail,
        plan.chernoff_nodes,
        plan.chernoff_logs,
    )


def solve(
    line: Line, log_delta: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(lower, estimate, upper) of the epsilon, 0 included, at which delta falls to the wanted one.

    An end counts only once the line has shown it: the upper end has upper(delta) <= delta there,
    the lower one lower(delta) >= delta, or they stay at infinity and 0.
    """
    epsilon = np.maximum(start, 0)
    low, high = np.zeros_like(epsilon), np.full_like(epsilon, np.inf)  # of the estimate
    for _ in range(_MAX_NEWTON):
        _, value, _, slope = line.log_delta(epsilon)
        below = value > log_delta
        low, high = np.where(below, epsilon, low), np.where(below, high, epsilon)
        with np.errstate(invalid="ignore", divide="ignore"):
            change = (log_delta - value) / slope
        newton = epsilon + np.clip(change, -4 / line.c - epsilon / 2, 4 / line.c + epsilon)
        settled = np.abs(change) <= 1e-14 * epsilon
        safe = settled | ((newton > low) & (newton < high))
        before = epsilon
        epsilon = np.where(safe, newton, np.where(np.isfinite(high), (low + high) / 2, epsilon))
        if np.all(settled | (np.abs(epsilon - before) <= 1e-14 * epsilon)):
            break
    low, value, high, slope = line.log_delta(epsilon)
    with np.errstate(invalid="ignore", divide="ignore"):
        steepness = np.where(np.isfinite(1 / slope), np.abs(1 / slope), 1 / line.c)
    up, down = epsilon, epsilon
    rise = np.where(np.isfinite(high - value), high - value, 1) * steepness
    drop = np.where(np.isfinite(value - low), value - low, 1) * steepness
    upper, lower = np.full_like(epsilon, np.inf), np.zeros_like(epsilon)
    for widen in 1.1 * 2.0 ** np.arange(_MAX_WIDENINGS):
        spare = 4e-16 * epsilon
        up = np.where(np.isinf(upper), epsilon + widen * (rise + spare), up)
        down = np.where(lower == 0, np.maximum(epsilon - widen * (drop + spare), 0), down)
        upper = np.where(np.isinf(upper) & (line.log_delta(up)[2] <= log_delta), up, upper)
        lower = np.where((lower == 0) & (line.log_delta(down)[0] >= log_delta), down, lower)
        if np.all(np.isfinite(upper) & ((lower > 0) | (down == 0))):
            break
    upper = np.where((line.log_delta(np.zeros_like(epsilon))[2] <= log_delta), 0, upper)
    return np.minimum(lower, upper), np.clip(epsilon, np.minimum(lower, upper), upper), upper
