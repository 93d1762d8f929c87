"""The Gaussian mechanism's privacy loss."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from dpjax.accounting.leaks import Leak, Tails


@dataclass(frozen=True, eq=False)
class Gaussian(Leak):
    """N(1, s^2) against N(0, s^2): L is normal with mean mu^2/2 and variance mu^2, mu = 1/s.

    This pair dominates a release of any dimension with L2 sensitivity 1, in both directions (Dong,
    Roth, Su 2022, Theorem 2.7).
    """

    noise_multiplier: np.ndarray

    has_tails = True

    @property
    def mu_squared(self) -> np.ndarray:
        """The squared mean shift in units of the noise; it adds under composition."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1 / self.noise_multiplier**2)

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """mu^2 t (t + 1) / 2."""
        mu_squared = self.mu_squared[..., None]
        with np.errstate(over="ignore", invalid="ignore"):
            value = mu_squared / 2 * (t * (t + 1))
        return np.where(t == 0, 0.0, np.where(np.isfinite(mu_squared), value, np.inf))

    def supremum(self, direction: str) -> np.ndarray:
        """Infinity, unless the noise is infinite."""
        return np.where(self.mu_squared > 0, np.inf, 0.0)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """1 without noise: the two outputs never meet."""
        return np.where(np.isfinite(self.mu_squared), 0.0, 1.0)

    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Normal, of mean mu^2/2 under P and -mu^2/2 under Q."""
        square = self.mu_squared
        x, y = (loss - square / 2) / np.sqrt(square), (loss + square / 2) / np.sqrt(square)
        slip = 4 * np.finfo(float).eps * (np.abs(loss) + square)
        return Tails(special.ndtr(-x), special.ndtr(x), special.ndtr(-y), special.ndtr(y), slip)

    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """Exactly -mu^2 y^2 / 2."""
        return -self.mu_squared[..., None] / 2 * y**2
