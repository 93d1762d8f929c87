"""Mechanisms that add noise to a whole vector: the last axis is one release.

Noise of density proportional to exp(-norm(x) / scale): with sensitivity s in that norm, scale
s / epsilon gives epsilon-DP (the K-norm mechanism, Hardt and Talwar 2010, Definition 4.1). In the
L1 norm that is `laplace`. Noise is a direction times a radius, the radius a sum of exponential
numbers. The floating-point noise is for simulation and not safe for real releases.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from dpjax import prng
from dpjax.mechanisms import _transforms
from dpjax.mechanisms.additive import _floating, _level, _signed_uniform, _standard_gaussian


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


@functools.partial(jax.jit, static_argnums=0)
def _noisy(noise: Callable, key: Array, value: Array, scale: Array) -> Array:
    """The answer, computed in float32 at least and rounded to the dtype of `value`."""
    release = jnp.broadcast_shapes(value.shape[:-1], scale.shape)
    dtype = _transforms.work_dtype(value.dtype)
    # The entries of a vector lie apart in memory, so that many vectors are summed up at once.
    standard = jnp.moveaxis(noise(key, value.shape[-1], release, dtype), 0, -1)
    scale = jnp.broadcast_to(scale.astype(dtype), release)[..., None]
    center = jnp.broadcast_to(value.astype(dtype), standard.shape)
    return (center + scale * standard).astype(value.dtype)


def _l2(key: Array, dimension: int, release: tuple[int, ...], dtype: np.dtype) -> Array:
    """Normal noise of a random scale sqrt(2 W), W of law Gamma((dimension + 1) / 2).

    Its length is then of law Gamma(dimension): the square of that is 4 times a product of two
    independent numbers, Gamma(dimension / 2) and W, by Legendre's duplication formula.
    """
    mixing_key, half_key, normal_key, spare_key = jax.random.split(key, 4)
    mixing = _gamma(mixing_key, (dimension + 1) // 2, release, dtype)
    if dimension % 2 == 0:
        half = _standard_gaussian(half_key, release, dtype)
        mixing = mixing + 0.5 * half * half
    spread = _transforms.stored(spare_key, lambda _: jnp.sqrt(2 * mixing)[None])
    return _standard_gaussian(normal_key, (dimension, *release), dtype) * spread


def _linf(key: Array, dimension: int, release: tuple[int, ...], dtype: np.dtype) -> Array:
    """A point of the cube stretched by a Gamma(dimension + 1) factor."""
    length_key, cube_key = jax.random.split(key)
    length = _gamma(length_key, dimension + 1, release, dtype)
    return _signed_uniform(cube_key, (dimension, *release), dtype) * length[None]


def _gamma(key: Array, order: int, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Sum of so many exponential numbers: minus the log of uniform ones, four multiplied first.

    The product of four may be as small as 2^-128, which float32 holds no longer; that it is below
    what the log reads rightly, 2^-126, has probability 1e-33.
    """
    seed, implementation = jax.random.key_data(key), jax.random.key_impl(key)

    def product(i: ArrayLike, factors: int) -> Array:
        here = jax.random.fold_in(jax.random.wrap_key_data(seed, impl=implementation), i)
        if dtype == np.float64:
            words = list(prng.words(here, (factors, *shape), width=64))
        else:
            keys = jax.random.split(here, -(-factors // 2))
            words = [w for k in keys for w in _transforms.word_pairs(k, shape)][:factors]
        return functools.reduce(jnp.multiply, (_level(word, dtype) for word in words))

    def add(i: Array, total: Array) -> Array:
        return total + _transforms.minus_log(product(i, 4))

    fours, left = divmod(order, 4)
    total = _transforms.minus_log(product(fours, left)) if left else jnp.zeros(shape, dtype)
    return lax.fori_loop(0, fours, add, total)
