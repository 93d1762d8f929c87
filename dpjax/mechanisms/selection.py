"""Mechanisms that choose an option by its score: the last axis holds the options of one release.

All add noise to the scores and answer with the position of the largest; they differ in the noise.
`scale` is in units of the score: 2 s / epsilon gives epsilon-DP where neighbours change no score by
more than s, and s / epsilon suffices where they change all scores in the same direction (monotone
scores, as counts under add_remove). What is averaged over trials is said by `score_lost`.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int32

from dpjax.mechanisms import _transforms

Choice = Int32[Array, " *release"]


def exponential_mechanism(
    key: Array, value: ArrayLike, *, scale: ArrayLike, log_weights: ArrayLike = 0.0
) -> Choice:
    """Choose option i with probability proportional to exp(score_i / scale + log_weight_i).

    The exponential mechanism (McSherry and Talwar 2007, Definition 2), drawn as the largest of
    score + scale * Gumbel noise; probabilities are right to about 1e-6 down to 1e-18. With `scale`
    as the module says it is epsilon-DP. Law: `theory.selection.exponential_mechanism`.

    Args:
        key: one typed key, used once.
        value: scores, real or whole, (*release, options). A score of -infinity is never chosen
            where another is higher.
        scale: at least 0, broadcast against the releases. 0 chooses uniformly among the highest,
            infinity by the weights alone.
        log_weights: log of the weight of each option before its score counts (the base measure),
            broadcast against `value`, so that 0 weighs all alike; -infinity excludes an option.
            They must not depend on the data.

    Returns:
        The position of the chosen option; -1 where a score, weight or scale is NaN or all are
        excluded.

    Raises:
        TypeError: `key` is no typed key, or `value` has no axis of options or is not of numbers.
        ValueError: `scale` is negative or NaN (not checked in traced code).

    >>> import jax
    >>> scores = jax.numpy.array([[3.0, 0.0, 1.0], [0.0, 1e5, 0.0]])
    >>> int(exponential_mechanism(jax.random.key(0), scores, scale=2.0)[1])
    1
    """
    _transforms.check(key, scale=scale)
    return _weighted(key, _scores(value), jnp.asarray(scale), jnp.asarray(log_weights))


def permute_and_flip(key: Array, value: ArrayLike, *, scale: ArrayLike) -> Choice:
    """Choose the largest of score + scale * exponential noise.

    Permute-and-flip (McKenna and Sheldon 2020, Algorithm 1) in the form of Ding, Kifer, Saxena,
    Neves, Wang and Xiao 2021, "The permute-and-flip mechanism is identical to report-noisy-max with
    exponential noise". On average it loses no more score than the exponential mechanism of the
    same scale and epsilon, whatever the scores. Law: `theory.selection.permute_and_flip`.

    Args:
        key: one typed key, used once.
        value: scores, real or whole, (*release, options). A score of -infinity is never chosen
            where another is higher.
        scale: at least 0, broadcast against the releases. 0 chooses uniformly among the highest,
            infinity uniformly.

    Returns:
        The position of the chosen option; -1 where a score or the scale is NaN.

    Raises:
        TypeError: `key` is no typed key, or `value` has no axis of options or is not of numbers.
        ValueError: `scale` is negative or NaN (not checked in traced code).

    >>> import jax
    >>> int(permute_and_flip(jax.random.key(0), jax.numpy.array([0, 900, 1]), scale=2.0))
    1
    """
    return _largest(_exponential, key, value, scale)


def report_noisy_max(key: Array, value: ArrayLike, *, scale: ArrayLike) -> Choice:
    """Choose the largest of score + scale * Laplace noise.

    Report noisy max (Dwork and Roth 2014, Claim 3.9). Law: `theory.selection.report_noisy_max`.

    Args:
        key: one typed key, used once.
        value: scores, real or whole, (*release, options). A score of -infinity is never chosen
            where another is higher.
        scale: at least 0, broadcast against the releases. 0 chooses uniformly among the highest,
            infinity uniformly.

    Returns:
        The position of the chosen option; -1 where a score or the scale is NaN.

    Raises:
        TypeError: `key` is no typed key, or `value` has no axis of options or is not of numbers.
        ValueError: `scale` is negative or NaN (not checked in traced code).

    >>> import jax
    >>> int(report_noisy_max(jax.random.key(0), jax.numpy.array([0, 900, 1]), scale=2.0))
    1
    """
    return _largest(_laplace, key, value, scale)


def score_lost(answer: Array, value: ArrayLike) -> Float[Array, " *release"]:
    """How far the chosen score lies below the highest: a `measure` for `simulate`.

    >>> import jax.numpy as jnp
    >>> score_lost(jnp.array([1, 0]), jnp.array([[5.0, 3.0], [5.0, 3.0]]))
    Array([2., 0.], dtype=float32)
    """
    value = _scores(value)
    index = jnp.broadcast_to(answer, value.shape[:-1])[..., None]
    chosen = jnp.take_along_axis(value, index, axis=-1)[..., 0]
    return (value.max(axis=-1) - chosen).astype(_transforms.work_dtype(value.dtype))


def _largest(noise: Callable, key: Array, value: ArrayLike, scale: ArrayLike) -> Array:
    """The choice, after the checks that concrete arguments allow."""
    _transforms.check(key, scale=scale)
    return _noisy_largest(noise, key, _scores(value), jnp.asarray(scale))


def _scores(value: ArrayLike) -> Array:
    """Scores with an axis of options."""
    value = jnp.asarray(value)
    numbers = jnp.issubdtype(value.dtype, jnp.floating) | jnp.issubdtype(value.dtype, jnp.integer)
    if not numbers or value.ndim == 0 or value.shape[-1] == 0:
        shown = f"{value.dtype}{list(value.shape)}"
        raise TypeError(f"value = {shown}: expected numbers with a last axis of options")
    return value


@partial(jax.jit, static_argnums=0)
def _noisy_largest(noise: Callable, key: Array, value: Array, scale: Array) -> Array:
    """The choice among levels plus noise."""
    return _choice(noise, key, _levels(value, scale))


@jax.jit
def _weighted(key: Array, value: Array, scale: Array, log_weights: Array) -> Array:
    """The choice among weighted levels plus Gumbel noise; the excluded set no level."""
    shape = jnp.broadcast_shapes(value.shape, log_weights.shape)
    value, log_weights = jnp.broadcast_to(value, shape), jnp.broadcast_to(log_weights, shape)
    levels = _levels(value, scale, among=log_weights > -jnp.inf)
    log_weights = jnp.broadcast_to(log_weights.astype(levels.dtype), levels.shape)
    levels = jnp.where(log_weights == -jnp.inf, -jnp.inf, levels + log_weights)
    return _choice(_transforms.gumbel, key, levels)


def _levels(value: Array, scale: Array, among: Array | None = None) -> Array:
    """(score - highest score) / scale, at most 0, with its limits at scale 0 and infinity.

    Whole scores are subtracted before they are rounded to a float.
    """
    dtype = _transforms.work_dtype(value.dtype)
    whole = jnp.issubdtype(value.dtype, jnp.integer)
    work = value if whole else value.astype(dtype)
    lowest = jnp.iinfo(work.dtype).min if whole else -jnp.inf
    counted = work if among is None else jnp.where(among, work, jnp.asarray(lowest, work.dtype))
    highest = counted.max(axis=-1, keepdims=True)
    if whole:  # modulo 2^bits, which the difference fits in
        unsigned = np.dtype(f"uint{jnp.iinfo(work.dtype).bits}")
        below = (highest.astype(unsigned) - work.astype(unsigned)).astype(dtype)
    else:
        below = jnp.where(work == highest, 0, highest - work)  # two infinities are level
    shape = (*jnp.broadcast_shapes(value.shape[:-1], scale.shape), value.shape[-1])
    below = jnp.broadcast_to(below, shape)
    scale = jnp.broadcast_to(scale.astype(dtype)[..., None], shape)
    level = jnp.where((below == 0) | (below == jnp.inf), -below, -below / scale)
    return jnp.where(jnp.isnan(scale), jnp.nan, level)


def _choice(noise: Callable, key: Array, levels: Array) -> Array:
    """Where level plus noise is largest, -1 without any or with NaN."""
    levels = jnp.moveaxis(levels, -1, 0)
    total = _transforms.stored(key, lambda key: levels + noise(key, levels.shape, levels.dtype))
    valid = ~jnp.isnan(levels).any(axis=0) & (levels > -jnp.inf).any(axis=0)
    return jnp.where(valid, first(total == total.max(axis=0, keepdims=True)), -1)


def first(holds: Array) -> Array:
    """The least index on the first axis where it holds, else the length: argmax is 10 times slower.

    >>> first(jnp.array([[False, True], [False, True], [False, False]])).tolist()
    [3, 0]
    """
    index = lax.broadcasted_iota(np.int32, holds.shape, 0)
    return jnp.where(holds, index, holds.shape[0]).min(axis=0)


def _exponential(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Exponential noise of scale 1."""
    return _transforms.exponential(key, shape, dtype)[0]


def _laplace(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Laplace noise of scale 1, out to 43.7."""
    noise, bit = _transforms.exponential(key, shape, dtype)
    return jnp.where((bit & 1) != 0, -noise, noise)
