"""The Gaussian mechanism's privacy loss."""

from dataclasses import dataclass

import numpy as np

from dpjax.accounting.leaks import BOTH


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(1, s^2) against N(0, s^2): L is normal with mean mu^2/2 and variance mu^2, mu = 1/s.

    This pair dominates a release of any dimension with L2 sensitivity 1, in both directions (Dong,
    Roth, Su 2022, Theorem 2.7).
    """

    noise_multiplier: np.ndarray

    directions = BOTH
    is_pair = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid of the parameters."""
        return self.noise_multiplier.shape

    @property
    def mu_squared(self) -> np.ndarray:
        """The squared mean shift in units of the noise; it adds under composition."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1 / self.noise_multiplier**2)

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """mu^2 t (t + 1) / 2."""
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.mu_squared[..., None] / 2 * (t * (t + 1))
        value = np.where(np.isfinite(self.mu_squared[..., None]), value, np.inf)
        return np.where(t == 0, 0.0, value)

    def supremum(self, direction: str) -> np.ndarray:
        """Infinity, unless the noise is infinite."""
        return np.where(self.mu_squared > 0, np.inf, 0.0)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """1 without noise: the two outputs never meet."""
        return np.where(np.isfinite(self.mu_squared), 0.0, 1.0)
