"""Simulated error of every mechanism against its law, from epsilon 0.01 to 20: one table."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import theory
from dpjax.mechanisms.selection import score_lost

EPSILONS = (0.01, 0.1, 1.0, 5.0, 20.0)
REAL, WHOLE, VECTOR = jnp.zeros(()), jnp.zeros((), int), jnp.zeros(3)
SCORES = np.array([0.0, 1.0, 2.0, 3.0])
HOT = np.arange(4) == 2


def error(answer, value):
    """The error as a float."""
    return (answer - value).astype(np.float32)


def wrong(answer, value):
    """1 for a lie."""
    return (answer != value).astype(np.float32)


def wrong_bits(answer, value):
    """How many bits of the report are wrong."""
    return (answer != value).sum(axis=-1).astype(np.float32)


def place(answer, value):
    """The place itself."""
    return answer.astype(np.float32)


def of_law(law):
    """Both errors by their names; None where the law has no closed form of one."""
    return law.rmse, getattr(law, "mae", None)


def of_chances(x, chances):
    """Root mean square and mean of a non-negative x that has these values."""
    return np.sqrt(np.sum(chances * x**2)), np.sum(chances * x)


def of_lies(chance):
    """Of an indicator."""
    return of_chances(np.array([1.0]), np.array([chance]))


def of_bits(own, other):
    """Of the number of wrong bits, the own one and three others, all independent."""
    mean, variance = own + 3 * other, own * (1 - own) + 3 * other * (1 - other)
    return np.sqrt(variance + mean**2), mean


def of_selection(name, epsilon):
    """Of the score lost."""
    chances = getattr(theory.selection, name)(SCORES, 2 / epsilon)
    return of_chances(SCORES.max() - SCORES, chances)


LOCAL = theory.local
# mechanism: value, measure, parameters from epsilon, and root mean square and mean |x| by the law
CASES = {
    "laplace": (REAL, error, {}, lambda e: of_law(theory.Laplace(1 / e))),
    "gaussian": (REAL, error, {}, lambda e: of_law(theory.Gaussian(1 / e))),
    "truncated_laplace": (
        REAL,
        error,
        {"bound": 2.0},
        lambda e: of_law(theory.TruncatedLaplace(1 / e, 2.0)),
    ),
    "bounded_laplace": (
        REAL,
        error,
        {"lower": -1.0, "upper": 3.0},
        lambda e: of_law(theory.BoundedLaplace(0.0, 1 / e, -1.0, 3.0)),
    ),
    "staircase": (
        REAL,
        error,
        {"sensitivity": 1.0, "gamma": 0.4},
        lambda e: of_law(theory.Staircase(1 / e, 1.0, 0.4)),
    ),
    "l2_laplace": (VECTOR, error, {}, lambda e: of_law(theory.L2Laplace(1 / e, 3))),
    "linf_laplace": (VECTOR, error, {}, lambda e: of_law(theory.LinfLaplace(1 / e, 3))),
    "discrete_laplace": (WHOLE, error, {}, lambda e: of_law(theory.DiscreteLaplace(1 / e))),
    "discrete_gaussian": (WHOLE, error, {}, lambda e: of_law(theory.DiscreteGaussian(1 / e))),
    "randomized_response": (
        jnp.ones((), bool),
        wrong,
        {},
        lambda e: of_lies(LOCAL.randomized_response(1 / e).other),
    ),
    "k_ary_response": (
        WHOLE,
        wrong,
        {"num_categories": 5},
        lambda e: of_lies(4 * LOCAL.k_ary_response(1 / e, 5).other),
    ),
    "symmetric_unary": (
        HOT,
        wrong_bits,
        {},
        lambda e: of_bits(*[LOCAL.symmetric_unary(1 / e).other] * 2),
    ),
    "optimized_unary": (
        HOT,
        wrong_bits,
        {},
        lambda e: of_bits(0.5, LOCAL.optimized_unary(1 / e).other),
    ),
    **{
        name: (SCORES, score_lost, {}, functools.partial(of_selection, name))
        for name in ("exponential_mechanism", "permute_and_flip", "report_noisy_max")
    },
    "above_threshold": (
        SCORES,
        place,
        {"threshold": 1.5, "threshold_scale": 0.5},
        lambda e: of_chances(
            np.arange(5.0), theory.selection.above_threshold(SCORES, 1.5, 1 / e, 0.5)
        ),
    ),
}
TWICE = ("exponential_mechanism", "permute_and_flip", "report_noisy_max")  # scale 2 / epsilon


def check(key, name, epsilons, trials):
    """4 standard errors: with probability 6e-5 a right mechanism fails one of its comparisons."""
    value, measure, parameters, law = CASES[name]
    for key_here, epsilon in zip(jax.random.split(key, len(epsilons)), epsilons, strict=True):
        scale = (2 if name in TWICE else 1) / epsilon
        release = functools.partial(getattr(dpjax, name), scale=np.float32(scale), **parameters)
        moments = dpjax.simulate(key_here, release, value, trials, measure=measure)
        rmse, mae = law(epsilon)
        if mae is not None and name not in ("laplace", "gaussian") and mae * trials < 100:
            assert np.all(moments.rmse**2 * trials < 200)  # too rare for a standard error
            continue
        for statistic, truth in (("rmse", rmse), ("mae", mae)):
            if truth is not None:
                off = np.abs(getattr(moments, statistic) - truth)
                spread = getattr(moments, f"{statistic}_standard_error")
                assert np.all(off < 4 * spread), (epsilon, statistic, off / spread)


def test_every_mechanism_has_its_case():
    from dpjax.mechanisms import additive, bounded, discrete, local, selection, vector

    modules = (additive, bounded, discrete, local, selection, vector)
    public = {name for name in dpjax.__all__ if any(hasattr(m, name) for m in modules)}
    assert public | {"staircase", "above_threshold"} == set(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["discrete_laplace", "permute_and_flip", "symmetric_unary"])
def test_simulated_error_is_that_of_the_law(key, name):
    check(key, name, (0.5, 3.0), 200_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_simulated_error_is_that_of_the_law_at_length(key, name):
    check(key, name, EPSILONS, 10_000_000)
