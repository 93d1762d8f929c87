"""The laws of whole-number noise: discrete Laplace and discrete Gaussian.

>>> noise = DiscreteLaplace(scale=1.0)
>>> round(float(noise.probability(0)), 8), round(float(noise.variance), 8)
(0.46211716, 1.84134719)
>>> round(float(DiscreteGaussian(scale=0.5).variance), 8)
0.21501268
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpjax import _validate
from dpjax.theory.additive import Float64


@dataclass(frozen=True, eq=False)
class DiscreteLaplace:
    """P(x) = (1 - a) / (1 + a) a^|x| on the integers, a = exp(-1 / scale).

    Source: Inusah and Kozubowski 2006, "A discrete analogue of the Laplace distribution".

    Args:
        scale: in the answer's units; finite and above 0. An array gives a family of laws: errors
            have its shape, and arguments broadcast against it.

    Raises:
        ValueError: scale is not finite or not above 0.
    """

    scale: ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _validate.positive(scale=self.scale))

    @property
    def _rate(self) -> Float64:
        """1 / scale."""
        return 1 / np.asarray(self.scale, np.float64)[()]

    @property
    def variance(self) -> Float64:
        """Mean square of the noise, 2 a / (1 - a)^2."""
        rate = self._rate
        return 2 * np.exp(-rate) / np.expm1(-rate) ** 2

    @property
    def rmse(self) -> Float64:
        """Root mean square of the noise."""
        return np.sqrt(self.variance)

    @property
    def mae(self) -> Float64:
        """Mean absolute value of the noise, 2 a / (1 - a^2)."""
        rate = self._rate
        return -2 * np.exp(-rate) / np.expm1(-2 * rate)

    def log_probability(self, x: ArrayLike) -> Float64:
        """Log of P(noise = x); minus infinity where x is not whole."""
        x = _validate.real(x=x)
        value = np.log(np.tanh(self._rate / 2)) - np.abs(x) * self._rate
        return np.where(x == np.floor(x), value, -np.inf)[()]

    def probability(self, x: ArrayLike) -> Float64:
        """P(noise = x)."""
        return np.exp(self.log_probability(x))

    def log_tail(self, x: ArrayLike) -> Float64:
        """Log of P(|noise| > x), of 2 a^(floor(x) + 1) / (1 + a); 0 for x below 0."""
        x = np.floor(_validate.real(x=x))
        rate = self._rate
        value = -np.maximum(x, 0) * rate + np.log(2) - np.logaddexp(0, rate)
        return np.where(x < 0, 0.0, value)[()]

    def tail(self, x: ArrayLike) -> Float64:
        """P(|noise| > x); 1 for x below 0."""
        return np.exp(self.log_tail(x))

    def abs_quantile(self, p: ArrayLike) -> Float64:
        """The least whole m with P(|noise| <= m) >= p in [0, 1]; infinite at 1."""
        log_tail = np.log1p(-np.minimum(_validate.probability(p=p), 1 - 2**-53))
        excess = np.log(2) - np.logaddexp(0, self._rate) - log_tail
        m = np.maximum(np.ceil(excess / self._rate), 0)
        return np.where(np.asarray(p) == 1, np.inf, m)[()]


_DIRECT = 32.0  # scales up to here by adding all terms out to 40 scales, above by expansions


@dataclass(frozen=True, eq=False)
class DiscreteGaussian:
    """P(x) proportional to exp(-x^2 / (2 scale^2)) on the integers.

    Source: Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy",
    Definition 1. Sums are taken term by term up to scale 32 and by Poisson's and Euler and
    Maclaurin's formulas above, to about 1e-14; far tails above scale 32 to 2e-11.

    Args:
        scale: in the answer's units; finite and above 0. An array gives a family of laws: errors
            have its shape, and arguments broadcast against it.

    Raises:
        ValueError: scale is not finite or not above 0.
    """

    scale: ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _validate.positive(scale=self.scale))

    @property
    def log_normalizer(self) -> Float64:
        """Log of the sum of exp(-x^2 / (2 scale^2)) over the integers."""
        terms, scale = self._terms
        direct = np.log1p(2 * terms.sum(-1))
        return np.where(scale <= _DIRECT, direct, np.log(np.sqrt(2 * np.pi) * scale))[()]

    @property
    def variance(self) -> Float64:
        """Mean square of the noise: scale^2 to 1e-14 from scale 1.5 up, less below."""
        terms, scale = self._terms
        x = np.arange(1, terms.shape[-1] + 1)
        direct = 2 * (terms * x**2).sum(-1) / (1 + 2 * terms.sum(-1))
        return np.where(scale <= _DIRECT, direct, scale**2)[()]

    @property
    def rmse(self) -> Float64:
        """Root mean square of the noise."""
        return np.sqrt(self.variance)

    @property
    def mae(self) -> Float64:
        """Mean absolute value of the noise."""
        terms, scale = self._terms
        x = np.arange(1, terms.shape[-1] + 1)
        direct = 2 * (terms * x).sum(-1) / (1 + 2 * terms.sum(-1))
        # Euler-Maclaurin for x exp(-x^2 / (2 s^2)) at 0: s^2 - 1/12 - 1/(240 s^2) - ...
        summed = scale**2 - 1 / 12 - 1 / (240 * scale**2) - 1 / (2016 * scale**4)
        return np.where(scale <= _DIRECT, direct, 2 * summed / (np.sqrt(2 * np.pi) * scale))[()]

    def log_probability(self, x: ArrayLike) -> Float64:
        """Log of P(noise = x); minus infinity where x is not whole."""
        x = _validate.real(x=x)
        with np.errstate(over="ignore"):
            value = -0.5 * np.square(x / self.scale) - self.log_normalizer
        return np.where(x == np.floor(x), value, -np.inf)[()]

    def probability(self, x: ArrayLike) -> Float64:
        """P(noise = x)."""
        return np.exp(self.log_probability(x))

    def tail(self, x: ArrayLike) -> Float64:
        """P(|noise| > x); 1 for x below 0, 0 where it underflows."""
        x, scale = np.broadcast_arrays(np.floor(_validate.real(x=x)), self.scale)
        law = DiscreteGaussian(np.where(scale <= _DIRECT, scale, _DIRECT))
        terms = law._terms[0]
        place = np.arange(1, terms.shape[-1] + 1)
        inside = np.where(place > x[..., None], terms, 0)[..., ::-1].sum(-1)  # small ones first
        direct = 2 * inside / (1 + 2 * terms.sum(-1))
        # Euler-Maclaurin at the midpoint y: Q(y) + phi(y) (-y/24 h + 7 (y^3 - 3y)/5760 h^2 - ...)
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.minimum((x + 0.5) / scale, 40.0)
            h = 1 / scale**2
            series = h * y * (-1 / 24 + h * (7 / 5760) * (y**2 - 3))
            series = series - h**3 * y * (31 / 967680) * (y**4 - 10 * y**2 + 15)
            density = np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi)
        summed = special.erfc(y / np.sqrt(2)) + 2 * density * series
        return np.where(x < 0, 1.0, np.where(scale <= _DIRECT, direct, summed))[()]

    @property
    def _terms(self) -> tuple[np.ndarray, np.ndarray]:
        """exp(-x^2 / (2 scale^2)) for x = 1, 2, ... out to 40 scales; scales capped at _DIRECT."""
        scale = np.asarray(self.scale, np.float64)
        direct = np.where(scale <= _DIRECT, scale, _DIRECT)
        x = np.arange(1, int(40 * direct.max(initial=1.0)) + 2)
        with np.errstate(over="ignore"):
            return np.exp(-0.5 * (x / direct[..., None]) ** 2), scale
