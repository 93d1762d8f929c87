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
from dpjax.mechanisms.additive import _floating, _signed_uniform


def truncated_laplace(
    key: Array, value: ArrayLike, *, scale: ArrayLike, bound: ArrayLike
) -> Float[Array, " *answer"]:
    """Add Laplace noise conditioned on |noise| <= bound to every entry of `value`.

    With L1 sensitivity s, scale s / epsilon and a bound of at least `theory.truncation(scale, s,
    delta)` give (epsilon, delta)-DP (Geng, Ding, Guo and Kumar 2020, Theorem 1). Law:
    `theory.TruncatedLaplace`. The floating-point noise is for simulation and not safe for real
    releases.

    A sign bit, and a level of 31 bits (float64: 63) as in `laplace`: with an infinite bound the
    noise is that of `laplace` on the same key.

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

    One word of 32 bits (float64: 64) gives an answer; chances are right down to 2^-32 (2^-64) of
    the whole at both ends of the domain.

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
    """Magnitude by inversion from the far end, P(|noise| > x) (1 - q) = exp(-x / scale) - q."""
    shape = jnp.broadcast_shapes(value.shape, scale.shape, bound.shape)
    dtype = _transforms.work_dtype(value.dtype)
    scale, bound = (_transforms.aligned(p, len(shape), dtype) for p in (scale, bound))
    signed = _signed_uniform(key, shape, dtype)
    level, ratio = jnp.abs(signed), bound / scale
    q, mass = jnp.exp(-ratio), -jnp.expm1(-ratio)
    size = scale * _transforms.minus_log(q + level * mass, (1 - level) * mass)
    size = jnp.where(ratio < _UNIFORM, (1 - level) * bound, size)
    size = jnp.minimum(jnp.where(scale == 0, 0, size), bound)
    noise = jnp.where(signed < 0, -size, size)
    return (jnp.broadcast_to(value.astype(dtype), shape) + noise).astype(value.dtype)


@jax.jit
def _bounded(key: Array, value: Array, scale: Array, lower: Array, upper: Array) -> Array:
    """By inversion: the level's mass is measured from the end of the domain that the sign says.

    So small chances are right at both ends. Where the mass goes beyond the value, the answer lies
    on its other side, and what is left of the mass there counts from the other end.
    """
    shape = jnp.broadcast_shapes(value.shape, scale.shape, lower.shape, upper.shape)
    dtype = _transforms.work_dtype(value.dtype)
    scale, lower, upper = (
        _transforms.aligned(parameter, len(shape), dtype) for parameter in (scale, lower, upper)
    )
    center = jnp.clip(_transforms.aligned(value, len(shape), dtype), lower, upper)
    uniform = (upper - lower) / scale < _UNIFORM

    def side(room: Array) -> tuple[Array, Array]:
        """What is left at the end, and the mass up to there: the room itself if uniform."""
        ratio = jnp.where(room == 0, 0, room / scale)
        return jnp.exp(-ratio), jnp.where(uniform, room, -jnp.expm1(-ratio))

    (low_q, low_mass), (high_q, high_mass) = side(center - lower), side(upper - center)
    signed = _signed_uniform(key, shape, dtype)
    from_low, total = signed < 0, low_mass + high_mass
    mass = 0.5 * jnp.abs(signed) * total
    here = jnp.where(from_low, low_mass, high_mass)
    near = mass < here
    down = from_low == near
    rest, gap = jnp.where(near, mass, total - mass), jnp.abs(here - mass)
    log = _transforms.minus_log(jnp.where(down, low_q, high_q) + rest, gap)
    size = jnp.where(uniform, gap, scale * log)
    answer = jnp.where(down, center - size, center + size)
    return jnp.clip(answer, lower, upper).astype(value.dtype)


_UNIFORM = 1e-30  # bounds over scale: below, the density is level and masses may underflow
