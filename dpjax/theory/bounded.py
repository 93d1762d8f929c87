"""The laws of Laplace noise with bounds: truncated noise, bounded answers, clamped answers.

>>> bound = truncation(scale=1.0, sensitivity=1.0, delta=1e-3)
>>> noise = TruncatedLaplace(scale=1.0, bound=bound)
>>> round(float(bound), 4), round(float(noise.variance), 4)
(6.7571, 1.9311)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpjax import _validate
from dpjax.theory.additive import Float64


def truncation(scale: ArrayLike, sensitivity: ArrayLike, delta: ArrayLike) -> Float64:
    """The least bound at which truncated Laplace noise is (sensitivity / scale, delta)-DP.

    scale log(1 + (exp(sensitivity / scale) - 1) / (2 delta)) (Geng, Ding, Guo and Kumar 2020,
    Theorem 1), so that P(noise > bound - sensitivity) = delta.

    Args:
        scale: of the Laplace noise before truncation, finite and above 0.
        sensitivity: L1, in the same units, finite and above 0.
        delta: in (0, 1/2].
    """
    scale = _validate.positive(scale=scale)
    ratio = _validate.positive(sensitivity=sensitivity) / scale
    delta = _validate.open_probability(delta=delta)
    # log(1 + (e^r - 1) / (2 delta)) = r + log(e^-r + (1 - e^-r) / (2 delta)), which cannot overflow
    return scale * (ratio + np.log(np.exp(-ratio) - np.expm1(-ratio) / (2 * delta)))


@dataclass(frozen=True, eq=False)
class TruncatedLaplace:
    """Density proportional to exp(-|x| / scale) on [-bound, bound].

    Args:
        scale: of the noise before truncation, in the answer's units; finite and above 0.
        bound: in the answer's units; finite and above 0; broadcasts against `scale`.
    """

    scale: Any
    bound: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _validate.positive(scale=self.scale))
        object.__setattr__(self, "bound", _validate.positive(bound=self.bound))

    @property
    def mae(self) -> Float64:
        """Mean absolute value of the noise."""
        return self._moments[0]

    @property
    def variance(self) -> Float64:
        """Mean square of the noise."""
        return self._moments[1]

    @property
    def rmse(self) -> Float64:
        """Root mean square of the noise."""
        return np.sqrt(self.variance)

    def density(self, x: ArrayLike) -> Float64:
        """Density at x, per unit of the answer."""
        size = np.abs(_validate.real(x=x))
        inside = np.exp(-size / self.scale) / (-2 * self.scale * np.expm1(-self.bound / self.scale))
        return np.where(size <= self.bound, inside, 0.0)[()]

    def tail(self, x: ArrayLike) -> Float64:
        """P(|noise| > x); 1 for x of 0 and below, 0 from the bound up."""
        x = np.clip(_validate.real(x=x), 0, self.bound)
        rest = np.expm1((x - self.bound) / self.scale) / np.expm1(-self.bound / self.scale)
        return (np.exp(-x / self.scale) * rest)[()]

    @property
    def _moments(self) -> tuple[Float64, Float64]:
        """Mean size and mean square."""
        ratio = np.asarray(self.bound / self.scale)
        first, second = _truncated_moments(ratio)
        return (self.scale * first)[()], (self.scale**2 * second)[()]


@dataclass(frozen=True, eq=False)
class BoundedLaplace:
    """The law of value + Laplace noise, conditioned on an answer in [lower, upper].

    Source: Holohan, Antonatos, Braghin and Mac Aonghusa 2020.

    Args:
        value: the true answer, in [lower, upper].
        scale: of the noise, finite and above 0.
        lower: end of the domain, finite.
        upper: the other end, above `lower`.
    """

    value: Any
    scale: Any
    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        _place(self)

    @property
    def acceptance(self) -> Float64:
        """P(lower <= value + noise <= upper)."""
        return -(np.expm1(-self._down) + np.expm1(-self._up)) / 2

    @property
    def bias(self) -> Float64:
        """Mean of the error, answer - value."""
        down, up = _truncated_moments(self._down)[0], _truncated_moments(self._up)[0]
        return self.scale * (self._share_up * up - (1 - self._share_up) * down)

    @property
    def mean(self) -> Float64:
        """Mean of the answer."""
        return self.value + self.bias

    @property
    def mean_square(self) -> Float64:
        """Mean square of the error."""
        down, up = _truncated_moments(self._down)[1], _truncated_moments(self._up)[1]
        return self.scale**2 * (self._share_up * up + (1 - self._share_up) * down)

    @property
    def rmse(self) -> Float64:
        """Root mean square of the error, bias included."""
        return np.sqrt(self.mean_square)

    @property
    def variance(self) -> Float64:
        """Variance of the answer."""
        return self.mean_square - self.bias**2

    def distribution(self, x: ArrayLike) -> Float64:
        """P(answer <= x)."""
        x = np.clip(_validate.real(x=x), self.lower, self.upper)
        z = (x - self.value) / self.scale
        inside = np.exp(-np.abs(z))
        raw = np.where(z < 0, inside, 2 - inside) / 2 - np.exp(-self._down) / 2
        return (raw / self.acceptance)[()]

    @property
    def _down(self) -> Float64:
        """Room below the value, in scales."""
        return (self.value - self.lower) / self.scale

    @property
    def _up(self) -> Float64:
        """Room above the value, in scales."""
        return (self.upper - self.value) / self.scale

    @property
    def _share_up(self) -> Float64:
        """P(answer > value)."""
        return -np.expm1(-self._up) / (2 * self.acceptance)


@dataclass(frozen=True, eq=False)
class ClampedLaplace:
    """The law of value + Laplace noise, moved to the nearer end of [lower, upper] if outside.

    Args:
        value: the true answer, in [lower, upper].
        scale: of the noise, finite and above 0.
        lower: end of the domain, finite.
        upper: the other end, above `lower`.
    """

    value: Any
    scale: Any
    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        _place(self)

    @property
    def at_lower(self) -> Float64:
        """P(answer = lower)."""
        return np.exp((self.lower - self.value) / self.scale) / 2

    @property
    def at_upper(self) -> Float64:
        """P(answer = upper)."""
        return np.exp((self.value - self.upper) / self.scale) / 2

    @property
    def bias(self) -> Float64:
        """Mean of the error: scale (exp(-room below) - exp(-room above)) / 2, rooms in scales."""
        return self.scale * (self.at_lower - self.at_upper)

    @property
    def mean(self) -> Float64:
        """Mean of the answer."""
        return self.value + self.bias

    @property
    def mean_square(self) -> Float64:
        """Mean square of the error: by side scale^2 (1 - (1 + r) exp(-r)), r the room in scales."""
        total = 0.0
        for room in (self.value - self.lower, self.upper - self.value):
            r = room / self.scale
            total = total - np.expm1(-r) - r * np.exp(-r)
        return self.scale**2 * total

    @property
    def rmse(self) -> Float64:
        """Root mean square of the error, bias included."""
        return np.sqrt(self.mean_square)

    @property
    def variance(self) -> Float64:
        """Variance of the answer."""
        return self.mean_square - self.bias**2


def _place(law: BoundedLaplace | ClampedLaplace) -> None:
    """Check and convert the four parameters."""
    scale = _validate.positive(scale=law.scale)
    lower, upper = _validate.finite(lower=law.lower), _validate.finite(upper=law.upper)
    value = _validate.finite(value=law.value)
    if np.any(lower >= upper):
        raise ValueError(f"lower = {law.lower}: expected a number below upper = {law.upper}")
    if np.any((value < lower) | (value > upper)):
        raise ValueError(f"value = {law.value}: expected a number in [{law.lower}, {law.upper}]")
    for name, number in zip(
        ("value", "scale", "lower", "upper"), (value, scale, lower, upper), strict=True
    ):
        object.__setattr__(law, name, number[()])


def _truncated_moments(ratio: ArrayLike) -> tuple[Float64, Float64]:
    """Mean and mean square of exponential noise of scale 1 conditioned on noise <= ratio.

    1 - r / (e^r - 1) and 2 - (r^2 + 2 r) / (e^r - 1); by series at small r, where they cancel.
    """
    r = np.asarray(ratio, np.float64)
    small = r < 0.1
    with np.errstate(over="ignore"):
        rest = np.where(small, 1.0, r) / np.expm1(np.where(small, 1.0, r))
    first = np.where(
        small, r / 2 - r**2 / 12 + r**4 / 720 - r**6 / 30240 + r**8 / 1209600, 1 - rest
    )
    series = (
        r**2 / 3 - r**3 / 12 + r**4 / 360 + r**5 / 720 - r**6 / 15120 - r**7 / 30240 + r**8 / 604800
    )
    second = np.where(small, series, 2 - (r + 2) * rest)
    return first[()], second[()]
