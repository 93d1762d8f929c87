"""What one release leaks: a family of privacy losses per file, behind one small interface.

A leak is a dominating pair (P, Q) of output laws on neighbouring inputs, read through its privacy
loss L = log dP/dQ under P. Every leak is a frozen record of array parameters with

    shape                       the grid of its parameters
    directions                  ("both",) if (P, Q) and (Q, P) leak alike, else ("remove", "add")
    is_pair                     False if only a bound on the cumulant is known, for real t
    cumulant(t, direction)      log E_P[exp(t L)] on (*shape, nodes), t real or complex
    supremum(direction)         the largest finite loss
    infinite_mass(direction)    P(L = infinity)

Mass at L = infinity is kept apart: cumulant and supremum speak of L given that it is finite.
"""

from typing import Protocol, runtime_checkable

import numpy as np

BOTH = ("both",)
REMOVE_ADD = ("remove", "add")


@runtime_checkable
class Leak(Protocol):
    """The interface of the module's docstring."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid of the parameters."""
        ...

    @property
    def directions(self) -> tuple[str, ...]:
        """The labels of the directions."""
        ...

    @property
    def is_pair(self) -> bool:
        """Whether a dominating pair is known."""
        ...

    def cumulant(self, t: np.ndarray, direction: str) -> np.ndarray:
        """Log E_P[exp(t L)] of the finite part, on (*shape, nodes)."""
        ...

    def supremum(self, direction: str) -> np.ndarray:
        """The largest finite loss."""
        ...

    def infinite_mass(self, direction: str) -> np.ndarray:
        """P(L = infinity)."""
        ...
