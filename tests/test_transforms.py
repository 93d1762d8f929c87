"""Draws that stay right far into the tails: against float64 and whole-number arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling import accepts, kolmogorov_smirnov

from dpjax import prng
from dpjax.mechanisms import _transforms

FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)


def half_uniforms(key, size):
    """The numbers in (0, 1/2] as float64, and the coin."""
    upper, lower = (
        np.asarray(word).astype(np.uint64)
        for word in _transforms.word_pairs(jax.random.clone(key), size)
    )
    return ((upper >> 1) * 2.0**30 + (lower >> 2) + 0.5) * 2.0**-62, (lower & 2) != 0


def test_word_pairs_are_the_halves_of_64_bit_words(key):
    first, second = (
        np.asarray(word).astype(np.uint64) for word in _transforms.word_pairs(key, (3, 700))
    )
    with jax.enable_x64(True):
        words = np.asarray(prng.words(jax.random.clone(key), (3, 700), width=64))
    assert np.array_equal((first << 32) | second, words)


def test_exponential_is_right_to_rounding_at_both_ends(key):
    noise, _ = _transforms.exponential(key, (200_000,), FLOAT32)
    half, far = half_uniforms(key, (200_000,))
    np.testing.assert_allclose(noise, np.where(far, -np.log(half), -np.log1p(-half)), rtol=4e-7)


@pytest.mark.parametrize("head", [0, 1, 2**8, 2**32 - 1])
@pytest.mark.parametrize("tail", [0, 2, 2**20 + 2, 2**32 - 4, 2**32 - 2])
def test_exponential_at_the_ends(monkeypatch, key, head, tail):
    words = (jnp.full(1, head, np.uint32), jnp.full(1, tail, np.uint32))
    monkeypatch.setattr(_transforms, "word_pairs", lambda key, shape: words)
    noise, _ = _transforms.exponential(key, (1,), FLOAT32)
    half, far = half_uniforms(key, (1,))
    np.testing.assert_allclose(noise, np.where(far, -np.log(half), -np.log1p(-half)), rtol=4e-7)
    assert 2.0**-64 < noise[0] < 43.7


def test_exponential_in_float64(key):
    with jax.enable_x64(True):
        noise, word = _transforms.exponential(key, (100_000,), FLOAT64)
        half, far = ((np.asarray(word) >> 2) + 0.5) * 2.0**-63, (np.asarray(word) & 2) != 0
    np.testing.assert_allclose(noise, np.where(far, -np.log(half), -np.log1p(-half)), rtol=1e-15)


@pytest.mark.parametrize("scale", [2 / 3, 1.0, 1.5])
def test_exponential_and_gumbel_have_their_laws(key, scale):
    sizes = (200_000,)
    exponential, _ = _transforms.exponential(key, sizes, FLOAT32)
    gumbel = _transforms.gumbel(jax.random.fold_in(key, 1), sizes, FLOAT32)
    right = scale == 1
    assert accepts(kolmogorov_smirnov(scale * exponential, lambda x: -np.expm1(-x))) is right
    assert accepts(kolmogorov_smirnov(scale * gumbel, lambda x: np.exp(-np.exp(-x)))) is right
