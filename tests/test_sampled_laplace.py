"""The sampled Laplace leak: its cumulant, decay and edges against integrals and the Laplace's."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dpjax.accounting import exact, loss, rdp
from dpjax.accounting.leaks import sampled_laplace

INF = float("inf")


def moment(q, scale, t, direction):
    """E_A[(1 - q + q exp(z))^p] piece by piece, with 42 digits."""
    q, e0, t = mpmath.mpf(q), 1 / mpmath.mpf(scale), mpmath.mpmathify(t)
    power = t + 1 if direction == "remove" else -t

    def value(z):
        return (1 - q + q * mpmath.exp(z)) ** power * mpmath.exp(-(z + e0) / 2)

    pieces = mpmath.linspace(-e0, e0, int(5 + abs(t) * e0 / 8))
    inside = mpmath.quad(lambda z: value(z) / 4, pieces)
    return value(-e0) / 2 + value(e0) / 2 + inside  # type: ignore[operator]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("t", [1e-9, 15.0, 2 + 9j])
@pytest.mark.parametrize(("q", "scale"), [(0.01, 0.5), (1e-8, 1.0), (0.9, 0.1), (0.3, 3.0)])
def test_cumulant_is_the_integral_over_its_pair_within_its_error(q, scale, t, direction):
    (leak, _), *_ = loss.sampled_laplace(q, scale).terms
    value, error = leak.cumulant_with_error(np.array([t]), direction)
    with mpmath.workdps(42):
        ratio = mpmath.exp(mpmath.mpmathify(complex(value[0]))) / moment(q, scale, t, direction)
        assert abs(ratio - 1) <= np.expm1(error[0])
    assert error[0] <= 1e-12 * max(1, abs(value[0]))


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("q", "scale"), [(0.05, 1.0), (1e-4, 0.2), (0.9, 3.0)])
def test_decay_bounds_the_modulus(q, scale, direction):
    (leak, _), *_ = loss.sampled_laplace(q, scale).terms
    spread = leak.supremum("remove") + leak.supremum("add")
    c, y = np.array([[0.1], [3.0]]), np.linspace(0, 40, 50) / spread
    leak = leak.take((), np.zeros(2, int))
    modulus = np.real(leak.cumulant(c + 1j * y, direction) - leak.cumulant(c, direction))
    bound = leak.log_decay(c, np.broadcast_to(y, (2, 50)), direction)
    largest_beyond = np.maximum.accumulate(modulus[:, ::-1], 1)[:, ::-1]
    assert np.all(largest_beyond <= bound + 1e-14)
    assert np.all(np.diff(bound) <= 1e-15)
    assert np.all(bound[:, -1] < -1e-4)  # and it says something


def test_with_every_record_it_is_the_laplace():
    scale = np.array([0.05, 1.0, 20.0])
    sampled, plain = loss.sampled_laplace(1.0, scale), loss.laplace(scale)
    t = np.array([0.3, 7.0, 100.0])  # at the last exponents are scaled
    for direction in sampled.directions:
        assert_allclose(sampled.cumulant(t, direction), plain.cumulant(t, "both"), rtol=1e-12)
        assert_allclose(sampled.supremum(direction), plain.supremum("both"), rtol=1e-15)
    assert_allclose(exact.delta(sampled, 0.01), exact.delta(plain, 0.01), rtol=1e-12)
    many = 400 * loss.sampled_laplace(1.0, 2.0), 400 * loss.laplace(2.0)
    assert_allclose(*(exact.epsilon(each, 1e-5) for each in many), rtol=1e-10)


def test_compositions_lie_between_their_bounds():
    queries = np.array([300, 3000]) * loss.sampled_laplace(0.05, 1.0)
    lower, estimate, upper = exact.epsilon_bracket(queries, 1e-5)
    assert np.all((lower <= estimate) & (estimate <= upper) & (upper <= lower * (1 + 1e-9)))
    assert np.all(upper < rdp.epsilon(queries, 1e-5))
    assert_allclose(exact.delta(queries, estimate), 1e-5, rtol=1e-6)


def test_sampling_only_helps():
    q = np.array([0.0, 1e-6, 1e-3, 0.1, 0.5, 1.0])
    epsilon = exact.epsilon(1000 * loss.sampled_laplace(q, 2.0), 1e-6)
    assert epsilon[0] == 0
    assert np.all(np.diff(epsilon) >= 0)


def test_edges():
    grid = loss.sampled_laplace([[0.0], [0.2], [1.0]], [0.0, 1e-4, 1.0, INF])
    assert_allclose(grid.infinite_mass("remove")[:, 0], [0, 0.2, 1])
    assert_allclose(grid.infinite_mass("add")[:, 0], [0, 0, 1])
    assert_array_equal(grid.infinite_mass("remove")[:, 1:], 0)
    assert_allclose(
        grid.supremum("add")[1], [-np.log(0.8)] * 2 + [-np.log1p(0.2 * np.expm1(-1)), 0]
    )
    assert_allclose(grid.supremum("remove")[1, 1], 1e4 + np.log(0.2), rtol=1e-12)
    for direction in grid.directions:
        value = grid.cumulant([0.0, 1.0, 1e6], direction)
        assert not np.any(np.isnan(value))
        assert_array_equal(value[0], 0)  # nobody takes part
        assert_array_equal(value[:, 3], 0)  # the noise is infinite
    assert not np.any(np.isnan(exact.epsilon(grid, 1e-5)))
    assert rdp.epsilon(loss.sampled_laplace(0.2, 1e-4), 1e-5) <= 1e4
    tiny = exact.epsilon(loss.sampled_laplace([0.2, 0.2], [1e-4, 0.0]), 1e-5)
    assert tiny[0] <= 1e4
    assert tiny[1] == INF


@pytest.mark.parametrize(("q", "scale"), [(1.5, 1.0), (-0.1, 1.0), (0.5, -1.0)])
def test_bad_arguments_are_named(q, scale):
    with pytest.raises(ValueError, match=r"(sampling_probability|noise_multiplier) = .*: expected"):
        loss.sampled_laplace(q, scale)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_long_line_is_what_its_nodes_are_alone(direction, monkeypatch):
    leak = sampled_laplace.PoissonLaplace(np.array([0.01, 0.3]), np.array([1.0, 0.5]))
    line = 4 + 1j * np.linspace(0, 300, 301)
    together, error = leak.cumulant_with_error(line, direction)
    monkeypatch.setattr(sampled_laplace, "_LONG", 1 << 40)
    apart, their_error = leak.cumulant_with_error(line, direction)
    off = np.abs(np.expm1(together - apart))
    assert np.all(off <= np.expm1(error) + np.expm1(their_error))
    assert np.all(error <= 1e-11)
