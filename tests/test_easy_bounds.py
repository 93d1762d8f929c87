"""The bounds that need no search are above the exact answers, and near where they should be."""

import numpy as np
import pytest
from scipy import special

from dpjax.accounting import _easy_bounds, exact, loss

COMPOSITIONS = {
    "gaussian": [1, 3, 20] * loss.gaussian(2.0),
    "sampled_gaussian": [1, 3, 20] * loss.sampled_gaussian(0.1, 0.7),
    "laplace": [1, 3, 20] * loss.laplace(3.0),
    "mixed": [1, 3, 20] * (loss.sampled_laplace(0.3, 2.0) + loss.gaussian(5.0)),
    "response": [1, 3, 20] * loss.k_ary_response(0.5, 4),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
@np.errstate(all="ignore")  # of log 0, as in `exact`
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


@np.errstate(all="ignore")
def test_the_total_variations_add_up():
    few = 3 * loss.sampled_laplace([0.01], 100.0) + 2 * loss.sampled_gaussian(1.0, 100.0)
    expected = 0.03 * -np.expm1(-1 / 200) + 2 * special.erf(1 / 100 / np.sqrt(8))
    bound = _easy_bounds.log_delta(few, "remove", np.zeros(1))
    np.testing.assert_allclose(np.exp(bound), expected, rtol=1e-8)
    assert _easy_bounds.epsilon(few, "remove", np.log([expected * (1 + 1e-6)])) == 0
    assert _easy_bounds.epsilon(few, "remove", np.log([expected * (1 - 1e-6)])) > 0


@np.errstate(all="ignore")
def test_far_out_a_gaussian_is_bounded_by_its_chernoff_bound():
    bound = _easy_bounds.log_delta(4 * loss.sampled_gaussian([0.5], 1e3), "remove", np.ones(1))
    rho = 4 / 2e6
    np.testing.assert_allclose(bound, -((1 - rho) ** 2) / (4 * rho), rtol=1e-8)
