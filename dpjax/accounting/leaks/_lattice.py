"""What a leak on a lattice adds to the interface: where its losses lie, and how its line falls."""

import numpy as np

from dpjax.accounting.leaks import Leak


class LatticeLeak(Leak):
    """A leak whose losses are `anchor` plus whole multiples of `step`, on (*shape,) each."""

    def step(self, direction: str) -> np.ndarray:
        """The spacing of the losses; 0 where nothing leaks."""
        raise NotImplementedError

    def anchor(self, direction: str) -> np.ndarray:
        """One of the losses: the largest, where there is one."""
        return self.supremum(direction)

    def log_decay_in_period(self, c: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
        """A bound on log |M(c + iz) / M(c)| for every z from y to pi / step, falling in y.

        Args:
            c: Positive, (*shape, 1).
            y: From 0 to pi / step, (*shape, nodes).
            direction: One of `directions`.
        """
        raise NotImplementedError


def half_log_rest(lost: np.ndarray) -> np.ndarray:
    """Half of log(1 - lost), rounded up, from a lower bound on 1 - |M(c + iz) / M(c)|^2."""
    return 0.5 * np.log1p(-np.clip(np.nan_to_num(lost) * (1 - 1e-12), 0, 1 - 1e-16))
