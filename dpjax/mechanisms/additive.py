"""Mechanisms that add noise: Laplace and Gaussian."""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from dpjax import _validate, prng


def laplace(key: Array, value: ArrayLike, *, scale: ArrayLike) -> Float[Array, " *answer"]:
    """Add Laplace noise of density exp(-|x| / scale) / (2 scale) to every entry of `value`.

    With L1 sensitivity s, scale s / epsilon gives epsilon-DP (Dwork, McSherry, Nissim and Smith
    2006, Theorem 1). The floating-point noise is for simulation and not safe for real releases.

    In float32 the noise is one sign bit and a logarithm of 31 bits: it lies within 22.2 scales
    (the law exceeds that with probability 2.3e-10), symmetric to the last bit, in 2^32 equally
    likely steps. float64 uses 64 bits and reaches 44.4 scales. Narrower types are computed in
    float32 and rounded.

    Args:
        key: one typed key, used once.
        value: the true answer in its own units. Every entry is an independent release. Floating
            arrays keep their dtype; a Python number becomes the default float.
        scale: the noise scale b in the units of `value`, at least 0, broadcast against `value`.
            0 gives `value` itself.

    Raises:
        TypeError: `key` is no typed key, or `value` an array of integers.
        ValueError: `scale` is negative or NaN (not checked in traced code, where NaN gives NaN).

    >>> import jax
    >>> laplace(jax.random.key(0), 319, scale=10.0).shape
    ()
    """
    return _add_noise(_standard_laplace, key, value, scale)


def gaussian(key: Array, value: ArrayLike, *, scale: ArrayLike) -> Float[Array, " *answer"]:
    """Add normal noise of standard deviation `scale` to every entry of `value`.

    What it costs depends on the accountant: see `dpjax.accounting`. The floating-point noise is
    for simulation and not safe for real releases.

    The noise comes in pairs by Box and Muller (1958), "A note on the generation of random normal
    deviates": in float32 a radius from 31 bits and an angle from 32, so it lies within 6.66
    scales (the law exceeds that with probability 2.7e-11), symmetric to the last bit. float64
    uses 64 bits for each and reaches 9.4 scales. Narrower types are computed in float32 and
    rounded.

    Args:
        key: one typed key, used once.
        value: the true answer in its own units. Every entry is an independent release. Floating
            arrays keep their dtype; a Python number becomes the default float.
        scale: the standard deviation in the units of `value`, at least 0, broadcast against
            `value`. 0 gives `value` itself.

    Raises:
        TypeError: `key` is no typed key, or `value` an array of integers.
        ValueError: `scale` is negative or NaN (not checked in traced code, where NaN gives NaN).

    >>> import jax
    >>> gaussian(jax.random.key(0), 319, scale=10.0).shape
    ()
    """
    return _add_noise(_standard_gaussian, key, value, scale)


def _add_noise(standard: Callable, key: Array, value: ArrayLike, scale: ArrayLike) -> Array:
    """The answer, after the checks that concrete arguments allow."""
    prng.check(key)
    value = _floating(value)
    if not isinstance(scale, Tracer):
        _validate.non_negative_or_infinite(scale=scale)
    return _noisy(standard, key, value, jnp.asarray(scale))


def _floating(value: ArrayLike) -> Array:
    """A floating array as it is, a Python number as the default float."""
    if isinstance(value, (bool, int, float)):
        return jnp.asarray(value, dtype=float)
    value = jnp.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise TypeError(f"value = {value.dtype}{list(value.shape)}: expected floats")
    return value


@partial(jax.jit, static_argnums=0)
def _noisy(standard: Callable, key: Array, value: Array, scale: Array) -> Array:
    """The answer, computed in float32 at least and rounded to the dtype of `value`."""
    work = np.dtype(np.float64 if value.dtype == np.float64 else np.float32)
    shape = jnp.broadcast_shapes(value.shape, scale.shape)
    noise = standard(key, shape, work)
    center = jnp.broadcast_to(value.astype(work), shape)
    return (center + jnp.broadcast_to(scale.astype(work), shape) * noise).astype(value.dtype)


def _standard_laplace(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Laplace noise of scale 1: minus the log of a uniform number, and a sign from its own bit."""
    bits = prng.words(key, shape, width=_width(dtype))
    return _with_sign(-jnp.log(_uniform(bits, dtype)), bits)


def _standard_gaussian(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Normal noise of scale 1: radius and angle from the two halves of a tile of words."""
    size = math.prod(shape)
    tiles = -(-size // (2 * prng.TILE))
    bits = prng.words(key, (tiles, 2, prng.TILE), width=_width(dtype))
    radius = jnp.sqrt(-2 * jnp.log(_uniform(bits[:, 0], dtype)))
    cosine, sine = _direction(bits[:, 1], dtype)
    pairs = jnp.stack([radius * cosine, radius * sine], axis=1)
    return pairs.reshape(-1)[:size].reshape(shape)


def _width(dtype: np.dtype) -> int:
    """Bits of the words that feed this floating type."""
    return 64 if dtype == np.float64 else 32


def _uniform(bits: Array, dtype: np.dtype) -> Array:
    """(m + 1/2) / 2^(w-1) in (0, 1], with m all bits but the lowest."""
    width = jnp.iinfo(bits.dtype).bits
    signed = (bits >> 1).astype(f"int{width}")  # signed: one instruction on every CPU
    return (signed.astype(dtype) + 0.5) * 2.0 ** (1 - width)


def _with_sign(magnitude: Array, bits: Array) -> Array:
    """The magnitude, negative where the lowest bit is set."""
    width = jnp.iinfo(bits.dtype).bits
    flipped = lax.bitcast_convert_type(magnitude, bits.dtype) ^ (bits << (width - 1))
    return lax.bitcast_convert_type(flipped, magnitude.dtype)


def _direction(bits: Array, dtype: np.dtype) -> tuple[Array, Array]:
    """Cosine and sine of a uniform angle: three bits choose the octant, the others go into it."""
    width = jnp.iinfo(bits.dtype).bits
    fraction = (bits >> 3).astype(f"int{width}").astype(dtype)
    angle = (fraction + 0.5) * (math.pi / 4 * 2.0 ** (3 - width))
    cosine, sine = _cosine_sine(angle, dtype)
    swap = (bits & 4) != 0
    first, second = jnp.where(swap, sine, cosine), jnp.where(swap, cosine, sine)
    return _with_sign(first, bits), _with_sign(second, bits >> 1)


def _cosine_sine(angle: Array, dtype: np.dtype) -> tuple[Array, Array]:
    """Cosine and sine on [0, pi/4]; in float32 by polynomials that are exact to rounding there."""
    if dtype == np.float64:
        return jnp.cos(angle), jnp.sin(angle)
    square = angle * angle
    cosine = jnp.polyval(jnp.asarray(_COSINE, dtype), square)
    sine = angle * jnp.polyval(jnp.asarray(_SINE, dtype), square)
    return cosine, sine


def _fit(function: Callable, degree: int, low: float, high: float) -> np.ndarray:
    """Coefficients, highest first, of the Chebyshev interpolant of a smooth function."""
    fit = np.polynomial.Chebyshev.interpolate(function, degree, domain=[low, high])
    return fit.convert(kind=np.polynomial.Polynomial).coef[::-1]


_COSINE = _fit(lambda z: np.cos(np.sqrt(z)), 4, 0.0, (np.pi / 4) ** 2)
_SINE = _fit(lambda z: np.sinc(np.sqrt(z) / np.pi), 3, 0.0, (np.pi / 4) ** 2)
