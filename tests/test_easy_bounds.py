"""The bounds that need no search are above the exact answers, and near where they should be."""

import numpy as np
import pytest
from scipy import special

from dpjax.accounting import _easy_bounds, exact, loss

COMPOSITIONS = {
    "gaussian": [1, 3, 20] * loss.gaussian(2.0),
    "sampled_gaussian": [1, 3, 20] * loss.sampled_gaussian(0.1, 0.7),
    "laplace": [1, 3, 20] * loss.laplace(3.0),
    "sampled_laplace": [1, 3, 20] * loss.sampled_laplace(0.2, 1.5),
    "mixed": [1, 3, 20] * (loss.sampled_laplace(0.3, 2.0) + loss.gaussian(5.0)),
    "discrete_gaussian": [1, 3, 20] * loss.discrete_gaussian(1.3, 2),
    "response": [1, 3, 20] * loss.k_ary_response(0.5, 4),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_they_are_above_the_exact_ones(name):
    composition = COMPOSITIONS[name]

    def worst(bound, wanted):
        return np.max([bound(composition, way, wanted) for way in composition.directions], 0)

    for epsilon in (0.0, 0.3, 3.0, 30.0):
        bound = worst(_easy_bounds.log_delta, np.full(3, epsilon))
        assert np.all(np.exp(bound) >= exact.delta_bracket(composition, epsilon).lower)
    for delta in (1e-30, 1e-6, 0.2, 0.9):
        bound = worst(_easy_bounds.epsilon, np.log(np.full(3, delta)))
        assert np.all(bound >= exact.epsilon_bracket(composition, delta).lower)


def test_the_total_variations_add_up():
    few = 3 * loss.sampled_laplace([0.01], 100.0) + 2 * loss.sampled_gaussian(1.0, 100.0)
    expected = 0.03 * -np.expm1(-1 / 200) + 2 * special.erf(1 / 100 / np.sqrt(8))
    bound = _easy_bounds.log_delta(few, "remove", np.zeros(1))
    np.testing.assert_allclose(np.exp(bound), expected, rtol=1e-8)
    assert _easy_bounds.epsilon(few, "remove", np.log([expected * (1 + 1e-6)])) == 0
    assert _easy_bounds.epsilon(few, "remove", np.log([expected * (1 - 1e-6)])) > 0


def test_far_out_a_gaussian_is_bounded_by_its_chernoff_bound():
    bound = _easy_bounds.log_delta(4 * loss.sampled_gaussian([0.5], 1e3), "remove", np.ones(1))
    rho = 4 / 2e6
    np.testing.assert_allclose(bound, -((1 - rho) ** 2) / (4 * rho), rtol=1e-8)


def test_next_to_the_largest_loss_epsilon_is_bounded_from_below():
    for name in ("laplace", "mixed", "sampled_laplace"):
        composition = COMPOSITIONS[name]
        for way in composition.directions:
            for delta in (1e-30, 1e-6, 0.2):
                least = _easy_bounds.least_epsilon(composition, way, np.log(np.full(3, delta)))
                assert np.all(least <= exact.epsilon(composition, delta))
    # P(L = 2) of one release is 1/2, and delta at 2 + u is (1 - exp(u)) / 4 near u = 0
    least = _easy_bounds.least_epsilon(2 * loss.laplace([1.0]), "both", np.log([1e-3]))
    np.testing.assert_allclose(least, 2 + np.log1p(-4e-3), rtol=1e-4)


@pytest.mark.parametrize("noise", [1.0, 1e4, 1e8])
def test_a_tiny_delta_leaves_few_samples_their_largest_loss(noise):
    for q in (1e-8, 0.5):
        bracket = exact.epsilon_bracket(3 * loss.sampled_laplace(q, noise), 1e-40)
        expected = 3 * np.log1p(q * np.expm1(1 / noise))
        np.testing.assert_allclose([bracket.lower, bracket.upper], expected, rtol=2e-9)


def test_little_noise_leaves_a_finite_upper_end():
    """Where no line is short enough, the one of Bun and Steinke: rho is 10^6 / (2 s^2)."""
    bracket = exact.epsilon_bracket(10**6 * loss.sampled_gaussian(0.0963, 1.26e-4), 0.5)
    rho = 1e6 / (2 * 1.26e-4**2)
    assert bracket.lower > 1e5
    assert bracket.upper <= (rho + 2 * np.sqrt(rho * np.log(2))) * (1 + 1e-8)


def test_far_beyond_its_losses_a_discrete_gaussian_is_bounded_at_once():
    assert exact.delta(loss.discrete_gaussian(1409.85, 1), 1e4) == 5e-324
