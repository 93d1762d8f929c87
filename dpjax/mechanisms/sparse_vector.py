"""The sparse vector technique: the first of a list of queries that is above a threshold."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Int32

from dpjax.mechanisms import _transforms
from dpjax.mechanisms.selection import _laplace, _scores, first


def above_threshold(
    key: Array,
    value: ArrayLike,
    *,
    threshold: ArrayLike,
    scale: ArrayLike,
    threshold_scale: ArrayLike,
) -> Int32[Array, " *release"]:
    """Find the first query above the threshold, with Laplace noise on both.

    AboveThreshold (Dwork and Roth 2014, Algorithm 1): with queries of sensitivity s it is
    epsilon-DP, however many queries, at threshold_scale 2 s / epsilon and scale 4 s / epsilon. In
    general epsilon is s / threshold_scale + 2 s / scale, and s / threshold_scale + s / scale
    where neighbours change all queries in the same direction (Lyu, Su and Li 2017, Algorithm 7);
    for a given epsilon the noise is least where scale / threshold_scale is 2^(1/3), or 1 for the
    latter. Law: `theory.selection.above_threshold`.

    Args:
        key: one typed key, used once.
        value: the true answers in order, (*release, queries). Whole numbers are taken as floats.
        threshold: in the units of the answers, broadcast against the releases.
        scale: of the noise on each query, finite, at least 0, broadcast against the releases.
        threshold_scale: of the noise on the threshold, finite, at least 0, broadcast likewise. At
            0 for both the answer is the first query at or above the threshold.

    Returns:
        The position of the query; the number of queries if none is above, and -1 where an
        argument is NaN or a difference of infinities.

    Raises:
        TypeError: `key` is no typed key, or `value` has no axis of queries or is not of numbers.
        ValueError: a scale is negative or NaN (not checked in traced code).

    >>> import jax
    >>> counts = jax.numpy.array([3, 1, 4, 150, 9])
    >>> scales = {"scale": 4.0, "threshold_scale": 2.0}
    >>> int(above_threshold(jax.random.key(0), counts, threshold=75, **scales))
    3
    """
    _transforms.check(key, scale=scale, threshold_scale=threshold_scale)
    parameters = (jnp.asarray(p) for p in (threshold, scale, threshold_scale))
    return _first_above(key, _scores(value), *parameters)


@jax.jit
def _first_above(
    key: Array, value: Array, threshold: Array, scale: Array, threshold_scale: Array
) -> Array:
    """The first query whose margin exceeds the noise on the threshold less its own."""
    dtype = _transforms.work_dtype(value.dtype)
    release = jnp.broadcast_shapes(
        value.shape[:-1], threshold.shape, scale.shape, threshold_scale.shape
    )
    queries = value.shape[-1]
    threshold, scale, threshold_scale = (
        jnp.broadcast_to(parameter.astype(dtype), release)[None]
        for parameter in (threshold, scale, threshold_scale)
    )
    threshold_key, key = jax.random.split(key)
    margin = jnp.moveaxis(jnp.broadcast_to(value.astype(dtype), (*release, queries)), -1, 0)
    margin = margin - threshold
    bar = threshold_scale * _laplace(threshold_key, (1, *release), dtype)

    def over_the_bar(key: Array) -> Array:
        return scale * _laplace(key, margin.shape, dtype) >= bar - margin

    above = _transforms.stored(key, over_the_bar)
    unknown = jnp.isnan(margin).any(axis=0) | jnp.isnan(scale + threshold_scale)[0]
    return jnp.where(unknown, -1, first(above))
