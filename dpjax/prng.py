"""Random words: standard threefry2x32, unrolled, and at full rate where the numbers are ours.

Threefry turns a key and a 64-bit counter into two 32-bit words (Salmon, Moraes, Dror and Shaw
2011, "Parallel random numbers: as easy as 1, 2, 3", threefry2x32-20). `jax.random` computes it in a
loop, which the compiler cannot fuse with what follows, and xors the two words. Two remedies:

- `unroll(key)` gives a key of the same data whose seed, split, fold_in and bits equal those of
  `jax.random.key` to the last bit, with the rounds written out. A mechanism written with
  `jax.random` keeps its numbers and gets faster.
- `words(key, shape)` uses both words of each call. Our own mechanisms draw from it.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl
from jax.typing import ArrayLike
from jaxtyping import Array, UInt

TILE = 1024
"""Full-rate words come in tiles: the first words of TILE calls, then their second words."""

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(key: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Both words of threefry2x32-20 for a key of two words and counters high * 2^32 + low."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    x, y = high + schedule[0], low + schedule[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = x ^ ((y << rotation) | (y >> (32 - rotation)))
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + (group + 1)
    return x, y


def _counters(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """0, 1, 2, ... in row-major order, as high and low 32-bit halves."""
    size = math.prod(shape)
    if size < 2**32:
        low = lax.iota(np.uint32, size).reshape(shape)
        return jnp.zeros_like(low), low
    # An outer counter of whole rows times their length would overflow 32 bits: split the rows.
    raise NotImplementedError(f"shape = {shape}: expected fewer than 2^32 elements in one draw")


def _seed(seed: Array) -> Array:
    """The key data of a seed: its two halves, high first."""
    return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    """Key i is both words of counter i."""
    return jnp.stack(threefry2x32(key, *_counters(shape)), axis=-1)


def _fold_in(key: Array, data: ArrayLike) -> Array:
    """Both words of the counter `data`, as 32 bits."""
    low = jnp.asarray(data).astype(np.uint32)
    return jnp.stack(threefry2x32(key, jnp.zeros_like(low), low))


def _random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Element i from counter i: the words xor-ed for up to 32 bits, side by side for 64."""
    first, second = threefry2x32(key, *_counters(shape))
    if bit_width == 64:
        return (first.astype(np.uint64) << 32) | second.astype(np.uint64)
    return (first ^ second).astype(f"uint{bit_width}")


UNROLLED = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="threefry2x32_unrolled",
    tag="ufry",
)
"""The `impl` of `jax.random.key` and `wrap_key_data` for threefry2x32 with its rounds unrolled."""


def check(key: Array) -> None:
    """Refuse whatever is not one typed key.

    Raises:
        TypeError: for a legacy uint32 key or anything else without a key type.
        ValueError: for an array of several keys.
    """
    if not (hasattr(key, "dtype") and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)):
        kind = f"{key.dtype}{list(key.shape)}" if hasattr(key, "dtype") else type(key).__name__
        raise TypeError(f"key = {kind}: expected one typed key, as jax.random.key(seed) makes")
    if key.shape != ():
        raise ValueError(f"key = {list(key.shape)} keys: expected one; jax.vmap takes several")


def implementation(key: Array) -> str:
    """The name of a typed key's generator, such as "threefry2x32" or "rbg"."""
    impl = jax.random.key_impl(key)
    return "threefry2x32" if impl == UNROLLED else str(impl)


def unroll(key: Array) -> Array:
    """The same key with the rounds unrolled: all of `jax.random` gives the same numbers, faster.

    Raises:
        ValueError: for a key of another generator.
    """
    check(key)
    name = implementation(key)
    if name != "threefry2x32":
        raise ValueError(f"key = a {name} key: expected threefry2x32, the default of jax.random")
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=UNROLLED)


def words(key: Array, shape: tuple[int, ...], *, width: int = 32) -> UInt[Array, " *shape"]:
    """Uniform words of 32 or 64 bits, all the bits that the generator makes.

    The words form one sequence, laid out in row-major order, so that a shorter draw is a prefix
    of a longer one and (2, 5) holds the ten words of (10,). 64-bit words (x64 only) are those
    of `jax.random.bits(key, shape, "uint64")`. Of 32-bit words, tile t (from 0) holds the upper
    halves of the 64-bit words t TILE, ..., t TILE + TILE - 1 and then their lower halves.
    Keys of other generators give what `jax.random.bits` gives, with the prefixes that it has.

    Args:
        key: one typed key, used once.
        shape: of the answer.
        width: 32 or 64.

    >>> import jax
    >>> a = words(jax.random.key(0), (6,))
    >>> bool((words(jax.random.key(0), (2, 3)).reshape(6) == a).all())
    True
    """
    check(key)
    if width == 64 or implementation(key) != "threefry2x32":
        return jax.random.bits(key, shape, f"uint{width}")
    jax.random.bits(key, (), "uint8")  # unused, hence free under jit: tells JAX that key is spent
    size = math.prod(shape)
    tiles = -(-size // (2 * TILE))
    first, second = threefry2x32(jax.random.key_data(key), *_counters((tiles, TILE)))
    return jnp.stack([first, second], axis=1).reshape(-1)[:size].reshape(shape)
