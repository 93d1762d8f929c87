"""Randomized response: its cumulant is that of its law, and it dominates what it should."""

import lattice_laws as laws
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from dpjax.accounting import basic, exact, loss, rdp
from dpjax.accounting.leaks.response import Response, UniformResponse

INF = float("inf")
NODES = (1e-6, 1e-3, 0.7, 1.0, 20.0, 1e4, -0.2, -3.0, 0.5 + 1j, 1e-3 + 2j, 10 + 5j, 0.01 + 100j)


def check_cumulant(leak, law, direction):
    for t in NODES:
        value, error = leak.cumulant_with_error(np.array([t]), direction)
        off = abs(laws.mp.expm1(laws.mp.mpmathify(value[0]) - laws.cumulant(law, t)))
        assert off <= laws.mp.expm1(laws.mp.mpf(error[0])), (t, off, error)
        assert error[0] <= 1e-11 * (1 + abs(value[0])) or np.iscomplexobj(t)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 40.0])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_cumulants_are_those_of_the_laws(epsilon, k):
    parameters = np.array(epsilon), np.array(float(k))
    check_cumulant(Response(*parameters, np.array(0.0)), laws.response(epsilon, k), "both")
    for direction in ("remove", "add"):
        law = laws.uniform_response(epsilon, k, direction)
        check_cumulant(UniformResponse(*parameters), law, direction)
        largest = loss.k_ary_response(1 / epsilon, k, adjacency="add_remove").supremum(direction)
        assert_allclose(float(largest), float(max(law)[0]), rtol=1e-14)


@pytest.mark.parametrize(
    "leak",
    [
        Response(np.array(0.7), np.array(2.0), np.array(0.0)),
        Response(np.array(3.0), np.array(5.0), np.array(0.0)),
        UniformResponse(np.array(2.0), np.array(4.0)),
    ],
)
def test_decay_is_a_falling_bound_over_the_period(leak):
    for direction in leak.directions:
        y = np.linspace(0, np.pi / leak.step(direction), 200)
        for c in (0.01, 1.0, 30.0):
            at = np.array([c])
            bound = leak.log_decay_in_period(at, y, direction)
            there = np.real(leak.cumulant(c + 1j * y, direction))
            assert np.all(there - leak.cumulant(at, direction) <= bound + 1e-12)
            assert np.all(np.diff(bound) <= 1e-15)
            assert bound[-1] < -1e-9 or c == 30


@pytest.mark.parametrize("k", [2, 5])
def test_tails_are_those_of_the_law(k):
    law = laws.response(0.7, k)
    leak = Response(np.array(0.7), np.array(float(k)), np.array(0.0))
    points = np.array([-1.0, -0.71, -0.69, -0.1, 0.1, 0.69, 0.71, 1.0])
    tails = leak.tails(points, "both")
    for i, point in enumerate(points):
        above, below = (
            [(x, p) for x, p in law if (x > point) == side and p > 0] for side in (True, False)
        )
        expected = [sum(p for _, p in part) for part in (above, below)]
        expected += [sum(p * laws.mp.exp(-x) for x, p in part) for part in (above, below)]
        assert_allclose([float(t[i]) for t in tails[:4]], [float(e) for e in expected], rtol=1e-14)


def test_queries_of_every_kind_together():
    alone = loss.pure(np.pi / 10) + loss.laplace(2.0) + loss.k_ary_response(2.0, 4)
    bracket = exact.epsilon_bracket(alone, [0.1, 1e-5])
    known = loss.pure(np.pi / 10) + loss.pure(0.5) + loss.pure(0.5)
    assert np.all(bracket.upper - bracket.lower <= 1e-5 * bracket.upper)
    assert np.all(bracket.upper <= exact.epsilon(known, [0.1, 1e-5]))


@settings(max_examples=20)
@given(epsilon=st.floats(1e-3, 5), k=st.integers(1, 60), share=st.floats(0.01, 0.99))
def test_optimal_composition_is_the_binomial_sum(epsilon, k, share):
    target = share * k * epsilon
    lies = np.arange(k + 1)
    chance = stats.binom.logpmf(lies, k, 1 / (1 + np.exp(epsilon)))
    losses = (k - 2 * lies) * epsilon
    above = losses > target
    truth = np.sum(-np.exp(chance[above]) * np.expm1(target - losses[above]))
    bracket = exact.delta_bracket(k * loss.pure(epsilon), target)
    assert_allclose(float(bracket.estimate), truth, rtol=1e-10)
    assert bracket.upper - bracket.lower <= 1e-10 * bracket.upper


@settings(max_examples=20)
@given(log_epsilon=st.floats(-3, 1), log_count=st.floats(0, 9), log_delta=st.floats(-30, -1))
def test_exact_of_pure_is_below_every_other_rule(log_epsilon, log_count, log_delta):
    queries = int(10**log_count) * loss.pure(10**log_epsilon)
    bracket = exact.epsilon_bracket(queries, 10**log_delta)
    assert 0 <= bracket.lower <= bracket.estimate <= bracket.upper
    assert bracket.upper - bracket.lower <= 1e-7 * bracket.upper
    for rule in (basic.best_of, rdp.epsilon):
        assert bracket.lower <= rule(queries, 10**log_delta) * (1 + 1e-12)


@pytest.mark.slow
@settings(max_examples=20)
@given(multiplier=st.floats(0.2, 50), count=st.integers(1, 2000), log_delta=st.floats(-12, -1))
def test_laplace_is_dominated_by_its_guarantee(multiplier, count, log_delta):
    own = exact.epsilon_bracket(count * loss.laplace(multiplier), 10**log_delta)
    known = exact.epsilon_bracket(count * loss.pure(1 / multiplier), 10**log_delta)
    assert own.lower <= known.upper


def test_mass_at_infinity_comes_on_top():
    queries = 500 * loss.approximate(0.2, 1e-9)
    mass = -np.expm1(500 * np.log1p(-1e-9))
    rest = exact.delta(500 * loss.pure(0.2), 25.0)
    assert_allclose(exact.delta(queries, 25.0), mass + (1 - mass) * rest, rtol=1e-12)
    assert exact.epsilon(queries, mass / 2) == INF


def test_edges():
    assert exact.epsilon(0 * loss.pure(1.0), 0.0) == 0
    assert exact.epsilon(7 * loss.pure(0.5), 0.0) == 3.5
    assert exact.epsilon(loss.approximate(1.0, 1.0), 0.5) == INF
    assert exact.epsilon(loss.pure([0.0, INF]), 1e-5).tolist() == [0.0, INF]
    assert exact.epsilon(loss.pure(1.0), np.tanh(0.5) * (1 + 1e-12)) == 0
    assert exact.epsilon(loss.randomized_response([0.0, INF]), 1e-5).tolist() == [INF, 0.0]
    silent = loss.k_ary_response(0.0, 3, adjacency="add_remove")
    assert_allclose(exact.epsilon(silent, [0.5, 0.7]), [INF, 0])
    assert_allclose(float(exact.delta(silent, 0.0)), 2 / 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: loss.pure(-1.0), "epsilon = -1.0: expected a number of at least 0"),
        (lambda: loss.approximate(1.0, 2.0), "delta = 2.0: expected a number in"),
        (lambda: loss.k_ary_response(1.0, 1), "num_categories = 1: expected a whole number of"),
        (lambda: loss.k_ary_response(1.0, 2.5), "num_categories = 2.5: expected a whole number"),
        (lambda: loss.k_ary_response(1.0, 3, adjacency="x"), "adjacency = 'x': expected one of"),
    ],
)
def test_what_is_wrong_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
