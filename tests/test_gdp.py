import mpmath as mp
import numpy as np
import pytest

from dpjax.accounting import gaussian, gdp, loss


def test_squares_add_up():
    queries = loss.gaussian(1.0) + loss.gaussian(2.0) + loss.gaussian(4.0)
    np.testing.assert_allclose(gdp.mu(queries), 1.1456439, rtol=1e-7)
    np.testing.assert_allclose(gaussian.epsilon(1e-5, mu=gdp.mu(queries)), 5.1273683, rtol=2e-8)
    # two outputs of sensitivities 1 and 1/2 under one noise: one release of sqrt(1 + 1/4)
    joint = gaussian.epsilon(1e-5, mu=gdp.mu(loss.gaussian(1.0) + loss.gaussian(2.0)))
    np.testing.assert_allclose(joint, 4.983306, rtol=1e-6)
    grid = gdp.mu(np.array([1, 4, 0]) * loss.gaussian(5.0))
    np.testing.assert_allclose(grid, [0.2, 0.4, 0], rtol=1e-15)
    assert gdp.mu(loss.gaussian([0.0, np.inf])).tolist() == [np.inf, 0]


def test_only_gaussians_have_one():
    with pytest.raises(ValueError, match="loss has a Laplace: expected Gaussians only"):
        gdp.mu(loss.gaussian(1.0) + loss.laplace(1.0))


def test_the_central_limit_can_understate():
    mu = gdp.clt_approximation_poisson(
        sampling_probability=256 / 60000, noise_multiplier=1.3, count=3516
    )
    np.testing.assert_allclose(gaussian.epsilon(1e-5, mu=mu), 0.8345, atol=1e-4)


@pytest.mark.parametrize("noise", [0.3, 1.0, 30.0, 1e3])
def test_uniform_form_does_not_cancel(noise):
    with mp.workdps(50):
        s = mp.mpf(noise)
        value = mp.exp(s**-2) * mp.ncdf(1.5 / s) + 3 * mp.ncdf(-0.5 / s) - 2
        expected = mp.sqrt(2) * mp.mpf(0.01) * mp.sqrt(100 * value)
    actual = gdp.clt_approximation_uniform(
        sampling_probability=0.01, noise_multiplier=noise, count=100
    )
    np.testing.assert_allclose(actual, float(expected), rtol=1e-11)


@pytest.mark.parametrize("rule", [gdp.clt_approximation_poisson, gdp.clt_approximation_uniform])
def test_bad_arguments_are_named(rule):
    names = ("sampling_probability", "noise_multiplier", "count")
    for arguments, message in (
        ((1.5, 1, 1), "sampling_probability = 1.5: expected"),
        ((0.1, 0, 1), "noise_multiplier = 0: expected"),
        ((0.1, 1, -1), "count = -1: expected"),
        ((0.1, 1, 1.5), "count = 1.5: expected"),
    ):
        with pytest.raises(ValueError, match="expected") as error:
            rule(**dict(zip(names, arguments, strict=True)))
        assert str(error.value).startswith(message)
    assert rule(sampling_probability=0.1, noise_multiplier=1.0, count=0) == 0
