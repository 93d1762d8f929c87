"""The laws of the noise: error, density, tails and quantiles in closed form, in float64 NumPy.

What a simulation must agree with. The noise is centred on 0; errors and quantiles are in the units
of `scale`. Where a tail probability or a density underflows to 0, its log form stays right.

    >>> noise = Laplace(scale=10.0)
    >>> round(float(noise.rmse), 2), float(noise.mae)
    (14.14, 10.0)
    >>> Gaussian(scale=[1.0, 2.5]).rmse
    array([1. , 2.5])

Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, 2nd edition, chapter 13
(normal, volume 1) and chapter 24 (Laplace, volume 2).
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special

from dpjax import _validate

Float64: TypeAlias = Float[np.ndarray, "..."] | np.float64


@dataclass(frozen=True, eq=False)
class Laplace:
    """The law of density exp(-|x| / scale) / (2 scale).

    Args:
        scale: b, in the answer's units; finite and above 0. An array gives a family of laws: errors
            have its shape, and arguments broadcast against it.

    Raises:
        ValueError: scale is not finite or not above 0.

    Example:
        Sensitivity 2 at epsilon 0.5 is scale 4: 95 % of the answers are within 11.98.

        >>> noise = Laplace(scale=2 / 0.5)
        >>> float(noise.variance), float(noise.mae), round(float(noise.abs_quantile(0.95)), 3)
        (32.0, 4.0, 11.983)
    """

    scale: ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _validate.positive(scale=self.scale))

    @property
    def rmse(self) -> Float64:
        """Root mean square of the noise, sqrt(2) scale."""
        return np.sqrt(2) * self.mae

    @property
    def mae(self) -> Float64:
        """Mean absolute value of the noise, scale."""
        return np.asarray(self.scale, np.float64)[()]  # a scalar for a scalar

    @property
    def variance(self) -> Float64:
        """Mean square of the noise, 2 scale^2; overflows to infinity from scale 1e154 up."""
        return 2 * _squared(self.mae)

    def density(self, x: ArrayLike) -> Float64:
        """Density at x, per unit of the answer; 0 at infinite x."""
        return np.exp(self.log_density(x))

    def log_density(self, x: ArrayLike) -> Float64:
        """Log of the density at x; minus infinity at infinite x."""
        return -np.abs(_units(x, self.mae)) - np.log(2 * self.mae)

    def tail(self, x: ArrayLike) -> Float64:
        """P(|noise| > x); 1 for x of 0 and below, 0 at infinity."""
        return np.exp(self.log_tail(x))

    def log_tail(self, x: ArrayLike) -> Float64:
        """Log of P(|noise| > x); 0 for x of 0 and below, minus infinity at infinity."""
        return -np.maximum(_units(x, self.mae), 0.0)

    def inverse_tail(self, probability: ArrayLike) -> Float64:
        """The x with P(|noise| > x) = probability in [0, 1]; 0 gives infinity, 1 gives 0."""
        probability = _validate.probability(probability=probability)
        with np.errstate(divide="ignore"):
            return -self.mae * np.log(probability) + 0.0  # + 0.0 turns -0.0 into 0.0

    def quantile(self, p: ArrayLike) -> Float64:
        """The x with P(noise <= x) = p in [0, 1]; infinite at both ends.

        For p within 1e-16 of 1 use the symmetry: quantile(1 - q) is -quantile(q).
        """
        p = _validate.probability(p=p)
        with np.errstate(divide="ignore"):  # 1 - p is exact where it is used, p >= 1/2
            return self.mae * np.sign(p - 0.5) * -np.log(2 * np.minimum(p, 1 - p))

    def abs_quantile(self, p: ArrayLike) -> Float64:
        """The x with P(|noise| <= x) = p in [0, 1]; 0 at 0, infinite at 1.

        For a failure probability below 1e-16 use inverse_tail.
        """
        with np.errstate(divide="ignore"):
            return -self.mae * np.log1p(-_validate.probability(p=p)) + 0.0


@dataclass(frozen=True, eq=False)
class Gaussian:
    """The law of density exp(-x^2 / (2 scale^2)) / (scale sqrt(2 pi)).

    Args:
        scale: the standard deviation, in the answer's units; finite and above 0. An array gives a
            family of laws: errors have its shape, and arguments broadcast against it.

    Raises:
        ValueError: scale is not finite or not above 0.

    Example:
        >>> noise = Gaussian(scale=1.0)
        >>> round(float(noise.abs_quantile(0.95)), 6)
        1.959964
        >>> float(noise.tail(40)), round(float(noise.log_tail(40)), 4)
        (0.0, -803.9153)
    """

    scale: ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _validate.positive(scale=self.scale))

    @property
    def rmse(self) -> Float64:
        """Root mean square of the noise, scale."""
        return np.asarray(self.scale, np.float64)[()]

    @property
    def mae(self) -> Float64:
        """Mean absolute value of the noise, sqrt(2 / pi) scale."""
        return np.sqrt(2 / np.pi) * self.rmse

    @property
    def variance(self) -> Float64:
        """Mean square of the noise, scale^2; overflows to infinity from scale 1e154 up."""
        return _squared(self.rmse)

    def density(self, x: ArrayLike) -> Float64:
        """Density at x, per unit of the answer; 0 at infinite x."""
        return np.exp(self.log_density(x))

    def log_density(self, x: ArrayLike) -> Float64:
        """Log of the density at x; minus infinity at infinite x."""
        return -_squared(_units(x, self.rmse)) / 2 - np.log(np.sqrt(2 * np.pi) * self.rmse)

    def tail(self, x: ArrayLike) -> Float64:
        """P(|noise| > x); 1 for x of 0 and below, 0 from 38.6 scales up: see log_tail."""
        return special.erfc(np.maximum(_units(x, self.rmse), 0.0) / np.sqrt(2))

    def log_tail(self, x: ArrayLike) -> Float64:
        """Log of P(|noise| > x); 0 for x of 0 and below, minus infinity at infinity."""
        z = np.maximum(_units(x, self.rmse), 0.0)
        # Near 0 the log of twice the one-sided tail cancels; far out 1 - erf does.
        near = np.log1p(-special.erf(np.minimum(z, 1.0) / np.sqrt(2)))
        return np.where(z < 1, near, np.log(2) + special.log_ndtr(-z))

    def inverse_tail(self, probability: ArrayLike) -> Float64:
        """The x with P(|noise| > x) = probability in [0, 1]; 0 gives infinity, 1 gives 0."""
        return -self.rmse * special.ndtri(_validate.probability(probability=probability) / 2) + 0.0

    def quantile(self, p: ArrayLike) -> Float64:
        """The x with P(noise <= x) = p in [0, 1]; infinite at both ends.

        For p within 1e-16 of 1 use the symmetry: quantile(1 - q) is -quantile(q).
        """
        return self.rmse * special.ndtri(_validate.probability(p=p))

    def abs_quantile(self, p: ArrayLike) -> Float64:
        """The x with P(|noise| <= x) = p in [0, 1]; 0 at 0, infinite at 1.

        For a failure probability below 1e-16 use inverse_tail.
        """
        return self.rmse * np.sqrt(2) * special.erfinv(_validate.probability(p=p))


def _units(x: ArrayLike, scale: Float64) -> Float64:
    """The argument in units of scale; a ratio beyond the largest float64 is infinite."""
    with np.errstate(over="ignore"):
        return _validate.real(x=x) / scale


def _squared(x: Float64) -> Float64:
    """The square; one beyond the largest float64 is infinite."""
    with np.errstate(over="ignore"):
        return np.square(x)
