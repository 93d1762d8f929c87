"""What one release leaks: a family of privacy losses per file, behind one small interface.

A leak is a dominating pair (P, Q) of output laws on neighbouring inputs, read through its privacy
loss L = log dP/dQ under P. Mass at L = infinity is kept apart: everything but `infinite_mass`
speaks of L given that it is finite. Parameters are arrays: a leak stands for a grid of releases.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

BOTH = ("both",)
REMOVE_ADD = ("remove", "add")


class Tails(NamedTuple):
    """P and Q of the losses above l, and of those at or below it, where l is right to `slip`.

    Their relative error is at most (4 - 2 log(tail)) units of rounding, and `wrong` more.
    """

    p_above: np.ndarray
    p_below: np.ndarray
    q_above: np.ndarray
    q_below: np.ndarray
    slip: np.ndarray
    wrong: float = 0.0


class Cells(NamedTuple):
    """P and Q of the losses in cells (edge, next edge], and bounds on their errors."""

    p: np.ndarray
    p_error: np.ndarray
    q: np.ndarray
    q_error: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Leak:
    """A family of leaks; its fields are the array parameters.

    Attributes:
        directions: ("both",) if (P, Q) and (Q, P) leak alike, else ("remove", "add").
        is_pair: False if only a bound on the cumulant is known, for real t.
        max_nodes: Nodes of one line that are evaluated in about a second.
        has_tails: Whether `tails` is known.
        mass_is_given: Whether `infinite_mass` is a parameter, to the last bit.
        once_error: Of `log_delta_once`, relative to 1 more than its absolute value.
    """

    directions = BOTH
    is_pair = True
    max_nodes = 1 << 20  # nodes of one line that are evaluated in about a second
    has_tails = False
    mass_is_given = False
    once_error = 1e-12

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid of the parameters."""
        return np.broadcast_shapes(*(value.shape for value in self._parameters().values()))

    def take(self, shape: tuple[int, ...], index: np.ndarray) -> Any:
        """The leak at flat positions of a grid that the parameters broadcast to."""
        taken = {
            name: np.asarray(np.broadcast_to(value, shape).ravel()[index])
            for name, value in self._parameters().items()
        }
        return dataclasses.replace(self, **taken)

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log E_P[exp(t L)] on (*shape, nodes), t real or complex and of any branch."""
        raise NotImplementedError

    def supremum(self, direction: str) -> np.ndarray:
        """The largest finite loss."""
        raise NotImplementedError

    def infinite_mass(self, direction: str) -> np.ndarray:
        """P(L = infinity)."""
        return np.zeros(self.shape)

    def cumulant_with_error(self, t: np.ndarray, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """The cumulant as computed, and e with |exp(computed - true) - 1| <= exp(e) - 1."""
        value = self.cumulant(t, direction)
        return value, 1e-15 * np.abs(value)

    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray | None:
        """Log delta of one release in closed form; None if there is none."""
        return None

    def loss_slip(self, direction: str) -> np.ndarray:
        """Bounds the relative error of positive losses with an atom, on the grid's shape."""
        return np.full(self.shape, 1e-15)

    def tails(self, loss: np.ndarray, direction: str) -> Tails:
        """The tails of the loss under P and Q, on the grid's shape broadcast with `loss`."""
        raise NotImplementedError

    def cells(self, edges: np.ndarray, direction: str) -> Cells | None:
        """P and Q between rising losses, finer than differences of tails, each right to the slip.

        For one row, on (edges,). None if there is nothing finer.
        """
        return None

    def log_decay(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """A bound on log |M(c + iz) / M(c)| for every |z| >= y, M the moment generating function.

        Args:
            c: Positive, (*shape, 1).
            y: Non-negative, (*shape, nodes).
            direction: One of `directions`.

        Returns:
            At most 0 and falling in y. Zero, the bound for lattices, unless a family knows better.
        """
        return np.zeros(np.broadcast_shapes(c.shape, y.shape))

    def _parameters(self) -> dict[str, np.ndarray]:
        """The array fields by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
