"""The staircase mechanism: the noise of least error for one number under pure epsilon-DP."""

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from dpjax import _validate
from dpjax.mechanisms import _transforms
from dpjax.mechanisms.additive import _floating


def staircase(
    key: Array, value: ArrayLike, *, scale: ArrayLike, sensitivity: ArrayLike, gamma: ArrayLike
) -> Float[Array, " *answer"]:
    """Add noise whose density falls by exp(-sensitivity / scale) at each step, to every entry.

    The density is constant between steps at (i + gamma) sensitivity, i = 0, 1, ..., on each side.
    With that sensitivity, scale sensitivity / epsilon gives epsilon-DP at any gamma (Geng and
    Viswanath 2016, "The optimal noise-adding mechanism in differential privacy", Algorithm 1).
    `theory.staircase_gamma` gives the best gamma. Law: `theory.Staircase`. The floating-point noise
    is for simulation and not safe for real releases.

    Args:
        key: one typed key, used once.
        value: the true answer in its own units, one number. Every entry is an independent release.
            Floating arrays keep their dtype; a Python number becomes the default float.
        scale: in the units of `value`, at least 0, broadcast against it. 0 gives uniform noise on
            +-gamma sensitivity; noise of infinite scale is infinite.
        sensitivity: the width of a step, finite and above 0, in the units of `value`.
        gamma: share of a step at the higher density, in [0, 1].

    Raises:
        TypeError: `key` is no typed key, or `value` an array of integers.
        ValueError: a parameter is out of its range (not checked in traced code).

    >>> import jax
    >>> noise = staircase(jax.random.key(0), jax.numpy.zeros(9), scale=0, sensitivity=2, gamma=0.5)
    >>> bool(abs(noise).max() <= 1)
    True
    """
    _transforms.check(key, scale=scale)
    if not isinstance(sensitivity, Tracer):
        _validate.positive(sensitivity=sensitivity)
    if not isinstance(gamma, Tracer):
        _validate.probability(gamma=gamma)
    parameters = (jnp.asarray(p) for p in (scale, sensitivity, gamma))
    return _noisy(key, _floating(value), *parameters)


@jax.jit
def _noisy(key: Array, value: Array, scale: Array, sensitivity: Array, gamma: Array) -> Array:
    """A geometric number of steps, then a place on the step."""
    shape = jnp.broadcast_shapes(value.shape, scale.shape, sensitivity.shape, gamma.shape)
    dtype = _transforms.work_dtype(value.dtype)
    scale, step, gamma = (
        _transforms.aligned(parameter, len(shape), dtype)
        for parameter in (scale, sensitivity, gamma)
    )
    steps_key, place_key = jax.random.split(key)
    noise, word = _transforms.exponential(steps_key, shape, dtype)
    steps = jnp.floor(noise * (scale / step))
    fall = jnp.exp(-step / scale)
    # higher part [0, gamma) at density 1 and lower part [gamma, 1) at density `fall`, by inversion
    high, low = gamma, (1 - gamma) * fall
    along = 2 * _transforms.half_uniform(place_key, shape, dtype)[0] * (high + low)
    beyond = gamma + (along - high) / jnp.where(low > 0, low, 1) * (1 - gamma)
    place = jnp.where(along <= high, along, jnp.minimum(beyond, 1))
    size = step * (steps + place)
    size = jnp.where((word & 1) != 0, -size, size)
    return (jnp.broadcast_to(value.astype(dtype), shape) + size).astype(value.dtype)
