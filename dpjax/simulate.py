"""Simulation: a mechanism folded over trials into statistics, in constant memory.

Trials come in blocks of one fixed size. Block j is drawn whole from `fold_in(key, j)`, the last one
masked, so that a result depends on (key, num_trials) alone, a longer run repeats the trials of a
shorter one and goes on, and any block can be replayed by itself.

`simulate` is `pilot` and then `run_blocks` over all blocks. A driver that divides a long run calls
`run_blocks` on fixed ranges of blocks and joins what it returns with `statistics.merge`, in order:
the result does not depend on where each range ran.
"""

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.custom_batching
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.tree_util import Partial
from jax.typing import ArrayLike
from jaxtyping import Array

from dpjax import _validate, accumulate, prng
from dpjax._traceable import traceable
from dpjax.statistics import Moments

BLOCK = 65_536
"""Numbers in a block: as many trials of a scalar value, fewer of a longer one."""

COMPILER_OPTIONS = {"xla_cpu_prefer_vector_width": 512}
"""For `jax.jit` around a simulation: the generator's integers in vectors as wide as the CPU has.

XLA takes half of that by default. The bits are the same; the words come up to 1.7 times as fast.
"""

WIDE = 256
"""Blocks that an accelerator works on at once."""

_LEAST_TRIALS = 16  # of a block, however long the value: fewer say too little about constant noise


_TELLING = 4096  # numbers x in a block: two short blocks of zeros and ones may agree by chance


def difference(answer: Array, value: Array) -> Array:
    """The error of an answer, `answer - value`."""
    return answer - value


def simulate(
    key: Array,
    mechanism: Callable[..., Any],
    value: ArrayLike,
    num_trials: float,
    *,
    measure: Callable[[Any, Array], Array] = difference,
    edges: ArrayLike | Sequence[float] | None = None,
    unit: ArrayLike | None = None,
) -> Moments:
    """Run a mechanism many times and return the statistics of `measure(answer, value)`.

    Pure; works under jit and vmap (over the key and over array arguments of the mechanism). A jit
    of one's own is as fast as none with `compiler_options=COMPILER_OPTIONS` of this module.

    Args:
        key: one typed threefry2x32 key, used once.
        mechanism: pure `(key, value) -> answer` that is given one key and `value` repeated along
            a leading axis of trials, and answers every trial independently. Numbers and arrays
            bound with `functools.partial` are traced, so other values need no new compilation;
            bools, strings and functions are compiled in. For a mechanism of a single value see
            `per_trial`.
        value: the true answer. Use 0.0 where only the error matters: float32 numbers lie 8 apart
            at 1e8. A Python int is taken as a float, and as an integer by a mechanism that raises
            TypeError for floats.
        num_trials: at least 1, fewer than 2^31 blocks.
        measure: pure `(answer, value) -> x`, with trials along the leading axis of all three.
        edges: increasing 1-D edges of a histogram of x, or None for none.
        unit: a number near the size of x, so that its fourth power is in range. None: from the
            root mean square of block 0.

    Returns:
        Moments of x over the trials, of the shape of one x.

    Raises:
        TypeError: `key` is no typed key.
        ValueError: a key that is not threefry2x32; `num_trials`, `edges` or a bound `scale` out of
            range; a mechanism that loses the axis of trials, or adds the same noise to every trial
            of a block or to one block as to the next, as with `numpy.random` (inside traced code:
            statistics are NaN).

    >>> import functools, jax, dpjax
    >>> mechanism = functools.partial(dpjax.laplace, scale=10.0)
    >>> moments = simulate(jax.random.key(0), mechanism, 0.0, 100_000)
    >>> bool(abs(moments.rmse - 10.0 * 2**0.5) < 4 * moments.rmse_standard_error)
    True
    """
    blocks, tail = whole_blocks(as_value(value), _validate.positive_count(num_trials=num_trials))
    seed, mechanism, edges = as_seed(key), as_pytree(mechanism), as_edges(edges)
    if unit is not None and not isinstance(unit, Tracer):
        _validate.positive(unit=unit)
    value, found = with_unit(seed, mechanism, value, measure=measure)
    if not isinstance(found, Tracer):
        check_noise(found, mechanism_name(mechanism))
    if unit is not None:
        found = jnp.where(jnp.isnan(found), found, jnp.asarray(unit, found.dtype))
    run = run_blocks if isinstance(found, Tracer) else run_compiled
    return run(seed, mechanism, value, 0, blocks, tail, found, measure=measure, edges=edges)


def per_trial(mechanism: Callable[..., Any]) -> Partial:
    """Let a mechanism of a single value answer a block: a key for each trial by `split`, then vmap.

    >>> import jax
    >>> def noisy_count(key, value):
    ...     return value + jax.random.laplace(key)
    >>> simulate(jax.random.key(0), per_trial(noisy_count), 0.0, 1000).count
    np.int64(1000)
    """
    return Partial(_each, as_pytree(mechanism))


def _each(mechanism: Callable[..., Any], key: Array, values: Array) -> Any:
    """The answers to a block of values, each with a key of its own."""
    return jax.vmap(mechanism)(jax.random.split(key, values.shape[0]), values)


def with_unit(
    seed: Array | np.ndarray, mechanism: Partial, value: ArrayLike, *, measure: Callable
) -> tuple[Array, Array]:
    """The value as an array that the mechanism takes, and the unit that `pilot` finds."""
    with traceable(mechanism_name(mechanism)):
        try:
            array = as_value(value)
            return array, pilot(seed, mechanism, array, measure=measure)
        except TypeError:
            if not isinstance(value, int) or isinstance(value, bool):
                raise
        array = jnp.asarray(value, dtype=int)
        return array, pilot(seed, mechanism, array, measure=measure)


def check_noise(unit: Array, name: str) -> None:
    """Refuse what `pilot` found to be no noise, by the mechanism's name."""
    if np.isnan(unit).any():
        raise ValueError(
            f"mechanism = {name}: expected independent noise, got the same for every trial of a"
            " block, the same in two blocks, or NaN; dpjax.per_trial(mechanism) gives each trial"
            " a key"
        )


@functools.partial(jax.jit, static_argnames="measure")
def pilot(seed: Array, mechanism: Partial, value: Array, *, measure: Callable) -> Array:
    """The unit of each coordinate of x: the power of two nearest its root mean square in block 0.

    NaN where noise is the same in every trial of the block, though not 0, or in the next block, or
    NaN: no simulation. Under vmap one point after another, as `run_blocks`.
    """
    return jax.custom_batching.sequential_vmap(functools.partial(_pilot, measure))(
        seed, mechanism, value
    )


def _pilot(measure: Callable, seed: Array, mechanism: Partial, value: Array) -> Array:
    """The unit of one point."""
    draw = functools.partial(_block, seed, mechanism, value, measure=measure)
    x, following = lax.map(draw, lax.iota(np.int32, 2))  # in a loop, to be compiled once
    size = jnp.max(jnp.abs(x), axis=0)
    mean_square = jnp.mean((x / jnp.where(size > 0, size, 1)[None]) ** 2, axis=0)
    exponent = jnp.round(jnp.log2(size * jnp.sqrt(mean_square)))
    exponent = jnp.where(size > 0, jnp.clip(exponent, -100, 100), 0)
    same = jnp.all(x == x[:1])
    if x.size >= _TELLING:
        same = same | jnp.all(x == following)
    constant = same & jnp.any(size > 0)
    unit = jnp.ldexp(jnp.ones_like(size), exponent.astype(np.int32))
    return jnp.where(constant | jnp.isnan(size), jnp.nan, unit)


@functools.partial(jax.jit, static_argnames="measure")
def run_blocks(
    seed: Array,
    mechanism: Partial,
    value: Array,
    start: ArrayLike,
    stop: ArrayLike,
    tail: ArrayLike,
    unit: Array,
    *,
    measure: Callable = difference,
    edges: Array | None = None,
) -> Moments:
    """Moments of whole blocks from start up to stop and of the first `tail` trials of block stop.

    The pure kernel of `simulate`: no checks. Compiled once for each mechanism and shape, whatever
    the range and the numbers bound to the mechanism. Under vmap the points run one after another,
    each in cache, with the bits that they have alone.

    Args:
        seed: from `as_seed`.
        mechanism: from `as_pytree`.
        value: from `as_value`.
        start: first block.
        stop: block after the last whole one, below 2^31.
        tail: trials of block `stop`; 0 leaves it out.
        unit: what `pilot` returned for this seed, mechanism and value.
        measure: as in `simulate`.
        edges: from `as_edges`.
    """
    fold = _run if jax.default_backend() == "cpu" else _run_wide
    run = jax.custom_batching.sequential_vmap(functools.partial(fold, measure))
    start, stop, tail = (jnp.asarray(number, np.int32) for number in (start, stop, tail))
    return run(seed, mechanism, value, start, stop, tail, unit, edges)


run_compiled = jax.jit(run_blocks, static_argnames="measure", compiler_options=COMPILER_OPTIONS)
"""`run_blocks` outside of traced code: the same bits, faster on CPUs."""


def _run(
    measure: Callable,
    seed: Array,
    mechanism: Partial,
    value: Array,
    start: Array,
    stop: Array,
    tail: Array,
    unit: Array,
    edges: Array | None,
) -> Moments:
    """Fold the blocks into lanes and the lanes into moments."""

    def block(index: Array) -> Array:
        return _block(seed, mechanism, value, index, measure=measure)

    def whole(x: Array, lanes: accumulate.Lanes) -> accumulate.Lanes:
        return accumulate.add_block(lanes, x, unit, edges)

    def first_of(x: Array, lanes: accumulate.Lanes) -> accumulate.Lanes:
        return accumulate.add_block(lanes, x, unit, edges, lax.iota(np.int32, trials) < tail)

    def add(index: Array, lanes: accumulate.Lanes) -> accumulate.Lanes:
        # The branch also keeps the compiler from computing x anew for each statistic of it.
        return lax.cond(index < stop, whole, first_of, block(index), lanes)

    trials, *shape = (x := jax.eval_shape(block, start)).shape
    lanes = accumulate.empty(trials, tuple(shape), x.dtype, edges)
    lanes = lax.fori_loop(start, stop + jnp.sign(tail), add, lanes)
    return accumulate.moments(
        lanes, accumulate.count(stop - start, trials, tail, x.dtype), unit, edges
    )


def _run_wide(
    measure: Callable,
    seed: Array,
    mechanism: Partial,
    value: Array,
    start: Array,
    stop: Array,
    tail: Array,
    unit: Array,
    edges: Array | None,
) -> Moments:
    """`_run` for an accelerator: WIDE blocks at a time, each in lanes of its own, and no branch.

    One block is too little for a GPU, which also asks the host before each branch and round.
    """

    def draw(index: Array) -> Array:
        return _block(seed, mechanism, value, index, measure=measure)

    def add(step: Array, lanes: accumulate.Lanes) -> accumulate.Lanes:
        place, left = lax.iota(np.int32, WIDE), stop - start - step * WIDE
        count = jnp.where(place < left, trials, jnp.where(place == left, tail, 0))
        kept = lax.broadcasted_iota(np.int32, (WIDE, trials), 1) < count[:, None]
        x = jax.vmap(draw)(stop - left + place).reshape(WIDE * trials, *shape)
        return accumulate.add_block(lanes, x, unit, edges, kept.reshape(-1))

    trials, *shape = (x := jax.eval_shape(draw, start)).shape
    lanes = accumulate.empty(trials, tuple(shape), x.dtype, edges, blocks=WIDE)
    steps = (stop - start + jnp.sign(tail) + WIDE - 1) // WIDE
    lanes = lax.fori_loop(0, steps, add, lanes)
    return accumulate.moments(
        lanes, accumulate.count(stop - start, trials, tail, x.dtype), unit, edges
    )


@functools.partial(jax.jit, static_argnames="measure")  # traced once, though used several times
def _block(
    seed: Array, mechanism: Partial, value: Array, index: Array, *, measure: Callable
) -> Array:
    """The floats x of all trials of one block, trials in front."""
    key = jax.random.fold_in(jax.random.wrap_key_data(seed, impl=prng.UNROLLED), index)
    trials = block_trials(value)
    values = jnp.broadcast_to(value, (trials, *value.shape))
    x = jnp.asarray(measure(mechanism(key, values), values))
    if x.shape[:1] != (trials,):
        raise ValueError(
            f"measure(mechanism(key, value), value) = {list(x.shape)}: expected {trials} trials in"
            " front; dpjax.per_trial(mechanism) lets a mechanism of a single value answer many"
        )
    return x.astype(x.dtype if x.dtype == np.float64 else np.float32)


def block_trials(value: Array) -> int:
    """Trials in a block of this value: a power of two, by the size of the value alone."""
    return max(_LEAST_TRIALS, BLOCK >> max(value.size - 1, 0).bit_length())


def whole_blocks(value: Array, num_trials: int) -> tuple[int, int]:
    """How many whole blocks so many trials are, and the trials left over."""
    blocks, tail = divmod(num_trials, block_trials(value))
    if blocks + (tail > 0) >= 2**31:
        raise ValueError(f"num_trials = {num_trials}: expected fewer than 2^31 blocks")
    return blocks, tail


def as_seed(key: Array) -> Array:
    """The data of a threefry2x32 key, spent herewith; the blocks it gives may be drawn again."""
    seed = jax.random.key_data(prng.unroll(key))
    prng.spend(key)
    return seed


def as_value(value: ArrayLike) -> Array:
    """An array as it is, a Python number as the default float."""
    array = jnp.asarray(value, dtype=float if isinstance(value, (bool, int, float)) else None)
    if array.size == 0:
        raise ValueError(
            f"value = array of shape {list(array.shape)}: expected at least one number"
        )
    return array


def as_edges(edges: ArrayLike | Sequence[float] | None) -> Array | None:
    """Edges of a histogram in the default float, checked where they are concrete."""
    if edges is None:
        return None
    if isinstance(edges, Tracer):
        return jnp.asarray(edges)
    checked = _validate.finite(edges=edges).astype(jax.dtypes.canonicalize_dtype(float))
    if checked.ndim != 1 or checked.size < 2 or (np.diff(checked) <= 0).any():
        raise ValueError(f"edges = {checked.tolist()}: expected two or more numbers, increasing")
    return jnp.asarray(checked)


def as_pytree(mechanism: Callable[..., Any]) -> Partial:
    """A mechanism whose bound numbers and arrays are leaves, traced and not compiled in."""
    if isinstance(mechanism, Partial):
        return mechanism
    if not isinstance(mechanism, functools.partial):
        return Partial(mechanism)
    scale = mechanism.keywords.get("scale")
    if _is_leaf(scale) and not isinstance(scale, Tracer):
        _validate.non_negative(scale=scale)  # here, for inside traced code nothing is checked
    static = {k: v for k, v in mechanism.keywords.items() if not _is_leaf(v)}
    traced = {k: v for k, v in mechanism.keywords.items() if _is_leaf(v)}
    function = _Bound(mechanism.func, tuple(sorted(static.items()))) if static else mechanism.func
    return Partial(function, *mechanism.args, **traced)


def _is_leaf(argument: Any) -> bool:
    """Whether a bound argument is traced: numbers and arrays, but no bools."""
    return not isinstance(argument, bool) and isinstance(
        argument, (int, float, np.ndarray, np.generic, jax.Array)
    )


@dataclass(frozen=True)
class _Bound:
    """A function with keywords compiled in; equal ones share their compilation."""

    function: Callable[..., Any]
    keywords: tuple[tuple[str, Hashable], ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **dict(self.keywords), **kwargs)


def mechanism_name(mechanism: Callable[..., Any]) -> str:
    """The name of the function, through what is bound to it."""
    while hasattr(mechanism, "func"):
        mechanism = mechanism.func  # pyright: ignore[reportFunctionMemberAccess]
    mechanism = getattr(mechanism, "function", mechanism)
    return getattr(mechanism, "__name__", type(mechanism).__name__)
