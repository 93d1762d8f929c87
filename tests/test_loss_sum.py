"""loss.sum: an array of parameters composed is what `+` composes, for every accountant."""

import functools
import operator

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dpjax.accounting import basic, exact, gaussian, gdp, loss, rdp

INF = float("inf")
NOISE = np.array([5.0, 7.0, 11.0, 4.0, 30.0, 6.0])
FAMILIES = {
    "gaussian": loss.gaussian,
    "laplace": loss.laplace,
    "sampled_gaussian": functools.partial(loss.sampled_gaussian, 0.1),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_sum_is_the_sum_of_its_parts(family):
    counts = np.array([20, 0, 300, 60, 70, 40])
    whole = (counts * family(NOISE)).sum()
    parts = functools.reduce(
        operator.add, (int(k) * family(m) for k, m in zip(counts, NOISE, strict=True))
    )
    assert whole.shape == ()
    assert whole.directions == parts.directions
    real, line = np.array([0.3, 2.0, 40.0]), 1 + 1j * np.linspace(0, 30, 5)
    for direction in whole.directions:
        for t in (real, line):
            assert_allclose(
                np.exp(whole.cumulant(t, direction) - parts.cumulant(t, direction)), 1, rtol=1e-12
            )
        assert_allclose(whole.supremum(direction), parts.supremum(direction), rtol=1e-15)
        c, y = np.array([2.0]), np.array([0.0, 1.0, 30.0])
        # a bound, from cells that depend on what is evaluated together
        bounds = whole.log_decay(c, y, direction), parts.log_decay(c, y, direction)
        assert_allclose(*bounds, rtol=0.05)
    for accountant in (rdp.epsilon, basic.epsilon, basic.advanced, exact.epsilon):
        assert_allclose(accountant(whole, 1e-5), accountant(parts, 1e-5), rtol=1e-9)
    bracket = exact.epsilon_bracket(whole, 1e-5)
    assert bracket.upper - bracket.lower <= 1e-9 * bracket.upper


def test_ten_thousand_different_gaussians_are_one():
    noise = np.geomspace(50, 500, 10_000)
    mu = np.sqrt(np.sum(noise**-2.0))
    queries = loss.gaussian(noise).sum()
    assert_allclose(gdp.mu(queries), mu, rtol=1e-13)
    for delta in (1e-3, 1e-12, 1e-100):
        lower, estimate, upper = exact.epsilon_bracket(queries, delta)
        truth = gaussian.epsilon(delta, mu=mu)
        assert lower <= truth * (1 + 1e-12)
        assert upper >= truth * (1 - 1e-12)
        assert_allclose([lower, estimate, upper], truth, rtol=1e-10)
    assert_allclose(rdp.epsilon(queries, 1e-5), rdp.epsilon(loss.gaussian(1 / mu), 1e-5))


def test_equal_parameters_are_a_count():
    step = loss.sampled_gaussian(np.full(60, 0.1), 1.0).sum()
    many = 60 * loss.sampled_gaussian(0.1, 1.0)
    for accountant in (rdp.epsilon, exact.epsilon):
        assert_allclose(accountant(step, 1e-5), accountant(many, 1e-5), rtol=1e-10)


def test_axes_of_a_grid():
    grid = np.array([[2], [3]]) * loss.gaussian([1.0, 2.0, 4.0]) + loss.laplace(5.0)
    t = np.array([0.5, 3.0])
    every = grid.cumulant(t, "both")
    for axis in (0, 1, -1, (0, 1), (1, 0), None, ()):
        assert_allclose(
            grid.sum(axis).cumulant(t, "both"),
            every.sum((0, 1) if axis is None else tuple(np.atleast_1d(axis).astype(int) % 2)),
        )
    assert_allclose(grid.sum(0).sum(0).cumulant(t, "both"), every.sum((0, 1)))
    assert_allclose((3 * grid.sum(1) + grid.sum(1)).cumulant(t, "both"), 4 * every.sum(1))
    assert_allclose(
        (grid.sum(1) + loss.laplace([[1.0], [2.0], [3.0]])).sum(0).supremum("both"), INF
    )
    taken = grid.sum(1).take(np.array([1, 0, 1]))
    assert_allclose(taken.cumulant(t, "both"), every.sum(1)[[1, 0, 1]])
    assert_allclose(
        exact.epsilon(grid.sum(0), 1e-5)[1], exact.epsilon(grid.sum(0).take(np.array([1])), 1e-5)
    )


def test_edges():
    nothing = loss.laplace(np.zeros(0)).sum()
    assert_array_equal(nothing.cumulant([0.5, 2.0], "both"), [0, 0])
    assert exact.epsilon(nothing, 1e-5) == 0
    bare = (np.array([0, 2]) * loss.gaussian([0.0, 1.0])).sum()  # a release that never happens
    assert_allclose(exact.epsilon(bare, 1e-5), exact.epsilon(2 * loss.gaussian(1.0), 1e-5))
    assert exact.epsilon(loss.gaussian([0.0, 1.0]).sum(), 1e-5) == INF
    shown = loss.sampled_gaussian([0.1, 0.2, 0.3], 0.0).sum()
    assert_allclose(shown.infinite_mass("remove"), 1 - 0.9 * 0.8 * 0.7)


@pytest.mark.parametrize("axis", [1, -2, (0, 0), (0, -1)])
def test_axes_that_are_not_there(axis):
    with pytest.raises(ValueError, match=r"axis = .*: expected different axes of a grid of shape"):
        loss.gaussian([1.0, 2.0]).sum(axis)


def test_counts_beyond_64_bits():
    with pytest.raises(ValueError, match="expected a whole number"):
        (10**18 * loss.gaussian(np.ones(1)) + 0 * loss.gaussian(np.ones((100, 1)))).sum()


@pytest.mark.slow
def test_ten_thousand_different_steps():
    rng = np.random.default_rng(0)
    q, noise = rng.uniform(0.001, 0.01, 10_000), rng.uniform(0.8, 2, 10_000)
    steps = loss.sampled_gaussian(q, noise).sum()
    lower, estimate, upper = exact.epsilon_bracket(steps, 1e-5)
    assert lower <= estimate <= upper <= lower * (1 + 1e-6)
    assert upper < rdp.epsilon(steps, 1e-5) < 1.3 * upper
