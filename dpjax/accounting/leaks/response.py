"""The privacy losses of randomized response, which dominate every (epsilon, delta) guarantee."""

from dataclasses import dataclass

import numpy as np

from dpjax.accounting.leaks import REMOVE_ADD, Leak, Tails
from dpjax.accounting.leaks._amplified import log_mixed_ratio
from dpjax.accounting.leaks._lattice import LatticeLeak, half_log_rest
from dpjax.accounting.leaks._series import expm1_less, log1p
from dpjax.accounting.leaks.discrete import DiscreteLaplace

_UNIT = np.finfo(float).eps
_LARGEST = 300.0  # epsilon of two answers that are written as many


@dataclass(frozen=True, eq=False)
class Response(LatticeLeak):
    """One of k answers: the own one exp(epsilon) times as likely as each other one.

    Two people's answers make the pair, in both directions: L is epsilon, -epsilon or, where k > 2,
    0. With k = 2 and a mass delta at infinity it dominates every (epsilon, delta)-private release
    (Kairouz, Oh, Viswanath 2015, Theorem 3.2 and its proof).
    """

    epsilon: np.ndarray
    num_categories: np.ndarray
    delta: np.ndarray

    has_tails = True
    mass_is_given = True

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log of 1 + 4 w sinh(t epsilon / 2) sinh((t + 1) epsilon / 2), see below."""
        return self.cumulant_with_error(t, direction)[0]

    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """M - 1 as a product, in which nothing cancels.

        With the own answer's probability p and any other's q = p exp(-epsilon) it is
        p (exp(t epsilon) - 1) + q (exp(-t epsilon) - 1), and w = q exp(epsilon / 2).
        """
        e, others = self.epsilon[..., None], self.num_categories[..., None] - 1
        near = (np.abs(np.real(t)) + 1) * e < 300
        e_near = np.where(near, e, 0)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            w = 1 / (np.exp(e_near / 2) + others * np.exp(-e_near / 2))
            z = 4 * w * np.sinh(t * e_near / 2) * np.sinh((t + 1) * e_near / 2)
            flip = np.real(t) < -0.5  # M(t) = M(-1 - t)
            u = np.where(flip, -1 - t, t)
            rest = np.exp(-(2 * u + 1) * e) + (others - 1) * np.exp(-(u + 1) * e)
            far = u * e - np.log1p(others * np.exp(-e)) + np.log(1 + rest)
            value = np.where(near, log1p(z), far)
            turn = (2 * np.abs(t) + 1) * e
            rounded = np.where(near, np.abs(z / (1 + z)), 1 / np.abs(1 + rest))
            error = _UNIT * (8 + turn) * np.where(np.isnan(rounded), np.inf, rounded)
            error = error + np.where(near, 0, _UNIT * (8 + np.abs(far)))
        value = np.where(t == 0, 0, np.where(np.isfinite(e), value, np.inf))
        return value, np.where((t == 0) | np.isinf(e), 0, error)

    def supremum(self, direction: str) -> np.ndarray:
        """Epsilon."""
        return np.broadcast_to(self.epsilon, self.shape)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """Delta; 1 where epsilon is infinite."""
        return np.where(np.isinf(self.epsilon), 1.0, self.delta + np.zeros(self.shape))

    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Sums over three losses; Q of a loss is P of its negative."""
        e, k = self.epsilon, self.num_categories
        down = 1 / (np.exp(np.minimum(e, 700)) + k - 1)
        up, middle = 1 / (1 + (k - 1) * np.exp(-e)), (k - 2) * down
        above = np.where(loss < -e, 1, np.where(loss < 0, up + middle, np.where(loss < e, up, 0)))
        below = np.where(
            loss < -e, 0, np.where(loss < 0, down, np.where(loss < e, down + middle, 1))
        )
        q_above = np.where(
            loss < -e, 1, np.where(loss < 0, down + middle, np.where(loss < e, down, 0))
        )
        q_below = np.where(loss < -e, 0, np.where(loss < 0, up, np.where(loss < e, up + middle, 1)))
        return Tails(above, below, q_above, q_below, 4 * _UNIT * (np.abs(loss) + e))

    def step(self, direction: str) -> np.ndarray:
        """2 epsilon with two answers, epsilon with more."""
        return np.where(self.num_categories == 2, 2 * self.epsilon, self.epsilon)

    def log_decay_in_period(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """From 1 - |M(c + iz) / M(c)|^2 = 4 (u + d) m sin(z e / 2)^2 + 4 u d sin(z e)^2.

        Here u, m, d are the tilted chances of e, 0 and -e. The first term rises up to the period's
        end, where m > 0; the second rises up to z e = pi / 2 and is at least its value at pi / 3
        up to 2 pi / 3, from where on the first will do.
        """
        e, k = self.epsilon[..., None], self.num_categories[..., None]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            middle, down = (k - 2) * np.exp(-(c + 1) * e), np.exp(-(2 * c + 1) * e)
            total = 1 + middle + down
            up, middle, down = 1 / total, middle / total, down / total

            def first(angle: np.ndarray | float) -> np.ndarray:
                return 4 * (up + down) * middle * np.sin(angle / 2) ** 2

            def both(angle: np.ndarray) -> np.ndarray:
                return first(angle) + 4 * up * down * np.sin(angle) ** 2

            early = np.minimum(both(np.minimum(y * e, np.pi / 3)), first(2 * np.pi / 3))
            lost = np.where(k == 2, both(y * e), np.maximum(first(y * e), early))
        return half_log_rest(lost)


@dataclass(frozen=True, eq=False)
class UniformResponse(LatticeLeak):
    """One of k answers, against the uniform answer of a person who is not there.

    With x = (exp(e) - 1) / (exp(e) + k - 1) the own answer is 1 + (k - 1) x times as likely as
    under the uniform law, and each other answer 1 - x times. "remove" is (response, uniform).
    """

    epsilon: np.ndarray
    num_categories: np.ndarray

    directions = REMOVE_ADD

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log of E[r^s] for the likelihood ratio r under the uniform law, s = t + 1 or -t."""
        return self.cumulant_with_error(t, direction)[0]

    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """As E[r] = 1, E[r^s] - 1 is the mean of r^s - 1 - s (r - 1), which is of second order."""
        s = t + 1 if direction == "remove" else -t
        own, other = (value[..., None] for value in self._log_ratios())
        k = self.num_categories[..., None]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            peak = np.maximum(np.real(s) * own, np.real(s) * other)
            near = peak < 300
            terms = [
                expm1_less(np.where(near, s, 0) * log_r) - np.where(near, s, 0) * expm1_less(log_r)
                for log_r in (own, other)
            ]
            z = (terms[0] + (k - 1) * terms[1]) / k
            size = sum(
                n / k * (_second_order(s * log_r) + np.abs(s) * _second_order(log_r))
                for n, log_r in ((1, own), (k - 1, other))
            )
            far = np.exp(s * own - peak) / k + (k - 1) / k * np.exp(s * other - peak)
            value = np.where(near, log1p(z), peak + np.log(far))
            turn = 16 + 2 * np.abs(s) * (own - other)
            relative = np.where(near, size / np.abs(1 + z), 1 / np.abs(far))
            error = _UNIT * (turn * relative + np.where(near, 0, np.abs(value)))
        constant = t * own if direction == "remove" else -t * own  # what is left of infinite e
        value = np.where(np.isfinite(other), value, constant)
        value = np.where((t == 0) | (own == 0), 0, value)
        error = np.where(np.isfinite(other), error, _UNIT * np.abs(value))
        return value, np.where(t == 0, 0, np.where(np.isnan(error), np.inf, error))

    def supremum(self, direction: str) -> np.ndarray:
        """Log of the ratio that favours the pair's first law most."""
        own, other = self._log_ratios()
        return own if direction == "remove" else np.where(np.isinf(other), -own, -other)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """Where epsilon is infinite, the chance of an answer that only the first law gives."""
        k = self.num_categories + np.zeros(self.shape)
        return np.where(np.isinf(self.epsilon) & (direction == "add"), (k - 1) / k, 0.0)

    def step(self, direction: str) -> np.ndarray:
        """Epsilon, between the two losses; 0 where one of them is all there is."""
        return np.where(np.isinf(self.epsilon), 0.0, self.epsilon + np.zeros(self.shape))

    def log_decay_in_period(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """Two atoms with tilted chances u, d: exactly 1 - 4 u d sin(y e / 2)^2."""
        s = c + 1 if direction == "remove" else -c
        e, k = self.epsilon[..., None], self.num_categories[..., None]
        with np.errstate(over="ignore", invalid="ignore"):
            odds = np.exp(-np.abs(s * e - np.log(k - 1)))
            both = odds / (1 + odds) ** 2
        return half_log_rest(4 * both * np.sin(y * e / 2) ** 2)

    def sampled(self, q: np.ndarray) -> "UniformResponse":
        """For a person who is in a sample with chance q, and else answers uniformly too."""
        own, other = (log_mixed_ratio(ratio, q) for ratio in self._log_ratios())
        k = np.asarray(self.num_categories + np.zeros(np.shape(own)))
        return UniformResponse(np.asarray(own - other), k)

    def _log_ratios(self) -> tuple[np.ndarray, np.ndarray]:
        """Log of the own answer's likelihood ratio, and of any other's."""
        e, k = np.broadcast_arrays(self.epsilon, self.num_categories)
        with np.errstate(divide="ignore"):
            x = -np.expm1(-e) / (1 + (k - 1) * np.exp(-e))
            other = np.log1p(np.expm1(np.minimum(e, 700)) / k)
            other = -np.where(e < 700, other, e - np.log(k))
            return np.asarray(np.log1p((k - 1) * x)), np.asarray(other)


def two_answers(leak: Leak) -> UniformResponse | None:
    """A pair of two losses epsilon and -epsilon as one with a uniform law of 1 + e^epsilon answers.

    The likelier answer of two is as likely as one of so many, and the other one as all others.
    """
    if isinstance(leak, UniformResponse):
        return leak
    if isinstance(leak, Response):
        epsilon, fits = leak.epsilon, (leak.num_categories == 2) & (leak.delta == 0)
    elif isinstance(leak, DiscreteLaplace):
        epsilon, fits = leak.supremum("both"), leak.sensitivity == 1
    else:
        return None
    if not np.all(fits & (epsilon < _LARGEST)):
        return None
    return UniformResponse(np.asarray(2 * epsilon), np.asarray(1 + np.exp(epsilon)))


def _second_order(z: np.ndarray) -> np.ndarray:
    """A bound on |exp(z) - 1 - z| and on what its parts add up to."""
    return np.abs(z) * np.minimum(np.abs(z), 3) * np.exp(np.maximum(np.real(z), 0))
