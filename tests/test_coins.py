"""Events and whole numbers: against exact arithmetic on the random bits, and against their laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling import accepts, chi_square

from dpjax import prng
from dpjax.mechanisms import _coins


def scripted(monkeypatch, first, column, own, spare=0xFFFF):
    """Hand out these 16 bits to the first answers of one column, and these words to open ones."""
    parts = jnp.asarray([*first, *[spare] * (64 - len(first))], np.uint32).reshape(4, 16, 1)
    words = {
        (16, 1): (parts[0] | parts[1] << 16, parts[2] | parts[3] << 16),
        (1, 1, 1): tuple(jnp.full((1, 1, 1), word, np.uint32) for word in divmod(column, 2**32)),
        (4, 16, 1): tuple(jnp.full((4, 16, 1), word, np.uint32) for word in divmod(own, 2**32)),
    }
    monkeypatch.setattr(_coins, "word_pairs", lambda key, shape: words[shape])


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.0, 1e-20, 1e-15, 1.5e-8, 0.3, 0.5, 1 - 2**-24, 1.0])
def test_bernoulli_compares_all_80_bits(monkeypatch, key, probability):
    p = np.float32(probability)
    threshold = int(float(p) * 2**80)  # exact: a float32 times a power of two
    for number in {0, threshold - 1, threshold, threshold + 1, 2**80 - 1, 2**40}:
        if 0 <= number < 2**80:
            first, column = divmod(number, 2**64)
            scripted(monkeypatch, [first], column, own=0, spare=0 if p > 0.9 else 0xFFFF)
            drawn = _coins.bernoulli(jax.random.clone(key), (1,), jnp.full(1, p))
            assert bool(drawn[0]) == (number < threshold), number


@pytest.mark.parametrize("own", [0, 2**63 - 1, 2**63, 2**64 - 1])
def test_two_open_answers_of_a_column_share_no_coin(monkeypatch, key, own):
    p = 5.5 * 2.0**-16
    scripted(monkeypatch, [5, 4, 6, 5], column=0, own=own)
    drawn = _coins.bernoulli(key, (64,), jnp.full(1, np.float32(p)))
    assert drawn[:4].tolist() == [own < 2**63, True, False, own < 2**63]
    assert not drawn[4:].any()


def test_each_answer_has_its_own_probability(key):
    chances = np.array([0.0, 1e-6, 0.1, 0.25, 0.5, 0.9, 1.0], np.float32)
    drawn = _coins.bernoulli(key, (30_001, 7), jnp.asarray(chances)[None])
    hits = np.asarray(drawn).sum(axis=0)
    for hit, p in zip(hits, chances.astype(float), strict=True):
        assert accepts(chi_square(np.array([hit, 30_001 - hit]), np.array([p, 1 - p])))
    same = _coins.bernoulli(jax.random.clone(key), (30_001, 7), jnp.full((1, 1), 0.25))
    assert np.array_equal(drawn[:, 3], same[:, 3])  # one probability for all is no other draw


@pytest.mark.parametrize(("p", "size"), [(0.01, 10**6), (1.5 * 2.0**-16, 10**7)])
def test_bernoulli_has_its_law_and_power(key, p, size):
    hits = int(_coins.bernoulli(key, (size,), jnp.full(1, np.float32(p))).sum())
    for factor in (2 / 3, 1.0, 1.5):  # the rare event hangs on answers that 16 bits leave open
        chance = p * factor
        found = chi_square(np.array([hits, size - hits]), np.array([chance, 1 - chance]))
        assert accepts(found) is (factor == 1)


def test_bernoulli_under_vmap_is_a_loop(key):
    keys = jax.random.split(key, 3)
    chances = jnp.array([0.0, 0.3, 1.0])

    @jax.jit
    def drawn(key, p):
        return _coins.bernoulli(key, (100,), p[None])

    lanes = jax.vmap(drawn)(jax.random.clone(keys), chances)
    for i, lane in enumerate(lanes):
        assert np.array_equal(lane, drawn(jax.random.clone(keys[i]), chances[i]))


def test_fair_coins_are_the_bits_of_words(key):
    drawn = np.asarray(_coins.fair(key, (3, 70)))
    words = np.asarray(prng.words(jax.random.clone(key), (7,)))
    bits = (words >> np.arange(32)[:, None]) & 1
    assert np.array_equal(drawn.ravel(), bits.ravel()[:210].astype(bool))


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 65_535, 65_536, 65_537, 10**6, 2**31, 2**32 - 1])
def test_below_is_the_upper_half_of_the_product(key, limit):
    drawn = np.asarray(_coins.below(key, (1000,), jnp.full(1, limit, np.uint32)))
    words = np.asarray(prng.words(jax.random.clone(key), (1000,))).astype(object)
    assert [int(x) for x in drawn] == [(int(word) * limit) >> 32 for word in words]
