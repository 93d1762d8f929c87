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
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl
from jax.typing import ArrayLike
from jaxtyping import Array, UInt

TILE = 32_768
"""Full-rate words come in runs: the first words of TILE calls, then their second words."""

Transform = Callable[[Array, Array], tuple[Array, Array]]

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
    if size > 2**32:
        raise ValueError(f"shape = {shape}: expected at most 2^32 elements in one draw")
    low = lax.iota(np.uint32, size).reshape(shape)
    return jnp.zeros_like(low), low


def _seed(seed: Array) -> Array:
    """The key data of a seed: its two halves, high first."""
    return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    """Key i is both words of counter i."""
    return _as_key(*threefry2x32(key, *_counters(shape)))


def _fold_in(key: Array, data: ArrayLike) -> Array:
    """Both words of the counter `data`, as 32 bits."""
    low = jnp.asarray(data).astype(np.uint32)
    return _as_key(*threefry2x32(key, jnp.zeros_like(low), low))


def _as_key(first: Array, second: Array) -> Array:
    """Two words as the data of a key."""
    # Without the barrier the compiler writes them out anew for each use: minutes on jax 0.12.
    return jnp.stack(lax.optimization_barrier((first, second)), axis=-1)


def _random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Element i from counter i: the words xor-ed for up to 32 bits, side by side for 64."""
    first, second = threefry2x32(key, *_counters(shape))
    if bit_width == 64:
        return _join(first, second)
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


def check(key: Any) -> None:
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
        ValueError: for a key of another generator, and with jax_threefry_partitionable off, which
            gives `jax.random` other numbers.
    """
    check(key)
    name = implementation(key)
    if name != "threefry2x32":
        raise ValueError(f"key = a {name} key: expected threefry2x32, the default of jax.random")
    if not getattr(jax.config, "jax_threefry_partitionable", True):  # it may go one day
        raise ValueError("jax_threefry_partitionable = False: expected True, the default of JAX")
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=UNROLLED)


def spend(key: Array) -> None:
    """Tell JAX's check of key reuse that a key is used, though only its data is."""
    jax.random.bits(key, (), "uint8")  # the answer is unused, hence free under jit


@partial(jax.jit, static_argnames=("shape", "width"))
def words(key: Array, shape: tuple[int, ...], *, width: int = 32) -> UInt[Array, " *shape"]:
    """Uniform words of 32 or 64 bits: all the bits that the generator makes.

    The words form one sequence that fills the shape in row-major order, so that a shorter draw is
    a prefix of a longer one and (2, 5) holds the ten words of (10,). 64-bit words (x64 only) are
    those of `jax.random.bits(key, shape, "uint64")`. Of 32-bit words, each run of 2 TILE holds
    the upper halves of the next TILE 64-bit words and then their lower halves. The numbers are
    the same inside and outside of jit, vmap and `simulate`. Keys of other generators give what
    `jax.random.bits` gives.

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
    as_floats = partial(lax.bitcast_convert_type, new_dtype=np.float32)  # what `draw` can pack
    numbers = draw(key, shape, lambda first, second: (as_floats(first), as_floats(second)))
    return lax.bitcast_convert_type(numbers, np.uint32)


def draw(key: Array, shape: tuple[int, ...], transform: Transform, *, width: int = 32) -> Array:
    """Floats made two at a time from two words, `transform(first, second) -> (x, y)`.

    The numbers form one sequence that fills the shape in row-major order, each run of 2 TILE made
    of TILE numbers x and then their TILE partners y. The words of a pair are both halves of one
    64-bit word, or with width 64 the words l and TILE + l of that run.

    Args:
        key: one typed key, used once.
        shape: of the answer.
        transform: elementwise, from two arrays of words to two of floats.
        width: bits of a word, 32 or 64 (x64 only).
    """
    check(key)
    size = math.prod(shape)
    length, tiles = min(size, TILE), -(-size // (2 * TILE))
    if implementation(key) != "threefry2x32":
        bits = jax.random.bits(key, (tiles, 2, length), f"uint{width}")
        numbers = jnp.stack(transform(bits[:, 0], bits[:, 1]), axis=1)
        return numbers.reshape(-1)[:size].reshape(shape)

    def pairs(data: Array) -> tuple[Array, Array]:
        return transform(*_paired_words(data, (tiles, length), width))

    def separate(data: Array) -> Array:
        return jnp.stack(pairs(data), axis=1)

    def packed(data: Array) -> Array:
        # The CPU compiler makes one loop for each array it stores, and would draw the words twice.
        # So store pairs; and it fuses nothing across a branch, so branch on what is always true.
        def pack() -> Array:
            return lax.complex(*pairs(data))

        nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(pack))
        stored = lax.cond((data[0] | 1) > 0, pack, lambda: nothing)
        return jnp.stack([lax.real(stored), lax.imag(stored)], axis=1)

    spend(key)
    data = jax.random.key_data(key)
    if size <= TILE:  # no partners wanted
        return pairs(data)[0].reshape(shape)
    numbers = lax.platform_dependent(data, cpu=packed, default=separate)
    return numbers.reshape(-1)[:size].reshape(shape)


def _paired_words(data: Array, shape: tuple[int, int], width: int) -> tuple[Array, Array]:
    """The words of the pairs of so many runs."""
    if shape[0] * TILE * width > 2**37:
        raise ValueError("shape: expected fewer than 2^32 calls of threefry in one draw")
    run, place = (lax.broadcasted_iota(np.uint32, shape, axis) for axis in (0, 1))
    zero = jnp.zeros_like(place)
    if width == 32:
        return threefry2x32(data, zero, run * TILE + place)
    first = run * (2 * TILE) + place
    return _join(*threefry2x32(data, zero, first)), _join(*threefry2x32(data, zero, first + TILE))


def _join(high: Array, low: Array) -> Array:
    """A 64-bit word of its halves."""
    return (high.astype(np.uint64) << 32) | low.astype(np.uint64)
