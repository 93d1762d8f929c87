"""The privacy losses of Laplace noise on a sample, when one record is replaced by another.

Noise multipliers are noise over one record's clip norm: a replaced record moves the sum by up to 2.
"""

from dataclasses import dataclass

import numpy as np

from dpjax.accounting.leaks import Tails
from dpjax.accounting.leaks._amplified import log_mixed_ratio, posterior
from dpjax.accounting.leaks._symmetric import (
    ELLIPSE,
    TURN,
    Law,
    Plan,
    SymmetricLeak,
    log_decay_of_half,
)

_UNIT = np.finfo(float).eps
_HALF_PANEL = 0.38  # of z: the ellipse stays within |Im z| < pi / 2
_LARGEST = 600.0  # of 1/b, beyond which only the largest loss is known


class _Replaced(SymmetricLeak):
    """What both ways of sampling share: losses l(z) - l(z0), z from z0 to e0, l as for Poisson.

    Under P the density of z is exp(l(z)) exp(-(z + e0) / 2) / 4, and e0 has the chance
    exp(l(e0)) exp(-e0) / 2, where e0 is that of the whole sample. For a Poisson sample z0 is -e0,
    without replacement it is 0.
    """

    sampling_probability: np.ndarray
    noise_multiplier: np.ndarray

    _unit = 1.0  # the shift of the mean, e0 over which is 1 / noise_multiplier
    _mirrored = 1.0  # -z0 / e0

    def _integrable(self) -> np.ndarray:
        """With noise and with a sample."""
        q, b = np.broadcast_arrays(self.sampling_probability, self.noise_multiplier)
        return np.asarray((b > 0) & np.isfinite(b) & (q > 0))

    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The parameters q and e0, one row each."""
        q, e0 = np.broadcast_arrays(self.sampling_probability, self._unit / self.noise_multiplier)
        return q.reshape(-1, 1), e0.reshape(-1, 1)

    def _level(self, z: np.ndarray, q: np.ndarray, e0: np.ndarray) -> np.ndarray:
        """The loss at z."""
        start, past = -self._mirrored * e0, z + self._mirrored * e0
        near = np.log1p(posterior(start, q) * np.expm1(np.minimum(past, _LARGEST)))
        return np.where(past < _LARGEST, near, log_mixed_ratio(z, q) - log_mixed_ratio(start, q))

    def _law(self, x: np.ndarray) -> Law:
        """The density of z."""
        q, e0 = self._parts()
        log_p = log_mixed_ratio(x, q) - (x + e0) / 2 - np.log(4)
        return self._as_law(log_p, x, q, e0)

    def _atom(self) -> Law:
        """The chance of the largest loss."""
        q, e0 = self._parts()
        return self._as_law(log_mixed_ratio(e0, q) - e0 - np.log(2), e0, q, e0)

    def _as_law(self, log_p: np.ndarray, z: np.ndarray, q: np.ndarray, e0: np.ndarray) -> Law:
        """A chance and the loss at z."""
        loss = self._level(z, q, e0)
        size = np.abs(z) + e0
        return Law(log_p, loss, 8 + 2 * size, 8 + 2 * size * np.minimum(1, 1 / loss))

    def _plan(self, c: np.ndarray, size: np.ndarray) -> Plan:
        """All of z; the slopes of the exponents are at most 1/2 + (|t| + 1) sqrt(2) p on it."""
        q, e0 = self._parts()
        p = posterior(e0 + ELLIPSE * _HALF_PANEL, q)
        slope = 0.5 + np.sqrt(2) * (size[:, None] + 1) * p
        low = -self._mirrored * e0
        panels = np.ceil((e0 - low) / (2 * np.minimum(_HALF_PANEL, TURN / slope)))
        panels = np.where(e0 < _LARGEST, panels, np.inf)
        nothing = np.full(c.shape, -np.inf)
        return Plan(low[:, 0], e0[:, 0], panels[:, 0], np.zeros(c.shape, bool), nothing)

    def supremum(self, direction: str) -> np.ndarray:
        """The loss at e0."""
        shape = self.shape
        with np.errstate(all="ignore"):
            q, e0 = self._parts()
            largest = self._level(e0, q, e0).reshape(shape)
        return np.where(self._integrable(), largest, 0.0)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """Without noise a record shows with probability q."""
        return np.where(self.noise_multiplier == 0, self.sampling_probability, 0.0)

    @np.errstate(all="ignore")
    def _crossing(self, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, e0 and the z at which the loss is the one given, at least 0."""
        q, e0 = np.broadcast_arrays(self.sampling_probability, self._unit / self.noise_multiplier)
        start = np.asarray(-self._mirrored * e0)
        return q, e0, np.asarray(start + np.log1p(np.expm1(loss) / posterior(start, q)))

    @np.errstate(all="ignore")
    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Beyond the z of |loss|; Q of the losses below -l is P of those above l."""
        q, e0, z = self._crossing(np.abs(loss))
        end = self.supremum(direction)
        inside = np.abs(loss) <= end
        z = np.minimum(z, e0)
        p = (1 - q) * np.exp(-(z + e0) / 2) / 2 + q * (1 - np.exp((z - e0) / 2) / 2)
        start = np.exp(log_mixed_ratio(np.asarray(-self._mirrored * e0), q))
        other = start * np.exp(-(z + e0) / 2) / 2
        upper = loss >= 0
        # at the end itself the atom is not above, but it is at or below the opposite
        p = np.where(inside & ~(upper & (loss == end)), p, 0)
        other = np.where(inside & ~(upper & (loss == end)), other, 0)
        slip = 8 * _UNIT * (np.abs(loss) + e0)
        return Tails(
            np.where(upper, p, 1 - other),
            np.where(upper, 1 - p, other),
            np.where(upper, other, 1 - p),
            np.where(upper, 1 - other, p),
            slip,
        )

    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """Log delta of one release, q (1 - exp((z - e0) / 2)) at the z whose loss is epsilon."""
        q, e0, z = self._crossing(epsilon)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(q) + np.log(np.maximum(-np.expm1((z - e0) / 2), 0))

    @np.errstate(all="ignore")
    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """The atoms at both ends turn against each other; between is a floor of the density.

        In each cell of z the log of the tilted density of z lies above its lower end less h^2 / 8
        of its largest curvature, (c + 1) / 4, and the slope of the loss is largest at the right.
        """
        full = np.broadcast_shapes(self.shape, c.shape[:-1], y.shape[:-1])
        c, y = (np.broadcast_to(v, (*full, v.shape[-1])) for v in (c, y))
        shape, value = y.shape, self.cumulant(c, direction).reshape(-1, 1)
        c, y = c.reshape(-1, 1), y.reshape(-1, y.shape[-1])
        flat = self.take(full, np.arange(len(y)))
        result = np.zeros(y.shape)
        todo = np.flatnonzero(flat._integrable() & np.isfinite(value[:, 0]))
        flat, c, y, value = flat.take((len(y),), todo), c[todo], y[todo], value[todo]
        q, e0 = flat._parts()
        cells = 256 * (1 + int(min(np.max(e0, initial=0) / 4, 15)))
        z = -self._mirrored * e0 + (1 + self._mirrored) * e0 * np.linspace(0, 1, cells + 1)
        law, end = flat._law(z), flat._atom()
        log_w = law.log_p + c * law.loss - value
        bend = (c + 1) * ((1 + self._mirrored) * e0 / cells) ** 2 / 32
        log_slope = np.log(posterior(z[:, 1:], q))
        floor = np.minimum(log_w[:, 1:], log_w[:, :-1]) - bend - log_slope - 1e-12 * (c + 1)
        up = np.exp(end.log_p + c * end.loss - value)
        down = np.exp(end.log_p - (c + 1) * end.loss - value)
        turn = np.minimum(y * end.loss, np.pi / 2)
        atoms = 2 * up * down / (up + down) * np.sin(turn) ** 2
        far = np.maximum(y, np.pi / 2 / end.loss)
        faded = -np.expm1(log_decay_of_half(law.loss, floor, c, far))
        lost = np.where(turn < np.pi / 2, np.minimum(atoms, faded), faded)
        result[todo] = np.log1p(-np.clip(np.nan_to_num(lost) * (1 - 1e-9), 0, 1 - 1e-300))
        return result.reshape(shape)


@dataclass(frozen=True, eq=False)
class ReplacedLaplace(_Replaced):
    """P = (1-q) Lap(0, b) + q Lap(1, b), Q = (1-q) Lap(0, b) + q Lap(-1, b): Poisson samples.

    The pair dominates a release of any dimension with L1 clip norm 1 in which each record takes
    part with probability q, when one record is replaced by another, by the argument of
    `ReplacedGaussian`. A set of chance m
    under Lap(0, b)^d has a chance of at most F_v(m) when the noise moves by v along one axis, that
    of the half-line, and F_u(F_v(m)) = F_(u+v)(m): so it has at most F_1(m) after a move of L1 norm
    1, axis by axis, and at least 1 - F_1(1 - m). The half-lines attain both at once.
    """

    sampling_probability: np.ndarray
    noise_multiplier: np.ndarray


@dataclass(frozen=True, eq=False)
class SubsetLaplace(_Replaced):
    """Laplace noise on a sample of fixed size, drawn without replacement.

    The pair is made from (P, Q) = (Lap(2, b), Lap(0, b)), which dominates a release of L1 clip norm
    1 when a record of the sample is replaced, as that of `SubsetGaussian` is from Gaussians.
    """

    sampling_probability: np.ndarray
    noise_multiplier: np.ndarray

    _unit = 2.0
    _mirrored = 0.0
