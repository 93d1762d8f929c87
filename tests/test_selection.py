"""Selection: against its law, an independent sampler, and at the edges of scores and scale."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling import accepts, chi_square

from dpjax import theory
from dpjax.mechanisms import selection
from dpjax.mechanisms.sparse_vector import above_threshold

LAWS = {
    selection.exponential_mechanism: theory.selection.exponential_mechanism,
    selection.permute_and_flip: theory.selection.permute_and_flip,
    selection.report_noisy_max: theory.selection.report_noisy_max,
}
MECHANISMS = pytest.mark.parametrize("mechanism", LAWS)
SCORES = jnp.array([0.0, 1.0, 1.0, 2.5, -3.0])


def counts(mechanism, key, scores, trials=200_000, **parameters):
    """How often each option is chosen."""
    value = jnp.broadcast_to(scores, (trials, *scores.shape))
    answer = np.asarray(mechanism(key, value, **parameters))
    assert answer.dtype == np.int32
    return np.bincount(answer, minlength=scores.size)


@MECHANISMS
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_law_and_its_power(key, mechanism, scale):
    found = counts(mechanism, key, SCORES, scale=scale)
    for factor in (2 / 3, 1, 1.5):
        law = LAWS[mechanism](np.asarray(SCORES), scale * factor)
        assert accepts(chi_square(found, law)) is (factor == 1)


def test_permute_and_flip_as_it_is_written(key):
    scores, rng = np.asarray(SCORES, np.float64), np.random.default_rng(0)
    trials = 100_000
    order = rng.permuted(np.tile(np.arange(5), (trials, 1)), axis=1)
    heads = rng.random((trials, 5)) < np.exp((scores - scores.max()) / 2.0)[order]
    chosen = order[np.arange(trials), heads.argmax(axis=1)]
    law = theory.selection.permute_and_flip(scores, 2.0)
    assert accepts(chi_square(np.bincount(chosen, minlength=5), law))


@pytest.mark.slow
@MECHANISMS
def test_scaling_scores_and_scale_together_changes_nothing(key, mechanism):
    value = jax.random.normal(key, (5000, 7))
    other = jax.random.fold_in(key, 1)
    answer = mechanism(other, value, scale=0.7)
    assert np.array_equal(answer, mechanism(jax.random.clone(other), 8 * value, scale=8 * 0.7))
    shifted = mechanism(jax.random.clone(other), 2.0**-8 * jnp.round(2**8 * value) + 64, scale=0.7)
    assert np.mean(answer != shifted) < 0.01  # up to the rounding of scores


@MECHANISMS
def test_equal_and_far_scores(key, mechanism):
    thirds = np.full(3, 1 / 3)
    for scale in (0.0, 1.0, np.inf):
        found = counts(mechanism, jax.random.fold_in(key, scale < 1), jnp.full(3, 7.0), scale=scale)
        assert accepts(chi_square(found, thirds))
    assert counts(mechanism, key, jnp.array([0.0, -1e5]), 1000, scale=2.0).tolist() == [1000, 0]
    key = jax.random.fold_in(key, 2)
    assert counts(mechanism, key, jnp.array([1000.0, 0.0]), 1000, scale=1.0).tolist() == [1000, 0]


@MECHANISMS
def test_edges_of_the_scale(key, mechanism):
    scores = jnp.array([1.0, 5.0, 5.0])
    greedy = counts(mechanism, key, scores, scale=0.0)
    assert accepts(chi_square(greedy, np.array([0, 0.5, 0.5])))
    uniform = counts(mechanism, jax.random.fold_in(key, 1), scores, scale=np.inf)
    assert accepts(chi_square(uniform, np.full(3, 1 / 3)))
    traced = jax.jit(lambda scale: mechanism(jax.random.clone(key), scores, scale=scale))
    assert traced(np.nan) == -1
    with pytest.raises(ValueError, match=r"^scale = -1.0: expected a number of at least 0$"):
        mechanism(key, scores, scale=-1.0)


@MECHANISMS
def test_infinite_and_missing_scores(key, mechanism):
    inf = jnp.inf
    excluded = counts(mechanism, key, jnp.array([-inf, 0.0, 0.0]), scale=1.0)
    assert accepts(chi_square(excluded, np.array([0, 0.5, 0.5])))
    keys = iter(jax.random.split(jax.random.fold_in(key, 1), 4))
    assert counts(mechanism, next(keys), jnp.array([-inf, 3.0]), 99, scale=inf)[0] == 0
    certain = counts(mechanism, next(keys), jnp.array([inf, 3.0, inf]), scale=1.0)
    assert accepts(chi_square(certain, np.array([0.5, 0, 0.5])))
    assert mechanism(next(keys), jnp.array([0.0, jnp.nan, 1.0]), scale=1.0) == -1
    level = counts(mechanism, next(keys), jnp.array([-inf, -inf]), scale=1.0)
    assert accepts(chi_square(level, np.array([0.5, 0.5])))


@pytest.mark.slow
@MECHANISMS
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "float16", "float32"])
def test_scores_of_any_type_give_the_same_choice(key, mechanism, dtype):
    scores = jnp.array([[3, 0, 100, 98]] * 2000)
    answer = mechanism(key, scores.astype(dtype), scale=2.0)
    assert np.array_equal(answer, mechanism(jax.random.clone(key), scores.astype(float), scale=2.0))


@MECHANISMS
def test_whole_scores_are_subtracted_before_they_are_rounded(key, mechanism):
    scores = jnp.array([2**31 - 1, 2**31 - 3, -(2**31)], dtype=np.int32)
    found = counts(mechanism, key, scores, scale=2.0)
    assert accepts(chi_square(found, LAWS[mechanism]([0.0, -2.0, -(2.0**32)], 2.0)))


@MECHANISMS
def test_scales_broadcast_against_releases(key, mechanism):
    answer = mechanism(key, jnp.tile(SCORES, (100_000, 1, 1)), scale=jnp.array([0.3, 5.0]))
    assert answer.shape == (100_000, 2)
    for column, scale in zip(np.asarray(answer).T, [0.3, 5.0], strict=True):
        law = LAWS[mechanism](np.asarray(SCORES), scale)
        assert accepts(chi_square(np.bincount(column, minlength=5), law))


@MECHANISMS
def test_what_is_no_list_of_scores_is_refused(key, mechanism):
    for value in (1.0, jnp.zeros((3, 0)), jnp.array([True, False])):
        with pytest.raises(TypeError, match=r"^value = .*: expected numbers with a last axis"):
            mechanism(key, value, scale=1.0)


def test_weights_multiply_the_chances(key):
    weights = np.array([1.0, 5.0, 0.25, 0.0, 2.0])
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    law = theory.selection.exponential_mechanism(np.asarray(SCORES), 2.0, logs)
    by_hand = weights * np.exp(np.asarray(SCORES, np.float64) / 2)
    np.testing.assert_allclose(law, by_hand / by_hand.sum(), rtol=1e-13)
    found = counts(
        selection.exponential_mechanism, key, SCORES, scale=2.0, log_weights=jnp.asarray(logs)
    )
    assert accepts(chi_square(found, law))


def test_an_excluded_best_does_not_poison_the_rest(key):
    mechanism = functools.partial(
        selection.exponential_mechanism, log_weights=jnp.array([-jnp.inf, 0.0, 0.0])
    )
    for scale in (0.0, 1e-3, 1.0):
        chosen = counts(
            mechanism, jax.random.clone(key), jnp.array([1e6, 1.0, 1.0]), 10_000, scale=scale
        )
        assert chosen[0] == 0
        assert abs(chosen[1] - 5000) < 300
    none = jnp.full(2, -jnp.inf)
    answer = selection.exponential_mechanism(
        jax.random.clone(key), jnp.zeros(2), scale=1.0, log_weights=none
    )
    assert answer == -1


QUERIES = jnp.array([0.0, 1.0, 2.0])


@pytest.mark.parametrize("factor", [2 / 3, 1.0, 1.5])
def test_sparse_vector_law_and_its_power(key, factor):
    parameters = {"threshold": 1.5, "scale": 2.0, "threshold_scale": 1.0}
    value = jnp.broadcast_to(QUERIES, (300_000, 3))
    answer = np.asarray(above_threshold(key, value, **parameters))
    law = theory.selection.above_threshold(
        np.asarray(QUERIES), 1.5, scale=2.0 * factor, threshold_scale=1.0 * factor
    )
    assert accepts(chi_square(np.bincount(answer, minlength=4), law)) is (factor == 1)


def test_sparse_vector_without_noise_and_at_its_edges(key):
    mechanism = functools.partial(above_threshold, threshold=5)
    value = jnp.array([[1, 5, 9], [1, 2, 3], [7, 0, 0]])
    answer = mechanism(key, value, scale=0.0, threshold_scale=0.0)
    assert answer.tolist() == [1, 3, 0]
    lanes = jax.vmap(
        lambda scale: mechanism(
            jax.random.clone(key), value, scale=scale, threshold_scale=jnp.ones(())
        )
    )(jnp.array([0.0, 1e30, jnp.inf, jnp.nan]))
    assert np.all((lanes[:3] >= 0) & (lanes[:3] <= 3))
    assert np.all(np.asarray(lanes[3]) == -1)


def test_noise_on_the_threshold_is_shared(key):
    # With noise on the threshold alone, equal queries are all above it or none is.
    answer = above_threshold(key, jnp.zeros((2000, 9)), threshold=0, scale=0, threshold_scale=1)
    assert set(np.asarray(answer).tolist()) == {0, 9}


@pytest.mark.parametrize("law", LAWS.values())
def test_laws_of_many_and_far_options(law):
    scores = np.concatenate([np.linspace(-30, 0, 300), [-1e5, -np.inf]])
    chances = law(scores, 1.0)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert np.all(np.diff(chances[:300]) > 0)
    assert np.all(chances[300:] == 0)
    np.testing.assert_allclose(law(np.zeros((2, 1000)), [[3.0], [4.0]]).sum(-1), 1, atol=1e-10)


def test_noisy_max_of_two_by_hand():
    # P(difference of two Laplace draws > g) = exp(-g) (1/2 + g/4)
    for gap in (0.5, 3.0, 100.0):
        chance = theory.selection.report_noisy_max([0.0, -gap], 1.0)[1]
        assert chance == pytest.approx(np.exp(-gap) * (0.5 + gap / 4), rel=1e-12)


def test_permute_and_flip_never_loses_more():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(200, 6)) * rng.choice([0.3, 2, 10], size=(200, 1))
    gaps = [
        theory.selection.expected_gap(scores, law(scores, np.ones(200)))
        for law in (
            theory.selection.permute_and_flip,
            theory.selection.exponential_mechanism,
        )
    ]
    assert np.all(gaps[0] <= gaps[1] + 1e-12)
