"""Sums of exp(i n h x): as the plain sum, to a few units and within the stated rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpjax.accounting.leaks._line_sums import line_sums


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.floats(-6, 2))
def test_the_plain_sum(seed, nodes, log_step):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(3, 40)) * 10.0 ** rng.uniform(-4, 0, (3, 1))
    weights = rng.exponential(size=(3, 40))
    step = 10.0**log_step * np.array([1.0, -0.5, 0.1])
    sums, error = line_sums(weights, points, step, nodes)
    angle = step[:, None, None] * np.arange(nodes)[:, None] * points[:, None, :]
    plain = weights[:, None, :] * (np.exp(1j * angle) - 1)
    phase = 4e-16 * (weights[:, None, :] * np.minimum(np.abs(angle), 1e16)).sum(2)
    slack = 1e-15 * weights.sum(1, keepdims=True) + phase
    assert np.all(np.abs(sums - plain.sum(2)) <= error + slack)
    assert np.all(error <= 1e-13 * weights.sum(1, keepdims=True))


def test_small_angles_lose_nothing():
    """The sums of a loss of 1e-9 are right to 1e-15 of themselves, and so is the bound."""
    points = 1e-9 * np.linspace(-1, 1, 51)[None] ** 3
    sums, error = line_sums(np.full((1, 51), 0.1), points, np.array([1.0]), 64)
    n = np.arange(64)
    truth = -(n**2) * (0.1 * points**2).sum() / 2
    np.testing.assert_allclose(np.real(sums[0]), truth, rtol=1e-13)
    assert np.all(error[0] <= 1e-14 * n * (0.1 * np.abs(points)).sum())
    assert sums[0, 0] == 0


@pytest.mark.parametrize("nodes", [1, 2, 20_000])
def test_lengths(nodes):
    sums, _ = line_sums(np.ones((1, 3)), np.array([[0.1, 2.0, 30.0]]), np.array([0.7]), nodes)
    assert sums.shape == (1, nodes)
    last = np.exp(0.7j * (nodes - 1) * np.array([0.1, 2.0, 30.0])) - 1
    np.testing.assert_allclose(sums[0, -1], last.sum(), rtol=0, atol=1e-10)
