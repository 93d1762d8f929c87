"""Every number that a textbook sampler can give, and whether it can give a certain one.

`jax.random.laplace` and `normal` are a transform of one uniform word, of 23 bits in float32 and 52
in float64. Here a random number generator that gives the words we ask for puts each through the
sampler itself, so that nothing is assumed of the transform but that it is monotone up to rounding.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl

SAMPLERS: dict[str, Callable[..., Any]] = {
    "laplace": jax.random.laplace,
    "gaussian": jax.random.normal,
}
BITS = {"float32": 23, "float64": 52}
_NEAR = 64  # words on either side that rounding may confuse


def _given_bits(key: jax.Array, bit_width: int, shape: tuple[int, ...]) -> jax.Array:
    """The word in the key, moved to where the sampler looks for its random bits."""
    if bit_width == 32:
        word = key[1] << np.uint32(32 - BITS["float32"])
    else:
        word = ((key[0].astype(np.uint64) << np.uint64(32)) | key[1].astype(np.uint64)) << (
            np.uint64(64 - BITS["float64"])
        )
    return jnp.broadcast_to(word, shape)


_GIVEN = define_prng_impl(
    key_shape=(2,),
    seed=lambda seed: jnp.stack([jnp.zeros((), np.uint32), seed.astype(np.uint32)]),
    split=lambda key, shape: jnp.broadcast_to(key, (*shape, 2)),
    random_bits=_given_bits,
    fold_in=lambda key, data: key,
    name="given_bits",
    tag="given",
)


@functools.partial(jax.jit, static_argnames=("sampler", "dtype"))
def _transform(high: jax.Array, low: jax.Array, *, sampler: str, dtype: str) -> jax.Array:
    """The sampler's answers to words."""
    keys = jax.random.wrap_key_data(jnp.stack([high, low], axis=-1), impl=_GIVEN)
    return jax.vmap(lambda key: SAMPLERS[sampler](key, (), np.dtype(dtype)))(keys)


def noise(words: np.ndarray, sampler: str, dtype: str) -> np.ndarray:
    """The noise of scale 1 that the sampler makes of each word, below 2^BITS."""
    with jax.enable_x64(dtype == "float64"):
        high, low = (words >> np.uint64(32)).astype(np.uint32), words.astype(np.uint32)
        return np.asarray(_transform(high, low, sampler=sampler, dtype=dtype))


def all_noise(sampler: str) -> np.ndarray:
    """All 2^23 numbers of scale 1 that the sampler gives in float32, each as likely, in order."""
    words = np.arange(2 ** BITS["float32"], dtype=np.uint64)
    return np.sort(noise(words, sampler, "float32"), kind="stable")


def is_possible(
    answers: np.ndarray, value: float, scale: float, sampler: str, dtype: str
) -> np.ndarray:
    """Whether some word makes value + scale * noise equal to each answer, in the dtype's rounding.

    A bisection on the word, then all words near by, so that steps back of the transform by less
    than their number do not matter.

    Args:
        answers: (n,) in the dtype.
        value: the true answer.
        scale: of the noise.
        sampler: of SAMPLERS.
        dtype: of BITS.
    """
    kind = np.dtype(dtype).type
    last = np.uint64(2 ** BITS[dtype] - 1)

    first, final = noise(np.array([0, last], np.uint64), sampler, dtype)

    def answered(words: np.ndarray) -> np.ndarray:
        rising = words if first < final else last - words
        return kind(value) + kind(scale) * noise(rising, sampler, dtype)

    low, high = np.zeros(answers.shape, np.uint64), np.full(answers.shape, last)
    for _ in range(BITS[dtype] + 1):
        middle = low + (high - low) // np.uint64(2)
        below = answered(middle) < answers
        low = np.where(below, np.minimum(middle + np.uint64(1), last), low)
        high = np.where(below, high, middle)
    found = np.zeros(answers.shape, bool)
    for step in range(-_NEAR, _NEAR + 1):
        near = np.clip(high.astype(np.int64) + step, 0, int(last)).astype(np.uint64)
        found |= answered(near) == answers
    return found
