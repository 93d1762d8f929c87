"""The privacy losses of whole-number noise: discrete Laplace and discrete Gaussian.

Both laws are log-concave on the integers. So the likelihood ratio of the law and a shifted one is
monotone in x, the best tests are half-lines, and what they gain grows with the shift: the pair
shifted by the whole sensitivity dominates every other, in both directions.
"""

from dataclasses import dataclass

import numpy as np

from dpjax.accounting.leaks._lattice import LatticeLeak, half_log_rest
from dpjax.accounting.leaks._series import expm1_less, log1p

_UNIT = np.finfo(float).eps
_DIRECT = 0.5  # scales below sum over x, others over frequencies
_TERMS = np.arange(-6.0, 7)


@dataclass(frozen=True, eq=False)
class DiscreteLaplace(LatticeLeak):
    """P(x) proportional to exp(-|x| / scale) at 0, against the same at the sensitivity D.

    L = (|x - D| - |x|) / scale: D / scale for x <= 0, with chance 1 / (1 + a), a = exp(-1 / scale);
    (D - 2x) / scale with chance a^x (1 - a) / (1 + a) for 0 < x < D; and -D / scale.
    """

    scale: np.ndarray
    sensitivity: np.ndarray

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log of (s1 exp(t e) + s0 exp(-(t + 1) e)) / (s1 + s0), e = D / scale; see below."""
        return self.cumulant_with_error(t, direction)[0]

    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Here s1 = sinh((t + 1) / scale) and s0 = sinh(t / scale): summed geometric series.

        As the scale grows the quotient tends to Laplace's. Its distance from 1 is computed without
        the terms of first order, which cancel.
        """
        t = np.where(np.real(t) < -0.5, -1 - t, t)  # the pair is symmetric: K(t) = K(-1 - t)
        rate, e = self._rate()[..., None], self.supremum(direction)[..., None]
        a, size = np.exp(-rate), np.abs(t)
        near = (size + 1) * e < 30
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            # s1 and s0 over exp((t + 1) / scale) / 2
            up, down = -np.expm1(-2 * (t + 1) * rate), -a * np.expm1(-2 * t * rate)
            first_order = 2 * e * _first_order(t, np.where(near, rate, 0)) * np.exp(-(t + 1) * rate)
            z = up * expm1_less(t * e) + down * expm1_less(-(t + 1) * e) + first_order
            z = z / (up + down)
            rest = (up + down * np.exp(-(2 * t + 1) * e)) / (up + down)
            far = t * e + np.log(rest)
            value = np.where(near, log1p(z), far)
            second = np.minimum(size * (size + 1) * e**2, 4) * np.exp(
                np.where(near, np.real(t), 0) * e
            )
            rounded = np.where(near, second / np.abs(1 + z), 1 / np.abs(rest))
            error = 8 * _UNIT * (8 + (2 * size + 1) * e) * rounded
            error = error + np.where(near, 0, 2 * _UNIT * (np.abs(far) + size * e))
            at_middle = (2 - np.expm1(-rate) * (self.sensitivity[..., None] - 1)) / (1 + a)
        middle = t == -0.5  # where s1 + s0 = 0
        value = np.where(middle, np.log(at_middle) - e / 2, value)
        error = np.where(middle, 32 * _UNIT * (1 + e), error)
        value = np.where((t == 0) | (e == 0), 0, np.where(np.isfinite(e), value, np.inf))
        nothing = (t == 0) | (e == 0) | np.isinf(e)
        return value, np.where(nothing, 0, np.where(np.isnan(error), np.inf, error))

    def supremum(self, direction: str) -> np.ndarray:
        """Sensitivity over scale."""
        return np.where(self.sensitivity == 0, 0.0, self.sensitivity * self._rate())

    def infinite_mass(self, direction: str) -> np.ndarray:
        """1 without noise, where the two outputs never meet."""
        return np.where(np.isinf(self.supremum(direction)), 1.0, 0.0)

    def step(self, direction: str) -> np.ndarray:
        """2 / scale; with sensitivity 1 too, where the losses are the two ends."""
        return np.where(self.sensitivity == 0, 0.0, 2 * self._rate())

    def log_decay_in_period(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """As for Laplace: the ends turn against each other, and the part between them fades.

        With tilted chances u, d of the ends, |u + d exp(2 i z e)| is at most
        u + d - 2 u d sin(z e)^2 / (u + d) up to z e = pi / 2. The part between is geometric with a
        ratio r; its sum is at most r (1 + r^(D-1)) / |1 - r exp(2 i z / scale)|, which falls. Or,
        better where D is small: 1 - |M(c + iz) / M(c)|^2 is at least 4 sin(z / scale)^2 times the
        sum of q_j q_(j+1) over neighbouring losses with tilted chances q.
        """
        rate, e = self._rate()[..., None], self.supremum(direction)[..., None]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value = self.cumulant(c, direction)
            a = np.exp(-rate)
            up = np.exp(c * e - value) / (1 + a)
            down = np.exp(-(c + 1) * e - value) / (1 + a)
            r = np.exp(-(2 * c + 1) * rate)
            width = np.exp(-(2 * c + 1) * (e - rate))  # r^(D-1)
            between = np.maximum(1 - up - down, 0)

            def shrink(z: np.ndarray) -> np.ndarray:
                reach = np.sqrt((1 - r) ** 2 + 4 * r * np.sin(z * rate) ** 2)
                return np.minimum((1 + width) / (1 - width) * (1 - r) / reach, 1)

            turn = np.minimum(y * e, np.pi / 2)
            both_ends = 2 * up * down / (up + down) * np.sin(turn) ** 2
            late = between * (1 - shrink(np.maximum(y, np.pi / 2 / e)))
            # where the ends no longer count, what is between them has faded at least as much
            lost = np.where(y * e < np.pi / 2, np.minimum(both_ends, late), late)
            d = self.sensitivity[..., None]
            first = np.where(d > 1, between * (1 - r) / (1 - width), 0)
            last = first * np.exp(-(2 * c + 1) * (e - 2 * rate))
            inside = (
                first * first * r * (1 - np.exp(-2 * (2 * c + 1) * (e - 2 * rate))) / (1 - r * r)
            )
            neighbours = np.where(
                d == 1, up * down, up * first + last * down + np.maximum(inside, 0)
            )
            lost_squared = 4 * neighbours * np.sin(np.minimum(y * rate, np.pi / 2)) ** 2
        by_parts = 2 * half_log_rest(np.where(d == 1, 0, lost))  # |M| <= 1 - lost
        return np.minimum(by_parts, half_log_rest(lost_squared))

    def _rate(self) -> np.ndarray:
        """1 / scale on the grid."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1 / self.scale + np.zeros(self.shape))


@dataclass(frozen=True, eq=False)
class DiscreteGaussian(LatticeLeak):
    """P(x) proportional to exp(-x^2 / (2 scale^2)) at 0, against the same at the sensitivity D.

    L = D (D - 2x) / (2 scale^2), so the losses are every whole multiple of D / scale^2 from one of
    them (Canonne, Kamath, Steinke 2020, Theorem 7). At one epsilon delta need not fall as the scale
    grows: losses of the same value are far apart, and epsilon may lie on either side of one.
    """

    scale: np.ndarray
    sensitivity: np.ndarray

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """D^2 t (t + 1) / (2 scale^2) + log theta(t D) - log theta(0), see below."""
        return self.cumulant_with_error(t, direction)[0]

    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Theta(u) is the sum over x of exp(-(x + u)^2 / (2 scale^2)).

        With Re u = n + f, n whole, and w = Im u / scale^2, it is exp(scale^2 w^2 / 2) times the sum
        that `_theta` computes, once w has been brought to [-pi, pi].
        """
        s, d, f, w = self._arguments(t)
        c, y = np.real(t), np.imag(t)
        with np.errstate(over="ignore", invalid="ignore"):
            half = (d / s) ** 2 / 2
            turns = np.round(y * d / s**2 / (2 * np.pi))
            log_sum, first, others = _theta(s, f, w - 2 * np.pi * turns)
            value = half * c * (c + 1) + log_sum
            spread = np.abs(half * c * (c + 1)) + np.exp(-2 * (np.pi * s) ** 2)
            by_atoms = (f / s) ** 2 + np.exp(-0.5 / s**2)
            by_atoms = by_atoms + np.abs(c * d) / s**2 * (np.abs(f) * first + others)
            spread = spread + np.where(s < _DIRECT, by_atoms, 0)
            if np.iscomplexobj(t):
                phase = half * y * (2 * c + 1) - 2 * np.pi * turns * f
                value = value + 1j * phase
                spread = spread + np.abs(half * y * (2 * c + 1)) + 7 * np.abs(turns * f)
                slip = np.where(s < _DIRECT, np.abs(w), np.abs(y * d))  # of the phases, in units
                own = np.where(s < _DIRECT, np.abs(f * w) * first, (s * w) ** 2)
                spread = spread + (y != 0) * (own + others * (16 + 7 * slip))
        error = 4 * _UNIT * spread
        nothing = (t == 0) | (self.step(direction)[..., None] == 0)
        finite = np.isfinite(half)
        value = np.where(nothing, 0, np.where(finite, value, np.inf))
        return value, np.where(nothing | ~finite, 0, np.where(np.isnan(error), np.inf, error))

    def supremum(self, direction: str) -> np.ndarray:
        """Infinity, unless nothing leaks."""
        return np.where(self.step(direction) > 0, np.inf, 0.0)

    def anchor(self, direction: str) -> np.ndarray:
        """The loss at x = 0."""
        return self.step(direction) * self.sensitivity / 2

    def infinite_mass(self, direction: str) -> np.ndarray:
        """1 without noise, where the two outputs never meet."""
        return np.where(np.isinf(self.step(direction)), 1.0, 0.0)

    def step(self, direction: str) -> np.ndarray:
        """Sensitivity / scale^2."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(self.sensitivity == 0, 0.0, self.sensitivity / self.scale**2)

    def log_decay_in_period(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """By frequencies, without their phases; or, for small scales, by neighbouring atoms.

        With tilted chances q, 1 - |M(c + iz) / M(c)|^2 is the sum over all pairs of
        2 q_i q_j sin((i - j) w / 2)^2, hence at least 4 sin(w / 2)^2 sum q_j q_(j+1).
        """
        s, _, f, _ = self._arguments(c)
        w = np.minimum(y * self.step(direction)[..., None], np.pi)
        with np.errstate(under="ignore", over="ignore", invalid="ignore"):
            atoms = np.exp(
                -(((_TERMS + f[..., None]) ** 2) - f[..., None] ** 2) / (2 * s[..., None] ** 2)
            )
            atoms = atoms / atoms.sum(-1, keepdims=True)
            lost = 4 * (atoms[..., 1:] * atoms[..., :-1]).sum(-1) * np.sin(w / 2) ** 2
            waves = (w[..., None] + 2 * np.pi * _TERMS) ** 2 - w[..., None] ** 2
            waves = np.exp(-(s[..., None] ** 2) * waves / 2).sum(-1)
            signs = 1 - 2 * (_TERMS % 2)
            least = (signs * np.exp(-2 * (np.pi * s[..., None] * _TERMS) ** 2)).sum(-1)
            by_waves = np.minimum(np.log(waves / least) + 1e-14 - s**2 * w**2 / 2, 0)
        return np.where(s < _DIRECT, half_log_rest(lost), by_waves)

    def _arguments(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        """Scale, D, the part of Re t D beyond a whole number, and Im t D / scale^2."""
        s = np.where((self.scale > 0) & np.isfinite(self.scale), self.scale, 1.0)
        s, d = (value[..., None] + np.zeros((*self.shape, 1)) for value in (s, self.sensitivity))
        shift = np.real(t) * d
        return s, d, shift - np.round(shift), np.imag(t) * d / s**2


def _theta(s: np.ndarray, f: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """Log of the sum over j of exp(-(j + f)^2 / (2 s^2) - i (j + f) w), over that at f = w = 0.

    By Poisson's formula it is s sqrt(2 pi) times the sum over m of
    exp(-s^2 (w + 2 pi m)^2 / 2 + 2 pi i m f). Six terms to either side leave out less than 1e-30.

    Returns:
        The logarithm, real where w = 0 throughout; the term of index 0 over the sum; and all others
        over it, in absolute value.
    """
    s, f, w = (value[..., None] for value in np.broadcast_arrays(s, f, w))
    moving = bool(np.any(w))
    low, high = np.minimum(s, _DIRECT), np.maximum(s, _DIRECT)
    atoms = -(_TERMS * (_TERMS + 2 * f)) / (2 * low**2)
    waves = -(high**2) * (2 * np.pi * _TERMS) * (w + np.pi * _TERMS)
    direct = s < _DIRECT
    size = np.exp(np.where(direct, atoms, waves))
    turn = np.where(direct, -(_TERMS + f) * w, 2 * np.pi * _TERMS * f)
    others = size * (np.exp(1j * turn) if moving else np.cos(turn))
    others[..., 6] = np.where(direct[..., 0], others[..., 6] - 1, 0)  # the term of 0, less 1
    at_zero = np.exp(
        np.where(direct, -(_TERMS**2) / (2 * low**2), -2 * (np.pi * high * _TERMS) ** 2)
    )
    at_zero[..., 6] = 0
    more = others.sum(-1)
    value = log1p(more) - np.log1p(at_zero.sum(-1))
    s, f, w = s[..., 0], f[..., 0], w[..., 0]
    value = value - np.where(s < _DIRECT, (f / s) ** 2, (s * w) ** 2) / 2
    with np.errstate(divide="ignore"):
        return value, 1 / np.abs(1 + more), (size.sum(-1) - 1) / np.abs(1 + more)


def _first_order(t: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """The difference t sinh((t + 1) rate) - (t + 1) sinh(t rate), by series where it cancels."""
    a, b = (t + 1) * rate, t * rate
    small = np.abs(a) + np.abs(b) < 1
    x, y = np.where(small, a, 0) ** 2, np.where(small, b, 0) ** 2
    # sinh(a) / a - sinh(b) / b = (x - y) sum of h_n / (2n + 1)!, h_n = x h_(n-1) + y^(n-1), h_1 = 1
    total, h, power, factorial = np.zeros_like(x), np.zeros_like(x), np.ones_like(x), 1.0
    for n in range(1, 10):
        h = x * h + power
        power, factorial = power * y, factorial * 2 * n * (2 * n + 1)
        total = total + h / factorial
    series = t * (t + 1) * rate * ((2 * t + 1) * rate**2) * total
    return np.where(small, series, t * np.sinh(a) - (t + 1) * np.sinh(b))
