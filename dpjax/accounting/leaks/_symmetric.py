"""Smooth pairs that leak alike in both directions, integrated over their positive losses.

Let Q be the mirror image of P, which turns the sign of L = log dP/dQ. Then the moments are

    M(t) = 1 + 4 int sqrt(P Q) sinh(t L / 2) sinh((t + 1) L / 2)     over the half where L > 0,

in which nothing cancels. With c' = c + 1/2, s = sin(y L / 2) and k = cos(y L / 2) the product on a
line t = c + iy is sinh(c L / 2) sinh((c+1) L / 2) - cosh(c' L) s^2 + i sinh(c' L) s k: real
functions of the abscissas, and one sine and cosine for each node. Where M is beyond exp(60), it is
the plain integral of P exp(t L) around its peak, and what else there is counts as error.

The integral is by 16 Gauss-Legendre nodes a panel: a rule that errs by less than 64/15 m r^-32 /
(1 - r^-2) of half a panel, m the largest modulus on the ellipse of parameter r around it (Trefethen
2019, Theorem 19.3). A family makes its panels so small that the logarithm of none of the four
exponentials above changes by more than 4 over half a panel, anywhere on the ellipse of parameter
8: they err by less than 1e-17, and 1e-15 is allowed for.
"""

from typing import Any, NamedTuple

import numpy as np

from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks._decay import log_decay_of_floor
from dpjax.accounting.leaks._series import log1p

TURN = 4.0  # what an exponent may change over half a panel
ELLIPSE = 4.07  # its half-axis, in units of half a panel
HEAVY = 60.0  # log of the moments that are integrated around their peak alone
_UNIT = np.finfo(float).eps
_TRUNCATION = 1e-15
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_LARGEST = 600.0  # exponent that needs no common factor
_MOST = 1 << 15  # panels of one integral
_BLOCK = 1 << 18  # values held at once


class Plan(NamedTuple):
    """The range of the abscissas, one row a moment, and how it is integrated.

    Attributes:
        low: First abscissa.
        high: Last abscissa.
        panels: Half a panel is (high - low) / (2 panels) at most.
        heavy: Whether M is integrated around its peak alone.
        log_cut: Log of a bound on what is left out.
    """

    low: np.ndarray
    high: np.ndarray
    panels: np.ndarray
    heavy: np.ndarray
    log_cut: np.ndarray


class Law(NamedTuple):
    """The half where L > 0 at some abscissas, (rows, points).

    Attributes:
        log_p: Log of the density of P, or of the chance of an atom.
        loss: L, rising.
        spread: Rounding of log_p, in units.
        slip: Relative rounding of L, in units.
    """

    log_p: np.ndarray
    loss: np.ndarray
    spread: np.ndarray
    slip: np.ndarray


class SymmetricLeak(Leak):
    """A leak by its half where L > 0: `_plan`, `_law` and, where there is one, `_atom`."""

    max_nodes = 1 << 12
    has_tails = True

    def _integrable(self) -> np.ndarray:
        """Where there is something to integrate; elsewhere K is 0."""
        raise NotImplementedError

    def _plan(self, c: np.ndarray, size: np.ndarray) -> Plan:
        """Abscissas for moments with Re t = c and |t| up to size; flat, as the parameters are."""
        raise NotImplementedError

    def _law(self, x: np.ndarray) -> Law:
        """The density at abscissas (rows, points)."""
        raise NotImplementedError

    def _atom(self) -> Law | None:
        """The chance of the largest loss, (rows, 1)."""
        return None

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log of the integral."""
        return self.cumulant_with_error(t, direction)[0]

    @np.errstate(all="ignore")  # log 0, and overflow to infinity, are the right limits throughout
    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Log of the integral; its rounding and truncation."""
        full = np.broadcast_shapes((*self.shape, 1), t.shape)
        t = np.where(np.real(t) < -0.5, -1 - t, t)  # the pair is symmetric: K(t) = K(-1 - t)
        nodes = np.broadcast_to(t, full).reshape(-1, full[-1])
        places = np.arange(len(nodes))
        if not np.iscomplexobj(t) or np.any(np.real(nodes) != np.real(nodes[:, :1])):
            # nodes on one line share their abscissas, all others have their own
            places, nodes = np.repeat(places, full[-1]), nodes.reshape(-1, 1)
        value, error = np.zeros(nodes.shape, t.dtype), np.zeros(nodes.shape)
        flat = self.take(full[:-1], places)
        todo = np.flatnonzero(flat._integrable())
        value[todo] = np.where(nodes[todo] == 0, 0, np.inf)  # a bound, for what is not integrated
        flat, c = flat.take((len(nodes),), todo), np.real(nodes[todo, 0])
        plan = flat._plan(c, np.abs(nodes[todo]).max(1, initial=0))
        panels = np.ceil(2 ** (np.ceil(4 * np.log2(np.maximum(plan.panels, 1))) / 4))
        for size in np.unique(panels[panels <= _MOST]):
            rows = np.flatnonzero(panels == size)
            for part in np.split(rows, range(0, len(rows), max(1, int(_BLOCK / (16 * size))))[1:]):
                one = flat.take((len(todo),), part)
                law = _weighted(one, Plan(*(v[part] for v in plan)), int(size))
                y, here = np.imag(nodes[todo[part]]), todo[part]
                value[here], error[here] = _moments(law, plan, part, c[part, None], y)
        value = np.where(nodes == 0, 0, value)
        return value.reshape(full), np.where(nodes == 0, 0, error).reshape(full)


def log_decay_of_half(
    loss: np.ndarray, log_floor: np.ndarray, c: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """As `log_decay_of_floor`, of the whole tilted law, from cells of the half where L > 0.

    Its density at -L is exp(-(2 c + 1) L) times that at L. Cells that do not start at 0 are alone.
    """
    mirrored = np.where(loss[:, :1] > 0, -np.inf, log_floor - (2 * c + 1) * loss[:, 1:])
    points = np.concatenate([-loss[:, :0:-1], loss], 1)
    return log_decay_of_floor(points, np.concatenate([mirrored[:, ::-1], log_floor], 1), y)


def _weighted(leak: Any, plan: Plan, panels: int) -> Law:
    """The law on all abscissas, with the weights of the quadrature in log_p, and its atom."""
    low, high = plan.low[:, None], plan.high[:, None]
    unit = ((np.arange(panels)[:, None] + (1 + _NODES) / 2) / panels).ravel()
    law = leak._law(low + (high - low) * unit)
    log_weight = np.log(np.tile(_WEIGHTS / 2 / panels, panels)) + np.log(high - low)
    law = law._replace(log_p=law.log_p + log_weight)
    atom = leak._atom()
    if atom is None:
        return law
    return Law(*(np.concatenate(both, 1) for both in zip(law, atom, strict=True)))


def _moments(
    law: Law, plan: Plan, part: np.ndarray, c: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log M on lines c + iy and its error, (rows, nodes)."""
    heavy, log_cut = plan.heavy[part, None], plan.log_cut[part, None]
    loss = law.loss
    exponent = law.log_p + c * loss
    peak = exponent.max(1, keepdims=True)
    scale = np.where(peak < _LARGEST, 0, peak)
    weight = np.exp(exponent - scale)
    still = np.where(heavy, 1, np.expm1(-c * loss) * np.expm1(-(c + 1) * loss))
    turn = np.exp(-(2 * c + 1) * loss)
    base, even, odd = weight * still, 2 * weight, 2 * weight
    even, odd = np.where(heavy, even, even * (1 + turn)), np.where(heavy, odd, odd * (1 - turn))
    unity = np.where(heavy, 0, np.exp(-scale))

    def total(terms: np.ndarray) -> np.ndarray:
        return terms.sum(1, keepdims=True)

    # units of rounding: the law's, the sum's, and of the products c L and (c + 1) L
    units = 16 + np.sqrt(loss.shape[1]) + law.spread + law.slip * (1 + (np.abs(c) + 1) * loss)
    slip = total(units * np.abs(base))
    size = total(np.abs(base))
    mean = total(base)
    if np.any(y):
        mean = mean + _turned(even, odd, loss, y)
        w = np.abs(y)
        slip = slip + np.minimum(
            total(units * even) + w * total(units * even * loss),
            w**2 * total(units * even * loss**2),
        )
        slip = slip + w * total(units * odd * loss)
        size = size + np.minimum(total(even), w**2 * total(even * loss**2))
        size = size + np.minimum(w * total(odd * loss), total(odd))
    modulus = np.abs(mean + unity)
    error = (_UNIT * slip + _TRUNCATION * size + 4 * np.exp(log_cut - scale)) / modulus
    value = np.where(heavy | (scale > 0), scale + np.log(mean + unity), log1p(mean))
    return value, np.log1p(error) + _UNIT * np.abs(np.real(value)) + _UNIT * (scale > 0)


def _turned(even: np.ndarray, odd: np.ndarray, loss: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Sum of odd i s k - even s^2 over the abscissas, on (rows, nodes)."""
    real, imaginary = np.empty(y.shape), np.empty(y.shape)
    width = max(1, _BLOCK // loss.size)
    for i in range(0, y.shape[1], width):
        half = y[:, i : i + width, None] * (loss / 2)[:, None]
        sine = np.sin(half)
        real[:, i : i + width] = -np.matmul(sine * sine, even[..., None])[..., 0]
        sine *= np.cos(half)
        imaginary[:, i : i + width] = np.matmul(sine, odd[..., None])[..., 0]
    return real + 1j * imaginary
