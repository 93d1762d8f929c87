"""Draws of events and of whole numbers, exact far below what a float32 can tell apart.

An event of probability 1e-15 happens that often, and yet most answers take 16 random bits: two
probabilities differ in the first bits already, and what is left over is drawn only for the few.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from dpjax import prng
from dpjax.mechanisms._transforms import stored, word_pairs

_ROWS = 16  # calls of the generator in a column, each for four answers
_BYTES = np.uint32(0x01010101)  # one for each of the four


def bernoulli(key: Array, shape: tuple[int, ...], probability: Array) -> Array:
    """True with the given probability, exact to 2^-80.

    A uniform number of 80 bits against the probability. The first 16 bits settle all but one
    answer in 65,536, which takes 64 more from its column of 64 answers; where two of a column want
    them (one draw of 65,536 answers in 2,000), every answer gets 64 bits of its own.

    The probability broadcasts against the shape, has its rank, and lies in [0, 1].
    """
    size = math.prod(shape)
    columns = -(-size // (4 * _ROWS))
    if probability.size == 1:
        chance = probability.reshape(1, 1, 1)
    else:
        chance = jnp.broadcast_to(probability, shape).reshape(-1)
        chance = jnp.pad(chance, (0, 4 * _ROWS * columns - size)).reshape(4, _ROWS, columns)
    whole = jnp.floor(chance * 2.0**16)
    first, rest = whole.astype(np.uint32), (chance * 2.0**16 - whole) * 2.0**32
    whole = jnp.floor(rest)
    second, third = whole.astype(np.uint32), ((rest - whole) * 2.0**32).astype(np.uint32)
    now_key, column_key, own_key = jax.random.split(key, 3)
    own_seed = jax.random.key_data(own_key)  # a branch takes no keys as used once
    implementation = jax.random.key_impl(key)

    def beside(four: Callable[[int], Array]) -> Array:
        """Four answers in one word, a byte each."""
        a, b, c, d = (four(i).astype(np.uint32) << (8 * i) for i in range(4))
        return a | b | c | d

    def pack(key: Array) -> Array:
        """Bit 0: the 16 bits say true; bit 1: they are those of the probability."""
        upper, lower = word_pairs(key, (_ROWS, columns))
        bits = (upper & 0xFFFF, upper >> 16, lower & 0xFFFF, lower >> 16)
        true = beside(lambda i: bits[i] < first[i % len(first)])
        return true | beside(lambda i: bits[i] == first[i % len(first)]) << 1

    def settle(high: Array, low: Array) -> Array:
        """Bit 0, with the coin in place where bit 1 is set."""
        coin = (high < second) | ((high == second) & (low < third))
        return (packed | (packed >> 1) & beside(lambda i: coin[i % len(coin)])) & _BYTES

    def one_for_each() -> Array:
        own = jax.random.wrap_key_data(own_seed, impl=implementation)
        return settle(*word_pairs(own, (4, _ROWS, columns)))

    packed = stored(now_key, pack)
    in_column = ((packed >> 1) & _BYTES).sum(axis=0, dtype=np.uint32)
    crowded = ((in_column * _BYTES) >> 24 > 1).any()
    column = word_pairs(column_key, (1, 1, columns))
    settled = lax.cond(crowded, one_for_each, lambda: settle(*column))
    answers = settled[None] >> (8 * np.arange(4, dtype=np.uint32))[:, None, None]
    return ((answers & 1) != 0).reshape(-1)[:size].reshape(shape)


def fair(key: Array, shape: tuple[int, ...]) -> Array:
    """True with probability 1/2: each bit of a word is an answer."""
    size = math.prod(shape)
    words = stored(key, lambda key: prng.words(key, (-(-size // 32),)))
    bits = words[None] >> np.arange(32, dtype=np.uint32)[:, None]
    return ((bits & 1) != 0).reshape(-1)[:size].reshape(shape)


def below(key: Array, shape: tuple[int, ...], limit: Array) -> Array:
    """Uniform whole number in [0, limit), uint32, each within 2^-32 of its probability.

    The upper half of word times limit, by 16-bit pieces; the limit has the rank of the shape.
    """
    word, limit = prng.words(key, shape), limit.astype(np.uint32)
    low, high, mask = limit & 0xFFFF, limit >> 16, np.uint32(0xFFFF)
    cross = (word >> 16) * low + (((word & mask) * low) >> 16)
    other = (word & mask) * high + (cross & mask)
    return (word >> 16) * high + (cross >> 16) + (other >> 16)
