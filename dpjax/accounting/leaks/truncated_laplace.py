"""The privacy loss of truncated Laplace noise."""

from dataclasses import dataclass

import numpy as np

from dpjax.accounting.leaks import Tails
from dpjax.accounting.leaks._symmetric import (
    TURN,
    Law,
    Plan,
    SymmetricLeak,
    log_decay_of_half,
)

_UNIT = np.finfo(float).eps
_LARGEST = 600.0  # of 1/b, beyond which only the largest loss and the mass at infinity are known
_CELLS = 512


@dataclass(frozen=True, eq=False)
class TruncatedLaplace(SymmetricLeak):
    """Laplace noise of scale b on [-B, B], B >= 1, against the same moved by 1.

    The density is log-concave: the best tests are half-lines, which gain with the shift, so that
    the pair dominates every smaller one, and every one of L1 norm 1, axis by axis. Outside of
    [1 - B, B] L is infinite. Inside, with e0 = 1/b and r = exp(-(B - 1) / b), it is e0 with chance
    (1 - r) / T, -e0 with exp(-e0) times that, and has the density exp((l - e0) / 2) / (2 T)
    between, T = 2 - r (1 + exp(-e0)).
    """

    noise_multiplier: np.ndarray
    bound: np.ndarray

    def _integrable(self) -> np.ndarray:
        """With noise."""
        b, _ = np.broadcast_arrays(self.noise_multiplier, self.bound)
        return np.asarray((b > 0) & np.isfinite(b))

    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The numbers e0, 1 - r and T."""
        b, bound = np.broadcast_arrays(self.noise_multiplier, self.bound)
        with np.errstate(all="ignore"):
            e0, inside = np.asarray(1 / b), np.asarray(-np.expm1((1 - bound) / b))
            total = np.asarray(inside * (1 + np.exp(-e0)) - np.expm1(-e0))
        return e0, inside, total

    def _rows(self) -> tuple[np.ndarray, ...]:
        """The same, one row each."""
        return tuple(value.reshape(-1, 1) for value in self._parts())

    def _law(self, x: np.ndarray) -> Law:
        """The density of the loss itself."""
        e0, _, total = self._rows()
        log_p = (x - e0) / 2 - np.log(2 * total)
        return Law(log_p, x + 0 * log_p, 8 + e0 + 0 * x, 8 + 0 * x + 0 * e0)

    def _atom(self) -> Law:
        """The chance of e0."""
        e0, inside, total = self._rows()
        return Law(np.log(inside / total), e0, 8 + e0, 8 + 0 * e0)

    def _plan(self, c: np.ndarray, size: np.ndarray) -> Plan:
        """All losses; no exponent is steeper than |t| + 1."""
        e0 = self._rows()[0][:, 0]
        panels = np.where(e0 < _LARGEST, np.ceil(e0 * (size + 1) / (2 * TURN)), np.inf)
        nothing = np.full(c.shape, -np.inf)
        return Plan(np.zeros(c.shape), e0, panels, np.zeros(c.shape, bool), nothing)

    def supremum(self, direction: str) -> np.ndarray:
        """The loss e0, infinite without noise."""
        return self._parts()[0]

    def infinite_mass(self, direction: str) -> np.ndarray:
        """The chance of noise beyond B - 1, on one side; 1 / (2 B) for infinite noise.

        That is (exp(-(B - 1) / b) - exp(-B / b)) / (2 - 2 exp(-B / b)).
        """
        b, bound = np.broadcast_arrays(self.noise_multiplier, self.bound)
        with np.errstate(all="ignore"):
            mass = np.exp((1 - bound) / b) * np.expm1(-1 / b) / np.expm1(-bound / b) / 2
            mass = np.where(np.isinf(b), 1 / (2 * bound), np.where(np.isinf(bound), 0, mass))
        return np.where(b == 0, 1.0, mass)

    @np.errstate(all="ignore")
    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Those of the atoms and the density; Q of the losses below -l is P of those above l."""
        e0, inside, total = self._parts()
        size = np.minimum(np.abs(loss), e0)
        at_end, beyond = np.abs(loss) == e0, np.abs(loss) > e0
        upper = loss >= 0
        without = beyond | (at_end & upper)
        # exp((e0 - l) / 2) - 1 and so on, from l to e0
        p = np.where(without, 0, (inside - np.expm1((size - e0) / 2)) / total)
        low = np.exp(-e0) * inside + np.exp(-(size + e0) / 2) - np.exp(-e0)
        q = np.where(without, 0, low / total)
        slip = 8 * _UNIT * (np.abs(loss) + e0)
        return Tails(
            np.where(upper, p, 1 - q),
            np.where(upper, 1 - p, q),
            np.where(upper, q, 1 - p),
            np.where(upper, 1 - q, p),
            slip,
        )

    @np.errstate(all="ignore")
    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """Log delta of one release whose loss is finite."""
        e0, inside, total = self._parts()
        past = epsilon - e0  # not above 0
        value = -inside * np.expm1(past) + np.expm1(past / 2) ** 2
        return np.where(past < 0, np.log(value / total), -np.inf)

    @np.errstate(all="ignore")
    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """From a floor under the density of the tilted loss, which rises."""
        full = np.broadcast_shapes(self.shape, c.shape[:-1], y.shape[:-1])
        c, y = (np.broadcast_to(v, (*full, v.shape[-1])) for v in (c, y))
        shape, value = y.shape, self.cumulant(c, direction).reshape(-1, 1)
        c, y = c.reshape(-1, 1), y.reshape(-1, y.shape[-1])
        flat = self.take(full, np.arange(len(y)))
        result = np.zeros(y.shape)
        todo = np.flatnonzero(flat._integrable() & np.isfinite(value[:, 0]))
        flat, c, value = flat.take((len(y),), todo), c[todo], value[todo]
        points = flat._rows()[0] * np.linspace(0, 1, _CELLS + 1)
        law = flat._law(points)
        floor = (law.log_p + c * law.loss - value)[:, :-1]
        result[todo] = log_decay_of_half(points, floor - 1e-9, c, y[todo])
        return result.reshape(shape)
