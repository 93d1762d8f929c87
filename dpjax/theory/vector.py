"""The laws of vector noise: errors of one entry, and of the whole vector.

>>> noise = L2Laplace(scale=1.0, dimension=3)
>>> float(noise.rmse), float(noise.norm_mean)
(2.0, 3.0)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpjax import _validate
from dpjax.theory.additive import Float64


@dataclass(frozen=True, eq=False)
class L2Laplace:
    """Density proportional to exp(-|x|_2 / scale): uniform direction, Gamma(dimension) radius.

    Args:
        scale: in the answer's units; finite and above 0.
        dimension: entries of the vector, at least 1; broadcasts against `scale`.
    """

    scale: Any
    dimension: Any

    def __post_init__(self) -> None:
        _check(self)

    @property
    def rmse(self) -> Float64:
        """Root mean square of one entry, scale sqrt(dimension + 1)."""
        return self.scale * np.sqrt(self.dimension + 1)

    @property
    def mae(self) -> Float64:
        """Mean absolute value of one entry: mean radius times that of a direction's entry."""
        half = self.dimension / 2
        entry = np.exp(special.gammaln(half) - special.gammaln(half + 0.5)) / np.sqrt(np.pi)
        return self.norm_mean * entry

    @property
    def norm_mean(self) -> Float64:
        """Mean L2 norm of the noise, scale times dimension."""
        return self.scale * self.dimension

    def norm_tail(self, x: ArrayLike) -> Float64:
        """P(L2 norm of the noise > x)."""
        x = np.maximum(_validate.real(x=x), 0) / self.scale
        return special.gammaincc(self.dimension, x)


@dataclass(frozen=True, eq=False)
class LinfLaplace:
    """Density proportional to exp(-max |x_i| / scale): Gamma(dimension + 1) times a cube's point.

    Args:
        scale: in the answer's units; finite and above 0.
        dimension: entries of the vector, at least 1; broadcasts against `scale`.
    """

    scale: Any
    dimension: Any

    def __post_init__(self) -> None:
        _check(self)

    @property
    def rmse(self) -> Float64:
        """Root mean square of one entry, scale sqrt((d + 1) (d + 2) / 3) in dimension d."""
        return self.scale * np.sqrt((self.dimension + 1) * (self.dimension + 2) / 3)

    @property
    def mae(self) -> Float64:
        """Mean absolute value of one entry, scale (d + 1) / 2."""
        return self.scale * (self.dimension + 1) / 2

    @property
    def norm_mean(self) -> Float64:
        """Mean of the largest absolute entry, scale times dimension."""
        return self.scale * self.dimension

    def norm_tail(self, x: ArrayLike) -> Float64:
        """P(largest absolute entry > x): its law is Gamma(dimension), too."""
        x = np.maximum(_validate.real(x=x), 0) / self.scale
        return special.gammaincc(self.dimension, x)


def _check(law: L2Laplace | LinfLaplace) -> None:
    """Check and convert both parameters."""
    object.__setattr__(law, "scale", _validate.positive(scale=law.scale)[()])
    dimension = _validate.count(dimension=law.dimension)
    if np.any(dimension < 1):
        raise ValueError(f"dimension = {law.dimension}: expected a whole number of at least 1")
    object.__setattr__(law, "dimension", dimension.astype(np.float64)[()])
