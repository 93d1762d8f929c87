"""The Laplace mechanism's privacy loss."""

from dataclasses import dataclass

import numpy as np

from dpjax.accounting.leaks import Leak, Tails
from dpjax.accounting.leaks._series import expm1_less, log1p


@dataclass(frozen=True, eq=False)
class Laplace(Leak):
    """Lap(1, b) against Lap(0, b): |L| <= e0 = 1/b, with atoms at both ends.

    P(L = e0) = 1/2, P(L = -e0) = exp(-e0)/2, and between them the density exp((l - e0)/2)/4
    (Zhu, Dong, Wang 2022, Proposition 8, give the pair). It dominates a real-valued release of
    sensitivity 1, and one of any dimension with L1 sensitivity 1, in both directions.
    """

    noise_multiplier: np.ndarray

    has_tails = True

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

    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """Log delta of one release, 1 - exp((epsilon - e0) / 2)."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(-np.expm1((epsilon - self.pure_epsilon) / 2), 0))

    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Under P half of exp((l - e0) / 2) is below, under Q half of exp((-l - e0) / 2) above."""
        e0 = self.pure_epsilon
        p_below = np.exp((np.minimum(loss, e0) - e0) / 2) / 2
        p_below = np.where(loss >= e0, 1, np.where(loss < -e0, 0, p_below))
        q_above = np.exp((-np.maximum(loss, -e0) - e0) / 2) / 2
        q_above = np.where(loss >= e0, 0, np.where(loss < -e0, 1, q_above))
        slip = 4 * np.finfo(float).eps * (np.abs(loss) + e0)
        return Tails(1 - p_below, p_below, q_above, 1 - q_above, slip)

    def supremum(self, direction: str) -> np.ndarray:
        """e0."""
        return self.pure_epsilon

    def infinite_mass(self, direction: str) -> np.ndarray:
        """1 without noise: the two outputs never meet."""
        return np.where(np.isfinite(self.pure_epsilon), 0.0, 1.0)

    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """A few units of rounding of the exponents, and less where the cumulant is small."""
        value = self.cumulant(t, direction)
        exponent = np.abs(t) * self.pure_epsilon[..., None]
        return value, 1e-15 * (1 + exponent) * np.minimum(1, 10 * np.abs(value))

    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """The atoms turn against each other up to y e0 = pi/2; beyond, the part between them fades.

        With tilted masses u, d of the atoms, |u exp(i y e0) + d exp(-i y e0)| is at most
        u + d - 2 u d sin(y e0)^2 / (u + d). The part between has density proportional to exp(w l),
        w = c + 1/2, whose transform is at most coth(w e0) w / |w + iy| times its mass.
        """
        e0 = self.pure_epsilon[..., None]
        value = self.cumulant(c, direction)
        up = np.exp(c * e0 - value) / 2
        down = np.exp(-(c + 1) * e0 - value) / 2
        w = c + 0.5
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = np.minimum(y * e0, np.pi / 2)
            both_atoms = 2 * up * down / (up + down) * np.sin(turn) ** 2
            far = np.maximum(y, np.pi / 2 / e0)
            shrink = np.minimum(w / np.tanh(w * e0) / np.hypot(w, far), 1)
        between = np.maximum(1 - up - down, 0)
        faded = between * (1 - shrink)
        loss = np.where(turn < np.pi / 2, np.minimum(both_atoms, faded), faded)
        return np.log1p(-np.clip(np.nan_to_num(loss), 0, 1 - 1e-300))
