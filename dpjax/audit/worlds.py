"""The two worlds of an audit: a mechanism's answers on each neighbour, drawn in blocks.

Blocks are those of `dpjax.simulate`: block j whole from `fold_in(key, j)`, the last one masked.
Each trial's answer becomes one number, its score, and only counts of scores between edges leave the
device, so that memory does not grow with the trials.
"""

import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Int64

from dpjax import prng
from dpjax._traceable import traceable
from dpjax.binning import count_between
from dpjax.simulate import block_trials, mechanism_name, whole_blocks

CHUNK = 256
"""Blocks counted in one call: at most 2^24 trials, so that int32 holds every count."""

_IN_FLIGHT = 2  # calls on each device: while one runs, the next one waits


class World(NamedTuple):
    """One neighbour and the stream of random numbers with which it is answered.

    Attributes:
        seed: from `dpjax.simulate.as_seed`.
        mechanism: from `dpjax.simulate.as_pytree`.
        value: from `dpjax.simulate.as_value`.
    """

    seed: Array
    mechanism: Partial
    value: Array


def sample(world: World, trials: int) -> Iterator[Any]:
    """Answers of the first blocks until there are so many, whole blocks, as NumPy arrays.

    Raises:
        ValueError: answers without trials in front.
        TypeError: the mechanism cannot be traced.
    """
    per_block = block_trials(world.value)
    with traceable(mechanism_name(world.mechanism)):
        shapes = jax.eval_shape(answers, *world, jnp.int32(0))
    for answer in jax.tree.leaves(shapes):
        if answer.shape[:1] != (per_block,):
            raise ValueError(
                f"mechanism(key, value) = {list(answer.shape)}: expected {per_block} trials in"
                " front; dpjax.per_trial(mechanism) lets a mechanism of a single value answer many"
            )
    for index in range(-(-trials // per_block)):
        yield jax.device_get(answers(*world, jnp.int32(index)))


def count(
    worlds: Sequence[World],
    score: Callable[[Any], Array],
    edges: np.ndarray,
    num_trials: int,
    report: Callable[[int], None] = lambda trials: None,
) -> Int64[np.ndarray, "worlds bins"]:
    """How many of each world's first trials have scores in each bin that the edges make.

    Every local device takes part; counts are whole numbers, so the result does not depend on how
    many there are.

    Args:
        worlds: to count.
        score: a Partial from answers with trials in front to one float for each.
        edges: (bins - 1,), not decreasing; bin 0 holds NaN too.
        num_trials: of each world.
        report: called with the trials of each finished call.
    """
    counts = np.zeros((len(worlds), edges.size + 1), np.int64)
    devices = jax.local_devices()
    flying: deque[tuple[int, int, Array]] = deque()

    @functools.cache
    def inputs(which: int, device: Any) -> tuple[Any, ...]:
        world = worlds[which]
        return jax.device_put((*world, score, jnp.asarray(edges)), device)

    def land() -> None:
        which, trials, part = flying.popleft()
        counts[which] += jax.device_get(part)
        report(trials)

    for turn, (which, start, stop, tail) in enumerate(_ranges(worlds, num_trials)):
        if len(flying) >= _IN_FLIGHT * len(devices):
            land()
        *world, scoring, limits = inputs(which, devices[turn % len(devices)])
        part = _count(*world, scoring, limits, *map(np.int32, (start, stop, tail)))
        trials = (stop - start) * block_trials(worlds[which].value) + tail
        flying.append((which, trials, part))
    while flying:
        land()
    return counts


def _ranges(worlds: Sequence[World], num_trials: int) -> Iterator[tuple[int, int, int, int]]:
    """World, first block, block after the last whole one and trials of that, call by call."""
    blocks = [whole_blocks(world.value, num_trials) for world in worlds]
    for start in range(0, max(whole + 1 for whole, _ in blocks), CHUNK):
        for which, (whole, tail) in enumerate(blocks):
            stop = min(start + CHUNK, whole)
            rest = tail if stop == whole < start + CHUNK else 0
            if stop > start or rest:
                yield which, start, stop, rest


@jax.jit
def answers(seed: Array, mechanism: Partial, value: Array, index: Array) -> Any:
    """The answers to all trials of one block, trials in front."""
    key = jax.random.fold_in(jax.random.wrap_key_data(seed, impl=prng.UNROLLED), index)
    trials = block_trials(value)
    return mechanism(key, jnp.broadcast_to(value, (trials, *value.shape)))


@jax.jit
def _count(
    seed: Array,
    mechanism: Partial,
    value: Array,
    score: Partial,
    edges: Array,
    start: Array,
    stop: Array,
    tail: Array,
) -> Array:
    """Counts of whole blocks from start up to stop and of the first `tail` trials of block stop."""
    trials = block_trials(value)

    def add(index: Array, counts: Array) -> Array:
        kept = lax.iota(np.int32, trials) < jnp.where(index < stop, trials, tail)
        scores = score(answers(seed, mechanism, value, index)).astype(edges.dtype)
        return counts + count_between(scores, edges, kept)

    nothing = jnp.zeros(edges.size + 1, np.int32)
    return lax.fori_loop(start, stop + jnp.sign(tail), add, nothing)
