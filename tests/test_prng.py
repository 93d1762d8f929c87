"""Unrolled keys equal jax.random's to the last bit; full-rate words are both words of each call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpjax import prng

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.sampled_from([(), (0,), (7,), (3, 1, 5)])  # each is compiled
SAMPLERS = {
    "uniform": jax.random.uniform,
    "normal": jax.random.normal,
    "laplace": jax.random.laplace,
    "gumbel": jax.random.gumbel,
    "randint": lambda key, shape: jax.random.randint(key, shape, -5, 1000),
    "bernoulli": lambda key, shape: jax.random.bernoulli(key, 0.3, shape),
    "permutation": lambda key, shape: jax.random.permutation(key, 10),
}


def both(seed: int) -> tuple[jax.Array, jax.Array]:
    return jax.random.key(seed), prng.unroll(jax.random.key(seed))


def data(key: jax.Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(key))


@given(SEEDS)
def test_seeds_agree(seed: int) -> None:
    unrolled = jax.random.key(np.uint32(seed), impl=prng.UNROLLED)
    np.testing.assert_array_equal(data(unrolled), data(jax.random.key(np.uint32(seed))))


@pytest.mark.parametrize("seed", [-1, 2**40 + 5, -(2**33)])
def test_seeds_beyond_32_bits_agree(seed: int) -> None:
    with jax.enable_x64(True):
        unrolled = jax.random.key(seed, impl=prng.UNROLLED)
        np.testing.assert_array_equal(data(unrolled), data(jax.random.key(seed)))


@settings(max_examples=8)  # each new shape is compiled
@given(SEEDS, SHAPES)
def test_splits_agree(seed: int, shape: tuple[int, ...]) -> None:
    a, b = both(seed)
    np.testing.assert_array_equal(
        data(jax.random.split(a, shape)), data(jax.random.split(b, shape))
    )


@given(SEEDS, SEEDS)
def test_folds_agree(seed: int, number: int) -> None:
    a, b = (jax.random.fold_in(key, np.uint32(number)) for key in both(seed))
    np.testing.assert_array_equal(data(a), data(b))


@settings(max_examples=10)
@given(SEEDS, SHAPES, st.sampled_from([8, 16, 32]))
def test_bits_agree(seed: int, shape: tuple[int, ...], width: int) -> None:
    a, b = (jax.random.bits(key, shape, f"uint{width}") for key in both(seed))
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


@settings(max_examples=6)
@given(SEEDS, SHAPES)
def test_64_bits_agree(seed: int, shape: tuple[int, ...]) -> None:
    with jax.enable_x64(True):
        a, b = (jax.random.bits(key, shape, "uint64") for key in both(seed))
        assert a.dtype == b.dtype == np.uint64
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_agree(name: str) -> None:
    a, b = (jax.jit(SAMPLERS[name], static_argnums=1)(key, (3, 1001)) for key in both(7))
    np.testing.assert_array_equal(a, b)


def test_keys_of_keys_agree_under_vmap() -> None:
    def draws(key: jax.Array) -> jax.Array:
        keys = jax.random.split(key, 5)
        return jax.vmap(lambda k, i: jax.random.bits(jax.random.fold_in(k, i), (3,)))(
            keys, jnp.arange(5)
        )

    a, b = (draws(key) for key in both(3))
    np.testing.assert_array_equal(a, b)


def test_unroll_is_idempotent_and_works_under_jit(key: jax.Array) -> None:
    once = jax.jit(prng.unroll)(key)
    np.testing.assert_array_equal(data(prng.unroll(once)), data(key))
    assert prng.implementation(once) == prng.implementation(key) == "threefry2x32"


@pytest.mark.parametrize("size", [1, 5, prng.TILE, prng.TILE + 1, 2 * prng.TILE, 5 * prng.TILE + 3])
def test_words_are_both_halves_of_each_64_bit_word(size: int) -> None:
    words = np.asarray(prng.words(jax.random.key(11), (size,)))
    runs = -(-size // (2 * prng.TILE))
    with jax.enable_x64(True):
        calls = np.asarray(jax.random.bits(jax.random.key(11), (runs, prng.TILE), "uint64"))
    halves = np.stack([calls >> 32, calls & 0xFFFFFFFF], axis=1)  # upper halves, then lower
    np.testing.assert_array_equal(words, halves.reshape(-1)[:size])


@pytest.mark.parametrize("width", [32, 64])
def test_a_shorter_draw_is_a_prefix_and_a_shape_is_filled_in_order(width: int) -> None:
    with jax.enable_x64(width == 64):
        long = np.asarray(prng.words(jax.random.key(5), (3 * prng.TILE,), width=width))
        for shape in [(), (1,), (2, 5), (prng.TILE + 7,), (2, prng.TILE), (3, 1, prng.TILE - 1)]:
            short = np.asarray(prng.words(jax.random.key(5), shape, width=width))
            assert short.shape == shape
            np.testing.assert_array_equal(short.reshape(-1), long[: short.size])


def test_64_bit_words_are_those_of_jax() -> None:
    with jax.enable_x64(True):
        ours = prng.words(jax.random.key(2), (4, 5), width=64)
        np.testing.assert_array_equal(ours, jax.random.bits(jax.random.key(2), (4, 5), "uint64"))


@pytest.mark.parametrize("size", [10, 2 * prng.TILE])
def test_words_are_the_same_for_either_key_and_under_vmap(size: int) -> None:
    keys = jax.random.split(jax.random.key(1), 3)
    plain = jnp.stack([prng.words(k, (size,)) for k in jax.random.split(jax.random.key(1), 3)])
    unrolled = jnp.stack(
        [prng.words(prng.unroll(k), (size,)) for k in jax.random.split(jax.random.key(1), 3)]
    )
    np.testing.assert_array_equal(plain, unrolled)
    np.testing.assert_array_equal(plain, jax.vmap(lambda k: prng.words(k, (size,)))(keys))


def test_no_word_comes_twice_and_every_bit_is_fair() -> None:
    words = np.asarray(prng.words(jax.random.key(0), (4 * prng.TILE,)))
    # Birthdays: n^2 / 2^33 = 2 pairs of equal words expected; 30 or more has probability 1e-20.
    assert words.size - np.unique(words).size < 30
    ones = ((words[:, None] >> np.arange(32, dtype=np.uint32)) & 1).sum(axis=0)
    z = (ones - words.size / 2) / np.sqrt(words.size / 4)
    assert np.abs(z).max() < 6.0  # 32 bits at 2e-9 each: fails with probability below 1e-7


def test_another_generator_gives_its_own_bits() -> None:
    words = prng.words(jax.random.key(4, impl="rbg"), (6,))
    np.testing.assert_array_equal(words, jax.random.bits(jax.random.key(4, impl="rbg"), (6,)))


def test_unroll_refuses_another_generator_by_name() -> None:
    with pytest.raises(ValueError, match=r"^key = a rbg key: expected threefry2x32, the default"):
        prng.unroll(jax.random.key(0, impl="rbg"))


@pytest.mark.parametrize("bad", [np.zeros(2, np.uint32), jnp.zeros(2, np.uint32)])
def test_a_legacy_key_is_refused(bad: jax.Array) -> None:
    with pytest.raises(TypeError, match=r"^key = uint32\[2\]: expected one typed key"):
        prng.check(bad)


def test_several_keys_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^key = \[3\] keys: expected one"):
        prng.check(jax.random.split(jax.random.key(0), 3))


@pytest.mark.parametrize("width", [32, 64])
def test_a_spent_key_is_reported(width: int) -> None:
    with jax.enable_x64(width == 64):
        key = jax.random.key(0)
        prng.words(key, (3,), width=width)
        with pytest.raises(jax.errors.KeyReuseError):
            prng.words(key, (3,), width=width)
