import functools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from scipy import stats

from dpjax.accounting import gaussian, loss, rdp, risk

FPR = np.linspace(0, 1, 41)
EPSILON = st.floats(0, 20)
DELTA = st.floats(0, 1)
RATE = st.floats(0, 1)


@hypothesis.given(EPSILON, DELTA, RATE)
def test_guarantee_is_the_best_attack_on_its_extremal_pair(epsilon, delta, fpr):
    # the pair that meets the guarantee with equality: four outcomes, ordered by likelihood ratio
    keep = 1 / (1 + np.exp(-epsilon))
    p = np.array([delta, (1 - delta) * keep, (1 - delta) * (1 - keep), 0])
    q = np.array([0, (1 - delta) * (1 - keep), (1 - delta) * keep, delta])
    tpr = np.interp(fpr, np.cumsum(q), np.cumsum(p))  # Neyman and Pearson
    if fpr == 0:
        tpr = delta
    np.testing.assert_allclose(
        risk.tradeoff_of_guarantee(fpr, epsilon=epsilon, delta=delta), 1 - tpr, atol=1e-9, rtol=1e-9
    )
    advantage = np.sum(np.maximum(p - q, 0))
    np.testing.assert_allclose(risk.advantage_of_guarantee(epsilon, delta), advantage, atol=1e-12)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_gaussian_curve_by_its_test(mu):
    threshold = stats.norm.isf(FPR)
    np.testing.assert_allclose(
        risk.tradeoff_of_gaussian(FPR, mu=mu), stats.norm.cdf(threshold - mu), rtol=1e-11
    )


@pytest.mark.parametrize("noise", [0.25, 1.0, 3.0])
def test_laplace_curve_by_its_test(noise):
    # reject at or above a threshold; where the ratio is flat, thresholds between 0 and 1 serve
    threshold = stats.laplace.isf(FPR, scale=noise)
    expected = stats.laplace.cdf(threshold, loc=1, scale=noise)
    np.testing.assert_allclose(
        risk.tradeoff_of_laplace(FPR, noise_multiplier=noise), expected, atol=1e-12
    )


def test_a_profile_gives_the_curve_of_the_gaussian():
    for mu in (0.05, 0.5, 2.0):
        profile = functools.partial(gaussian.delta, mu=mu)
        np.testing.assert_allclose(
            risk.tradeoff_of_profile(FPR, profile), risk.tradeoff_of_gaussian(FPR, mu=mu), atol=1e-9
        )


def test_a_bound_on_the_profile_errs_on_the_safe_side():
    bound = risk.tradeoff_of_profile(FPR, functools.partial(rdp.delta, loss.gaussian(1.0)))
    assert np.all(bound <= risk.tradeoff_of_gaussian(FPR, mu=1.0) + 1e-12)
    assert bound[20] > 0.05


@hypothesis.given(st.floats(0.1, 8), st.floats(-8, -2).map(lambda x: 10.0**x))
def test_a_mechanism_risks_no_more_than_its_guarantee(epsilon, delta):
    mu = gaussian.mean_shift(epsilon, delta)
    of_mechanism = risk.tradeoff_of_gaussian(FPR, mu=mu)
    assert np.all(
        of_mechanism >= risk.tradeoff_of_guarantee(FPR, epsilon=epsilon, delta=delta) - 1e-12
    )
    assert gaussian.delta(0, mu=mu) <= risk.advantage_of_guarantee(epsilon, delta)


def test_posterior_is_bayes_on_randomized_response():
    epsilon, prior = np.log(3), np.array([0, 0.2, 0.5, 1])
    np.testing.assert_allclose(
        risk.posterior(prior, epsilon=epsilon), prior * 0.75 / (prior * 0.75 + (1 - prior) * 0.25)
    )
    assert risk.posterior([0, 0.5, 1], epsilon=np.inf).tolist() == [0, 1, 1]
    assert risk.posterior(0.3, epsilon=0) == 0.3


def test_predictive_value():
    np.testing.assert_allclose(risk.positive_predictive_value(fpr=0.001, tpr=0.051), 0.051 / 0.052)
    np.testing.assert_allclose(
        risk.positive_predictive_value(fpr=0.1, tpr=0.5, prior=0.01), 0.005 / (0.005 + 0.099)
    )
    assert risk.positive_predictive_value(fpr=0, tpr=0, prior=0.2) == 0.2


def test_edges():
    assert risk.tradeoff_of_guarantee([0, 0.5, 1], epsilon=0, delta=0).tolist() == [1, 0.5, 0]
    assert risk.tradeoff_of_guarantee([0, 0.5, 1], epsilon=np.inf, delta=0.1).tolist() == [
        0.9,
        0,
        0,
    ]
    assert risk.tradeoff_of_guarantee([0, 0.5, 1], epsilon=1, delta=1).tolist() == [0, 0, 0]
    assert risk.tradeoff_of_gaussian([0, 0.5, 1], mu=0).tolist() == [1, 0.5, 0]
    assert risk.tradeoff_of_gaussian([0, 0.5, 1], mu=np.inf).tolist() == [0, 0, 0]
    assert risk.tradeoff_of_laplace([0, 1], noise_multiplier=1e-3).tolist() == [1, 0]
    assert risk.advantage_of_guarantee([0, np.inf, 3], [0, 0, 1]).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: risk.tradeoff_of_guarantee(1.5, epsilon=1, delta=0),
            "fpr = 1.5: expected a number in [0, 1]",
        ),
        (lambda: risk.tradeoff_of_gaussian(0.5, mu=-1), "mu = -1: expected"),
        (
            lambda: risk.tradeoff_of_laplace(0.5, noise_multiplier=0),
            "noise_multiplier = 0: expected",
        ),
        (lambda: risk.advantage_of_guarantee(np.nan, 0), "epsilon = nan: expected"),
        (lambda: risk.posterior(2, epsilon=0), "prior = 2: expected"),
        (lambda: risk.positive_predictive_value(fpr=0.1, tpr=7), "tpr = 7: expected"),
        (lambda: risk.tradeoff_of_profile(-1, lambda e: e), "fpr = -1: expected"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="expected") as error:
        call()
    assert str(error.value).startswith(message)
