"""Bounds-only losses: what they bound, the conversions they give, and that exact refuses them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from dpjax.accounting import bounds, exact, loss, rdp, zcdp

INF = float("inf")
T = np.geomspace(1e-3, 1e3, 40)


def test_zcdp_converts_as_the_gaussian_of_its_rho():
    rho = np.array([1e-6, 0.1, 3.0])
    for conversion in rdp.CONVERSIONS:
        answer = rdp.epsilon(10 * bounds.zcdp(rho), 1e-6, conversion=conversion)
        assert_allclose(
            answer, zcdp.epsilon(10 * rho, delta=1e-6, conversion=conversion), rtol=1e-12
        )


@given(epsilon=st.floats(1e-3, 30), share=st.floats(0, 1))
def test_bounded_range_bounds_every_pair_of_its_range(epsilon, share):
    u = share * epsilon  # losses u and u - epsilon
    up = -np.expm1(u - epsilon) / -np.expm1(-epsilon)
    with np.errstate(divide="ignore"):
        logs = np.log(up) + T * u, np.log1p(-up) + T * (u - epsilon)
    cumulant = np.logaddexp(*logs)
    bound = bounds.bounded_range(epsilon).cumulant(T, "both")
    assert np.all(cumulant <= bound * (1 + 1e-12) + 1e-14)
    assert np.all(bound <= T * (T + 1) * epsilon**2 / 8 * (1 + 1e-12))
    assert np.all(bound <= T * epsilon)


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 10.0, 500.0])
def test_bounded_range_is_the_largest_over_the_offset(epsilon):
    u = np.linspace(0, epsilon, 20_001)[:, None]
    up = -np.expm1(u - epsilon) / -np.expm1(-epsilon)
    with np.errstate(divide="ignore"):
        best = np.logaddexp(np.log(up) + T * u, np.log1p(-up) + T * (u - epsilon)).max(0)
    bound = bounds.bounded_range(epsilon).cumulant(T, "both")
    assert_allclose(bound, best, rtol=1e-3 if epsilon < 100 else 2e-2, atol=1e-15)


def test_bounded_range_is_far_below_what_pure_says():
    count = np.array([1, 10, 1000])
    narrow = rdp.epsilon(count * bounds.bounded_range(0.2), 1e-6)
    assert np.all(narrow <= rdp.epsilon(count * loss.pure(0.2), 1e-6))
    assert narrow[-1] < 0.6 * rdp.epsilon(1000 * loss.pure(0.2), 1e-6)


def test_curves_bound_the_loss_they_were_read_from():
    query = loss.laplace([0.5, 3.0])
    orders = np.array([1.5, 2.0, 3.0, 8.0, 64.0, INF])
    curve = bounds.renyi_curve(orders, rdp.divergence(loss.laplace([[0.5], [3.0]]), orders))
    truth, bound = query.cumulant(T, "both"), curve.cumulant(T, "both")
    assert np.all(truth <= bound * (1 + 1e-14))
    assert_allclose(
        curve.cumulant(orders[:-1] - 1, "both"), query.cumulant(orders[:-1] - 1, "both")
    )
    assert_allclose(curve.supremum("both"), query.supremum("both"))
    assert np.all(rdp.epsilon(9 * query, 1e-5) <= rdp.epsilon(9 * curve, 1e-5))


def test_without_the_largest_loss_nothing_is_known_beyond_the_last_order():
    curve = bounds.renyi_curve([2.0, 5.0], [0.1, 0.3])
    assert curve.cumulant(4.5, "both") == INF
    assert curve.cumulant(4.0, "both") == 4 * 0.3
    grid = rdp.to_epsilon([2.0, 5.0], [0.1, 0.3], delta=1e-5).min()
    assert grid <= rdp.epsilon(curve, 1e-5) <= 1.01 * grid  # the search stops short of order 5
    partly = bounds.renyi_curve([2.0, 5.0], [INF, 0.3])
    assert_allclose(partly.cumulant(2.0, "both"), 0.6)


def test_exact_refuses_by_name():
    for bound in (bounds.zcdp(0.1), bounds.bounded_range(1.0), bounds.renyi_curve([2], [0.1])):
        assert not (3 * bound + loss.gaussian(1.0)).is_pair
        with pytest.raises(ValueError, match="expected pairs, of which exact composition speaks"):
            exact.epsilon(bound, 1e-5)
        with pytest.raises(ValueError, match="expected pairs"):
            exact.delta(2 * bound + loss.gaussian(1.0), 1.0)


def test_edges():
    none = bounds.zcdp(0.0) + bounds.bounded_range(0.0) + bounds.renyi_curve([2, INF], [0, 0])
    assert rdp.epsilon(none, 0.0) == 0
    assert rdp.epsilon(bounds.zcdp(INF), 0.5) == INF
    assert rdp.epsilon(7 * bounds.bounded_range(0.5), 0.0) == 3.5
    assert rdp.epsilon(0 * bounds.zcdp(1.0), 0.0) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bounds.zcdp(-1.0), "rho = -1.0: expected a number of at least 0"),
        (lambda: bounds.bounded_range(-1.0), "epsilon = -1.0: expected"),
        (lambda: bounds.renyi_curve([1.0, 2.0], [0.1, 0.1]), "expected rising numbers above 1"),
        (lambda: bounds.renyi_curve([3.0, 2.0], [0.1, 0.1]), "expected rising numbers above 1"),
        (lambda: bounds.renyi_curve([2.0, 3.0], [0.1]), r"expected \(..., 2\)"),
    ],
)
def test_what_is_wrong_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
