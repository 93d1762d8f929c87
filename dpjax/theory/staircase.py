"""The law of staircase noise, and the step that makes its error least.

>>> gamma = staircase_gamma(scale=1.0, sensitivity=1.0, measure="mae")
>>> round(float(gamma), 4)
0.3775
>>> round(float(Staircase(scale=1.0, sensitivity=1.0, gamma=gamma).mae), 4)  # Laplace: 1
0.9595
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpjax import _validate
from dpjax.theory.additive import Float64


def staircase_gamma(scale: ArrayLike, sensitivity: ArrayLike, *, measure: str) -> Float64:
    """The gamma of least error (Geng and Viswanath 2016, Sections IV and V).

    Args:
        scale: sensitivity / epsilon, finite and above 0.
        sensitivity: the width of a step, finite and above 0.
        measure: "mae" or "rmse".
    """
    epsilon = _validate.positive(sensitivity=sensitivity) / _validate.positive(scale=scale)
    if _validate.one_of(("mae", "rmse"), measure=measure) == "mae":
        return 1 / (1 + np.exp(epsilon / 2))
    b, rest = np.exp(-epsilon), -np.expm1(-epsilon)
    # b - 2 b^2 + 2 b^4 - b^5 = b (1 - b)^3 (1 + b), and the two terms cancel as b nears 1
    root = np.cbrt(b * (1 + b) / 2)
    return (root - b) / rest


@dataclass(frozen=True, eq=False)
class Staircase:
    """Density a(gamma) exp(-i epsilon) on steps ((i - 1 + gamma) s, (i + gamma) s] of each side.

    Source: Geng and Viswanath 2016, "The optimal noise-adding mechanism in differential privacy".

    Args:
        scale: sensitivity / epsilon, in the answer's units, finite and above 0.
        sensitivity: s, the width of a step, finite and above 0.
        gamma: share of a step at the higher density, in [0, 1].
    """

    scale: Any
    sensitivity: Any
    gamma: Any

    def __post_init__(self) -> None:
        scale = _validate.positive(scale=self.scale)
        sensitivity = _validate.positive(sensitivity=self.sensitivity)
        gamma = _validate.probability(gamma=self.gamma)
        object.__setattr__(self, "scale", scale[()])
        object.__setattr__(self, "sensitivity", sensitivity[()])
        object.__setattr__(self, "gamma", gamma[()])

    @property
    def mae(self) -> Float64:
        """Mean absolute value of the noise."""
        steps, _ = self._steps
        return self.sensitivity * (steps + self._place(1))

    @property
    def variance(self) -> Float64:
        """Mean square of the noise."""
        steps, squares = self._steps
        return self.sensitivity**2 * (squares + 2 * steps * self._place(1) + self._place(2))

    @property
    def rmse(self) -> Float64:
        """Root mean square of the noise."""
        return np.sqrt(self.variance)

    def density(self, x: ArrayLike) -> Float64:
        """Density at x, per unit of the answer."""
        size = np.abs(_validate.finite(x=x)) / self.sensitivity
        step = np.floor(size) + (size - np.floor(size) >= self.gamma)
        rest = -np.expm1(-self._epsilon)
        return np.exp(-step * self._epsilon) * rest / (2 * self.sensitivity * self._mass)

    def distribution(self, x: ArrayLike) -> Float64:
        """P(noise <= x)."""
        x = _validate.finite(x=x)
        size = np.abs(x) / self.sensitivity
        step, place = np.floor(size), size - np.floor(size)
        b = np.exp(-self._epsilon)
        within = (
            np.minimum(place, self.gamma) + b * np.maximum(place - self.gamma, 0)
        ) / self._mass
        beyond = b**step * (1 - within * -np.expm1(-self._epsilon))
        return np.where(x < 0, beyond / 2, 1 - beyond / 2)[()]

    @property
    def _epsilon(self) -> Float64:
        """Sensitivity over scale."""
        return self.sensitivity / self.scale

    @property
    def _mass(self) -> Float64:
        """Mass of one step over its higher density times its width."""
        return self.gamma + np.exp(-self._epsilon) * (1 - self.gamma)

    @property
    def _steps(self) -> tuple[Float64, Float64]:
        """Mean and mean square of the geometric number of whole steps."""
        b, rest = np.exp(-self._epsilon), -np.expm1(-self._epsilon)
        return b / rest, b * (1 + b) / rest**2

    def _place(self, power: int) -> Float64:
        """Mean power of the place on a step, in steps."""
        high = self.gamma ** (power + 1)
        low = np.exp(-self._epsilon) * (1 - high)
        return (high + low) / ((power + 1) * self._mass)
