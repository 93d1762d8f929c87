"""The sampled Gaussian's loss: its moments within their error, its decay below the bound."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpjax.accounting.leaks import sampled_gaussian
from dpjax.accounting.leaks.sampled_gaussian import PoissonGaussian


def moment(q, s, t, direction):
    """K by mpmath's quadrature over x."""
    power = t + 1 if direction == "remove" else -t

    def integrand(x):
        level = mp.log(1 - q + q * mp.exp((2 * x - 1) / (2 * s**2)))
        return mp.npdf(x, 0, s) * mp.exp(power * level)

    top = max(float(np.real(power)), 1.0)
    return mp.log(mp.quad(integrand, np.linspace(-12 * s - 1, 12 * s + top + 1, 40).tolist()))


@pytest.mark.parametrize(
    ("q", "s", "t", "direction"),
    [
        (0.01, 1.0, 5.0, "remove"),
        (0.3, 0.5, 2.0, "add"),
        (1e-4, 0.8, 12 + 30j, "remove"),
        (0.136, 58.0, 1e-3, "remove"),
    ],
)
def test_moments_within_their_error(q, s, t, direction):
    leak = PoissonGaussian(np.array(q), np.array(s))
    value, error = leak.cumulant_with_error(np.array([t]), direction)
    with mp.workdps(25):
        truth = moment(mp.mpf(q), mp.mpf(s), mp.mpc(t), direction)
        off = abs(mp.expm1(mp.mpmathify(complex(value[0])) - truth))
    assert off <= np.expm1(error[0])
    assert error[0] <= 1e-10  # the complex one is exp(-14) of that at 12
    assert np.allclose(leak.cumulant(np.array([t]), direction), value, rtol=1e-12)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_nodes_in_any_arrangement_are_the_same(direction):
    leak = PoissonGaussian(np.array([0.01, 0.2]), np.array([1.0, 3.0]))
    line = 4 + 1j * np.linspace(0, 30, 61)
    together, _ = leak.cumulant_with_error(line, direction)
    shuffled = np.random.default_rng(0).permutation(61)
    apart, _ = leak.cumulant_with_error(line[shuffled], direction)
    np.testing.assert_allclose(apart, together[:, shuffled], rtol=1e-12, atol=1e-15)
    real = 10.0 ** np.linspace(-3, 3, 13)
    shared, error = leak.cumulant_with_error(real, direction)
    each = np.stack([leak.cumulant(real[[i]], direction)[:, 0] for i in range(13)], 1)
    assert np.all(np.abs(shared - each) <= 2 * error)
    np.testing.assert_allclose(shared, each, rtol=2e-11)


@settings(max_examples=12)
@given(
    log_q=st.floats(-5, -0.1),
    log_s=st.floats(-0.4, 1.5),
    log_c=st.floats(-1, 1.5),
    direction=st.sampled_from(["remove", "add"]),
)
def test_the_decay_is_below_its_bound(log_q, log_s, log_c, direction):
    leak = PoissonGaussian(np.array(10.0**log_q), np.array(10.0**log_s))
    c = np.array([10.0**log_c])
    y = np.concatenate([[0.0], 10.0 ** np.linspace(-2, 5, 29)])
    bound = leak.log_decay(c, y, direction)
    assert np.all(np.diff(bound) <= 1e-12)
    # a point each, so that those with enough abscissas are there
    found = [leak.cumulant_with_error(c + 1j * z, direction) for z in y[y < 3e3]]
    value, error = (np.array([pair[i][0] for pair in found]) for i in (0, 1))
    fall = np.real(value - leak.cumulant(c, direction)) - error
    seen = np.isfinite(fall) & (error < 1)
    assert np.all(fall[seen] <= bound[: fall.size][seen] + 1e-9)


def test_the_bound_falls_faster_than_any_power():
    """At twenty times the frequency the bound is well below any first power of it."""
    leak = PoissonGaussian(np.array(0.01), np.array(1.0))
    bound = leak.log_decay(np.array([10.0]), np.array([1e3, 2e4, 4e5]), "remove")
    assert bound[1] < bound[0] - 2 * np.log(20)
    assert bound[2] < bound[1] - 3 * np.log(20)


@pytest.mark.parametrize(
    ("q", "s", "epsilon"),
    [
        (1.0, 0.01, 1e4),  # the Gaussian itself, far beyond exp(-epsilon) in the floats
        (1.0, 0.1, 36.0),
        (1 - 2.0**-40, 0.3, 27.0),
        (0.9, 0.5, 2.0),
        (0.3, 0.5, 0.3),
        (1e-8, 1.0, 9e-9),
    ],
)
def test_one_addition_near_full_sampling_and_far_from_it(q, s, epsilon):
    leak = PoissonGaussian(np.array([q]), np.array([s]))
    value = leak.log_delta_once(np.array([epsilon]), "add")[0]
    with mp.workdps(60):
        q, s, e = mp.mpf(q), mp.mpf(s), mp.mpf(epsilon)
        # A exceeds e^epsilon B below the x at which the loss is -epsilon
        z = mp.log((mp.exp(-e) - 1 + q) / q) if q < 1 else -e
        x = s**2 * z + mp.mpf(1) / 2
        below = mp.ncdf(x / s)
        mixed = (1 - q) * below + q * mp.ncdf((x - 1) / s)
        truth = mp.log(below - mp.exp(e) * mixed)
        assert abs(value - truth) <= 1e-13 * (1 + abs(truth))


@pytest.mark.parametrize("s", [1e7, 1e20, 1e90])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_much_noise_is_the_gaussian_of_a_smaller_shift(s, direction):
    """At t = a s the loss is q Z / s, but for parts that fall like 1 / s."""
    leak = PoissonGaussian(np.array(0.3), np.array(s))
    a = np.array([0.5, 1.0, 6.0])
    value = leak.cumulant(a * s, direction)
    np.testing.assert_allclose(value, (0.3 * a) ** 2 / 2, rtol=10 / s + 1e-12)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("t", [-3.0, -0.4, 0.0, 1e-3, 2.0, 60.0])
def test_beyond_the_noise_that_is_integrated_is_a_bound(monkeypatch, t, direction):
    leak, nodes = PoissonGaussian(np.array(0.3), np.array(2.0)), np.array([t])
    truth = leak.cumulant(nodes, direction)
    monkeypatch.setattr(sampled_gaussian, "_MOST_NOISE", 1.0)
    value, error = leak.cumulant_with_error(nodes, direction)
    assert 0 <= value - truth <= error + 1e-15
    np.testing.assert_array_equal(leak.log_decay(np.array([1.0]), np.array([9.0]), direction), 0)


def test_a_power_that_is_no_number_is_left_out():
    leak = PoissonGaussian(np.array(0.3), np.array(2.0))
    value = leak.cumulant(np.array([np.nan, 1.0, np.nan]), "remove")
    assert value[1] == leak.cumulant(np.array([1.0]), "remove")[0]
    assert np.all(np.isinf(value[[0, 2]]))
