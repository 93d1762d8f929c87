"""delta(epsilon) of k equal Laplace releases as a finite sum of positive terms.

With e0 = 1/noise_multiplier one loss is L = e0 (2 S - 1), where S is 0, or 1, or lies between.
Under P, tilted by exp(t L) with any t >= 0, these weigh, with lambda = (2 t + 1) e0, in proportion

    [1] + exp(-lambda) [0] + m Exp(0, 1),    m = e0 (1 - exp(-lambda)) / lambda,

where Exp has the density exp(-lambda (1 - S)) lambda / (1 - exp(-lambda)) on (0, 1). So k releases
have d with S = 0 and j between with multinomial probabilities p(j, d). With Z_j the sum of j such
numbers, and a = (epsilon / e0 + k) / 2 - (k - j - d) what it has to exceed,

    delta(epsilon) = exp(K(t) - t epsilon) sum over j, d of p(j, d) E[h(Z_j - a); Z_j > a],
    h(z) = exp(-2 t e0 z) (1 - exp(-2 e0 z)),
    K(t) - t epsilon = k log(1 - t (1 - exp(-lambda)) / (2 t + 1)) + t (k e0 - epsilon).

Nothing cancels: the logarithm is that of (1 + exp(-lambda) + m) / 2. For a <= 0 the expectation is
a difference of two exponentials. For 0 < a < j it is an integral against the density of Z_j, which
is a polynomial of degree j - 1 times an exponential on each unit interval, and which the recurrence
(Schoenberg 1946, for lambda = 0)

    b_j(y) = (exp(-lambda) y b_{j-1}(y) + (j - y) b_{j-1}(y - 1)) c / (j - 1),
    c = lambda / (1 - exp(-lambda)),

gives from positive numbers. In the integrand the exponentials leave exp(+-e0 y), so that Gauss's
rule with n nodes, exact up to degree 2n - 1, errs on an interval by at most twice the error of the
best polynomial of degree 2n - j for it. At degree d = 12 + 2 e0 that is (e0/4)^(d+1) / (d+1)! and
below 1e-17 of the integral.

Only j and d near their means are summed: by Chernoff's bound for binomials each of the four tails
left out has at most the probability exp(-42), and h is at most t^t / (1 + t)^(1 + t). With t near
the saddle of exp(K(t) - t epsilon) that is nothing beside the sum; any other t is as true.

The sum is short where the integral of `contour` is long: where few of the k losses lie between.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import special

MOST_BETWEEN = 250
"""The largest j: beyond, the integral along a line serves."""

LARGEST_EPSILON = 300.0
"""The largest e0, so that Gauss's rule has few nodes."""

_MOST_TERMS = 4e6
_LEVEL = 16.0  # e0 up to which the integrands spread over their interval
_LOG_TAIL = 42.0  # -log of the probability of each tail left out
_UNIT = np.finfo(float).eps / 2


def mean_between(pure_epsilon: np.ndarray, count: np.ndarray) -> np.ndarray:
    """How many of the losses lie between under P; tilted they are fewer."""
    return count * -np.expm1(-pure_epsilon) / 2


def applies(pure_epsilon: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Whether the sum is short enough, by Bernstein's and Hoeffding's bounds on its ranges."""
    mean = mean_between(pure_epsilon, count)
    between = mean + _LOG_TAIL / 3 + np.sqrt(_LOG_TAIL**2 / 9 + 2 * _LOG_TAIL * mean)
    between = np.minimum(between, count) + 1
    downs = np.minimum(np.sqrt(2 * _LOG_TAIL * count), count) + 1
    short = (between <= MOST_BETWEEN) & (between * downs <= _MOST_TERMS)
    return short & (pure_epsilon > 0) & (pure_epsilon <= LARGEST_EPSILON)


class LaplaceSum:
    """The terms of one composition at one tilt, from which log delta follows at any epsilon."""

    def __init__(self, pure_epsilon: float, count: int, tilt: float):
        """Weigh the terms.

        Args:
            pure_epsilon: e0, where `applies` says so.
            count: k, at least 1.
            tilt: t, at least 0. Near the saddle of the epsilon asked for the error is least.
        """
        e0 = pure_epsilon
        rate = 2 * tilt * e0
        total = rate + e0  # lambda
        down, between = np.exp(-total), e0 * -np.expm1(-total) / total
        whole = 1 + down + between
        first, last = _range(count, between / whole)
        least, most = _range(count, down / whole)
        self.pure_epsilon, self.count, self.rate, self.total = e0, count, rate, total
        self.between = np.arange(first, last + 1)  # the j
        self.least = least  # the first d
        self.log_norm = count * float(np.log1p(np.expm1(-total) * rate / (2 * total)))
        log_payoff = special.xlogy(tilt, tilt / (1 + tilt)) - np.log1p(tilt)
        self.log_left_out = np.log(4) - _LOG_TAIL + log_payoff
        down_counts = np.arange(least, most)
        up_first = np.maximum(count - least - self.between[:-1], 0)  # before one goes between
        up = np.maximum(count - self.between[:, None] - down_counts, 0)  # before one goes down
        weights = np.empty((len(self.between), most - least + 1))
        weights[:, 0] = np.cumprod(np.append(1, up_first * between / self.between[1:]))
        weights[:, 1:] = up * (down / (down_counts + 1))
        np.cumprod(weights, axis=1, out=weights)
        self.weights = weights / weights.sum()
        # each step of the products rounds some times, in a term and in the sum of all
        steps = sum(weights.shape)
        rounding = 24 * steps + 2 * total * (most - least) + 20 * last + 200
        self.nodes = _nodes(e0, last)
        if e0 > _LEVEL:  # near the ends Gauss's weights err by some units times nodes^2
            rounding += 40 * self.nodes**2
        self.rounding = _UNIT * rounding

    def log_delta(self, epsilon: float) -> tuple[float, float, float, float]:
        """Lower, estimate, upper of log delta, and the estimate's slope in epsilon.

        Args:
            epsilon: At least 0 and below k e0.
        """
        e0, rate = self.pure_epsilon, self.rate
        below = (self.count - Fraction(epsilon) / Fraction(e0)) / 2  # k - s
        whole = -(-below.numerator // below.denominator)
        offset, room = float(whole - below), float(below - whole + 1)  # 0 <= offset < 1, 1 - offset
        value, slope = self._above(whole, offset, room)
        inside = self._inside(whole, offset, room)
        value, slope = value + inside[0], slope + inside[1]
        fall = rate * float(below)
        with np.errstate(divide="ignore"):
            log = float(np.log(value))
        norm = self.log_norm + fall
        rounding = self.rounding + 8 * _UNIT * (fall - self.log_norm + min(-log, 800))
        upper = norm + float(np.logaddexp(log, self.log_left_out)) + rounding
        slope = -slope / value if value > 0 else 0.0
        return norm + log - rounding, norm + log, upper, slope

    def epsilon(self, log_delta: float, start: float) -> tuple[float, float, float]:
        """Lower, estimate, upper of the epsilon at which log delta falls to the wanted one.

        Args:
            log_delta: Below 0.
            start: Where the search begins.
        """
        most = self.count * self.pure_epsilon
        low, high = 0.0, most
        at = start = min(max(start, 0.0), math.nextafter(most, 0))
        turn = 0
        while True:
            turn += 1
            _, value, upper, slope = self.log_delta(at)
            excess = value - log_delta
            if at == 0 and upper <= log_delta:
                return 0.0, 0.0, 0.0
            # far from the start all terms may be too small for a float
            is_low = excess > 0 if math.isfinite(excess) else at < start
            low, high = (at, high) if is_low else (low, at)
            root = min(max(at - excess / slope, low), high) if slope < 0 else at
            if abs(excess) <= upper - value or abs(root - at) <= 8 * _UNIT * at:
                break
            newton = (low < root < high or root == 0) and turn % 8
            at = root if newton else (low + high) / 2
            if not low < at < high:
                break
        step = 1.1 * (upper - value) / -slope if slope < 0 else math.inf
        step = step + 4 * _UNIT * root if math.isfinite(step) else 1e-9 * most
        return self._end(log_delta, root, -step), root, self._end(log_delta, root, step)

    def _end(self, log_delta: float, root: float, step: float) -> float:
        """Where the error of log delta is covered, up or down from the root."""
        most = self.count * self.pure_epsilon
        while 0 < (end := root + step) < most:
            lower, _, upper, _ = self.log_delta(end)
            if (lower >= log_delta) if step < 0 else (upper <= log_delta):
                return end
            step *= 4
        return min(max(end, 0.0), most)

    def _above(self, whole: int, offset: float, room: float) -> tuple[float, float]:
        """The sum over terms with a <= 0, where all of Z_j counts, and that of exp(-(t + 1) L)."""
        e0, rate, j = self.pure_epsilon, self.rate, self.between
        downs = self.weights.shape[1]
        past = whole - 1 - (j[0] + self.least + np.arange(len(j) + downs - 1))
        high = past + room  # -a, for each j + d
        high_counts = past + (offset == 0) >= 0
        with np.errstate(under="ignore"):
            fall = np.where(high_counts, np.exp(-rate * np.maximum(high, 0)), 0)
            less = np.expm1(-2 * e0 * np.maximum(high, 0))
            whole_fall, payoff, twice = (
                np.einsum("jd,jd->j", self.weights, sliding_window_view(part, downs))
                for part in (fall, fall * -less, fall * (1 + less))
            )
            raise_mean = self._mean_fall() ** j
            value = raise_mean * (whole_fall * -np.expm1(-e0 * j) + np.exp(-e0 * j) * payoff)
            slope = raise_mean * np.exp(-e0 * j) * twice
        return float(value.sum()), float(slope.sum())

    def _mean_fall(self) -> float:
        """E[exp(-2 t e0 Z_1)]."""
        e0, rate = self.pure_epsilon, self.rate
        down = np.exp(-rate) * -np.expm1(-e0) / e0
        return down * self.total / -np.expm1(-self.total)

    def _inside(self, whole: int, offset: float, room: float) -> tuple[float, float]:
        """The same sums over terms with 0 < a < j."""
        j = self.between
        longest = int(j[-1])
        if longest == 0:
            return 0.0, 0.0
        value, slope = self._means(offset, room)
        n = np.arange(longest)[:, None]  # a = offset + n
        column = whole + n - j - self.least
        counts = (column >= 0) & (column < self.weights.shape[1]) & (n < j) & (n + offset > 0)
        column = np.clip(column, 0, self.weights.shape[1] - 1)
        weights = np.where(counts, self.weights[np.arange(len(j)), column], 0)
        return float(np.sum(weights * value)), float(np.sum(weights * slope))

    def _means(self, offset: float, room: float) -> tuple[np.ndarray, np.ndarray]:
        """E[h(Z_j - a); Z_j > a], and of exp(-2 (t + 1) e0 (Z_j - a)), by (a - offset, j)."""
        e0, rate, total = self.pure_epsilon, self.rate, self.total
        steep = rate + 2 * e0
        x, weight = _gauss(self.nodes)
        # in each interval of a unit nodes before and after the knot that lies in the others
        place = np.concatenate([offset + room * x, offset * x])
        rest = np.concatenate([room * x[::-1], 1 - offset * x])
        size = np.concatenate([room * weight, offset * weight])
        at = np.concatenate([room * x, room + offset * x])  # their distances from a
        payoff = size * np.exp(-rate * at) * -np.expm1(-2 * e0 * at)
        kernel = np.stack([payoff, size * np.exp(-steep * at)], 1)
        before, after = kernel[: len(x)], kernel[len(x) :]
        first, last = int(self.between[0]), int(self.between[-1])
        parts = np.zeros((last, last - first + 1, 2))  # by interval from a, j, and integrand
        density = np.zeros((last + 1, len(place)))
        slack = np.arange(last)[:, None] + place  # y, by interval
        reach = np.exp(-total) * slack
        left = (np.arange(last)[:, None] + rest)[::-1]  # j - y, last row first
        norm = total / -np.expm1(-total)
        density[0] = norm * np.exp(-total * rest)
        work = np.empty_like(reach)
        for j in range(1, last + 1):
            if j > 1:
                moved = np.multiply(left[last - j + 1 :], density[: j - 1], out=work[: j - 1])
                density[: j - 1] *= reach[: j - 1]
                density[1:j] += moved
                density[:j] *= norm / (j - 1)
            if j >= first:
                part = parts[:j, j - first]
                np.matmul(density[:j, : len(x)], before, out=part)
                part += density[1 : j + 1, len(x) :] @ after
        for m in range(last - 1, 0, -1):  # a whole interval nearer to a
            step = parts[m] * np.exp([-rate, -steep])
            step[:, 0] += np.exp(-rate) * -np.expm1(-2 * e0) * parts[m, :, 1]
            parts[m - 1] += step
        return parts[:, :, 0], parts[:, :, 1]


def _nodes(e0: float, last: int) -> int:
    """Nodes of Gauss's rule for densities of up to `last` numbers, in fours for the cache."""
    return -(-((last + 12 + int(np.ceil(2 * e0))) // 2 + 1) // 4) * 4


@cache
def _gauss(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1)."""
    x, weight = special.roots_legendre(nodes)
    return (1 + x) / 2, weight / 2


def _range(count: int, chance: float) -> tuple[int, int]:
    """Least and most successes, each side's rest below exp(-42), by Chernoff's bound."""
    mean = count * chance
    if mean == 0:
        return 0, 0

    def near(x: int) -> bool:
        gap = x * math.log(x / mean) if x else 0.0
        rest = count - x
        return gap + (rest * math.log(rest / (count - mean)) if rest else 0.0) < _LOG_TAIL

    most, beyond = int(mean), count + 1
    while beyond - most > 1:
        middle = (most + beyond) // 2
        most, beyond = (middle, beyond) if near(middle) else (most, middle)
    least, beyond = int(mean), -1
    while least - beyond > 1:
        middle = (least + beyond) // 2
        least, beyond = (middle, beyond) if near(middle) else (least, middle)
    return least, most
