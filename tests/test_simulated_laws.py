"""Simulated error of every mechanism against its law, from epsilon 0.01 to 20."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import theory
from dpjax.mechanisms import selection

EPSILONS = (0.01, 0.1, 1.0, 5.0, 20.0)
REAL, WHOLE, VECTOR = jnp.zeros(()), jnp.zeros((), int), jnp.zeros(3)


def error(answer, value):
    """The error as a float."""
    return (answer - value).astype(np.float32)


NOISE = {  # the mechanism, its law, a value, and parameters of both but the scale
    "discrete_laplace": (dpjax.discrete_laplace, theory.DiscreteLaplace, WHOLE, {}),
    "discrete_gaussian": (dpjax.discrete_gaussian, theory.DiscreteGaussian, WHOLE, {}),
    "truncated_laplace": (dpjax.truncated_laplace, theory.TruncatedLaplace, REAL, {"bound": 2.0}),
    "staircase": (dpjax.staircase, theory.Staircase, REAL, {"sensitivity": 1.0, "gamma": 0.4}),
    "l2_laplace": (dpjax.l2_laplace, theory.L2Laplace, VECTOR, {}),
    "linf_laplace": (dpjax.linf_laplace, theory.LinfLaplace, VECTOR, {}),
}
SELECTION = ("exponential_mechanism", "permute_and_flip", "report_noisy_max")


def check_noise(key, name, epsilons, trials):
    mechanism, law, value, parameters = NOISE[name]
    dimension = {"dimension": value.size} if value is VECTOR else {}
    keys = jax.random.split(key, len(epsilons))
    for key_here, epsilon in zip(keys, epsilons, strict=True):
        bound = functools.partial(mechanism, scale=1 / epsilon, **parameters)
        moments = dpjax.simulate(key_here, bound, value, trials // value.size, measure=error)
        truth = law(1 / epsilon, **parameters, **dimension)
        if value is WHOLE and truth.tail(0) * trials < 100:  # too rare for a standard error
            assert moments.rmse**2 * trials < 200
            continue
        for measure in ("rmse", "mae"):
            found = getattr(moments, measure) - getattr(truth, measure)
            spread = getattr(moments, f"{measure}_standard_error")
            assert np.all(np.abs(found) < 4 * spread), (epsilon, measure)


def check_selection(key, name, epsilons, trials):
    scores = jnp.array([0.0, 1.0, 2.0, 3.0])
    keys = jax.random.split(key, len(epsilons))
    for key_here, epsilon in zip(keys, epsilons, strict=True):
        mechanism = functools.partial(getattr(dpjax, name), scale=2 / epsilon)
        moments = dpjax.simulate(
            key_here, mechanism, scores, trials // 4, measure=selection.score_lost
        )
        law = getattr(theory.selection, name)(np.asarray(scores), 2 / epsilon)
        found = moments.mean - theory.selection.expected_gap(scores, law)
        assert abs(found) < 4 * moments.mean_standard_error


@pytest.mark.parametrize("name", ["discrete_laplace"])
def test_simulated_error_is_that_of_the_law(key, name):
    check_noise(key, name, (0.5, 3.0), 400_000)


def test_simulated_loss_is_that_of_the_law(key):
    check_selection(key, "permute_and_flip", (0.5, 3.0), 400_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISE)
def test_simulated_error_is_that_of_the_law_at_length(key, name):
    check_noise(key, name, EPSILONS, 10_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", SELECTION)
def test_simulated_loss_is_that_of_the_law_at_length(key, name):
    check_selection(key, name, (0.01, 0.1, 1.0, 5.0), 10_000_000)
