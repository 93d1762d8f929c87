"""Laplace noise that knows bounds: truncated noise, and answers kept inside a domain.

Noise is drawn by inversion, so that no draw is ever repeated. For an answer moved to the nearer end
of its domain, see `postprocess.clamp`: that keeps the privacy of the noise as it is.
"""

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from dpjax import _validate
from dpjax.mechanisms import _transforms
from dpjax.mechanisms.additive import _floating


def truncated_laplace(
    key: Array, value: ArrayLike, *, scale: ArrayLike, bound: ArrayLike
) -> Float[Array, " *answer"]:
    """Add Laplace noise conditioned on |noise| <= bound to every entry of `value`.

    With L1 sensitivity s, scale s / epsilon and a bound of at least `theory.truncation(scale, s,
    delta)` give (epsilon, delta)-DP (Geng, Ding, Guo and Kumar 2020, Theorem 1). Law:
    `theory.TruncatedLaplace`. The floating-point noise is for simulation and not safe for real
    releases.

    Args:
        key: one typed key, used once.
        value: the true answer in its own units. Every entry is an independent release. Floating
            arrays keep their dtype; a Python number becomes the default float.
        scale: in the units of `value`, at least 0, broadcast against it. 0 gives `value` itself,
            infinity uniform noise.
        bound: in the units of `value`, at least 0, broadcast against it. Infinity gives Laplace
            noise; then `scale` must be finite.

    Raises:
        TypeError: `key` is no typed key, or `value` an array of integers.
        ValueError: `scale` or `bound` is negative or NaN (not checked in traced code, where NaN
            gives NaN).

    >>> import jax
    >>> noise = truncated_laplace(jax.random.key(0), jax.numpy.zeros(1000), scale=3.0, bound=4.0)
    >>> bool(abs(noise).max() <= 4)
    True
    """
    _transforms.check(key, scale=scale, bound=bound)
    return _truncated(key, _floating(value), jnp.asarray(scale), jnp.asarray(bound))


def bounded_laplace(
    key: Array, value: ArrayLike, *, scale: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> Float[Array, " *answer"]:
    """Add Laplace noise to every entry, conditioned on an answer in [lower, upper].

    The bounded Laplace mechanism (Holohan, Antonatos, Braghin and Mac Aonghusa 2020). The mass left
    out depends on the value, by a factor of up to exp(s / scale) for L1 sensitivity s, so that
    scale s / epsilon gives 2 epsilon-DP and not epsilon-DP. Law: `theory.BoundedLaplace`. The
    floating-point noise is for simulation and not safe for real releases.

    Args:
        key: one typed key, used once.
        value: the true answer in its own units. Every entry is an independent release. Floating
            arrays keep their dtype; a Python number becomes the default float. Outside of the
            domain it acts as the nearer end.
        scale: in the units of `value`, at least 0, broadcast against it. 0 gives the clamped value,
            infinity a uniform answer.
        lower: end of the domain, finite, broadcast against `value`.
        upper: the other end, at least `lower`.

    Raises:
        TypeError: `key` is no typed key, or `value` an array of integers.
        ValueError: `scale` is negative or NaN, or an end of the domain not finite (not checked in
            traced code, where NaN gives NaN).

    >>> import jax
    >>> answer = bounded_laplace(jax.random.key(0), 0.9, scale=0.5, lower=0, upper=1)
    >>> bool(0 <= answer <= 1)
    True
    """
    _transforms.check(key, scale=scale)
    for name, end in (("lower", lower), ("upper", upper)):
        if not isinstance(end, Tracer):
            _validate.finite(**{name: end})
    ends = jnp.asarray(lower), jnp.asarray(upper)
    return _bounded(key, _floating(value), jnp.asarray(scale), *ends)


@jax.jit
def _truncated(key: Array, value: Array, scale: Array, bound: Array) -> Array:
    """Magnitude by inversion, sign by a bit."""
    shape = jnp.broadcast_shapes(value.shape, scale.shape, bound.shape)
    dtype = _transforms.work_dtype(value.dtype)
    scale, bound = (_transforms.aligned(p, len(shape), dtype) for p in (scale, bound))
    size, word = _truncated_exponential(key, shape, scale, bound)
    noise = jnp.where((word & 1) != 0, -size, size)
    return (jnp.broadcast_to(value.astype(dtype), shape) + noise).astype(value.dtype)


@jax.jit
def _bounded(key: Array, value: Array, scale: Array, lower: Array, upper: Array) -> Array:
    """A side in proportion to its mass, then noise truncated at the end of the domain there."""
    shape = jnp.broadcast_shapes(value.shape, scale.shape, lower.shape, upper.shape)
    dtype = _transforms.work_dtype(value.dtype)
    scale, lower, upper = (
        _transforms.aligned(parameter, len(shape), dtype) for parameter in (scale, lower, upper)
    )
    side_key, noise_key = jax.random.split(key)
    center = jnp.clip(jnp.broadcast_to(value.astype(dtype), shape), lower, upper)
    down, up = center - lower, upper - center
    mass_down, mass_up = _mass(down, scale), _mass(up, scale)
    total = jnp.where(mass_down + mass_up > 0, mass_down + mass_up, 1)
    below = _transforms.bernoulli(side_key, shape, mass_down / total)
    size, _ = _truncated_exponential(noise_key, shape, scale, jnp.where(below, down, up))
    answer = jnp.clip(jnp.where(below, center - size, center + size), lower, upper)
    return answer.astype(value.dtype)


def _mass(room: Array, scale: Array) -> Array:
    """Scale times the mass of exponential noise below `room`; its limits at scale 0, infinity."""
    mass = jnp.where(jnp.isinf(scale), room, -scale * jnp.expm1(-room / scale))
    return jnp.where(scale == 0, 0, mass)


def _truncated_exponential(
    key: Array, shape: tuple[int, ...], scale: Array, bound: Array
) -> tuple[Array, Array]:
    """Exponential noise conditioned on noise <= bound, and a word whose low bit is fresh.

    -scale log(1 - u (1 - exp(-r))), r = bound / scale, with u counted from the nearer end by a
    coin, so that it is precise at both: uniform where r is too small to tell, 0 at scale 0.
    """
    half, word = _transforms.half_uniform(key, shape, scale.dtype)
    far = (word & 2) != 0
    ratio = bound / scale
    near_size = -jnp.log1p(jnp.where(far, 1 - half, half) * jnp.expm1(-ratio))
    far_size = _transforms.minus_log(jnp.exp(-ratio) - half * jnp.expm1(-ratio))
    size = scale * jnp.where(far & (ratio > 1), far_size, near_size)
    size = jnp.where(ratio < 1e-30, jnp.where(far, 1 - half, half) * bound, size)
    return jnp.minimum(jnp.where(scale == 0, 0, size), bound), word
