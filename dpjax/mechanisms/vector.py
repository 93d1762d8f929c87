"""Mechanisms that add noise to a whole vector: the last axis is one release.

Noise of density proportional to exp(-norm(x) / scale): with sensitivity s in that norm, scale
s / epsilon gives epsilon-DP (the K-norm mechanism, Hardt and Talwar 2010, Definition 4.1). In the
L1 norm that is `laplace`. Noise is a direction times a radius, the radius a sum of exponential
numbers. The floating-point noise is for simulation and not safe for real releases.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from dpjax.mechanisms import _transforms
from dpjax.mechanisms.additive import _floating, _standard_gaussian


def l2_laplace(
    key: Array, value: ArrayLike, *, scale: ArrayLike
) -> Float[Array, " *release dimension"]:
    """Add noise of density proportional to exp(-|x|_2 / scale) to a vector.

    epsilon-DP for L2 sensitivity: see the module. The direction is uniform on the sphere, the
    radius Gamma(dimension, scale). Law: `theory.L2Laplace`.

    Args:
        key: one typed key, used once.
        value: the true answer, floats, (*release, dimension); its dtype is kept.
        scale: in the units of `value`, at least 0, broadcast against the releases. 0 gives `value`
            itself.

    Raises:
        TypeError: `key` is no typed key, or `value` not a vector of floats.
        ValueError: `scale` is negative or NaN (not checked in traced code, where NaN gives NaN).

    >>> import jax
    >>> l2_laplace(jax.random.key(0), jax.numpy.zeros((5, 3)), scale=2.0).shape
    (5, 3)
    """
    return _add_vector(_l2, key, value, scale)


def linf_laplace(
    key: Array, value: ArrayLike, *, scale: ArrayLike
) -> Float[Array, " *release dimension"]:
    """Add noise of density proportional to exp(-max |x_i| / scale) to a vector.

    epsilon-DP for the largest change of any entry (L-infinity sensitivity): see the module. A point
    uniform in the cube [-1, 1]^dimension times Gamma(dimension + 1, scale) (Hardt and Talwar 2010,
    Remark 4.2). Law: `theory.LinfLaplace`.

    Args:
        key: one typed key, used once.
        value: the true answer, floats, (*release, dimension); its dtype is kept.
        scale: in the units of `value`, at least 0, broadcast against the releases. 0 gives `value`
            itself.

    Raises:
        TypeError: `key` is no typed key, or `value` not a vector of floats.
        ValueError: `scale` is negative or NaN (not checked in traced code, where NaN gives NaN).

    >>> import jax
    >>> linf_laplace(jax.random.key(0), jax.numpy.zeros((5, 3)), scale=2.0).shape
    (5, 3)
    """
    return _add_vector(_linf, key, value, scale)


def _add_vector(noise: Callable, key: Array, value: ArrayLike, scale: ArrayLike) -> Array:
    """The answer, after the checks that concrete arguments allow."""
    _transforms.check(key, scale=scale)
    value = _floating(value)
    if value.ndim == 0 or value.shape[-1] == 0:
        raise TypeError(f"value = {value.dtype}{list(value.shape)}: expected a vector of floats")
    return _noisy(noise, key, value, jnp.asarray(scale))


@partial(jax.jit, static_argnums=0)
def _noisy(noise: Callable, key: Array, value: Array, scale: Array) -> Array:
    """The answer, computed in float32 at least and rounded to the dtype of `value`."""
    release = jnp.broadcast_shapes(value.shape[:-1], scale.shape)
    shape = (*release, value.shape[-1])
    dtype = _transforms.work_dtype(value.dtype)
    scale = jnp.broadcast_to(scale.astype(dtype), release)[..., None]
    center = jnp.broadcast_to(value.astype(dtype), shape)
    return (center + scale * noise(key, shape, dtype)).astype(value.dtype)


def _l2(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """A normal vector stretched to a Gamma(dimension) radius; only its direction counts."""
    radius_key, direction_key = jax.random.split(key)
    radius = _transforms.exponential(radius_key, shape, dtype)[0].sum(axis=-1, keepdims=True)
    normal = _standard_gaussian(direction_key, shape, dtype)
    return normal * (radius / jnp.sqrt((normal * normal).sum(axis=-1, keepdims=True)))


def _linf(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """A point of the cube stretched by a Gamma(dimension + 1) factor."""
    radius_key, cube_key = jax.random.split(key)
    longer = (*shape[:-1], shape[-1] + 1)
    radius = _transforms.exponential(radius_key, longer, dtype)[0].sum(axis=-1, keepdims=True)
    half, word = _transforms.half_uniform(cube_key, shape, dtype)
    point = 2 * half
    return radius * jnp.where((word & 1) != 0, -point, point)
