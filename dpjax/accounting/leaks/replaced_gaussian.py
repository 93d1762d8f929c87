"""The privacy losses of Gaussian noise on a sample, when one record is replaced by another.

Noise multipliers are noise over one record's clip norm: a replaced record moves the sum by up to 2.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from dpjax.accounting import gaussian
from dpjax.accounting.leaks import Tails
from dpjax.accounting.leaks._amplified import log_delta_of_sample, log_mixed_ratio, posterior
from dpjax.accounting.leaks._symmetric import (
    ELLIPSE,
    HEAVY,
    TURN,
    Law,
    Plan,
    SymmetricLeak,
    log_decay_of_half,
)
from dpjax.accounting.leaks.sampled_gaussian import PoissonGaussian

_UNIT = np.finfo(float).eps
_HALF_PANEL = 0.38  # of the variance: the ellipse stays within a quarter of the poles' period
_ROUNDS, _COARSE = 4, 64
_CUT = 46.0  # exp(-46) of the moment is left out
_NEAR = 500.0  # exponent of the precise form of the loss
_FINEST = 1 << 12  # cells of the bound on the decay


class _Replaced(SymmetricLeak):
    """What both ways of sampling share: x ~ N(0, s^2) from `_start` on, with l(z) as in `_ratios`.

    Under P the density is that of x times exp(l(z)), z = (2x - 1) / (2 s^2), and the loss is
    l(z) - l(z'), with z' = (-2x - 1) / (2 s^2) for a Poisson sample and without l(z') otherwise.
    """

    sampling_probability: np.ndarray
    noise_multiplier: np.ndarray

    _start = 0.0  # where the loss is 0
    _unit = 1.0  # the shift of the mean that x is in units of
    _mirrored = 1.0  # whether l(z') counts

    def _integrable(self) -> np.ndarray:
        """With noise and with a sample."""
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        return np.asarray((s > 0) & np.isfinite(s) & (q > 0))

    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The parameters q and s, one row each."""
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier / self._unit)
        return q.reshape(-1, 1), s.reshape(-1, 1)

    def _law(self, x: np.ndarray) -> Law:
        """The normal density times exp(l(z)), and the loss."""
        q, s = self._parts()
        z, mirror = (2 * x - 1) / (2 * s**2), (-2 * x - 1) / (2 * s**2)
        level = log_mixed_ratio(z, q)
        loss = level
        if self._mirrored:
            far = 2 * x / s**2
            near = np.log1p(np.expm1(np.minimum(far, _NEAR)) * posterior(mirror, q))
            loss = np.where(far < _NEAR, near, level - log_mixed_ratio(mirror, q))
        log_p = -(x**2) / (2 * s**2) - np.log(s * np.sqrt(2 * np.pi)) + level
        size = np.abs(z) + 1 / s**2
        return Law(log_p, loss, 8 + x**2 / s**2 + size, 8 + 2 * size * np.minimum(1, 1 / loss))

    def _plan(self, c: np.ndarray, size: np.ndarray) -> Plan:
        """Coarse cells that bound P exp(c L) show where it is; the rest is cut.

        Up to 2 c + 1 + 10 s at the latest, beyond which it falls by exp(-10 x / s). Its logarithm
        bends down by no more than 1 / s^2 + c p'(1 - p') / s^4, p' the posterior at z'. Its slope
        is (-x + (t + 1) p + t p') / s^2, and those of the other exponents are no larger than
        (|x| + (|t| + 1) (p + p')) / s^2. On the ellipse p is at most sqrt(2) times that at the real
        part, for |Im z| < pi / 2.
        """
        q, s = self._parts()
        c, size, both = np.maximum(c, 0)[:, None], size[:, None], self._mirrored
        low, high = np.full(c.shape, self._start), 2 * c + 1 + 10 * s
        cut, heavy = np.full(c.shape, -np.inf), np.zeros(c.shape, bool)

        def log_f(x: np.ndarray) -> np.ndarray:
            law = self._law(x)
            return law.log_p + c * law.loss

        cut = np.logaddexp(cut, log_f(high) + np.log(s / 10))
        for _ in range(_ROUNDS):
            ends = low + (high - low) * np.linspace(0, 1, _COARSE + 1)
            value, width = log_f(ends), (high - low) / _COARSE
            p = posterior((-2 * ends[:, :-1] - 1) / (2 * s**2), q)
            bend = (1 + both * c * np.minimum(p, 0.25) / s**2) / s**2 * width**2 / 8
            bound = np.maximum(value[:, 1:], value[:, :-1]) + bend + np.log(width)
            peak = value.max(1, keepdims=True) + np.log(s)
            heavy |= (peak > HEAVY) & (c > 0)
            least = np.maximum(peak, 0) - _CUT
            right = np.logaddexp.accumulate(bound[:, ::-1], 1)[:, ::-1]
            left = np.where(heavy, np.logaddexp.accumulate(bound, 1), np.inf)
            first, last = (
                (left <= least).sum(1)[:, None],
                _COARSE - (right <= least).sum(1)[:, None],
            )
            last = np.maximum(last, first + 1)
            dropped = np.concatenate([np.full(c.shape, -np.inf), left], 1)
            cut = np.logaddexp(cut, np.take_along_axis(dropped, first, 1))
            dropped = np.concatenate([right, np.full(c.shape, -np.inf)], 1)
            cut = np.logaddexp(cut, np.take_along_axis(dropped, last, 1))
            low, high = (np.take_along_axis(ends, at, 1) for at in (first, last))
        cut = np.where(heavy, np.logaddexp(cut, 0), cut)  # with the half where L < 0
        most = np.minimum(_HALF_PANEL * s**2, s)
        reach, root = ELLIPSE * most, np.sqrt(2)
        p = posterior((2 * (high + reach) - 1) / (2 * s**2), q)
        mirror = both * posterior((2 * (reach - low) - 1) / (2 * s**2), q)
        slope = high + reach + root * (size + 1) * (p + mirror)
        rest = posterior((2 * (reach - low) + 1) / (2 * s**2), 1 - q)  # 1 - p
        turn = np.sqrt(np.maximum(size**2 - c**2, 0))
        around = np.maximum(high - c - 1, c + 1 - low) + reach
        around = around + root * ((c + 1) * rest + c * mirror + turn * (p + mirror))
        slope = np.where(heavy, np.minimum(slope, around), slope) / s**2
        half = np.minimum(most, TURN / slope)
        panels = np.ceil((high - low) / (2 * half))
        return Plan(*(v[:, 0] for v in (low, high, panels, heavy, cut)))

    def supremum(self, direction: str) -> np.ndarray:
        """Infinity; nothing but 0 where there is no noise."""
        return np.where(self._integrable(), np.inf, 0.0)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """Without noise a record shows with probability q."""
        return np.where(self.noise_multiplier == 0, self.sampling_probability, 0.0)

    @np.errstate(all="ignore")
    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """From a floor under the density P exp(c L) / M(c) / L' of the tilted positive loss.

        Between two abscissas its logarithm lies above the chord less h^2 / 8 of its largest
        curvature, at most (c + 1) / (4 s^4) - 1 / s^2; and |(log L')'| <= 1 / s^2.
        """
        full = np.broadcast_shapes(self.shape, c.shape[:-1], y.shape[:-1])
        c, y = (np.broadcast_to(v, (*full, v.shape[-1])) for v in (c, y))
        shape, log_moment = y.shape, self.cumulant(c, direction).reshape(-1, 1)
        c, y = c.reshape(-1, 1), y.reshape(-1, y.shape[-1])
        flat = self.take(full, np.arange(len(y)))
        result = np.zeros(y.shape)
        todo = np.flatnonzero(flat._integrable() & np.isfinite(log_moment[:, 0]))
        flat, c, log_moment = flat.take((len(y),), todo), c[todo], log_moment[todo]
        q, s = flat._parts()
        plan = flat._plan(c[:, 0], c[:, 0])
        low, high = plan.low[:, None], plan.high[:, None]
        wanted = (high - low) / s**2 * np.maximum(10, np.sqrt(c + 1))
        cells = int(min(max(128, np.max(np.nan_to_num(wanted), initial=0)), _FINEST))
        x, h = low + (high - low) * np.linspace(0, 1, cells + 1), (high - low) / cells
        law = flat._law(x)
        log_w = law.log_p + c * law.loss - log_moment
        bend = np.maximum((c + 1) / (4 * s**4) - 1 / s**2, 0) * h**2 / 8
        slope = posterior((2 * x - 1) / (2 * s**2), q)
        slope = slope + self._mirrored * posterior((-2 * x - 1) / (2 * s**2), q)
        log_slope = np.log(slope) - 2 * np.log(s)
        floor = np.minimum(log_w[:, 1:], log_w[:, :-1]) - bend
        floor = floor - np.maximum(log_slope[:, 1:], log_slope[:, :-1]) - h / (2 * s**2)
        result[todo] = log_decay_of_half(law.loss, floor - 1e-9, c, y[todo])
        return result.reshape(shape)


@dataclass(frozen=True, eq=False)
class ReplacedGaussian(_Replaced):
    """P = (1-q) N(0, s^2) + q N(1, s^2), Q = (1-q) N(0, s^2) + q N(-1, s^2): Poisson samples.

    The pair dominates a release of any dimension with clip norm 1 in which each record takes part
    with probability q, when one record is replaced by another (compare Lebeda, Regehr, Kamath,
    Steinke 2024). The hockey-stick divergence is jointly convex, so that the rest of the sample may
    be given: then the outputs are (1-q) N(0, s^2) + q N(v, s^2) and the same with v', of norm at
    most 1. Of a set of chance m under N(0, s^2) the first gives at most
    (1-q) m + q Phi(z + 1/s) and the second at least (1-q) m + q Phi(z - 1/s), m = Phi(z) (Neyman,
    Pearson). The half-lines attain both at once for v = 1, v' = -1, whatever m is.
    """

    sampling_probability: np.ndarray
    noise_multiplier: np.ndarray

    @np.errstate(all="ignore")
    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """Log of q (d(u h - h^2/2) + exp(epsilon - u h - h^2/2) d(u h + h^2/2)), h = 1 / s.

        Here u is where the loss is epsilon, in units of the noise, and d the delta of N(h, 1)
        against N(0, 1). In what P has beyond u less exp(epsilon) times what Q has, the terms that
        cancel are left out by exp(epsilon) = (1 - q + q exp(l)) / (1 - q + q exp(l')).
        """
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        h, u = 1 / s, self._abscissa(epsilon)[0]

        def log_d(e: np.ndarray) -> np.ndarray:
            value = gaussian.log_delta(np.nan_to_num(np.abs(e), nan=np.inf), mu=h)
            return np.where(e < 0, np.log(-np.expm1(np.minimum(e, 0)) + np.exp(e + value)), value)

        other = epsilon - u * h - h**2 / 2 + log_d(u * h + h**2 / 2)
        value = np.log(q) + np.logaddexp(log_d(u * h - h**2 / 2), other)
        return np.where(self._integrable(), value, np.log(self.infinite_mass(direction)))

    def _abscissa(self, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the loss is l, s (l / 2 + asinh(sinh(l / 2) (1 - q) exp(1 / (2 s^2)) / q)).

        In units of the noise, with the rounding of the loss there.
        """
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        size, log_rest = np.abs(loss), np.log1p(-q) - np.log(q) + 1 / (2 * s**2)
        log_rest = np.maximum(log_rest, -1e300)
        log_sine = log_rest + size / 2 + np.log(-np.expm1(-size)) - np.log(2)
        near = np.arcsinh(np.exp(np.minimum(log_sine, 300)))
        bend = np.where(log_sine < 300, near, np.log(2) + log_sine)
        x = np.sign(loss) * s * (size / 2 + bend)
        ratio = np.exp(np.minimum(log_rest + size / 2, 600)) * (1 + np.exp(-size)) / 2
        slope = 2 / s / (1 + ratio / np.cosh(bend))  # of the loss in x
        rounded = 1 + 1 / s**2 + np.minimum(np.abs(log_rest), 800 + 1 / s**2)
        slip = 8 * _UNIT * (size + slope * (1 + np.abs(x)) + rounded * np.minimum(1, size))
        return x, np.where(np.isfinite(slip), slip, 0)

    @np.errstate(all="ignore")
    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Those of x on both sides of the abscissa whose loss it is."""
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        x, slip = self._abscissa(loss)
        low, high = special.ndtr(x), special.ndtr(-x)

        def mixed(apart: np.ndarray, near: np.ndarray) -> np.ndarray:
            return (1 - q) * apart + q * near

        return Tails(
            mixed(high, special.ndtr(1 / s - x)),
            mixed(low, special.ndtr(x - 1 / s)),
            mixed(high, special.ndtr(-1 / s - x)),
            mixed(low, special.ndtr(x + 1 / s)),
            slip,
        )


@dataclass(frozen=True, eq=False)
class SubsetGaussian(_Replaced):
    """Gaussian noise on a sample of fixed size, drawn without replacement.

    Let (P, Q) = (N(2, s^2), N(0, s^2)) be the pair of the release on the sample itself. Then at
    exp(epsilon) = a >= 1 a replaced record costs at most the delta of (q P + (1-q) Q, Q), and below
    1 that of (P, (1-q) P + q Q) (Balle, Barthe, Gaboardi 2018, Theorem 2; Zhu, Dong, Wang 2022,
    Theorem 11). As a function h of a these two meet at a = 1 in q TV(P, Q), and its slope there is
    -((1-q) P(P > Q) + q Q(P > Q)) from the left and no less, -Q(P > Q), from the right. So h is
    convex, falls from h(0) = 1, and is at least 1 - a: it is the profile of one pair, which hence
    dominates, and composes. That pair has the losses above 0 of the former, those below 0 of the
    latter, and the rest, (1-q) TV, at 0. Being symmetric, it leaks alike in both directions.
    """

    sampling_probability: np.ndarray
    noise_multiplier: np.ndarray

    _start = 0.5
    _unit = 2.0
    _mirrored = 0.0

    def _poisson(self) -> PoissonGaussian:
        """Both parts of the pair, one a direction."""
        return PoissonGaussian(self.sampling_probability, np.asarray(self.noise_multiplier / 2))

    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """Log delta of one release, by amplification of the Gaussian's (Balle et al. 2018)."""
        q, s = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        with np.errstate(divide="ignore"):
            mu = 2 / s
        return log_delta_of_sample(epsilon, q, "remove", lambda e: gaussian.log_delta(e, mu=mu))

    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """From above 0 those of the one pair, from below those of the other."""
        poisson = self._poisson()
        up, down = (poisson.tails(loss, way) for way in ("remove", "add"))
        above, above_q = up.p_above, up.q_above
        below, below_q = down.p_below, down.q_below
        upper = loss >= 0
        return Tails(
            np.where(upper, above, 1 - below),
            np.where(upper, 1 - above, below),
            np.where(upper, above_q, 1 - below_q),
            np.where(upper, 1 - above_q, below_q),
            np.where(upper, up.slip, down.slip),
        )
