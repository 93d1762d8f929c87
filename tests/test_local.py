"""Local mechanisms: chances of the truth and of each lie, and estimates without bias."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling import accepts, chi_square

import dpjax
from dpjax import postprocess, theory
from dpjax.mechanisms import local

PEOPLE = 200_000


def one_hot(category, categories=4):
    return jax.nn.one_hot(jnp.full(PEOPLE, category), categories, dtype=bool)


@pytest.mark.parametrize("truth", [False, True])
@pytest.mark.parametrize("scale", [0.3, 1.0, 10.0])
def test_randomized_response_law_and_its_power(key, truth, scale):
    answer = np.asarray(local.randomized_response(key, jnp.full(PEOPLE, truth), scale=scale))
    true = np.sum(answer == truth)
    for factor in (2 / 3, 1, 1.5):
        law = theory.local.randomized_response(scale * factor)
        found = chi_square(np.array([true, PEOPLE - true]), np.array([law.own, law.other]))
        assert accepts(found) is (factor == 1)


@pytest.mark.slow
@pytest.mark.parametrize("categories", [2, 3, 10])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_k_ary_law_and_its_power(key, categories, dtype):
    value = jnp.full(PEOPLE, 1, dtype)
    answer = local.k_ary_response(key, value, num_categories=categories, scale=0.5)
    assert answer.dtype == dtype
    counts = np.bincount(np.asarray(answer), minlength=categories)
    for factor in (2 / 3, 1, 1.5):
        law = theory.local.k_ary_response(0.5 * factor, categories)
        chances = np.full(categories, law.other)
        chances[1] = law.own
        assert accepts(chi_square(counts, chances)) is (factor == 1)


@pytest.mark.parametrize("name", ["symmetric_unary", "optimized_unary"])
def test_unary_law_and_its_power(key, name):
    answer = np.asarray(getattr(local, name)(key, one_hot(2), scale=0.5))
    patterns = np.bincount(answer @ (1 << np.arange(4)), minlength=16)
    for factor in (2 / 3, 1, 1.5):
        law = getattr(theory.local, name)(0.5 * factor)
        chance = np.array([law.other, law.other, law.own, law.other])
        bits = np.arange(16)[:, None] >> np.arange(4) & 1
        joint = np.prod(np.where(bits == 1, chance, 1 - chance), axis=1)  # bits are independent
        assert accepts(chi_square(patterns, joint)) is (factor == 1)


def test_symmetric_unary_is_randomized_response_at_twice_the_scale(key):
    answer = local.symmetric_unary(key, one_hot(1), scale=0.7)
    other = local.randomized_response(jax.random.clone(key), one_hot(1), scale=1.4)
    assert np.array_equal(answer, other)


def test_a_lie_does_not_depend_on_the_truth(key):
    value = jnp.arange(PEOPLE) % 5
    answer = local.k_ary_response(key, value, num_categories=5, scale=1.0)
    other = local.k_ary_response(
        jax.random.clone(key), jnp.zeros(PEOPLE, int), num_categories=5, scale=1.0
    )
    assert np.array_equal((answer - value) % 5, other)


@pytest.mark.parametrize("epsilon", [17.0, 18.0, 30.0])
def test_rare_lies_keep_their_chance(monkeypatch, key, epsilon):
    drawn = []

    def record(key, shape, probability):
        drawn.append(np.float64(probability.ravel()[0]))
        return jnp.zeros(shape, bool)

    monkeypatch.setattr(local._coins, "bernoulli", record)
    with jax.disable_jit():
        local.randomized_response(key, jnp.ones(3, bool), scale=1 / epsilon)
        local.k_ary_response(
            jax.random.clone(key), jnp.ones(3, int), num_categories=3, scale=1 / epsilon
        )
    lie = np.exp(-epsilon)
    np.testing.assert_allclose(drawn, [lie / (1 + lie), 2 * lie / (1 + 2 * lie)], rtol=1e-5)
    assert 1 / (1 + np.float32(lie)) == 1  # what the chance of the truth rounds to


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        local.randomized_response,
        local.symmetric_unary,
        local.optimized_unary,
        functools.partial(local.k_ary_response, num_categories=2),
    ],
    ids=["randomized_response", "symmetric_unary", "optimized_unary", "k_ary_response"],
)
def test_edges_of_the_scale(key, mechanism):
    kind = int if isinstance(mechanism, functools.partial) else bool
    value = jnp.zeros((20_000, 2), kind)  # no bit is the own one
    exact = mechanism(key, value, scale=0.0)
    assert np.array_equal(exact, value)
    assert exact.dtype == value.dtype
    lanes = jax.vmap(
        lambda scale: mechanism(jax.random.clone(key), value, scale=scale).astype(float).mean()
    )(jnp.array([0.0, 1e-30, 1e30, jnp.inf, jnp.nan]))
    np.testing.assert_allclose(lanes, [0, 0, 0.5, 0.5, 0.5], atol=0.02)
    with pytest.raises(ValueError, match=r"^scale = nan: expected a number of at least 0$"):
        mechanism(key, value, scale=np.nan)


def test_arguments_are_checked(key):
    for mechanism in (local.randomized_response, local.symmetric_unary, local.optimized_unary):
        with pytest.raises(TypeError, match=r"^value = .*: expected booleans$"):
            mechanism(key, jnp.zeros(3), scale=1.0)
    with pytest.raises(TypeError, match=r"^value = .*: expected integers$"):
        local.k_ary_response(key, jnp.zeros(3), num_categories=2, scale=1.0)
    for number, dtype in ((0, int), (2.5, int), (129, np.int8), (2**31, np.uint32)):
        with pytest.raises(ValueError, match=r"^num_categories = "):
            local.k_ary_response(key, jnp.zeros(3, dtype), num_categories=number, scale=1.0)
    one = local.k_ary_response(key, jnp.zeros(9, np.int8), num_categories=1, scale=1.0)
    assert np.all(np.asarray(one) == 0)


def test_all_categories_of_a_byte_can_be_reported(key):
    value = jnp.full(PEOPLE, 255, np.uint8)
    answer = local.k_ary_response(key, value, num_categories=256, scale=np.inf)
    counts = np.bincount(np.asarray(answer), minlength=256)
    assert accepts(chi_square(counts, np.full(256, 1 / 256)))


def test_truth_is_kept_as_often_as_computed_by_hand():
    third = theory.local.randomized_response(1 / np.log(3))
    assert third.own == pytest.approx(0.75, rel=1e-15)
    assert theory.local.randomized_response(1).own == pytest.approx(0.73105858, abs=5e-9)
    assert theory.local.k_ary_response(1, 3).own == pytest.approx(0.57611688, abs=5e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["randomized_response", "symmetric_unary", "optimized_unary"])
@pytest.mark.parametrize("frequency", [0.0, 0.2, 1.0])
def test_estimates_have_no_bias_and_the_variance_of_the_law(key, name, frequency):
    people, runs = 500, 2000
    holds = jnp.asarray(np.arange(people) < frequency * people)
    value = jnp.broadcast_to(holds, (runs, people))
    if name != "randomized_response":
        value = jnp.stack([value, ~value], axis=-1)
    reports = getattr(local, name)(key, value, scale=0.8)
    reports = reports if name == "randomized_response" else reports[..., 0]
    law = getattr(theory.local, name)(0.8)
    estimate = postprocess.debiased_frequency(reports.mean(axis=1), law=law)
    error = np.asarray(estimate, np.float64) - frequency
    variance = law.variance(frequency) / people
    assert abs(error.mean()) < 5 * np.sqrt(variance / runs)
    assert abs(np.mean(error**2) / variance - 1) < 5 * np.sqrt(2 / runs)


@pytest.mark.slow
def test_simulated_k_ary_estimate_has_the_variance_of_the_law(key):
    people = jnp.arange(200) % 4  # a quarter each

    def error(answer, value):
        law = theory.local.k_ary_response(1.0, 4)
        share = (answer == 0).mean(axis=-1)
        return postprocess.debiased_frequency(share, law=law) - 0.25

    moments = dpjax.simulate(
        key,
        functools.partial(local.k_ary_response, num_categories=4, scale=1.0),
        people,
        40_000,
        measure=error,
    )
    truth = theory.local.k_ary_response(1.0, 4).variance(0.25) / 200
    assert abs(moments.rmse - np.sqrt(truth)) < 5 * moments.rmse_standard_error
    assert abs(moments.mean) < 5 * moments.mean_standard_error
