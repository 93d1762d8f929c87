"""Discrete Laplace and Gaussian: cumulants of their laws, limits, and the pair that is worst."""

import lattice_laws as laws
import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_response import check_cumulant

from dpjax.accounting import exact, loss
from dpjax.accounting.leaks.discrete import DiscreteGaussian, DiscreteLaplace

INF = float("inf")


def leak_of(family, scale, sensitivity):
    return family(np.array(float(scale)), np.array(float(sensitivity)))


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("sensitivity", [1, 2, 7])
def test_laplace_cumulant_is_that_of_the_law(scale, sensitivity):
    law = laws.discrete_laplace(scale, sensitivity)
    check_cumulant(leak_of(DiscreteLaplace, scale, sensitivity), law, "both")


@pytest.mark.parametrize("scale", [0.05, 0.49, 0.5, 3.0])
@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_gaussian_cumulant_is_that_of_the_law(scale, sensitivity, monkeypatch):
    period = np.pi * scale**2 / sensitivity
    nodes = (
        1e-6,
        1e-3,
        0.7,
        1.0,
        2.3,
        0.3 + 0.1j * period,
        0.5 + 0.7j * period,
        1.1 + 0.99j * period,
    )
    monkeypatch.setattr("test_response.NODES", nodes)
    s = laws.mp.mpf(scale)  # wide enough for the tilt, which moves the law by t sensitivity
    reach = int(14 * scale) + 20
    law = laws.noise(lambda x: -(laws.mp.mpf(x) ** 2) / (2 * s**2), sensitivity, reach)
    check_cumulant(leak_of(DiscreteGaussian, scale, sensitivity), law, "both")


@pytest.mark.parametrize("family", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize(
    ("scale", "sensitivity"), [(0.2, 1), (0.49, 2), (0.6, 3), (4.0, 2), (9, 9)]
)
def test_decay_is_a_falling_bound_over_the_period(family, scale, sensitivity):
    leak = leak_of(family, scale, sensitivity)
    y = np.linspace(0, np.pi / leak.step("both"), 300)
    for c in (0.01, 0.5, 2.7):
        at = np.array([c])
        bound = leak.log_decay_in_period(at, y, "both")
        there = np.real(leak.cumulant(c + 1j * y, "both"))
        assert np.all(there - leak.cumulant(at, "both") <= bound + 1e-12)
        assert np.all(np.diff(bound) <= 1e-14)
        assert bound[-1] < 0


@pytest.mark.parametrize("make", [loss.discrete_laplace, loss.discrete_gaussian])
def test_the_whole_sensitivity_is_the_worst_shift(make):
    epsilon = np.linspace(0, 3, 61)
    deltas = exact.delta(make(1.5, np.arange(6)[:, None]), epsilon)
    assert np.all(np.diff(deltas, axis=0) >= -1e-15)


def test_large_scales_tend_to_the_continuous_noise():
    for count in (1, 30):
        pairs = [
            (loss.discrete_laplace(2e4, 10**4), loss.laplace(2.0)),
            (loss.discrete_gaussian(2e4, 10**4), loss.gaussian(2.0)),
        ]
        for discrete, continuous in pairs:
            near = exact.epsilon(count * discrete, 1e-5), exact.epsilon(count * continuous, 1e-5)
            assert_allclose(*near, rtol=1e-4)


def test_discrete_gaussian_delta_is_not_monotone_in_the_scale():
    scales = np.linspace(0.2, 3, 600)
    assert np.any(np.diff(exact.delta(loss.discrete_gaussian(scales, 1), 1.0)) > 0)
    narrow, wide = (laws.delta(laws.discrete_gaussian(s, 1), 3.0) for s in (0.4, 0.41))
    assert_allclose(
        exact.delta(loss.discrete_gaussian([0.4, 0.41], 1), 3.0),
        [float(narrow), float(wide)],
        rtol=1e-12,
    )


def test_edges():
    for make in (loss.discrete_laplace, loss.discrete_gaussian):
        nothing = exact.epsilon(make([1.0, INF, 0.0], 0), 0.0), exact.epsilon(make(INF, 3), 0.0)
        assert np.all(nothing[0] == 0)
        assert nothing[1] == 0
        assert exact.epsilon(make(0.0, 1), 0.5) == INF
        assert exact.epsilon(make(1.0, 1), 1.0) == 0
    assert exact.epsilon(3 * loss.discrete_laplace(4.0, 2), 0.0) == 1.5
    assert exact.epsilon(loss.discrete_gaussian(1.0, 1), 0.0) == INF


@pytest.mark.parametrize("make", [loss.discrete_laplace, loss.discrete_gaussian])
def test_what_is_wrong_is_named(make):
    with pytest.raises(ValueError, match=r"scale = -1.0: expected a number of at least 0"):
        make(-1.0, 1)
    with pytest.raises(ValueError, match=r"sensitivity = 0.5: expected a whole number"):
        make(1.0, 0.5)
