"""What a simulation returns: moments and, on request, a histogram, each with its standard errors.

Sums over trials are kept as pairs of floats, a total and what rounding left out of it, so float32
loses nothing that matters at 1e10 trials and beyond. Read outside jit, every statistic is computed
from them in float64; inside, in the dtype of the simulation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

_POWERS = np.array([0, 1, 1, 2, 3, 4])  # of the unit, in the sums of 1, x, |x|, x^2, x^3, x^4


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Histogram:
    """Counts of trials between fixed edges.

    Shapes: `...` is that of the simulated answer, with one more axis in front for each vmap.

    Attributes:
        edges: (..., bins - 1), increasing, in the units of the answer.
        sums: (..., bins) trials in (-inf, first edge), [edge, next edge), ..., [last edge, inf).
        residues: (..., bins) what rounding left out of `sums`.
    """

    edges: Any
    sums: Any
    residues: Any

    @property
    def counts(self) -> Any:
        """Trials in each bin, (..., bins); exact up to 2^48."""
        return _total(self.sums, self.residues)

    def quantile(self, p: float) -> Any:
        """The value that a share p of the trials stays below, linear within a bin.

        -inf or inf where it lies beyond the edges. The linear rule errs by less than one bin.

        Args:
            p: in (0, 1).
        """
        return self._quantile(p)[0]

    def quantile_standard_error(self, p: float) -> Any:
        """Standard error of `quantile(p)`: sqrt(p (1 - p) / count) over the density in its bin.

        Without the error of the linear rule; inf where the quantile lies beyond the edges.

        Args:
            p: in (0, 1).
        """
        return self._quantile(p)[1]

    def _quantile(self, p: float) -> tuple[Any, Any]:
        """The quantile and its standard error."""
        if not 0 < p < 1:
            raise ValueError(f"p = {p}: expected a number in (0, 1)")
        counts = self.counts
        xp = jnp if isinstance(counts, Tracer) else np
        edges = xp.asarray(self.edges).astype(counts.dtype)
        below = xp.cumsum(counts, axis=-1)
        total = below[..., -1:]
        wanted = p * total
        index = (below < wanted).sum(axis=-1, keepdims=True)  # the first bin that reaches p
        inner = xp.clip(index, 1, edges.shape[-1] - 1)

        def at(table: Any, position: Any) -> Any:
            shape = (*index.shape[:-1], table.shape[-1])
            return xp.take_along_axis(xp.broadcast_to(table, shape), position, axis=-1)[..., 0]

        left, right, inside = at(edges, inner - 1), at(edges, inner), at(counts, inner)
        inside = xp.maximum(inside, 1)
        before = at(below, inner - 1)
        value = left + (right - left) * (wanted[..., 0] - before) / inside
        count = total[..., 0]
        error = xp.sqrt(p * (1 - p) * count) * (right - left) / inside
        index = index[..., 0]
        value = xp.where(index < 1, -xp.inf, xp.where(index > inner[..., 0], xp.inf, value))[()]
        return value, xp.where(index == inner[..., 0], error, xp.inf)[()]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Moments:
    """Moments of a measured quantity x over trials.

    Shapes: every statistic has that of one measured x, with one more axis in front for each vmap.
    Standard errors are those of the sample (one trial: infinite) and use the sample's own
    moments up to the fourth.

    Attributes:
        min: the least x, in its own units.
        max: the greatest x.
        unit: the power of two in which `sums` count x, so that fourth powers stay in range.
        sums: (..., 6) of 1, x, |x|, x^2, x^3, x^4.
        residues: (..., 6) what rounding left out of `sums`.
        histogram: counts between the edges that were asked for, or None.
    """

    min: Any
    max: Any
    unit: Any
    sums: Any
    residues: Any
    histogram: Histogram | None = None

    @property
    def count(self) -> Any:
        """Number of trials, exact up to 2^48 outside jit."""
        count = _total(self.sums, self.residues)[..., 0]
        return count if isinstance(count, Tracer) else np.int64(count)

    @property
    def mean(self) -> Any:
        """Mean of x."""
        return self._unit * self._moment(1)

    @property
    def mean_standard_error(self) -> Any:
        """Standard deviation over sqrt(count - 1)."""
        return self._unit * self._standard_error(self._central_square)

    @property
    def variance(self) -> Any:
        """Mean squared deviation from the mean."""
        return self._unit**2 * self._central_square

    @property
    def variance_standard_error(self) -> Any:
        """From the fourth central moment less the squared variance."""
        mean, square, cube, fourth = (self._moment(i) for i in (1, 3, 4, 5))
        central = fourth - 4 * mean * cube + 6 * mean**2 * square - 3 * mean**4
        return self._unit**2 * self._standard_error(central - self._central_square**2)

    @property
    def rmse(self) -> Any:
        """Root of the mean square of x."""
        return self._unit * self._moment(3) ** 0.5

    @property
    def rmse_standard_error(self) -> Any:
        """That of the mean square over 2 rmse (delta method); 0 where every x is 0."""
        square = self._moment(3)
        error = self._standard_error(self._moment(5) - square**2)
        xp = jnp if isinstance(square, Tracer) else np
        return self._unit * error / (2 * xp.where(square > 0, square, 1) ** 0.5)[()]

    @property
    def mae(self) -> Any:
        """Mean of |x|."""
        return self._unit * self._moment(2)

    @property
    def mae_standard_error(self) -> Any:
        """Standard deviation of |x| over sqrt(count - 1)."""
        return self._unit * self._standard_error(self._moment(3) - self._moment(2) ** 2)

    @property
    def _unit(self) -> Any:
        """The unit in the dtype of the statistics."""
        return self.unit if isinstance(self.sums, Tracer) else np.asarray(self.unit, np.float64)

    def _moment(self, order: int) -> Any:
        """Mean of the power at this place of `sums`, in units."""
        total = _total(self.sums, self.residues)
        return total[..., order] / total[..., 0]

    @property
    def _central_square(self) -> Any:
        """Variance in units."""
        square = self._moment(3) - self._moment(1) ** 2
        return _at_least_zero(square)

    def _standard_error(self, variance: Any) -> Any:
        """Of a mean whose terms have this variance."""
        count = _total(self.sums, self.residues)[..., 0]
        xp = jnp if isinstance(count, Tracer) else np
        error = (_at_least_zero(variance) / xp.maximum(count - 1, 1)) ** 0.5
        return xp.where(count > 1, error, xp.inf)[()]


def _at_least_zero(variance: Any) -> Any:
    """A variance that rounding may have left below 0; NaN stays NaN."""
    xp = jnp if isinstance(variance, Tracer) else np
    return xp.where(variance < 0, 0, variance)[()]


def merge(parts: Sequence[Moments]) -> Moments:
    """The moments of several disjoint runs as one, summed in float64 in the order given (host).

    The same parts in the same order give the same bits, whatever computed them.

    Args:
        parts: at least one; of the same shape, all with the same edges or none.

    Raises:
        ValueError: no parts, or histograms whose edges differ.
    """
    if not parts:
        raise ValueError("parts = []: expected at least one")
    parts = [jax.tree.map(np.asarray, part) for part in parts]
    unit = np.max([part.unit for part in parts], axis=0).astype(np.float64)
    sums = sum(
        _total(part.sums, part.residues) * (part.unit / unit)[..., None] ** _POWERS
        for part in parts
    )
    return Moments(
        min=np.min([part.min for part in parts], axis=0),
        max=np.max([part.max for part in parts], axis=0),
        unit=unit,
        sums=sums,
        residues=np.zeros_like(sums),
        histogram=_merge_histograms([part.histogram for part in parts]),
    )


def _merge_histograms(parts: Sequence[Histogram | None]) -> Histogram | None:
    """Histograms with the same edges as one."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) < len(parts) or any(
        not np.array_equal(part.edges, present[0].edges) for part in present
    ):
        raise ValueError("parts: expected the same edges in all of them")
    sums = np.sum([part.counts for part in present], axis=0)
    return replace(present[0], sums=sums, residues=np.zeros_like(sums))


def _total(sums: Any, residues: Any) -> Any:
    """Sums with their residues: in float64 outside jit, in their own dtype inside."""
    if isinstance(sums, Tracer) or isinstance(residues, Tracer):
        return sums + residues
    return np.asarray(sums, np.float64) + np.asarray(residues, np.float64)
