"""The privacy loss of Gaussian noise on a sum that a record moves by a random amount."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from dpjax.accounting import gaussian
from dpjax.accounting.leaks import REMOVE_ADD, Leak, Tails
from dpjax.accounting.leaks._decay import log_decay_of_floor
from dpjax.accounting.leaks._line_sums import is_line, line_sums
from dpjax.accounting.leaks._mixture import EXPONENT, REACH
from dpjax.accounting.leaks._series import log1p

_ANGLES = np.array([0.002, 0.006, 0.02, 0.1, 0.3, 0.6, 1.0, 1.5, 2.1, 2.9])
_MOST, _FEW = 1 << 18, 1 << 15  # abscissas of one integral: on a line, and of a real power
_HEAVY, _COARSE, _TURNS = 60.0, 64, 6  # log of a moment whose integral is trimmed, and how
_LEAST = -800.0  # log of what is left beyond _FAR standard deviations
_FAR, _CELLS, _STEPS = 40.0, 1 << 12, 6  # of the inverse of the loss
_UNIT = np.finfo(float).eps


class _Row(NamedTuple):
    """One release: shifts s_j over the largest of them, with chances p_j, and noise over it."""

    sigma: float
    shifts: np.ndarray
    p: np.ndarray

    def exponents(self, x: np.ndarray) -> np.ndarray:
        """The numbers z_j = s_j (2 x - s_j) / (2 sigma^2); (points, shifts)."""
        return self.shifts * (x[..., None] - self.shifts / 2) / self.sigma**2

    def level(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The number l = log sum_j p_j exp(z_j), its rounding, and log of its slope."""
        z = self.exponents(x)
        small = np.abs(z).max(-1) < 1
        near = np.expm1(np.where(small[..., None], z, 0))
        terms = np.log(self.p) + z
        peak = terms.max(-1)
        far = peak + np.log(np.exp(terms - peak[..., None]).sum(-1))
        value = np.where(small, np.log1p(near @ self.p), far)
        slip = 8 + 2 * np.abs(peak) + np.abs(z).max(-1)
        slip = np.where(small, 8 * (np.abs(near) @ self.p), slip)
        with np.errstate(divide="ignore"):
            log_slope = np.log(np.exp(terms - value[..., None]) @ self.shifts)
        return value, _UNIT * slip, log_slope - 2 * np.log(self.sigma)


@dataclass(frozen=True, eq=False)
class GaussianMixture(Leak):
    """B = sum_j p_j N(s_j, sigma^2) against A = N(0, sigma^2); "remove" is (B, A), "add" is (A, B).

    With shifts 0 and 1 it is the sampled Gaussian. The moments are integrals over x ~ A of
    exp(power l(x)), with power t + 1 for remove and -t for add, by the trapezoidal rule with a step
    h: it errs by less than 2 G / (exp(2 pi a / h) - 1), G the integral of the modulus on Im x = a
    (Trefethen, Weideman 2014, Theorem 5.1). In units of the largest shift, with a = u sigma^2 and
    u < pi, the exponents z_j turn by s_j u, between 0 and u. So exp(l) turns by no more than u, its
    modulus is between cos(u/2) and 1 times that on the real line, and G is at most
    exp(u^2 sigma^2 / 2 + |Im power| u) cos(u/2)^min(Re power, 0) times the moment at Re power.
    """

    scale: np.ndarray
    sensitivities: np.ndarray
    probabilities: np.ndarray

    directions = REMOVE_ADD
    max_nodes = 1 << 17
    has_tails = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid, without the shifts."""
        parts = (self.sensitivities.shape[:-1], self.probabilities.shape[:-1])
        return np.broadcast_shapes(self.scale.shape, *parts)

    def take(self, shape: tuple[int, ...], index: np.ndarray) -> "GaussianMixture":
        """The mixtures at flat positions of a grid."""
        lists = []
        for value in (self.sensitivities, self.probabilities):
            number = value.shape[-1]
            lists.append(np.broadcast_to(value, (*shape, number)).reshape(-1, number)[index])
        return GaussianMixture(np.broadcast_to(self.scale, shape).ravel()[index], *lists)

    def _rows(self, shape: tuple[int, ...]) -> list[_Row | None]:
        """One for each place; None where there is no noise, or nothing but noise."""
        flat = self.take(shape, np.arange(int(np.prod(shape))))
        number = np.broadcast_shapes(flat.sensitivities.shape, flat.probabilities.shape)
        lists = (np.broadcast_to(v, number) for v in (flat.sensitivities, flat.probabilities))
        rows: list[_Row | None] = []
        for scale, shifts, p in zip(flat.scale, *lists, strict=True):
            used = p > 0
            largest = float(np.max(shifts[used]))
            plain = largest > 0 and 0 < scale < np.inf
            parts = shifts[used] / (largest or 1.0), p[used]
            # beyond 1e100, more noise counts as so much
            rows.append(_Row(min(float(scale) / largest, 1e100), *parts) if plain else None)
        return rows

    def _unmoved(self) -> np.ndarray:
        """The chance of the shift 0, on the grid."""
        unmoved = np.where(self.sensitivities == 0, self.probabilities, 0.0).sum(-1)
        return np.asarray(unmoved + np.zeros(self.shape))

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log of the trapezoidal sum."""
        return self.cumulant_with_error(t, direction)[0]

    @np.errstate(all="ignore")  # log 0, and overflow to infinity, are the right limits throughout
    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Log of the trapezoidal sum; its rounding and truncation."""
        full = np.broadcast_shapes((*self.shape, 1), t.shape)
        power = np.broadcast_to(t + 1 if direction == "remove" else -t, full)
        power = power.reshape(-1, full[-1])
        value, error = np.zeros(power.shape, power.dtype), np.zeros(power.shape)
        rest = np.log(np.broadcast_to(self._unmoved(), full[:-1]).ravel())
        bare = np.broadcast_to((self.scale == 0) & np.isfinite(np.log(self._unmoved())), full[:-1])
        for i, row in enumerate(self._rows(full[:-1])):
            if row is None:  # without noise what is left of L is the constant log p_0, or less it
                constant = rest[i] * (power[i] - (direction == "remove"))
                value[i] = np.where(bare.ravel()[i], constant, 0)
                continue
            for columns in _lines(power[i]):
                value[i, columns], error[i, columns] = _log_moments(row, power[i, columns])
        return value.reshape(full), error.reshape(full)

    @np.errstate(all="ignore")
    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """Log delta of one release: the Gaussians' own deltas at the epsilons z_j of one abscissa.

        Where l(x) = epsilon, sum_j p_j exp(z_j) is exp(epsilon): hence, for remove, delta is the
        sum of p_j times the delta of a shift s_j at z_j. For add l(x) is -epsilon, and delta the
        sum of p_j exp(z_j + epsilon) times that at -z_j.
        """
        shape = np.broadcast_shapes(self.shape, epsilon.shape)
        wanted = np.broadcast_to(epsilon, shape).ravel()
        most = np.broadcast_to(self.supremum(direction), shape).ravel()
        result = np.where(wanted < most, _LEAST, -np.inf)  # where x is beyond all mass
        sign = 1 if direction == "remove" else -1
        for i, row in enumerate(self._rows(shape)):
            x, _ = _place(row, sign * wanted[[i]]) if row else (np.array([np.inf]), 0)
            if row and np.isfinite(x[0]):
                z = row.exponents(x)[0]
                each = _log_delta(sign * z, row.shifts / row.sigma)
                each = each + (0 if direction == "remove" else z + wanted[i])
                result[i] = special.logsumexp(each, b=row.p)
        return result.reshape(shape)

    @np.errstate(all="ignore")
    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Those of x on both sides of the abscissa whose loss it is."""
        shape = np.broadcast_shapes(self.shape, loss.shape)
        wanted = np.broadcast_to(loss, shape)
        rows = np.broadcast_to(np.arange(int(np.prod(self.shape))).reshape(self.shape), shape)
        found = np.zeros((5, *shape))
        for i, row in enumerate(self._rows(self.shape)):
            here = rows == i
            if row is None:
                found[:4, here] = (wanted[here] < 0) * 1.0, (wanted[here] >= 0) * 1.0, 0, 0
                found[2:4, here] = found[:2, here]
                continue
            x, slip = _place(row, wanted[here] if direction == "remove" else -wanted[here])
            at, moved = x / row.sigma, (x[..., None] - row.shifts) / row.sigma
            mixed = (special.ndtr(-moved) @ row.p, special.ndtr(moved) @ row.p)
            bare = (special.ndtr(-at), special.ndtr(at))
            ends = (*mixed, *bare) if direction == "remove" else (*bare[::-1], *mixed[::-1])
            found[:, here] = [*ends, slip]
        p_above, p_below, q_above, q_below, slip = (np.asarray(end) for end in found)
        return Tails(p_above, p_below, q_above, q_below, slip)

    def supremum(self, direction: str) -> np.ndarray:
        """Infinity for remove, -log of the chance of the shift 0 for add."""
        moves = np.where(self.probabilities > 0, self.sensitivities, 0).max(-1) > 0
        unmoved = self._unmoved()
        with np.errstate(divide="ignore"):
            bare = np.where(unmoved > 0, np.log(unmoved), 0)
            largest = np.where(self.scale > 0, np.inf, bare)
            largest = largest if direction == "remove" else -np.log(unmoved)
        return np.where(moves & np.isfinite(self.scale), largest, 0.0)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """Without noise a removal shows where it moves the sum."""
        unmoved = self._unmoved()
        shows = (
            np.asarray(1 - unmoved) if direction == "remove" else np.where(unmoved == 0, 1.0, 0.0)
        )
        return np.where(self.scale == 0, shows, 0.0)

    @np.errstate(all="ignore")
    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """From a floor under the density of the tilted loss, w / l' in each cell of x.

        Between two abscissas log w lies above its chord less h^2 / 8 of its largest curvature,
        power / (4 sigma^4) - 1 / sigma^2 or 0; and |(log l')'| is at most 1 / sigma^2.
        """
        full = np.broadcast_shapes(self.shape, c.shape[:-1], y.shape[:-1])
        c, y = (np.broadcast_to(v, (*full, v.shape[-1])) for v in (c, y))
        shape, c, y = y.shape, c.ravel(), y.reshape(-1, y.shape[-1])
        result = np.zeros(y.shape)
        for i, row in enumerate(self._rows(full)):
            power = np.array([c[i] + 1 if direction == "remove" else -c[i]])
            grid = _abscissas(row, power, 3.0) if row else None
            if row is None or grid is None:
                continue
            x, h, variance = *grid, row.sigma**2
            level, _, log_slope = row.level(x)
            log_w = power * level - x**2 / (2 * variance) - np.log(row.sigma * np.sqrt(2 * np.pi))
            log_w = log_w - _log_moments(row, power)[0]
            bend = max(power.item() / (4 * variance**2) - 1 / variance, 0) * h**2 / 8
            floor = np.minimum(log_w[1:], log_w[:-1]) - bend
            ceiling = np.maximum(log_slope[1:], log_slope[:-1]) + h / (2 * variance)
            floor = floor - ceiling - 1e-9 * (1 + abs(power.item()))
            result[i] = log_decay_of_floor(level[None], floor[None], y[[i]])[0]
        return result.reshape(shape)


def _log_delta(epsilon: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """That of the Gaussian; at -epsilon it is 1 - exp(-epsilon) + exp(-epsilon) delta(epsilon)."""
    size = np.abs(epsilon)
    value = gaussian.log_delta(size, mu=mu)
    return np.where(epsilon < 0, np.logaddexp(np.log(-np.expm1(-size)), value - size), value)


def _lines(power: np.ndarray) -> list[np.ndarray]:
    """Columns whose powers lie evenly on one line from the real axis on, or single ones."""
    every = np.arange(power.size)
    return [every] if is_line(power) else list(every[:, None])


def _abscissas(row: _Row, power: np.ndarray, finer: float) -> tuple[np.ndarray, float] | None:
    """Abscissas that serve powers of one real part, and their distance; None if too many.

    The integrand rises up to min(power, 0) and falls from max(power, 0) on, as l' <= 1 / sigma^2.
    Large powers live in a small part of this.
    """
    real, turn = float(np.real(power[0])), float(np.abs(np.imag(power)).max())
    angles = np.append(_ANGLES, min(REACH / row.sigma, _ANGLES[-1]))
    growth = angles**2 * row.sigma**2 / 2 + turn * angles
    growth = growth + min(real, 0) * np.log(np.cos(angles / 2))
    step = float((2 * np.pi * row.sigma**2 * angles / (EXPONENT + growth)).max()) / finer
    low, high = min(real, 0) - REACH * row.sigma, max(real, 0) + REACH * row.sigma
    least = real * np.log(row.p[row.shifts == 1].sum()) + real * (real - 1) / (2 * row.sigma**2)
    for _ in range(_TURNS if real < 0 or (real > 1 and least > _HEAVY) else 0):
        cut = max(least if real > 1 else 0, 0) - EXPONENT - 2  # by Jensen a moment is at least 1
        trimmed = _trimmed(row, real, low, high, cut)
        low, high = trimmed if real > 1 else (min(trimmed[0], -REACH * row.sigma), high)
    if not (high - low) / step < (_MOST if turn or finer > 1 else _FEW):
        return None
    number = int(np.ceil((high - low) / step)) + 1
    h = (high - low) / (number - 1)
    return low + h * np.arange(number), h


def _trimmed(
    row: _Row, power: float, low: float, high: float, log_cut: float
) -> tuple[float, float]:
    """The ends without what is less than exp(log_cut) of the integral, from bounds in cells.

    There l is convex: below its chord, and above its tangent in the left end.
    """
    ends = np.linspace(low, high, _COARSE + 1)
    level, _, log_slope = row.level(ends)
    slope = np.diff(level) / np.diff(ends) if power > 0 else np.exp(log_slope[:-1])
    best = np.clip(power * slope * row.sigma**2, ends[:-1], ends[1:])
    bound = power * (level[:-1] + slope * (best - ends[:-1])) - best**2 / (2 * row.sigma**2)
    bound = bound + np.log((high - low) / (_COARSE * row.sigma))
    kept = np.logaddexp.accumulate(bound) > log_cut
    kept &= np.logaddexp.accumulate(bound[::-1])[::-1] > log_cut
    cells = np.flatnonzero(kept)
    if not cells.size:
        return low, high
    return float(ends[cells[0]]), float(ends[cells[-1] + 1])


def _log_moments(row: _Row, power: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log E_A[exp(power l)] at powers on one line, and its error; infinite if it takes too much."""
    grid = _abscissas(row, power, 1.0)
    if grid is None:
        return np.full(power.shape, np.inf), np.zeros(power.shape)
    x, h = grid
    real, turn = float(np.real(power[0])), np.abs(np.imag(power))
    level, slip, _ = row.level(x)
    log_weight = -(x**2) / (2 * row.sigma**2) + np.log(h / (row.sigma * np.sqrt(2 * np.pi)))
    total = real * level + log_weight
    peak = total.max()
    scale = 0.0 if peak < 600 else peak  # beyond, all is relative to exp(peak)
    unity = np.exp(-scale)
    grown, weight = np.exp(total - scale), np.exp(log_weight) * unity
    gain = np.where(np.abs(real * level) < 1, weight * np.expm1(real * level), grown - weight)
    mean = np.asarray(gain.sum())
    units = _UNIT * (8 + x**2 / (2 * row.sigma**2) + np.log2(x.size))
    slip = slip + 4 * _UNIT * np.abs(level)
    size = np.minimum(np.abs(real * level), 1) * units + abs(real) * slip
    error = size @ np.maximum(grown, weight) + turn * (grown @ (np.abs(level) * units + slip))
    error = error + (grown[0] + grown[-1] + weight[0] + weight[-1]) * row.sigma / (REACH * h)
    error = error + 4 * np.exp(-EXPONENT) * (grown.sum() + weight.sum())
    if np.iscomplexobj(power):
        nodes = max(power.size, 2)
        step = np.imag(power[-1:]) / max(power.size - 1, 1)
        turned, rounding = line_sums(grown[None], level[None], step, nodes)
        mean, error = mean + turned[0, -power.size :], error + rounding[0, -power.size :]
    value = log1p(mean + 0 * power) if scale == 0 else scale + np.log(mean + unity + 0 * power)
    error = np.log1p((error + _UNIT * (scale > 0)) / np.abs(mean + unity))
    return value, error + _UNIT * np.abs(np.real(value))


def _place(row: _Row, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The abscissas where l is this, and how far off it is there; infinite ones beyond all mass."""
    ends, known = _inverse(row.sigma, tuple(row.shifts), tuple(row.p))
    cell = np.searchsorted(known, level, side="left")
    low, high = ends[np.maximum(cell - 1, 0)], ends[np.minimum(cell, _CELLS)]
    x = np.interp(level, known, ends)
    for _ in range(_STEPS):
        value, slip, log_slope = row.level(x)
        move = np.clip(x - (value - level) * np.exp(-log_slope), low, high) - x
        if np.all(np.abs(move) <= 4 * _UNIT * (1 + np.abs(x))):
            break
        x = x + move
    else:
        value, slip, log_slope = row.level(x)
    slip = slip + np.abs(value - level) + 8 * _UNIT * np.exp(log_slope) * (1 + np.abs(x))
    x = np.where(cell == 0, -np.inf, np.where(cell > _CELLS, np.inf, x))
    return x, np.where(np.isfinite(x), slip, 0.0)


@lru_cache(maxsize=64)
def _inverse(
    sigma: float, shifts: tuple[float, ...], p: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Abscissas from end to end of both laws, and l there."""
    ends = np.linspace(-_FAR * sigma, 1 + _FAR * sigma, _CELLS + 1)
    known = _Row(sigma, np.array(shifts), np.array(p)).level(ends)[0]
    return ends, np.maximum.accumulate(known)
