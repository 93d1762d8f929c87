"""What the mechanisms share: checks of arguments, and draws that are right far into the tails.

A float32 made from one 32-bit word cannot tell probabilities below 2^-32 apart, nor one minus them.
The draws here take 61 bits: exponential noise has full relative precision at both ends, and an
event of probability 1e-15 happens that often.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, UInt

from dpjax import _validate, prng
from dpjax.mechanisms.additive import _LOG, _ROOT_HALF, _polynomial

HALVES = 2.0**-32  # of a word


def check(key: Array, **parameters: ArrayLike) -> None:
    """Refuse a bad key, and parameters outside of [0, infinity] where they are concrete."""
    prng.check(key)
    for name, parameter in parameters.items():
        if not isinstance(parameter, Tracer):
            _validate.non_negative_or_infinite(**{name: parameter})


def work_dtype(dtype: np.dtype) -> np.dtype:
    """float64 for 64-bit answers and float32 for all others, whatever the x64 flag."""
    return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)


def aligned(parameter: Array, ndim: int, dtype: np.dtype) -> Array:
    """The parameter with axes of length 1 in front, in a dtype.

    What is computed of it alone is then computed once, and broadcast with the draws afterwards.
    """
    return parameter.reshape((1,) * (ndim - parameter.ndim) + parameter.shape).astype(dtype)


def without_nan(parameter: Array) -> Array:
    """Infinity for NaN, which cannot raise in traced code, and must not act as no noise."""
    return jnp.where(jnp.isnan(parameter), jnp.inf, parameter)


def word_pairs(key: Array, shape: tuple[int, ...]) -> tuple[UInt[Array, "..."], UInt[Array, "..."]]:
    """Two independent 32-bit words for each entry: the halves of 64-bit word i for entry i."""
    prng.check(key)
    if prng.implementation(key) != "threefry2x32":
        upper, lower = jax.random.bits(key, (2, *shape), np.uint32)
        return upper, lower
    jax.random.bits(key, (), np.uint8)  # unused, hence free under jit: tells JAX that key is spent
    return prng.threefry2x32(jax.random.key_data(key), *prng._counters(shape))


def half_uniform(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Array, Array]:
    """Uniform in (0, 1/2] of full relative precision down to 2^-63, and a word with two fresh bits.

    It is (m + 1/2) / 2^62 of a 61-bit m (float64: one more); the bits are the word's lowest.
    """
    if dtype == np.float64:
        word = prng.words(key, shape, width=64)
        return ((word >> 2).astype(np.int64).astype(dtype) + 0.5) * 2.0**-63, word
    upper, word = word_pairs(key, shape)
    head = (upper >> 1).astype(np.int32).astype(dtype) * HALVES
    tail = ((word >> 2).astype(np.int32).astype(dtype) + 0.5) * 2.0**-62
    return head + tail, word


def exponential(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Array, Array]:
    """Exponential noise of scale 1, precise from 2^-63 to 43.7, and a word whose low bit is fresh.

    With h uniform in (0, 1/2], a coin chooses -log(h) or -log(1 - h). One log serves both, with the
    part of h that 1 - h rounded off added back; its factor 1 / (1 - h) is near 1 where it matters.
    """
    h, word = half_uniform(key, shape, dtype)
    far = (word & 2) != 0
    rest = 1 - h
    log = minus_log(jnp.where(far, h, rest))
    return log + jnp.where(far, 0, h - (1 - rest)), word


def minus_log(x: Array, gap: Array | None = None) -> Array:
    """-log(x) of a positive normal number, faster in float32 than the log that knows all others.

    The gap is 1 - x where that is known to more digits than x has near 1.
    """
    if x.dtype == np.float64:
        return -jnp.log(x) if gap is None else jnp.where(gap < 0.25, -jnp.log1p(-gap), -jnp.log(x))
    # x = 2^exponent (1 + t) with 1 + t in [sqrt(1/2), sqrt(2))
    pattern = lax.bitcast_convert_type(x, np.int32)
    exponent = (pattern - _ROOT_HALF) >> 23
    t = lax.bitcast_convert_type(pattern - (exponent << 23), np.float32) - 1
    if gap is not None:
        t = jnp.where(exponent == 0, -gap, t)
    return exponent.astype(np.float32) * -math.log(2) - t * _polynomial(_LOG, t)


def gumbel(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Gumbel noise of scale 1, from -3.8 to 43.7."""
    return minus_log(exponential(key, shape, dtype)[0])


def stored(key: Array, make: Callable[[Array], Array]) -> Array:
    """What `make(key)` draws, computed once, however many read it.

    The CPU compiler makes one loop for each reader and would draw the words anew in each. It fuses
    nothing across a branch, so branch on what is always true.
    """
    implementation = jax.random.key_impl(key)
    seed = jax.random.key_data(key)  # cond under vmap takes no keys as used once

    def drawn() -> Array:
        return make(jax.random.wrap_key_data(seed, impl=implementation))

    def branched() -> Array:
        nothing = jax.eval_shape(drawn)
        always = (seed.ravel()[0] | 1) > 0
        return lax.cond(always, drawn, lambda: jnp.zeros(nothing.shape, nothing.dtype))

    prng.spend(key)
    return lax.platform_dependent(cpu=branched, default=drawn)


def whole(value: ArrayLike) -> Array:
    """An integer array as it is, a Python int as the default integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return jnp.asarray(value, dtype=int)
    value = jnp.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.integer):
        raise TypeError(f"value = {value.dtype}{list(value.shape)}: expected integers")
    return value
