"""Running sums of blocks of trials, in lanes side by side, with what rounding leaves out.

A sum in float32 stands still once it is 2^24 times its terms. Here each lane adds up some hundred
numbers of a block, and the lanes of all blocks are added as pairs: a sum and its rounding error,
which is exact (Knuth 1997, The Art of Computer Programming, vol. 2, section 4.2.2, Theorem B).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from dpjax.binning import count_between
from dpjax.statistics import Histogram, Moments

ROWS = 8
"""Parts of a block that are added up first, number by number."""

LANES = 512
"""Running sums of each power, added up only at the end."""


class Pair(NamedTuple):
    """A sum and what rounding left out of it."""

    sums: Array
    residues: Array


class Lanes(NamedTuple):
    """The state of a simulation, each array with lanes in front of the shape of one trial's x."""

    powers: tuple[Pair, ...]  # x, |x|, x^2, x^3, x^4 in units
    min: Array
    max: Array
    bins: Pair | None  # (..., bins): trials between the edges, without lanes


def empty(
    trials: int, shape: tuple[int, ...], dtype: Any, edges: Array | None, *, blocks: int = 1
) -> Lanes:
    """Lanes before the first block of so many trials, or before so many blocks at once."""
    lanes = jnp.zeros((blocks * min(LANES, trials // ROWS), *shape), dtype)
    bins = None if edges is None else jnp.zeros((*shape, edges.shape[0] + 1), dtype)
    return Lanes(
        powers=tuple(Pair(lanes, lanes) for _ in range(5)),
        min=lanes + jnp.inf,
        max=lanes - jnp.inf,
        bins=None if bins is None else Pair(bins, bins),
    )


def add_block(
    lanes: Lanes, x: Array, unit: Array, edges: Array | None, kept: Array | None = None
) -> Lanes:
    """Lanes after one more block x of (trials, ...), or after those trials of it that are kept."""
    *powers, low, high = _fold_rows(x, unit, kept)
    bins = lanes.bins
    if bins is not None and edges is not None:
        bins = add(bins, _count(x, edges, kept))

    def fold(reduce: Any, values: Array) -> Array:
        return reduce(values.reshape(-1, *lanes.min.shape), axis=0)

    return Lanes(
        powers=tuple(
            add(pair, fold(jnp.sum, power))
            for pair, power in zip(lanes.powers, powers, strict=True)
        ),
        min=jnp.minimum(lanes.min, fold(jnp.min, low)),
        max=jnp.maximum(lanes.max, fold(jnp.max, high)),
        bins=bins,
    )


def _fold_rows(x: Array, unit: Array, kept: Array | None) -> Sequence[Array]:
    """Sums of x, |x|, x^2, x^3, x^4 in units, least and greatest x, over ROWS parts of the block.

    One reduction of seven operands: the CPU compiler makes a single loop of it.
    """
    rows = (ROWS, x.shape[0] // ROWS, *x.shape[1:])
    if kept is not None:
        kept = jnp.broadcast_to(kept.reshape(-1, *(1,) * (x.ndim - 1)), x.shape)

    def keep(values: Array, neutral: float) -> Array:
        return (values if kept is None else jnp.where(kept, values, neutral)).reshape(rows)

    scaled = keep(x * jnp.broadcast_to(1 / unit, x.shape), 0)
    square = scaled * scaled
    operands = (scaled, jnp.abs(scaled), square, square * scaled, square * square)
    extremes = (keep(x, jnp.inf), keep(x, -jnp.inf))
    zero, infinity = jnp.zeros((), x.dtype), jnp.asarray(jnp.inf, x.dtype)

    def combine(a: Sequence[Array], b: Sequence[Array]) -> Sequence[Array]:
        sums = [p + q for p, q in zip(a[:5], b[:5], strict=True)]
        return (*sums, jnp.minimum(a[5], b[5]), jnp.maximum(a[6], b[6]))

    return lax.reduce((*operands, *extremes), (*[zero] * 5, infinity, -infinity), combine, (0,))


def _count(x: Array, edges: Array, kept: Array | None) -> Array:
    """Trials between the edges for every coordinate, (..., bins)."""
    columns = x.reshape(x.shape[0], -1)
    counts = jax.vmap(lambda column: count_between(column, edges, kept), in_axes=1)(columns)
    return counts.astype(x.dtype).reshape(*x.shape[1:], -1)


def moments(lanes: Lanes, count: Pair, unit: Array, edges: Array | None) -> Moments:
    """All lanes together."""
    shape = unit.shape
    count = Pair(*(jnp.broadcast_to(part, shape) for part in count))
    powers = [count, *(_add_up(pair) for pair in lanes.powers)]
    histogram = None if lanes.bins is None else Histogram(edges, *lanes.bins)
    return Moments(
        min=jnp.min(lanes.min, axis=0),
        max=jnp.max(lanes.max, axis=0),
        unit=unit,
        sums=jnp.stack([pair.sums for pair in powers], axis=-1),
        residues=jnp.stack([pair.residues for pair in powers], axis=-1),
        histogram=histogram,
    )


def count(blocks: Array, trials: int, tail: Array, dtype: Any) -> Pair:
    """The trials of so many whole blocks and a tail; exact up to 2^48, also in float32."""
    high, low = (blocks >> 16).astype(dtype) * 2.0**16, (blocks & 0xFFFF).astype(dtype)
    total = Pair(high * trials, jnp.zeros((), dtype))
    return add(add(total, low * trials), tail.astype(dtype))


def add(total: Pair, term: Array) -> Pair:
    """A sum with one more term, right to twice the digits of its dtype."""
    rounded = total.sums + term
    back = rounded - total.sums
    residues = total.residues + ((total.sums - (rounded - back)) + (term - back))
    sums = rounded + residues  # so that residues stay below the last digit of the sum
    return Pair(sums, residues - (sums - rounded))


def _add_up(pair: Pair) -> Pair:
    """The sum over lanes, half onto half."""
    lanes = pair.sums.shape[0]
    while lanes > 1:
        lanes //= 2
        pair = add(
            Pair(pair.sums[:lanes], pair.residues[:lanes] + pair.residues[lanes:]),
            pair.sums[lanes:],
        )
    return Pair(pair.sums[0], pair.residues[0])
