"""Pairs whose losses are a finite table: every number that is asked for is a sum over its rows."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpjax.accounting.leaks import Leak, Tails
from dpjax.accounting.leaks._line_sums import is_line, line_sums
from dpjax.accounting.leaks._series import expm1_less, log1p

_UNIT = np.finfo(float).eps
_NEAR = 600.0  # exponents without a common factor
_FEW = 64  # nodes, of which each is summed by itself
_BLOCK = 1 << 18  # values held at once


class Sums(NamedTuple):
    """Chances of all losses from each on, and of all before it, under P and Q; one more than rows.

    `slip` is a bound on the error of the losses next to it.
    """

    p_above: np.ndarray
    p_below: np.ndarray
    q_above: np.ndarray
    q_below: np.ndarray
    slip: np.ndarray


@dataclass(frozen=True, eq=False)
class Table:
    """The law of a loss given that it is finite.

    Attributes:
        losses: Rising.
        log_p: Logs of their chances under P.
        slip: Bounds on the errors of the losses.
        wrong: A bound on the relative error of the chances.
        gap: 1 - E[exp(-L)]: positive where Q has outputs that P has not.
    """

    losses: np.ndarray
    log_p: np.ndarray
    slip: np.ndarray
    wrong: float
    gap: float = 0.0

    @cached_property
    def sums(self) -> Sums:
        """The tails."""

        def ends(mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.append(np.cumsum(mass[::-1])[::-1], 0.0), np.append(0.0, np.cumsum(mass))

        p, q = ends(np.exp(self.log_p)), ends(np.exp(self.log_p - self.losses))
        return Sums(*p, *q, np.maximum(np.append(self.slip, 0), np.append(0, self.slip)))

    def log_moments(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log E[exp(t L)] and its error at (nodes,).

        M - 1 is the mean of exp(t L) - 1 - t (1 - exp(-L)), which is of second order, and t gap.
        """
        if t.size >= _FEW and is_line(t):
            return self._on_line(t)
        p, less = np.exp(self.log_p), expm1_less(-self.losses)
        x = t[:, None] * self.losses
        peak = (np.real(x) + self.log_p).max(1, keepdims=True)
        near = (np.real(x).max(1) < _NEAR)[:, None]
        z = np.where(near, x, 0)
        mean = expm1_less(z) @ p + t * (p @ less + self.gap)
        grown = p * np.exp(np.real(z))
        size = np.minimum(np.abs(z), np.abs(z) ** 2) * (grown + p)
        size = size.sum(1) + np.abs(t) * (p @ np.abs(less) + abs(self.gap))
        turned = np.exp(x + self.log_p - peak)
        far, modulus = turned.sum(1), np.abs(turned)
        value = np.where(near[:, 0], log1p(mean), peak[:, 0] + np.log(far))
        unit = self.wrong + 64 * _UNIT
        turn = np.abs(t) * (_UNIT * np.abs(self.losses).max() + self.slip.max())
        moved = np.abs(t) * (np.minimum(grown, np.abs(x) * (grown + p)) @ self.slip)
        near_error = (unit * size + moved) / np.abs(1 + mean)
        far_error = (unit + turn) * modulus.sum(1) / np.abs(far)
        error = np.log1p(np.where(near[:, 0], near_error, far_error)) + _UNIT * np.abs(value)
        return np.where(t == 0, 0, value), np.where(t == 0, 0, error)

    def _on_line(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same at many nodes t[0] + i n h: the sum of exp(t[0] L) (exp(i n h L) - 1) is added.

        All is relative to M(t[0]).
        """
        start, start_error = self.log_moments(np.real(t[:1]))
        weight = np.exp(self.log_p + np.real(t[0]) * self.losses - start[0])
        step = np.imag(t[-1:]) / (t.size - 1)
        turned, rounding = line_sums(weight[None], self.losses[None], step, t.size)
        value = log1p(turned[0])
        # the tilted law is as wrong as its chances and losses, which turn it too
        size = np.abs(self.losses)
        tilt = self.wrong + start_error[0] + 8 * _UNIT * (1 + np.abs(self.log_p))
        tilt = np.where(weight > 0, weight * tilt, 0)
        wrong = np.minimum(np.abs(np.imag(t)) * (tilt @ size), 2 * tilt.sum())
        moved = (np.abs(t) + 1) * (weight @ (self.slip + _UNIT * size))
        error = (wrong + moved + rounding[0]) / np.abs(1 + turned[0])
        return start + value, np.log1p(error) + start_error + _UNIT * np.abs(start)

    def log_delta(self, epsilon: float) -> float:
        """Log of the sum of p (1 - exp(epsilon - L)) over the losses above."""
        above = self.losses > epsilon
        log_gain = np.log(-np.expm1(epsilon - self.losses[above]))
        each = self.log_p[above] + log_gain
        peak = np.max(each, initial=-np.inf)
        return float(peak + np.log(np.exp(each - peak).sum())) if np.isfinite(peak) else -np.inf


class TabulatedLeak(Leak):
    """A leak whose losses are a finite table, one for each place of the grid."""

    has_tails = True
    max_nodes = 1 << 17

    def _tables(self, shape: tuple[int, ...], direction: str) -> list[Table | None]:
        """The tables on a grid that the parameters broadcast to; None where no loss is finite."""
        raise NotImplementedError

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log of a sum over the losses."""
        return self.cumulant_with_error(t, direction)[0]

    @np.errstate(all="ignore")
    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Log of a sum over the losses, and its rounding."""
        full = np.broadcast_shapes((*self.shape, 1), t.shape)
        nodes = np.broadcast_to(t, full).reshape(-1, full[-1])
        value, error = np.zeros(nodes.shape, t.dtype), np.zeros(nodes.shape)
        for row, table in enumerate(self._tables(full[:-1], direction)):
            if table is None:
                continue
            if full[-1] >= _FEW and is_line(nodes[row]):
                value[row], error[row] = table.log_moments(nodes[row])
                continue
            width = max(1, _BLOCK // table.losses.size)
            for part in range(0, full[-1], width):
                here = np.s_[row, part : part + width]
                value[here], error[here] = table.log_moments(nodes[here])
        return value.reshape(full), error.reshape(full)

    def loss_slip(self, direction: str) -> np.ndarray:
        """The largest relative error of a positive loss."""
        found = np.full(self.shape, 1e-15)
        for row, table in enumerate(self._tables(self.shape, direction)):
            if table is not None and np.any(positive := table.losses > 0):
                ratio = np.max(table.slip[positive] / table.losses[positive])
                found.flat[row] = max(2 * ratio, 1e-15)
        return found

    @np.errstate(all="ignore")
    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """Log delta of one release, a sum over the losses."""
        shape = np.broadcast_shapes(self.shape, epsilon.shape)
        wanted = np.broadcast_to(epsilon, shape).ravel()
        pairs = zip(self._tables(shape, direction), wanted, strict=True)
        each = [-np.inf if table is None else table.log_delta(e) for table, e in pairs]
        return np.array(each, float).reshape(shape)

    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """Sums over the losses."""
        shape = np.broadcast_shapes(self.shape, loss.shape)
        wanted, tables = np.broadcast_to(loss, shape).ravel(), self._tables(self.shape, direction)
        rows = np.broadcast_to(np.arange(len(tables)).reshape(self.shape), shape).ravel()
        found, wrong = np.zeros((5, wanted.size)), 0.0
        for row, table in enumerate(tables):
            if table is not None:
                here = np.flatnonzero(rows == row)
                at = np.searchsorted(table.losses, wanted[here], side="right")
                found[:, here] = [end[at] for end in table.sums]
                wrong = max(wrong, table.wrong + 2 * _UNIT * table.losses.size)
        p_above, p_below, q_above, q_below, slip = found.reshape(5, *shape)
        return Tails(p_above, p_below, q_above, q_below, slip + 4 * _UNIT * np.abs(loss), wrong)
