"""The privacy loss of the Laplace mechanism on a Poisson sample."""

from dataclasses import dataclass

import numpy as np

from dpjax.accounting.leaks import REMOVE_ADD, Cells, Leak, Tails
from dpjax.accounting.leaks._amplified import log_delta_of_sample, log_mixed_ratio, place_of_loss
from dpjax.accounting.leaks._decay import log_decay_of_floor
from dpjax.accounting.leaks._line_sums import is_line, line_sums
from dpjax.accounting.leaks._series import expm1_less, log1p

_UNIT = np.finfo(float).eps
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_HALF_WIDTH = 0.4  # of a panel: its ellipse stays within |Im z| < pi / 2
_TURN = 4.0  # what the exponent may change over half a panel
_TRUNCATION = 1e-15
_LARGEST = 600.0  # of 1/b, and of exponents that need no common factor
_MOST, _MOST_OF_LINE = 1 << 11, 1 << 13  # panels of one integral, and of one on a long line
_LONG = 1 << 12  # nodes times abscissas from which on a line is a sum by transforms
_BLOCK = 1 << 18  # values of the integrand held at once


@dataclass(frozen=True, eq=False)
class PoissonLaplace(Leak):
    """B = (1-q) Lap(0, b) + q Lap(1, b) against A = Lap(0, b); "remove" is (B, A), "add" (A, B).

    These pairs dominate a release of L1 sensitivity 1 in which each record takes part with
    probability q, when a record is removed or added (Zhu, Dong, Wang 2022, Theorem 11).

    With w = q (exp(z) - 1) and l = log(1 + w) the moments are E_A[exp((t+1) l)] for remove and
    E_A[exp(-t l)] for add. Under A, with e0 = 1/b, z is -e0 with chance 1/2, e0 with chance
    exp(-e0)/2, and between them it has the density exp(-(z + e0)/2)/4. There the integral is by 16
    Gauss-Legendre nodes a panel: a rule that errs by less than 64/15 M r^-32 / (1 - r^-2) of half a
    panel, with M the largest modulus on the ellipse of parameter r around it (Trefethen 2019,
    Theorem 19.3). At r = 8, as |l'| <= min(1, q exp(Re z) / (1-q)) for |Im z| < pi/2, panels on
    which the exponent changes by 8 at most err by 2e-20, and 1e-15 is allowed for.
    """

    sampling_probability: np.ndarray
    noise_multiplier: np.ndarray

    directions = REMOVE_ADD
    max_nodes = 1 << 17
    has_tails = True

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log of the atoms and the integral."""
        return self.cumulant_with_error(t, direction)[0]

    @np.errstate(all="ignore")  # log 0, and overflow to infinity, are the right limits throughout
    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Log of the atoms and the integral; its rounding and truncation."""
        full = np.broadcast_shapes((*self.shape, 1), t.shape)
        q, e0 = self._flat(full[:-1])
        t = np.broadcast_to(t, full).reshape(-1, full[-1])
        if not np.iscomplexobj(t):  # nodes on one line share their abscissas, others have their own
            q, e0, t = np.repeat(q, full[-1]), np.repeat(e0, full[-1]), t.reshape(-1, 1)
        value, error = np.zeros(t.shape, t.dtype), np.zeros(t.shape)
        bare = np.isinf(e0) & (q > 0)  # without noise what is left of L is the constant +-log(1-q)
        constant = (1 if direction == "remove" else -1) * np.log1p(-q[bare])[:, None] * t[bare]
        value[bare] = np.where(q[bare, None] == 1, np.inf, constant)
        value[t == 0] = 0
        todo = np.flatnonzero((e0 > 0) & np.isfinite(e0) & (q > 0))
        value[todo] = np.where(t[todo] == 0, 0, np.inf)  # a bound, for what is not integrated
        least = np.real(t[todo]).min(1, initial=np.inf) + (direction == "remove")
        low, high = (np.zeros(e0.shape) for _ in range(2))
        low[todo], high[todo] = _ends(q[todo], e0[todo], least, direction)
        power = np.abs(t[todo]).max(1, initial=0) + 1
        panels = _panels(q[todo], e0[todo], low[todo], high[todo], power)
        line = is_line(t)
        for size in np.unique(panels[panels <= (_MOST_OF_LINE if line else _MOST)]):
            rows = todo[panels == size]
            if line and 16 * size * t.shape[1] > _LONG:
                some = max(1, _BLOCK // int(16 * size + t.shape[1]))
                for part in np.split(rows, range(some, len(rows), some)):
                    grid = _abscissas(low[part], high[part], e0[part], int(size))
                    cut = high[part] - low[part] < 2 * e0[part]
                    value[part], error[part] = _line(*grid, q[part], t[part], direction, cut)
                continue
            some = max(1, _BLOCK // int(16 * size * t.shape[1]))
            for part in np.split(rows, range(some, len(rows), some)):
                width = max(1, _BLOCK // int(16 * size))
                for i in range(0, t.shape[1], width):
                    here = np.ix_(part, np.arange(i, min(i + width, t.shape[1])))
                    grid = _abscissas(low[part], high[part], e0[part], int(size))
                    cut = high[part] - low[part] < 2 * e0[part]
                    value[here], error[here] = _moments(*grid, q[part], t[here], direction, cut)
        return value.reshape(full), error.reshape(full)

    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """Log delta of one release, by amplification of the Laplace's (Balle et al. 2018)."""
        q, e0 = np.broadcast_arrays(self.sampling_probability, self._pure())

        def inside(epsilon: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(np.log(np.maximum(-np.expm1((epsilon - e0) / 2), 0)))

        return log_delta_of_sample(epsilon, q, direction, inside)

    @np.errstate(all="ignore")
    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Those of z on both sides of the place whose loss it is, atoms at -e0 and e0 included.

        There A(z > y) = exp(-(y + e0) / 2) / 2, and without sampling B is A with z turned around.
        """
        q, e0 = np.broadcast_arrays(self.sampling_probability, self._pure())
        level = loss if direction == "remove" else -loss
        z = place_of_loss(level, q)
        share = np.exp(np.minimum(np.log(q) + z - level, 0))  # the slope of the loss in z
        slip = 8 * _UNIT * (np.abs(level) + q + share * (1 + np.abs(z)))
        inside = np.clip(z, -e0, e0)
        low, high = 1 - np.exp(-(inside + e0) / 2) / 2, np.exp(-(inside + e0) / 2) / 2
        shifted_low, shifted_high = np.exp((inside - e0) / 2) / 2, 1 - np.exp((inside - e0) / 2) / 2
        # an atom at the place is not above it; in direction add, where losses rise as z falls, it
        # is not below it
        under = z < -e0 if direction == "remove" else z <= -e0
        over = z >= e0 if direction == "remove" else z > e0
        low, high = (np.where(over, 1 - i, np.where(under, i, v)) for i, v in ((0, low), (1, high)))
        shifted_low, shifted_high = (
            np.where(over, 1 - i, np.where(under, i, v))
            for i, v in ((0, shifted_low), (1, shifted_high))
        )
        mixed_low = (1 - q) * low + q * shifted_low
        mixed_high = (1 - q) * high + q * shifted_high
        if direction == "remove":
            return Tails(mixed_high, mixed_low, high, low, slip)
        return Tails(low, high, mixed_low, mixed_high, slip)

    @np.errstate(all="ignore")
    def cells(self, edges: np.ndarray, direction: str) -> Cells:
        """Of a density that falls like exp(-z / 2) under A, and rises like it without sampling."""
        q, e0 = self.sampling_probability, self._pure()
        z = place_of_loss(edges if direction == "remove" else -edges, q)
        low, high = (z[:-1], z[1:]) if direction == "remove" else (z[1:], z[:-1])
        inside = np.clip(low, -e0, e0), np.clip(high, -e0, e0)
        share = -np.expm1(-(inside[1] - inside[0]) / 2) / 2
        a, b = share * np.exp(-(inside[0] + e0) / 2), share * np.exp((inside[1] - e0) / 2)
        for place, of_a, of_b in ((-e0, 0.5, np.exp(-e0) / 2), (e0, np.exp(-e0) / 2, 0.5)):
            # the upper edge is in the cell; in direction add, where losses rise as z falls, it is z
            above = low < place if direction == "remove" else low <= place
            atom = above & (place <= high if direction == "remove" else place < high)
            a, b = a + np.where(atom, of_a, 0), b + np.where(atom, of_b, 0)
        mixed = (1 - q) * a + q * b
        error = _UNIT * (16 + 2 * e0)
        p, q = (mixed, a) if direction == "remove" else (a, mixed)
        return Cells(p, error * p + 1e-300, q, error * q + 1e-300)

    def supremum(self, direction: str) -> np.ndarray:
        """log(1 - q + q exp(e0)) for remove, -log(1 - q + q exp(-e0)) for add."""
        q, e0 = np.broadcast_arrays(self.sampling_probability, self._pure())
        with np.errstate(divide="ignore"):
            bare = np.log1p(-q) if direction == "remove" else -np.log1p(-q)
        sign = 1 if direction == "remove" else -1
        largest = sign * log_mixed_ratio(np.asarray(sign * np.where(np.isinf(e0), 0, e0)), q)
        return np.where(q == 0, 0.0, np.where(np.isinf(e0), bare, largest))

    def infinite_mass(self, direction: str) -> np.ndarray:
        """Without noise a removal shows with probability q."""
        q, e0 = np.broadcast_arrays(self.sampling_probability, self._pure())
        shows = np.isinf(e0) & ((direction == "remove") | (q == 1))
        return np.where(shows, q, 0.0)

    @np.errstate(all="ignore")
    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """The atoms turn against each other, as the Laplace's; between them is a density's floor.

        In each cell of z the log of the tilted density of z lies above its lower end less h^2 / 8
        of its largest curvature, p / 4, and the slope of l is largest at the right.
        """
        grid = np.broadcast_shapes(self.shape, c.shape[:-1], y.shape[:-1])
        q, e0 = self._flat(grid)
        c, y = (np.broadcast_to(v, (*grid, v.shape[-1])) for v in (c, y))
        shape, c, y = y.shape, c.reshape(-1, 1), y.reshape(-1, y.shape[-1])
        result = np.zeros(y.shape)
        value = self.cumulant(c.reshape(*grid, 1), direction).reshape(-1, 1)
        rows = np.flatnonzero((e0 > 0) & (e0 < _LARGEST) & (q > 0) & np.isfinite(value[:, 0]))
        q, e0, c, y, value = q[rows, None], e0[rows, None], c[rows], y[rows], value[rows]
        power = c + 1 if direction == "remove" else -c
        cells = 256 * (1 + int(min(np.max(e0, initial=0) / 4, 15)))
        z = e0 * np.linspace(-1, 1, cells + 1)
        level = log_mixed_ratio(z, q)
        log_w = power * level - (z + e0) / 2 - np.log(4) - value
        bend = np.maximum(power, 0) * (2 * e0 / cells) ** 2 / 32
        log_slope = (np.log(q) + z - level)[:, 1:]
        floor = np.minimum(log_w[:, 1:], log_w[:, :-1]) - bend - log_slope - 1e-12 * power
        down = np.exp(power * level[:, :1] - value) / 2
        up = np.exp(power * level[:, -1:] - e0 - value) / 2
        between = level[:, -1:] - level[:, :1]  # the atoms oppose each other at y = pi / between
        turn = np.minimum(y * between / 2, np.pi / 2)
        atoms = 2 * up * down / (up + down) * np.sin(turn) ** 2
        far = np.maximum(y, np.pi / between)
        faded = -np.expm1(log_decay_of_floor(level, floor, far))
        lost = np.where(turn < np.pi / 2, np.minimum(atoms, faded), faded)
        result[rows] = np.log1p(-np.clip(np.nan_to_num(lost) * (1 - 1e-9), 0, 1 - 1e-300))
        return result.reshape(shape)

    def _pure(self) -> np.ndarray:
        """e0 = 1/b."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1 / self.noise_multiplier)

    def _flat(self, grid: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """The parameters q and e0 on a grid, one row a place."""
        q, e0 = (np.broadcast_to(v, grid) for v in (self.sampling_probability, self._pure()))
        return q.ravel(), e0.ravel()


def _ends(
    q: np.ndarray, e0: np.ndarray, power: np.ndarray, direction: str
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of what is integrated: beyond, it is below exp(-60) of the atom with the largest loss.

    `power` is the least one of exp(+-l), above 0; that atom weighs exp(-e0) / 2 or more.
    """
    level = log_mixed_ratio(np.stack([-e0, e0], 1), q[:, None])
    fall = (60 + e0) / np.maximum(power, 1e-300)
    edge = level[:, 1] - fall if direction == "remove" else level[:, 0] + fall
    z = place_of_loss(edge, q)
    z = np.where((level[:, 0] < edge) & (edge < level[:, 1]) & (np.abs(z) < e0), z, np.nan)
    if direction == "remove":
        return np.where(np.isnan(z), -e0, z), e0
    return -e0, np.where(np.isnan(z), e0, z)


def _panels(
    q: np.ndarray, e0: np.ndarray, low: np.ndarray, high: np.ndarray, power: np.ndarray
) -> np.ndarray:
    """How many panels, a power of two; infinite beyond what is integrated."""
    reach = _HALF_WIDTH * 4.1  # of the ellipse
    slope = np.minimum(q * np.exp(np.minimum(high + reach, _LARGEST)) / (1 - q), 1)
    turns = (power * np.nan_to_num(slope, nan=1) + 0.5) / _TURN
    least = (high - low) / 2 * np.maximum(1 / _HALF_WIDTH, turns)
    size = 2.0 ** np.ceil(np.log2(np.maximum(least, 1)))
    return np.where(e0 < _LARGEST, size, np.inf)


def _abscissas(
    low: np.ndarray, high: np.ndarray, e0: np.ndarray, panels: int
) -> tuple[np.ndarray, np.ndarray]:
    """The values of z and the log of their chance, atoms first and last; (rows, 16 panels + 2)."""
    e0, half, middle = e0[:, None], (high - low)[:, None] / 2, (high + low)[:, None] / 2
    unit = ((2 * np.arange(panels)[:, None] + 1 + _NODES) / panels - 1).ravel()
    log_share = np.tile(np.log(_WEIGHTS / panels), panels)
    inside = middle + half * unit
    log_chance = log_share + np.log(half / 4) - (inside + e0) / 2
    atom = np.full_like(e0, -np.log(2))
    return np.concatenate([-e0, inside, e0], 1), np.concatenate([atom, log_chance, atom - e0], 1)


def _moments(
    z: np.ndarray,
    log_weight: np.ndarray,
    q: np.ndarray,
    t: np.ndarray,
    direction: str,
    cut: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Log E_A of the docstring and its error, on (rows, nodes); `cut` where some z are left out."""
    remove = direction == "remove"
    q, level = q[:, None], log_mixed_ratio(z, q[:, None])
    w, weight = q * np.expm1(z), np.exp(log_weight)
    lacking = -expm1_less(level)  # l - w
    # M - 1 without the terms of first order in w, whose mean is 0
    if remove:  # (1 + w) (exp(t l) - 1 - t l) + t ((1 + w) l - w)
        x, front, slope = t[..., None] * level[:, None], np.exp(level), lacking + w * level
    else:  # (exp(-t l) - 1 + t l) - t (l - w)
        x, front, slope = -t[..., None] * level[:, None], np.ones_like(level), -lacking
    weighted = (weight * front)[..., None]
    mean = np.matmul(expm1_less(x), weighted)[..., 0]
    mean = mean + t * (weight * slope).sum(1, keepdims=True)
    grown = np.exp(np.real(x))
    size = np.matmul(np.abs(x) * np.minimum(np.abs(x), 1) * (grown + 1), weighted)[..., 0]
    size = size + np.abs(t) * (weight * (np.abs(lacking) + np.abs(w * level))).sum(1, keepdims=True)
    relative = (16 * _UNIT + _TRUNCATION) * size / np.abs(1 + mean)
    value, error = log1p(mean), np.log1p(relative)
    # large exponents, relative to the largest
    exponent = x + (log_weight + (level if remove else 0))[:, None]
    peak = np.real(exponent).max(2)
    large = (peak > _LARGEST) | cut[:, None]
    if np.any(large):
        turned = np.exp(exponent - peak[..., None])
        total, modulus = turned.sum(2), np.abs(turned)
        slip = (modulus * (8 + np.abs(exponent))).sum(2) * _UNIT + _TRUNCATION * modulus.sum(2)
        value = np.where(large, peak + np.log(total), value)
        error = np.where(large, np.log1p(slip / np.abs(total)), error)
    return value, error + _UNIT * np.abs(np.real(value))


def _line(
    z: np.ndarray,
    log_weight: np.ndarray,
    q: np.ndarray,
    t: np.ndarray,
    direction: str,
    cut: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """As `_moments`, on a line c + iy: M / M(c) is 1 + sum of w (exp(iyl) - 1), w chances."""
    c, y = np.real(t[:, :1]), np.abs(np.imag(t))
    at_c, error_at_c = _moments(z, log_weight, q, c, direction, cut)
    level = log_mixed_ratio(z, q[:, None])
    exponent = log_weight + (c + 1 if direction == "remove" else -c) * level
    weights = np.exp(exponent - at_c)
    if direction == "add":
        level = -level
    step = np.imag(t[:, -1]) / max(t.shape[1] - 1, 1)
    sums, rounding = line_sums(weights, level, step, t.shape[1])
    units = _UNIT * (16 + np.abs(exponent) + np.abs(at_c)) + error_at_c + _TRUNCATION

    def total(terms: np.ndarray) -> np.ndarray:
        return terms.sum(1, keepdims=True)

    slip = np.minimum(y * total(weights * np.abs(level) * units), 2 * total(weights * units))
    slip = slip + 4 * _UNIT * y * total(weights * np.abs(level)) + np.exp(-59)  # what is cut off
    relative = (rounding + slip) / np.abs(1 + sums)
    value = at_c + log1p(sums)
    return value, error_at_c + np.log1p(relative) + _UNIT * np.abs(value)
