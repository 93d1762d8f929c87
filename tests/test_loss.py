"""PrivacyLoss: the algebra, the edges, and each leak against an integral of its own pair."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpjax.accounting import loss

INF = float("inf")


def test_counts_and_sums_add_cumulants():
    one, two = loss.gaussian(2.0), loss.laplace(3.0)
    both = 3 * one + two * 5
    t = np.array([0.5, 2.0, 30.0])
    assert_allclose(
        both.cumulant(t, "both"), 3 * one.cumulant(t, "both") + 5 * two.cumulant(t, "both")
    )
    assert both.is_pair
    assert both.directions == ("both",)
    assert [int(count) for _, count in both.terms] == [3, 5]


def test_arrays_broadcast_to_a_grid():
    grid = np.array([[1], [10], [10**12]]) * loss.gaussian([0.5, 1.0]) + loss.laplace(1.0)
    assert grid.shape == (3, 2)
    assert grid.cumulant([1.0, 2.0, 3.0, 4.0], "both").shape == (3, 2, 4)
    assert grid.cumulant(1.0, "both").shape == (3, 2)
    assert_allclose(grid.supremum("both"), INF)
    assert grid.infinite_mass("both").shape == (3, 2)
    with pytest.raises(ValueError, match="shape"):
        _ = loss.gaussian([1.0, 2.0]) + loss.laplace([1.0, 2.0, 3.0])


@pytest.mark.parametrize("family", [loss.gaussian, loss.laplace])
def test_edges_of_the_noise(family):
    nodes = np.array([-0.5, 0.0, 1.0, 1e6])
    grid = family([0.0, 1.0, INF])
    assert_allclose(grid.infinite_mass("both"), [1, 0, 0])
    assert np.all(np.isinf(grid.cumulant(nodes, "both")[0, [0, 2, 3]]))
    assert np.all(np.isfinite(grid.cumulant(nodes, "both")[1]))
    assert np.all(grid.cumulant(nodes, "both")[2] == 0)
    assert grid.supremum("both")[2] == 0
    nothing = 0 * grid
    assert np.all(nothing.cumulant(nodes, "both") == 0)
    assert np.all(nothing.supremum("both") == 0)
    assert np.all(nothing.infinite_mass("both") == 0)


@pytest.mark.parametrize("noise_multiplier", [-1, -1e-300, float("nan")])
@pytest.mark.parametrize("family", [loss.gaussian, loss.laplace])
def test_bad_noise_is_named(family, noise_multiplier):
    with pytest.raises(ValueError, match=r"noise_multiplier = .*: expected .* at least 0"):
        family(noise_multiplier)


@pytest.mark.parametrize("count", [-5, 0.5, float("nan"), INF])
def test_bad_count_is_named(count):
    with pytest.raises(ValueError, match=r"count = .*: expected a whole number"):
        _ = count * loss.gaussian(1.0)


def test_counts_beyond_64_bits_are_refused():
    with pytest.raises(ValueError, match=r"count = 1e\+20: expected a whole number"):
        _ = 10**10 * (10**10 * loss.gaussian(1.0))


@pytest.mark.parametrize("count", [True, "3", None])
def test_count_of_the_wrong_type_is_named(count):
    with pytest.raises(TypeError, match=r"count = .*: expected a whole number"):
        _ = count * loss.gaussian(1.0)


@pytest.mark.parametrize("scale", [0.01, 1.0, 7.0, 1e6])
@pytest.mark.parametrize("t", [-0.8, 1e-6, 0.3, 40.0, 1e7, 0.3 + 2j, 5 + 1e4j, -0.5])
def test_laplace_cumulant_is_the_integral_over_its_pair(scale, t):
    with mpmath.workdps(40):
        e0, z = 1 / mpmath.mpf(scale), mpmath.mpmathify(t)
        w = z + mpmath.mpf(1) / 2  # the density between the atoms is exp((l - e0)/2)/4
        inside = 2 * e0 if w == 0 else (mpmath.exp(w * e0) - mpmath.exp(-w * e0)) / w
        inside *= mpmath.exp(-e0 / 2) / 4
        moment = mpmath.exp(z * e0) / 2 + mpmath.exp(-(z + 1) * e0) / 2 + inside
        expected = mpmath.log(moment)
        got = mpmath.mpmathify(complex(loss.laplace(scale).cumulant(t, "both")))
        turns = mpmath.nint((got - expected).imag / (2 * mpmath.pi))  # the branch is free
        error = abs(got - expected - 2j * mpmath.pi * turns)
        size = float(abs(expected))
        assert error <= 1e-15 * (1 + abs(t) * float(e0)) * min(1, 10 * size) + 1e-300


def test_python_sum_adds_losses():
    total = sum([loss.gaussian(2.0), loss.laplace(3.0)])
    assert isinstance(total, loss.PrivacyLoss)
    assert len(total.terms) == 2
