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

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpjax.accounting._saddle import Saddle, log_payoff
from dpjax.accounting.loss import PrivacyLoss

_TOLERANCE = 1e-12  # aliases and tail, each, relative to the answer as first estimated
_ROUNDING = 4 * np.finfo(float).eps
_RIGHT = np.array([0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24])  # steps of s in units of the line's width
_LEFT = np.array([0, 0.2, 0.4, 0.55, 0.7, 0.8, 0.85, 0.9])  # values of s in units of the saddle
_LEFTWARD = (1, 0.85, 0.7, 0.55, 0.4)  # lines tried, in units of the saddle
_ENDS = 2.0 ** (np.arange(4, 160).reshape(-1, 12) / 4)  # of the line tried, in units of its width
_MAX_NEWTON = 50
_SETTLED = 1e-3  # of the bracket: nearer, the estimate need not be found
_WIDENINGS = 1.1 * 2.0 ** np.array([0, 1, 2, 4, 8, 16, 32])  # of the steps to the ends


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
        total, slope = self._sums(epsilon)
        scale = self.cumulant - epsilon * self.c
        size, size_y, wrong = self._sizes
        units = 8 + self._blocks.shape[1] / 2  # of the sum and of exp(-i epsilon y)
        rounding = wrong + _ROUNDING * (units * size + np.abs(epsilon) * size_y)
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

    @cached_property
    def _blocks(self) -> np.ndarray:
        """The values as square blocks, (rows, a, b): node n is n = a b + b', filled up with 0."""
        rows, nodes = self.values.shape
        side = int(np.ceil(np.sqrt(nodes)))
        filled = np.zeros((rows, side * side), complex)
        filled[:, :nodes] = self.values
        return filled.reshape(rows, side, side)

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums of |value|, of |value| y, and of the values' errors; (rows,) each."""
        size = np.abs(self.values)
        y = self.step[:, None] * np.arange(size.shape[1])
        return size.sum(1), (size * y).sum(1), self.errors.sum(1)

    def _sums(self, epsilon: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Re sum of value exp(-i epsilon y), and the slope of exp(-epsilon c) times it, over that.

        With n = a b + b' the exponential is a product: two short vectors, and a matrix between.
        """
        side = self._blocks.shape[1]
        n = np.arange(side)
        angle = (-1j * epsilon * self.step)[:, None]
        near, far = np.exp(angle * n), np.exp(angle * (side * n))
        sides = np.stack([far, side * n * far], 1)
        mid = np.einsum("rka,rab->rkb", sides, self._blocks)  # not matmul, which starts threads
        total, far_y = np.einsum("rkb,rb->kr", mid, near)
        near_y = (mid[:, 0] * (n * near)).sum(1)
        slope = self.c * total + 1j * self.step * (far_y + near_y)
        return np.real(total), -np.real(slope)

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
        logs = k + log_payoff(s)
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
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        last = loss.log_decay(c, most[:, None], direction) - np.log(np.pi * most[:, None])
    todo = np.flatnonzero((last <= room)[:, 0])  # of the others no end will do
    for ends in _ENDS:
        if not todo.size:
            break
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
        least, value, most, slope = line.log_delta(epsilon)
        below = value > log_delta
        low, high = np.where(below, epsilon, low), np.where(below, high, epsilon)
        with np.errstate(invalid="ignore", divide="ignore"):
            change = (log_delta - value) / slope
            known = _SETTLED * np.fmin(np.abs((most - least) / slope), 1 / line.c)
        newton = epsilon + np.clip(change, -4 / line.c - epsilon / 2, 4 / line.c + epsilon)
        close = np.maximum(1e-14 * epsilon, known)
        settled = np.abs(change) <= close
        safe = settled | ((newton > low) & (newton < high))
        before = epsilon
        epsilon = np.where(safe, newton, np.where(np.isfinite(high), (low + high) / 2, epsilon))
        if np.all(settled | (np.abs(epsilon - before) <= close)):
            break
    epsilon = np.maximum(epsilon, 0)
    low, value, high, slope = line.log_delta(epsilon)
    with np.errstate(invalid="ignore", divide="ignore"):
        steepness = np.where(np.isfinite(1 / slope), np.abs(1 / slope), 1 / line.c)
    up, down = epsilon, epsilon
    rise = np.where(np.isfinite(high - value), high - value, 1) * steepness
    drop = np.where(np.isfinite(value - low), value - low, 1) * steepness
    upper, lower = np.full_like(epsilon, np.inf), np.zeros_like(epsilon)
    for widen in _WIDENINGS:
        spare = 4e-16 * epsilon
        up = np.where(np.isinf(upper), epsilon + widen * (rise + spare), up)
        down = np.where(lower == 0, np.maximum(epsilon - widen * (drop + spare), 0), down)
        upper = np.where(np.isinf(upper) & (line.log_delta(up)[2] <= log_delta), up, upper)
        lower = np.where((lower == 0) & (line.log_delta(down)[0] >= log_delta), down, lower)
        if np.all(np.isfinite(upper) & ((lower > 0) | (down == 0))):
            break
    upper = np.where((line.log_delta(np.zeros_like(epsilon))[2] <= log_delta), 0, upper)
    return np.minimum(lower, upper), np.clip(epsilon, np.minimum(lower, upper), upper), upper
