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

    In float32 the noise is one sign bit and a logarithm of 31 bits, symmetric to the last bit. It
    lies within 22.2 scales (the law exceeds that with probability 2.3e-10), its distribution
    function is right to 1e-7, and it moves in steps of 6e-8 scales near 0 and of a factor in the
    probability of exceeding it, 1 + 2^-31 / p, in the tails. float64 uses 64 bits and reaches
    44.4 scales. Narrower types are computed in float32 and rounded.

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
    deviates": in float32 a radius from 31 bits and an angle from 32, symmetric to the last bit.
    It lies within 6.66 scales (the law exceeds that with probability 2.7e-11), and its
    distribution function is right to 2e-7. The radius moves in steps of 6e-8 over itself near 0
    and with the tail probability p of the pair by a factor 1 + 2^-31 / p. float64 uses 64 bits
    for each and reaches 9.4 scales. Narrower types are computed in float32 and rounded.

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
    """Laplace noise of scale 1: an exponential number from all bits but one, a sign from that."""

    def one(bits: Array) -> Array:
        return _with_sign(_exponential(bits, dtype), bits)

    return prng.draw(key, shape, lambda a, b: (one(a), one(b)), width=_width(dtype))


def _standard_gaussian(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Normal noise of scale 1, in pairs: a radius from one word and an angle from the other."""

    def two(a: Array, b: Array) -> tuple[Array, Array]:
        radius = jnp.sqrt(2 * _exponential(a, dtype))
        cosine, sine = _direction(b, dtype)
        return radius * cosine, radius * sine

    return prng.draw(key, shape, two, width=_width(dtype))


def _signed_uniform(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """A level in (0, 1] from all bits but one, a sign from that."""

    def one(bits: Array) -> Array:
        return _with_sign(_level(bits, dtype), bits)

    return prng.draw(key, shape, lambda a, b: (one(a), one(b)), width=_width(dtype))


def _level(bits: Array, dtype: np.dtype) -> Array:
    """(m + 1/2) / 2^(w-1) with m the upper w - 1 of w bits."""
    return (_signed(bits >> 1).astype(dtype) + 0.5) * 2.0 ** (1 - jnp.iinfo(bits.dtype).bits)


def _width(dtype: np.dtype) -> int:
    """Bits of the words that feed this floating type."""
    return 64 if dtype == np.float64 else 32


def _exponential(bits: Array, dtype: np.dtype) -> Array:
    """-log((m + 1/2) / 2^(w-1)) with m the upper w - 1 of w bits: from 0 to w log 2."""
    width = jnp.iinfo(bits.dtype).bits
    number = _signed(bits >> 1).astype(dtype) + 0.5
    if dtype == np.float64:
        return -jnp.log(number * 2.0 ** (1 - width))
    # number = 2^exponent (1 + t) with 1 + t in [sqrt(1/2), sqrt(2)): no special cases to look for
    pattern = lax.bitcast_convert_type(number, np.int32)
    exponent = (pattern - _ROOT_HALF) >> 23
    t = lax.bitcast_convert_type(pattern - (exponent << 23), np.float32) - 1
    return (width - 1 - exponent).astype(dtype) * math.log(2) - t * _polynomial(_LOG, t)


def _direction(bits: Array, dtype: np.dtype) -> tuple[Array, Array]:
    """Cosine and sine of a uniform angle: three bits choose the octant, the others go into it."""
    width = jnp.iinfo(bits.dtype).bits
    angle = (_signed(bits >> 3).astype(dtype) + 0.5) * (math.pi / 4 * 2.0 ** (3 - width))
    if dtype == np.float64:
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
    else:
        square = angle * angle
        cosine, sine = _polynomial(_COSINE, square), angle * _polynomial(_SINE, square)
    swap = (bits & 4) != 0
    first, second = jnp.where(swap, sine, cosine), jnp.where(swap, cosine, sine)
    return _with_sign(first, bits), _with_sign(second, bits >> 1)


def _with_sign(magnitude: Array, bits: Array) -> Array:
    """The magnitude, negative where the lowest bit is set."""
    width = jnp.iinfo(bits.dtype).bits
    pattern = lax.bitcast_convert_type(magnitude, bits.dtype) | (bits << (width - 1))
    return lax.bitcast_convert_type(pattern, magnitude.dtype)


def _signed(bits: Array) -> Array:
    """The same number as a signed one, which every CPU turns into a float in one instruction."""
    return bits.astype(f"int{jnp.iinfo(bits.dtype).bits}")


def _polynomial(coefficients: np.ndarray, x: Array) -> Array:
    """Horner's rule, in the dtype of x."""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + float(coefficient)
    return total


def _fit(function: Callable, degree: int, low: float, high: float) -> np.ndarray:
    """Coefficients, constant first, of the Chebyshev interpolant of a smooth function."""
    fit = np.polynomial.Chebyshev.interpolate(function, degree, domain=[low, high])
    return fit.convert(kind=np.polynomial.Polynomial).coef


_ROOT_HALF = int(np.float32(math.sqrt(0.5)).view(np.int32))
_LOG = _fit(lambda t: np.log1p(t) / t, 8, math.sqrt(0.5) - 1, math.sqrt(2) - 1)
_COSINE = _fit(lambda z: np.cos(np.sqrt(z)), 4, 0.0, (math.pi / 4) ** 2)
_SINE = _fit(lambda z: np.sinc(np.sqrt(z) / math.pi), 3, 0.0, (math.pi / 4) ** 2)
