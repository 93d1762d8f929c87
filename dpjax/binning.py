"""Counting numbers between edges, for a histogram inside a simulation."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array


def count_between(x: Array, edges: Array, kept: Array | None = None) -> Array:
    """How many of the n numbers x lie in each of the bins that the m increasing edges make.

    Bin 0 lies below the first edge and holds NaN, bin m at or above the last; a number on an edge
    belongs to the bin above it. Exact; some 3 ns a number for evenly spaced edges and twice that
    for others, however many there are.

    Args:
        x: (n,).
        edges: (m,), increasing.
        kept: (n,) bool, which of them count; None for all.

    >>> import jax.numpy as jnp
    >>> count_between(jnp.array([0.0, 0.5, 3.0]), jnp.array([0.0, 1.0])).tolist()
    [0, 2, 1]
    """
    last = edges.shape[0] - 1
    step = (edges[-1] - edges[0]) / last
    straight = edges[0] + step * jnp.arange(last + 1, dtype=edges.dtype)
    even = jnp.all(jnp.abs(edges - straight) < 0.4 * step)
    bins = lax.cond(even, _guess_and_correct, _search, x, edges)
    ones = jnp.ones(x.shape, np.int32) if kept is None else kept.astype(np.int32)
    # Both searches stay within the bins, whatever x is.
    return jnp.zeros(last + 2, np.int32).at[bins].add(ones, mode="promise_in_bounds")


def _guess_and_correct(x: Array, edges: Array) -> Array:
    """The bin by a division, which is off by at most one where edges are evenly spaced."""
    last = edges.shape[0] - 1
    guess = (x - edges[0]) * (last / (edges[-1] - edges[0])) + 1
    # NaN fails the comparison: it must not reach the conversion, which would make it any integer.
    bins = jnp.where(x >= edges[0], jnp.minimum(guess, last + 1), 0).astype(np.int32)
    around = jnp.concatenate([_filled(edges, -jnp.inf), edges, _filled(edges, jnp.nan)])
    above = (x >= _at(around, bins + 1)).astype(np.int32)  # never at or above NaN
    below = (x < _at(around, bins)).astype(np.int32)
    return bins + above - below


def _search(x: Array, edges: Array) -> Array:
    """The bin by bisection, all numbers in step."""
    levels = edges.shape[0].bit_length()
    padding = jnp.full(2**levels - edges.shape[0], jnp.nan, edges.dtype)
    padded = jnp.concatenate([edges, padding])
    bins = jnp.zeros(x.shape, np.int32)
    for stride in (2**level for level in reversed(range(levels))):
        bins = jnp.where(x >= _at(padded, bins + (stride - 1)), bins + stride, bins)
    return bins


def _at(table: Array, index: Array) -> Array:
    """Entries of a table at indices that lie within it."""
    return table.at[index].get(mode="promise_in_bounds")


def _filled(like: Array, value: float) -> Array:
    """One value as an array to concatenate."""
    return jnp.full(1, value, like.dtype)
