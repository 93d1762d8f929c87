"""The Laplace mechanism's privacy loss."""

from dataclasses import dataclass

import numpy as np

from dpjax.accounting.leaks import BOTH
from dpjax.accounting.leaks._series import expm1_less, log1p


@dataclass(frozen=True, eq=False)
class Laplace:
    """Lap(1, b) against Lap(0, b): |L| <= e0 = 1/b, with atoms at both ends.

    P(L = e0) = 1/2, P(L = -e0) = exp(-e0)/2, and between them the density exp((l - e0)/2)/4
    (Zhu, Dong, Wang 2022, Proposition 8, give the pair). It dominates a real-valued release of
    sensitivity 1, and one of any dimension with L1 sensitivity 1, in both directions.
    """

    noise_multiplier: np.ndarray

    directions = BOTH
    is_pair = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid of the parameters."""
        return self.noise_multiplier.shape

    @property
    def pure_epsilon(self) -> np.ndarray:
        """e0, the largest loss."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1 / self.noise_multiplier)

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """log(((t+1) exp(t e0) + t exp(-(t+1) e0)) / (2t+1)) (Mironov 2017, Proposition 6)."""
        t = np.where(np.real(t) < -0.5, -1 - t, t)  # the pair is symmetric: K(t) = K(-1 - t)
        middle = t == -0.5  # where the quotient is 0/0
        t = np.where(middle, 1.0, t)
        e0 = self.pure_epsilon[..., None]
        with np.errstate(over="ignore", invalid="ignore"):
            # M - 1 without the terms of first order in e0, which cancel
            up, down = expm1_less(t * e0), expm1_less(-(t + 1) * e0)
            near = log1p(((t + 1) * up + t * down) / (2 * t + 1))
            far = t * e0 + np.log((t + 1 + t * np.exp(-(2 * t + 1) * e0)) / (2 * t + 1))
            half = np.minimum(e0, 2) / 2  # log(1 + e0/2) - e0/2, without its first order if small
            at_middle = np.log1p(expm1_less(-half) + half * np.expm1(-half))
            at_middle = np.where(e0 < 2, at_middle, np.log1p(e0 / 2) - e0 / 2)
        value = np.where(middle, at_middle, np.where(np.abs(t) * e0 < 1, near, far))
        return np.where(t == 0, 0.0, np.where(np.isfinite(e0), value, np.inf))

    def supremum(self, direction: str) -> np.ndarray:
        """e0."""
        return self.pure_epsilon

    def infinite_mass(self, direction: str) -> np.ndarray:
        """1 without noise: the two outputs never meet."""
        return np.where(np.isfinite(self.pure_epsilon), 0.0, 1.0)
