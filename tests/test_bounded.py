"""Truncated, bounded and staircase noise: against their laws, and inside their bounds."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling import accepts, kolmogorov_smirnov
from scipy import integrate

from dpjax import theory
from dpjax.mechanisms.additive import laplace
from dpjax.mechanisms.bounded import bounded_laplace, truncated_laplace
from dpjax.mechanisms.staircase import staircase

SAMPLE = 200_000
FACTORS = pytest.mark.parametrize("factor", [2 / 3, 1.0, 1.5])


def signed(law):
    """The distribution function of symmetric noise from its tail."""
    return lambda x: np.where(x < 0, law.tail(-x) / 2, 1 - law.tail(x) / 2)


@FACTORS
@pytest.mark.parametrize("bound", [1.0, 4.0, 60.0])
def test_truncated_law_and_its_power(key, factor, bound):
    noise = truncated_laplace(key, jnp.zeros(SAMPLE), scale=2.0, bound=bound)
    law = theory.TruncatedLaplace(2.0 * factor, bound * factor)
    assert np.abs(noise).max() <= bound
    assert accepts(kolmogorov_smirnov(np.asarray(noise), signed(law))) is (factor == 1)


@FACTORS
@pytest.mark.parametrize(("value", "scale"), [(0.0, 0.5), (0.3, 0.1), (0.9, 5.0)])
def test_bounded_law_and_its_power(key, factor, value, scale):
    answer = bounded_laplace(key, jnp.full(SAMPLE, value), scale=scale, lower=0, upper=1)
    if factor != 1 and scale == 5.0:
        factor = factor**4  # nearly uniform: little changes with the scale
    law = theory.BoundedLaplace(value, scale * factor, 0, 1)
    assert 0 <= np.min(answer) <= np.max(answer) <= 1
    assert accepts(kolmogorov_smirnov(np.asarray(answer), law.distribution)) is (factor == 1)


@FACTORS
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_staircase_law_and_its_power(key, factor, epsilon):
    parameters = {"sensitivity": 2.0, "gamma": 0.3}
    noise = staircase(key, jnp.zeros(SAMPLE), scale=2 / epsilon, **parameters)
    law = theory.Staircase(2 / epsilon * factor, **parameters)
    assert accepts(kolmogorov_smirnov(np.asarray(noise), law.distribution)) is (factor == 1)


def test_noise_reaches_into_the_tail(monkeypatch, key):
    levels = 10.0 ** -np.arange(1, 9.5, 0.5)  # the least is 2^-32
    drawn = jnp.asarray(levels, np.float32)
    monkeypatch.setattr("dpjax.mechanisms.bounded._signed_uniform", lambda *_: drawn)
    with jax.disable_jit():
        noise = truncated_laplace(key, jnp.zeros(levels.size), scale=1.0, bound=80.0)
    np.testing.assert_allclose(theory.TruncatedLaplace(1, 80).tail(noise), levels, rtol=1e-5)


def test_edges_of_truncated_noise(key):
    value = jnp.full(20_000, 5.0)

    def spread(scale, bound):
        return truncated_laplace(jax.random.clone(key), value, scale=scale, bound=bound) - 5

    assert np.all(np.asarray(spread(0.0, 3.0)) == 0)
    assert np.all(np.asarray(spread(3.0, 0.0)) == 0)
    uniform = np.asarray(spread(np.inf, 2.0))
    assert accepts(kolmogorov_smirnov(uniform, lambda x: np.clip((x + 2) / 4, 0, 1)))
    laplace = np.asarray(spread(3.0, np.inf))
    assert accepts(kolmogorov_smirnov(laplace, signed(theory.Laplace(3.0))))
    lanes = jax.vmap(lambda scale: spread(scale, 2.0))(jnp.array([0.0, 1e-30, 1e30, jnp.nan]))
    assert np.isnan(lanes[3]).all()
    assert np.abs(lanes[:3]).max() <= 2


def test_edges_of_bounded_answers(key):
    def answers(value, scale, lower=0.0, upper=1.0):
        value = jnp.full(20_000, value)
        return np.asarray(
            bounded_laplace(jax.random.clone(key), value, scale=scale, lower=lower, upper=upper)
        )

    assert np.all(answers(0.25, 0.0) == 0.25)
    assert np.all(answers(7.0, 0.0) == 1)
    assert np.all(answers(0.5, 2.0, 0.5, 0.5) == 0.5)
    uniform = answers(0.2, np.inf)
    assert accepts(kolmogorov_smirnov(uniform, lambda x: np.clip(x, 0, 1)))
    assert np.array_equal(answers(-3.0, 0.4), answers(0.0, 0.4))
    with pytest.raises(ValueError, match=r"^upper = inf: expected a finite number$"):
        answers(0.0, 1.0, upper=np.inf)


def test_edges_of_staircase_noise(key):
    def noise(scale, gamma):
        drawn = staircase(
            jax.random.clone(key), jnp.zeros(20_000), scale=scale, sensitivity=2.0, gamma=gamma
        )
        return np.asarray(drawn)

    assert accepts(kolmogorov_smirnov(noise(0.0, 0.5), lambda x: np.clip((x + 1) / 2, 0, 1)))
    assert np.all(noise(0.0, 0.0) == 0)
    assert np.all(np.isinf(noise(np.inf, 0.5)))
    for gamma in (0.0, 1.0):
        law = theory.Staircase(1.0, 2.0, gamma)
        assert accepts(kolmogorov_smirnov(noise(1.0, gamma), law.distribution))
    with pytest.raises(ValueError, match=r"^gamma = 1.5: expected a number in \[0, 1\]$"):
        noise(1.0, 1.5)


def test_scaling_laws_on_the_same_key(key):
    def drawn(mechanism, **parameters):
        return mechanism(jax.random.clone(key), jnp.zeros(1000), **parameters)

    for factor in (4.0, 2.0**-10):
        a = drawn(truncated_laplace, scale=1.0, bound=3.0)
        b = drawn(truncated_laplace, scale=factor, bound=3 * factor)
        assert np.array_equal(factor * a, b)
        a = drawn(bounded_laplace, scale=1.5, lower=-1.0, upper=3.0)
        b = drawn(bounded_laplace, scale=1.5 * factor, lower=-factor, upper=3 * factor)
        assert np.array_equal(factor * a, b)
        a = drawn(staircase, scale=1.5, sensitivity=1.0, gamma=0.25)
        b = drawn(staircase, scale=1.5 * factor, sensitivity=factor, gamma=0.25)
        assert np.array_equal(factor * a, b)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_staircase_density_falls_by_epsilon_and_has_the_moments_claimed(epsilon):
    law = theory.Staircase(3 / epsilon, 3.0, 0.4)
    x = np.linspace(0, 20, 999)
    np.testing.assert_allclose(law.density(x + 3), law.density(x) * np.exp(-epsilon), rtol=1e-9)
    assert np.max(np.abs(np.log(law.density(x) / law.density(x - 3)))) <= epsilon + 1e-9
    kinks = 3 * (np.arange(400) + 0.4)

    def moment(power):
        edges = np.concatenate([[0], kinks])
        return 2 * sum(
            law.density((a + b) / 2) * (b ** (power + 1) - a ** (power + 1)) / (power + 1)
            for a, b in itertools.pairwise(edges)
        )

    assert moment(0) == pytest.approx(1, rel=1e-12)
    assert law.mae == pytest.approx(moment(1), rel=1e-10)
    assert law.variance == pytest.approx(moment(2), rel=1e-10)


@pytest.mark.parametrize("measure", ["mae", "rmse"])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 10.0])
def test_the_best_gamma_is_best(measure, epsilon):
    best = theory.staircase_gamma(1 / epsilon, 1.0, measure=measure)
    error = getattr(theory.Staircase(1 / epsilon, 1.0, best), measure)
    others = getattr(theory.Staircase(1 / epsilon, 1.0, np.linspace(0, 1, 201)), measure)
    assert np.all(error <= others * (1 + 1e-14))


def test_truncation_spends_delta_at_the_end():
    for scale, sensitivity, delta in ((1.0, 1.0, 1e-3), (5.0, 2.0, 1e-9), (0.01, 3.0, 1e-6)):
        bound = theory.truncation(scale, sensitivity, delta)
        law = theory.TruncatedLaplace(scale, bound)
        assert law.tail(bound - sensitivity) / 2 == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("ratio", [1e-6, 0.05, 0.0999, 0.1001, 2.0, 50.0])
def test_truncated_moments_by_quadrature(ratio):
    law = theory.TruncatedLaplace(2.0, 2 * ratio)
    for power, ours in ((1, law.mae), (2, law.variance)):
        quadrature = integrate.quad(
            lambda x, power=power: x**power * 2 * law.density(x), 0, 2 * ratio, epsabs=0
        )[0]
        assert ours == pytest.approx(quadrature, rel=1e-10)


def test_truncated_at_infinity_is_laplace_on_the_same_key(key):
    noise = truncated_laplace(key, jnp.zeros(100_000), scale=3.0, bound=np.inf)
    same = laplace(jax.random.clone(key), jnp.zeros(100_000), scale=3.0)
    np.testing.assert_allclose(noise, same, rtol=3e-7)


@pytest.mark.parametrize("ratio", [1e-8, 1e-3, 0.3, 3.0])
def test_narrow_bounds_keep_their_digits(key, ratio):
    # the size over the bound on the same key, against float64 at the same levels
    noise = truncated_laplace(key, jnp.zeros(10_000), scale=1.0, bound=ratio)
    uniform = truncated_laplace(jax.random.clone(key), jnp.zeros(10_000), scale=np.inf, bound=1.0)
    share = np.abs(np.asarray(uniform, np.float64))
    size = -np.log1p(share * np.expm1(-ratio))
    np.testing.assert_allclose(np.abs(noise) / ratio, size / ratio, atol=4e-7)
