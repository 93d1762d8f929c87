"""Outcomes: which answers, to the last bit, each world has given on a first part of the trials.

Where noise has few outcomes (2^23 of a textbook float32 sampler), each neighbour's answers have
holes that the other's fill, in no pattern that a code of the bits could show. But then answers come
again, and an answer that one world has given before and the other never has tells which it was.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, UInt

from dpjax.audit.worlds import CHUNK, World, answers
from dpjax.simulate import block_trials

_TABLE = 24  # bits of a place in the table: 16 MB


def name(answers: Array) -> UInt[Array, " trials"]:
    """A 32-bit name of each float; different ones of up to 32 bits have different names."""
    words = lax.bitcast_convert_type(answers, np.dtype(f"uint{jnp.finfo(answers.dtype).bits}"))
    if words.dtype == np.uint64:
        words = words ^ (words >> np.uint64(29)) ^ (words >> np.uint64(32))
    return words.astype(np.uint32) * np.uint32(0x9E3779B1)  # odd, so that its upper bits are mixed


def support(names: np.ndarray) -> float:
    """About how many outcomes there are, by how many of the sample come again (a birthday bound).

    Of equally likely outcomes; of others it is the number that most answers come from.

    >>> round(support(np.random.default_rng(0).integers(0, 1000, 5000)))
    999
    """
    size = names.size
    _, counts = np.unique(names, return_counts=True)
    pairs = np.sum(counts * (counts - 1) / 2)
    return size * (size - 1) / 2 / pairs if pairs else np.inf


def seen(
    worlds: Sequence[World], names: Partial, num_trials: int, report: Callable[[int], None]
) -> Partial:
    """A score of 0 for new outcomes, 1 and 2 for those of the first or second world alone, or 3.

    Args:
        worlds: both.
        names: from answers to the names of their outcomes.
        num_trials: of each; the last ones, which fill no block, are left out.
        report: called with the trials of each call.
    """
    devices, told = jax.local_devices(), np.zeros(2**_TABLE, np.uint8)
    for bit, world in enumerate(worlds):
        blocks, tables = num_trials // block_trials(world.value), {}
        for turn, start in enumerate(range(0, blocks, CHUNK)):
            device, stop = devices[turn % len(devices)], min(start + CHUNK, blocks)
            if device not in tables:
                tables[device] = jnp.zeros(2**_TABLE, np.uint8, device=device)
            inputs = jax.device_put((*world, names), device)
            tables[device] = _mark(*inputs, tables[device], np.int32(start), np.int32(stop))
            report((stop - start) * block_trials(world.value))
        for table in tables.values():
            told |= np.asarray(table) << np.uint8(bit)
        report(num_trials % block_trials(world.value))
    return Partial(_look_up, names, jnp.asarray(told))


@partial(jax.jit, donate_argnames="table")
def _mark(
    seed: Array,
    mechanism: Partial,
    value: Array,
    names: Partial,
    table: Array,
    start: Array,
    stop: Array,
) -> Array:
    """The table with ones for what the blocks from start up to stop answered."""

    def add(index: Array, table: Array) -> Array:
        return table.at[_place(names(answers(seed, mechanism, value, index)))].set(1)

    return lax.fori_loop(start, stop, add, table)


def _place(names: Array) -> Array:
    """Where in the table a name is; few share a place."""
    return (names >> (32 - _TABLE)).astype(np.int32)


def _look_up(names: Partial, table: Array, answers: Array) -> Array:
    """What the table says of each answer."""
    return table[_place(names(answers))].astype(np.float32)
