"""Local mechanisms: each person randomizes a category before anybody sees it.

`scale` is 1 / epsilon here: a person's category may become any other, so that its "score" changes
by 1. The chance of a lie is computed as such and drawn to 2^-80, so that it is right where the
chance of the truth rounds to 1 (float32: from epsilon 17 up). Reports are turned into estimates by
`postprocess.debiased_frequency` with the chances that `theory.local` gives.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Integer

from dpjax import _validate
from dpjax.mechanisms import _coins, _transforms

_FLOAT32 = np.dtype(np.float32)


def randomized_response(
    key: Array, value: ArrayLike, *, scale: ArrayLike
) -> Bool[Array, " *answer"]:
    """Turn each boolean around with probability 1 / (1 + exp(1 / scale)).

    Scale 1 / epsilon gives epsilon-DP for one boolean (Warner 1965; Dwork and Roth 2014,
    Section 3.2). Law: `theory.local.randomized_response`.

    Args:
        key: one typed key, used once.
        value: booleans; every entry is an independent release.
        scale: at least 0, broadcast against `value`. 0 gives `value` itself, infinity a fair coin.

    Raises:
        TypeError: `key` is no typed key, or `value` not of booleans.
        ValueError: `scale` is negative or NaN (not checked in traced code, where NaN acts as
            infinity).

    >>> import jax
    >>> answer = randomized_response(jax.random.key(0), jax.numpy.ones(1000, bool), scale=1 / 3)
    >>> bool(abs(answer.mean() - 0.9526) < 0.04)
    True
    """
    _transforms.check(key, scale=scale)
    return _respond(key, _booleans(value), jnp.asarray(scale))


def k_ary_response(
    key: Array, value: ArrayLike, *, num_categories: ArrayLike, scale: ArrayLike
) -> Integer[Array, " *answer"]:
    """Keep each category with weight exp(1 / scale) against 1 for each of the others.

    Scale 1 / epsilon gives epsilon-DP for one category (Kairouz, Bonawitz and Ramage 2016,
    Section 2.3); it is the exponential mechanism with score 1 for the truth. Law:
    `theory.local.k_ary_response`.

    Args:
        key: one typed key, used once.
        value: categories 0, ..., num_categories - 1; every entry is an independent release.
            Integer arrays keep their dtype; a Python int becomes the default integer. Any other
            number is taken for the last category.
        num_categories: at least 1, below 2^31, broadcast against `value`; must fit its dtype.
        scale: at least 0, broadcast against `value`. 0 gives `value` itself, infinity any category
            alike.

    Raises:
        TypeError: `key` is no typed key, or `value` not of integers.
        ValueError: `scale` is negative or NaN, or `num_categories` not a whole number in its range
            (not checked in traced code, where NaN acts as infinity).

    >>> import jax
    >>> people = jax.numpy.full(1000, 2, dtype=jax.numpy.uint8)
    >>> answer = k_ary_response(jax.random.key(0), people, num_categories=3, scale=1 / 3)
    >>> bool(abs((answer == 2).mean() - 0.9094) < 0.05)
    True
    """
    _transforms.check(key, scale=scale)
    value = _transforms.whole(value)
    if not isinstance(num_categories, Tracer):
        _categories(num_categories, value.dtype)
    return _respond_k_ary(key, value, jnp.asarray(num_categories), jnp.asarray(scale))


def symmetric_unary(
    key: Array, value: ArrayLike, *, scale: ArrayLike
) -> Bool[Array, " *release categories"]:
    """Randomize all bits of a one-hot category alike: each turns around at twice the scale.

    Scale 1 / epsilon gives epsilon-DP for one category, whose change turns two bits (basic RAPPOR;
    Wang, Blocki, Li and Jha 2017, Section 4.3). Law: `theory.local.symmetric_unary`.

    Args:
        key: one typed key, used once.
        value: booleans, (*release, categories), one true on the last axis, as
            `jax.nn.one_hot(category, categories, dtype=bool)` makes.
        scale: at least 0, broadcast against the releases. 0 gives `value` itself, infinity fair
            coins.

    Raises:
        TypeError: `key` is no typed key, or `value` not of booleans.
        ValueError: `scale` is negative or NaN (not checked in traced code, where NaN acts as
            infinity).

    >>> import jax
    >>> people = jax.nn.one_hot(jax.numpy.full(1000, 2), 3, dtype=bool)
    >>> answer = symmetric_unary(jax.random.key(0), people, scale=1 / 3)
    >>> bool(abs(answer.mean(axis=0) - jax.numpy.array([0.18, 0.18, 0.82])).max() < 0.07)
    True
    """
    _transforms.check(key, scale=scale)
    return _respond(key, _booleans(value), 2 * jnp.asarray(scale)[..., None])


def optimized_unary(
    key: Array, value: ArrayLike, *, scale: ArrayLike
) -> Bool[Array, " *release categories"]:
    """Randomize a one-hot category: the 1 by a fair coin, each 0 as in randomized response.

    Scale 1 / epsilon gives epsilon-DP for one category, with the least variance of an estimated
    frequency near 0 among such encodings (Wang, Blocki, Li and Jha 2017, Section 4.3, optimized
    unary encoding). Law: `theory.local.optimized_unary`.

    Args:
        key: one typed key, used once.
        value: booleans, (*release, categories), one true on the last axis, as
            `jax.nn.one_hot(category, categories, dtype=bool)` makes.
        scale: at least 0, broadcast against the releases. 0 gives every 0 as it is, infinity fair
            coins.

    Raises:
        TypeError: `key` is no typed key, or `value` not of booleans.
        ValueError: `scale` is negative or NaN (not checked in traced code, where NaN acts as
            infinity).

    >>> import jax
    >>> people = jax.nn.one_hot(jax.numpy.full(1000, 2), 3, dtype=bool)
    >>> answer = optimized_unary(jax.random.key(0), people, scale=1 / 3)
    >>> bool(abs(answer.mean(axis=0) - jax.numpy.array([0.05, 0.05, 0.5])).max() < 0.09)
    True
    """
    _transforms.check(key, scale=scale)
    return _respond_unary(key, _booleans(value), jnp.asarray(scale)[..., None])


def _booleans(value: ArrayLike) -> Array:
    """A boolean array."""
    value = jnp.asarray(value)
    if value.dtype != bool:
        raise TypeError(f"value = {value.dtype}{list(value.shape)}: expected booleans")
    return value


def _categories(num_categories: ArrayLike, dtype: np.dtype) -> None:
    """Refuse numbers of categories that are none, or that `value` cannot hold."""
    number = _validate.count(num_categories=num_categories)
    largest = min(2**31 - 1, int(jnp.iinfo(dtype).max) + 1)
    if np.any((number < 1) | (number > largest)):
        raise ValueError(f"num_categories = {number}: expected at least 1 and at most {largest}")


def _turn(scale: Array, ndim: int) -> Array:
    """1 / (1 + exp(1 / scale)), as such and not as 1 less the truth."""
    scale = _transforms.without_nan(_transforms.aligned(scale, ndim, _FLOAT32))
    return jax.nn.sigmoid(-1 / scale)


@jax.jit
def _respond(key: Array, value: Array, scale: Array) -> Array:
    """Each boolean or its opposite."""
    shape = jnp.broadcast_shapes(value.shape, scale.shape)
    lies = _coins.bernoulli(key, shape, _turn(scale, len(shape)))
    return jnp.broadcast_to(value, shape) ^ lies


@jax.jit
def _respond_unary(key: Array, value: Array, scale: Array) -> Array:
    """True with probability 1/2 where the value is, elsewhere with that of a lie."""
    shape = jnp.broadcast_shapes(value.shape, scale.shape)
    own_key, lie_key = jax.random.split(key)
    lies = _coins.bernoulli(lie_key, shape, _turn(scale, len(shape)))
    own = jnp.broadcast_to(value, shape)
    return jnp.where(own, _coins.fair(own_key, shape), lies)


@jax.jit
def _respond_k_ary(key: Array, value: Array, num_categories: Array, scale: Array) -> Array:
    """A lie adds between 1 and k - 1, modulo k."""
    shape = jnp.broadcast_shapes(value.shape, num_categories.shape, scale.shape)
    k = _transforms.aligned(num_categories, len(shape), np.dtype(np.uint32))
    scale = _transforms.without_nan(_transforms.aligned(scale, len(shape), _FLOAT32))
    weight = (k - 1).astype(_FLOAT32) * jnp.exp(-1 / scale)
    lie_key, which_key = jax.random.split(key)
    lies = _coins.bernoulli(lie_key, shape, weight / (1 + weight))
    shift = 1 + _coins.below(which_key, shape, k - 1)
    truth = jnp.minimum(jnp.broadcast_to(value, shape).astype(np.uint32), k - 1)
    other = truth + shift  # no remainder: dividing whole numbers is slow
    other = jnp.where(other < k, other, other - k)
    return jnp.where(lies, other, truth).astype(value.dtype)
