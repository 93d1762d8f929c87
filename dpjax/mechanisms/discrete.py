"""Mechanisms that add whole numbers to integers: discrete Laplace and discrete Gaussian.

Answers keep the integer dtype; beyond its ends they saturate and never wrap. 64-bit answers (x64
only) are computed in float64, all others in float32: tail probabilities P(|noise| >= x) then have a
relative error of about 1e-6 (float64: 1e-14) out to the end that each docstring names, and P(noise
= x) of |x| 2^-23 (2^-52), so that from |x| = 2^24 (2^53) up not every number occurs.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Integer

from dpjax.mechanisms import _transforms
from dpjax.mechanisms.additive import _standard_gaussian


def discrete_laplace(
    key: Array, value: ArrayLike, *, scale: ArrayLike
) -> Integer[Array, " *answer"]:
    """Add noise of probability proportional to exp(-|x| / scale) on the integers to every entry.

    With L1 sensitivity s, scale s / epsilon gives epsilon-DP: the two-sided geometric mechanism
    (Ghosh, Roughgarden and Sundararajan 2009). Law: `theory.DiscreteLaplace`.

    |noise| reaches 43.7 scales (the law exceeds that with probability 1e-19).

    Args:
        key: one typed key, used once.
        value: the true answer, whole. Every entry is an independent release. Integer arrays keep
            their dtype, signed or not; a Python int becomes the default integer.
        scale: in the units of `value`, at least 0, broadcast against `value`. 0 gives `value`
            itself; infinity one of the two ends of the dtype.

    Raises:
        TypeError: `key` is no typed key, or `value` not of integers.
        ValueError: `scale` is negative or NaN (not checked in traced code, where NaN acts as
            infinity).

    >>> import jax, jax.numpy as jnp
    >>> counts = jnp.array([319, 12], dtype=jnp.int16)
    >>> discrete_laplace(jax.random.key(0), counts, scale=10.0).dtype
    dtype('int16')
    """
    return _add_whole_noise(_laplace_magnitude, key, value, scale)


def discrete_gaussian(
    key: Array, value: ArrayLike, *, scale: ArrayLike
) -> Integer[Array, " *answer"]:
    """Add noise of probability proportional to exp(-x^2 / (2 scale^2)) on the integers.

    With L2 sensitivity s it is s^2 / (2 scale^2)-zCDP, as Gaussian noise of that standard deviation
    (Canonne, Kamath and Steinke 2020, Theorem 4). Law: `theory.DiscreteGaussian`.

    Below scale 4 the law is a table, right out to 9.3 scales. From 4 up normal noise is stretched
    so that rounding gives the discrete law: the relative error of tails is below 2e-8 besides
    that of the arithmetic, out to the 6.66 scales of the normal (float64: 3e-6 out to 9.4).

    Args:
        key: one typed key, used once.
        value: the true answer, whole. Every entry is an independent release. Integer arrays keep
            their dtype, signed or not; a Python int becomes the default integer.
        scale: in the units of `value`, at least 0, broadcast against `value`. It is the standard
            deviation but for scales below 1, where that is less. 0 gives `value` itself; infinity
            one of the two ends of the dtype.

    Raises:
        TypeError: `key` is no typed key, or `value` not of integers.
        ValueError: `scale` is negative or NaN (not checked in traced code, where NaN acts as
            infinity).

    >>> import jax
    >>> noise = discrete_gaussian(jax.random.key(0), jax.numpy.zeros(1000, int), scale=0.3)
    >>> int(abs(noise).max())
    1
    """
    return _add_whole_noise(_gaussian_magnitude, key, value, scale)


def _add_whole_noise(magnitude: Callable, key: Array, value: ArrayLike, scale: ArrayLike) -> Array:
    """The answer, after the checks that concrete arguments allow."""
    _transforms.check(key, scale=scale)
    return _noisy(magnitude, key, _transforms.whole(value), jnp.asarray(scale))


@partial(jax.jit, static_argnums=0)
def _noisy(magnitude: Callable, key: Array, value: Array, scale: Array) -> Array:
    """The answer in the dtype of `value`."""
    shape = jnp.broadcast_shapes(value.shape, scale.shape)
    dtype = _transforms.work_dtype(value.dtype)
    scale = _transforms.without_nan(_transforms.aligned(scale, len(shape), dtype))
    size, bit = magnitude(key, shape, scale)
    return _saturating_add(jnp.broadcast_to(value, shape), size, (bit & 1) != 0)


def _saturating_add(value: Array, size: Array, negative: Array) -> Array:
    """Value minus or plus size, stopped at the ends of the dtype of `value`.

    In unsigned arithmetic the room up to each end is exact. NaN and what the type cannot hold
    count as more than any room.
    """
    info = jnp.iinfo(value.dtype)
    unsigned = np.dtype(f"uint{info.bits}")
    limit = 2.0**info.bits
    fits = size < limit
    steps = jnp.where(fits, size, 0).astype(unsigned)
    steps = jnp.where(fits, steps, np.asarray(np.iinfo(unsigned).max, unsigned))
    start = lax.bitcast_convert_type(value, unsigned)
    low, high = (np.asarray(end, value.dtype).view(unsigned) for end in (info.min, info.max))
    down = start - jnp.minimum(steps, start - low)
    up = start + jnp.minimum(steps, high - start)
    return lax.bitcast_convert_type(jnp.where(negative, down, up), value.dtype)


def _laplace_magnitude(key: Array, shape: tuple[int, ...], scale: Array) -> tuple[Array, Array]:
    """|noise| by inversion: P(|X| >= m) = 2 a^m / (1 + a) for m >= 1, with a = exp(-1 / scale)."""
    noise, bit = _transforms.exponential(key, shape, scale.dtype)
    head = scale * jnp.log1p(jnp.tanh(0.5 / scale))  # scale log(2 / (1 + a)), near 1/2 when large
    head = jnp.where(scale > 2.0**12, 0.5 - 0.125 / scale, head)  # infinity times 0
    return jnp.floor(scale * noise + head), bit


_SEAM = 4.0  # scales below: the table; from here up: rounding
_TABLE = 40  # the law at scale 4 exceeds 38 with probability 1e-21
_STEP = 8  # tails compared in one pass over the numbers


def _gaussian_magnitude(key: Array, shape: tuple[int, ...], scale: Array) -> tuple[Array, Array]:
    """|noise| by the method that suits the scale; one scale alone runs only its own."""
    implementation = jax.random.key_impl(key)
    keys = jax.random.key_data(jax.random.split(key))  # cond under vmap takes no keys as used once

    def small(scale: Array) -> tuple[Array, Array]:
        return _small_gaussian(jax.random.wrap_key_data(keys[0], impl=implementation), shape, scale)

    def large(scale: Array) -> tuple[Array, Array]:
        return _large_gaussian(jax.random.wrap_key_data(keys[1], impl=implementation), shape, scale)

    if scale.size == 1:
        return lax.cond(scale.reshape(()) < _SEAM, small, large, scale)
    below = scale < _SEAM
    return jax.tree.map(partial(jnp.where, below), small(scale), large(scale))


def _small_gaussian(key: Array, shape: tuple[int, ...], scale: Array) -> tuple[Array, Array]:
    """|noise| by inversion: how many of P(|X| >= 1), P(|X| >= 2), ... exceed a uniform number."""
    half, bit = _transforms.half_uniform(key, shape, scale.dtype)
    x = np.arange(1, _TABLE + 1, dtype=scale.dtype).reshape(-1, *(1,) * scale.ndim)
    # sums from the far end, so that small terms count; P(|X| >= x) = 2 tail / (1 + 2 tail at 1)
    tails = lax.cumsum(jnp.exp(-0.5 * (x / scale[None]) ** 2), reverse=True)
    level = half * (1 + 2 * tails[0])
    reach = jnp.minimum(9.4 * scale.max(), _TABLE)  # no tail beyond exceeds the least number

    def count(i: Array, size: Array) -> Array:
        part = lax.dynamic_slice_in_dim(tails, i * _STEP, _STEP)
        return size + sum((level < tail).astype(scale.dtype) for tail in part)

    passes = jnp.ceil(reach / _STEP).astype(int)
    return lax.fori_loop(0, passes, count, jnp.zeros_like(half)), bit


# y(z) with P(X >= s y + 1/2) = P(Z >= z), as coefficients of z, z^3, ... for each power of 1 / s^2:
# the Euler-Maclaurin series of the tail sum, taken at midpoints, inverted.
_STRETCH = (
    (1.0,),
    (-1 / 24,),
    (-11 / 5760, 1 / 2880),
    (-241 / 967680, 143 / 1451520, -1 / 181440),
    (-22651 / 464486400, 10867 / 348364800, -269 / 69672960, 1 / 9676800),
)


def _large_gaussian(key: Array, shape: tuple[int, ...], scale: Array) -> tuple[Array, Array]:
    """|noise| by rounding stretched normal noise."""
    # Without the barrier XLA writes out the draw anew at each use of z, in one fused loop: with
    # jax 0.12 a traced scale takes 13 s to compile, and 0.2 s with it.
    z = lax.optimization_barrier(_standard_gaussian(key, shape, scale.dtype))
    size = jnp.floor(scale * _stretched(jnp.abs(z), scale) + 0.5)
    return size, (z < 0).astype(f"uint{8 * scale.dtype.itemsize}")


def _stretched(z: Array, scale: Array) -> Array:
    """y(z), by Horner's rule in 1 / scale^2 and in z^2."""
    square, inverse = z * z, 1 / jnp.maximum(scale, 1) ** 2
    total = jnp.zeros_like(z)
    for row in reversed(_STRETCH):
        total = total * inverse + jnp.polyval(jnp.asarray(row[::-1], scale.dtype), square)
    return z * total
