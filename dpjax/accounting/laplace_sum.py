"""delta(epsilon) of k equal Laplace releases as a finite sum of positive terms.

With e0 = 1/noise_multiplier one loss is L = e0 (2 S - 1), where S is 0, or 1, or lies between.
Under P these weigh exp(e0 S - e0) / 2 times the measure

    [0] + [1] + e0 Uniform(0, 1),

and under Q exp(-e0 S) / 2 times the same. So k releases, of which i have S = 1 and j lie between,
give, with Y_j the sum of j uniform numbers, s = (epsilon / e0 + k) / 2 and a = s - i,

    delta(epsilon) = 2^(1-k) exp((epsilon - k e0) / 2) sum over i, j of
                     k! / (i! j! (k-i-j)!) e0^j E[sinh(e0 (Y_j - a))_+].

Nothing cancels. For a <= 0 the expectation is (sinh(e0/2) / (e0/2))^j sinh(e0 (j/2 - a)). For
0 < a < j it is an integral against the density b_j of Y_j, a polynomial of degree j - 1 on each
unit interval, which the recurrence (Schoenberg 1946)

    b_j(y) = (y b_{j-1}(y) + (j - y) b_{j-1}(y - 1)) / (j - 1)

gives from positive numbers. Gauss's rule with n nodes is exact up to degree 2n - 1, so on an
interval it errs by at most 2 int b_j times the error of the best polynomial of degree 2n - j for
exp(+-e0 y). At degree d = 12 + 2 e0 that is below (e0/4)^(d+1) / (d+1)! < 1e-19 of it. Terms with
j > J or i > I are at most P(more than J between) + P(more than I with S = 1), which is part of the
error given.

The sum is short where the integral of `contour` is long: where few of the k losses lie between.
"""

from functools import cache

import numpy as np
from scipy import special

MOST_BETWEEN = 250
"""The largest J: beyond, the integral along a line serves, and b_j might underflow."""

LARGEST_EPSILON = 300.0
"""The largest e0, so that Gauss's rule has few nodes and exp(e0) is a float."""

_MOST_TERMS = 4e6
_LEVEL = 16.0  # e0 up to which the integrands spread over their interval
_LOG_FLOOR = -90.0  # of what is left out at first; less where delta is tiny
_MARGIN = 40.0  # and how far it must lie below delta, in logs


def applies(pure_epsilon: float, count: int) -> bool:
    """Whether the sum is short enough to be worth it."""
    if not 0 < pure_epsilon <= LARGEST_EPSILON:
        return False
    between = _most_between(pure_epsilon, count, _LOG_FLOOR)
    ups = _last_up(count, _LOG_FLOOR) - count // 2
    return between <= MOST_BETWEEN and (between + 1) * ups <= _MOST_TERMS


def log_delta(pure_epsilon: float, count: int, epsilon: float) -> tuple[float, float]:
    """Log delta and a bound on its absolute error.

    Args:
        pure_epsilon: e0, where `applies` says so.
        count: k, at least 1.
        epsilon: at least 0 and below k e0.
    """
    log_floor = _LOG_FLOOR
    while True:
        last = _most_between(pure_epsilon, count, log_floor)
        value = _log_sum(pure_epsilon, count, epsilon, last, _last_up(count, log_floor))
        if value - _MARGIN >= log_floor or last >= MOST_BETWEEN or log_floor <= -744:
            break
        log_floor = max(value - _MARGIN - 1, -744.0)
    size = special.gammaln(count + 1.0) + count * (1 + pure_epsilon)
    rounding = 1e-15 * (size + last + 100)
    # s and a are off by roundings, as if epsilon were by some of e0
    rounding += 1e-15 * pure_epsilon * (1 + count / (count * pure_epsilon - epsilon))
    if pure_epsilon > _LEVEL:  # near the ends Gauss's weights err by some units times nodes^2
        rounding += 4e-15 * _nodes(pure_epsilon, last) ** 2
    left_out = np.logaddexp(_log_more_between(pure_epsilon, count, last), log_floor)
    return value, float(np.logaddexp(value, left_out) - value + rounding)


def _log_sum(pure_epsilon: float, count: int, epsilon: float, last: int, last_up: int) -> float:
    """Log of the sum over j up to `last` and i up to `last_up`."""
    below = (count * pure_epsilon - epsilon) / (2 * pure_epsilon)  # k - s
    whole = int(np.ceil(below))
    first, offset = count - whole, whole - below  # the i at which 0 <= a = offset < 1
    scale = np.log(2) * (1 - count) + (epsilon - count * pure_epsilon) / 2
    density = _Density(offset, _nodes(pure_epsilon, last))
    logs = []
    for j in range(last + 1):
        log_weight = scale + j * np.log(pure_epsilon)
        up = np.arange(first + (offset > 0), min(count - j, last_up) + 1)  # a <= 0
        log_mean = j * _log_mean_exp(pure_epsilon)
        log_mean = log_mean + _log_sinh(pure_epsilon * (j / 2 - offset + (up - first)))
        logs.append(log_weight + log_mean + _log_ways(count, up, j))
        if j > 0:
            density.add_uniform(j)
            up = first - np.arange(j)  # a = offset, offset + 1, ..., all below j
            inside = (up >= 0) & (up <= count - j) & (offset + np.arange(j) > 0)
            log_mean = density.log_mean_sinh(pure_epsilon, j)
            logs.append((log_weight + log_mean)[inside] + _log_ways(count, up[inside], j))
    return float(np.asarray(special.logsumexp(np.concatenate(logs))))


def _nodes(e0: float, last: int) -> int:
    """Nodes of Gauss's rule for densities of up to `last` uniform numbers."""
    return (last + 12 + int(np.ceil(2 * e0))) // 2 + 1


class _Density:
    """The density of a sum of uniform numbers at nodes in each interval offset + (m, m + 1)."""

    def __init__(self, offset: float, nodes: int):
        x, weight = _gauss(nodes)
        left, right = 1 - offset, offset  # an interval is cut where the density has a knot
        self.at = np.concatenate([left * x, left + right * x])  # nodes, from its lower end
        self.weight = np.concatenate([left * weight, right * weight])
        self.offset = offset
        self.rows = np.zeros((1, self.at.size))  # m = -1, 0, 1, ...

    def add_uniform(self, j: int) -> None:
        """From j - 1 uniform numbers to j."""
        y = self.offset + np.arange(-1, j)[:, None] + self.at
        if j == 1:
            self.rows = ((y >= 0) & (y < 1)).astype(float)
            return
        none = np.zeros((1, self.at.size))
        here, before = np.vstack([self.rows, none]), np.vstack([none, self.rows])
        self.rows = (np.maximum(y, 0) * here + np.maximum(j - y, 0) * before) / (j - 1)

    def log_mean_sinh(self, e0: float, j: int) -> np.ndarray:
        """Log E[sinh(e0 (Y_j - a))_+] for a = offset + n, n = 0, ..., j - 1."""
        # Everything is in units of exp(e0 (j - a)), so that nothing overflows.
        fall = np.expm1(-2 * e0 * self.at)
        grow = self.weight * np.exp(e0 * (self.at - 1)) / 2
        sinh, cosh = self.rows[1:] @ (grow * -fall), self.rows[1:] @ (grow * (2 + fall))
        step_sinh, step_cosh = -np.expm1(-2 * e0) / 2, (1 + np.exp(-2 * e0)) / 2
        result = np.empty(j)
        mean_sinh = mean_cosh = 0.0
        for n in range(j - 1, -1, -1):  # sinh and cosh of a sum, a whole interval further away
            unit = np.exp(e0 * (self.offset - (j - 1 - n)))
            mean_sinh, mean_cosh = (
                step_cosh * mean_sinh + step_sinh * mean_cosh + sinh[n] * unit,
                step_sinh * mean_sinh + step_cosh * mean_cosh + cosh[n] * unit,
            )
            result[n] = mean_sinh
        with np.errstate(divide="ignore"):
            return np.log(result) + e0 * (j - np.arange(j) - self.offset)


@cache
def _gauss(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1)."""
    x, weight = special.roots_legendre(nodes)
    return (1 + x) / 2, weight / 2


def _log_ways(count: int, up: np.ndarray, between: int) -> np.ndarray:
    """Log of k! / (i! j! (k-i-j)!)."""
    down = count - between - up
    total, rest = special.gammaln(count + 1.0), special.gammaln(between + 1.0)
    return total - rest - special.gammaln(up + 1.0) - special.gammaln(down + 1.0)


def _log_mean_exp(e0: float) -> float:
    """Log of E[exp(e0 (U - 1/2))] = log(sinh(e0/2) / (e0/2))."""
    return e0 / 2 + np.log(-np.expm1(-e0) / e0)


def _log_sinh(x: np.ndarray) -> np.ndarray:
    """Log sinh of x >= 0."""
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-2 * x)) - np.log(2)


def _log_more_between(e0: float, count: int, between: int) -> float:
    """Log of P(more than so many of k lie between)."""
    if between >= count:
        return -np.inf
    with np.errstate(divide="ignore"):
        return float(np.log(special.bdtrc(between, count, -np.expm1(-e0) / 2)))


def _most_between(e0: float, count: int, log_floor: float) -> int:
    """J: the least with P(more than J between) below exp(log_floor), or the end of the search."""
    low, high = -1, min(count, MOST_BETWEEN + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if _log_more_between(e0, count, middle) <= log_floor:
            high = middle
        else:
            low = middle
    return high


def _last_up(count: int, log_floor: float) -> int:
    """I: by Hoeffding's bound P(more than I with S = 1) is below exp(log_floor)."""
    return min(count, count // 2 + 1 + int(np.sqrt(-log_floor / 2 * count)))
