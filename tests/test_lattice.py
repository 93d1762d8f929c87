"""Exact composition on a lattice: brackets hold the truth of direct convolution, and are narrow."""

import lattice_laws as laws
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from dpjax.accounting import _lattice_line, exact, lattice, loss, rdp

INF = float("inf")
PAIRS = {
    "binary": (loss.pure(0.3), laws.response(0.3, 2), "both"),
    "binary, certain": (loss.pure(30.0), laws.response(30.0, 2), "both"),
    "k-ary": (loss.k_ary_response(0.5, 7), laws.response(2.0, 7), "both"),
    "k-ary, remove": (
        loss.k_ary_response(1.0, 5, adjacency="add_remove"),
        laws.uniform_response(1.0, 5, "remove"),
        "remove",
    ),
    "k-ary, add": (
        loss.k_ary_response(1.0, 5, adjacency="add_remove"),
        laws.uniform_response(1.0, 5, "add"),
        "add",
    ),
    "discrete Laplace": (loss.discrete_laplace(2.0, 3), laws.discrete_laplace(2.0, 3), "both"),
    "discrete Gaussian, narrow": (
        loss.discrete_gaussian(0.4, 1),
        laws.discrete_gaussian(0.4, 1),
        "both",
    ),
    "discrete Gaussian": (loss.discrete_gaussian(1.5, 2), laws.discrete_gaussian(1.5, 2), "both"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("count", [1, 3])
def test_brackets_hold_the_truth_and_are_narrow(name, count):
    leak, law, direction = PAIRS[name]
    truth = laws.composed(law, count)
    flat = exact._flat(count * leak, (1,))
    losses = sorted(float(x) for x, _ in truth if 0 < x < 40)
    points = [0.0, *losses[:: max(len(losses) // 4, 1)], *np.linspace(0, losses[-1], 7)[1:-1]]
    for epsilon in points:
        expected = laws.delta(truth, epsilon)
        if expected < 1e-30:
            continue
        lower, _, upper = lattice.log_delta(flat, direction, np.array([epsilon]))[:, 0]
        assert lower <= laws.mp.log(expected) <= upper
        # the answer may be steep in epsilon itself, which is known to a rounding
        steep = laws.mp.log(laws.delta(truth, epsilon - 1e-14 * (1 + epsilon)) / expected)
        assert upper - lower <= 1e-11 * (1 - lower) + 10 * steep
    for target in (0.3, 1e-3, 1e-10, 1e-28):
        answer = lattice.epsilon(flat, direction, np.log([target]), np.zeros(1))
        lower, _, upper = answer[:, 0]
        assert lower == 0 or laws.delta(truth, lower) >= target
        assert laws.delta(truth, upper * (1 + 1e-15)) <= target
        assert upper - lower <= 1e-11 * (1 + upper)


def test_different_leaks_on_one_lattice():
    total = 2 * loss.pure(0.25) + loss.discrete_laplace(4.0, 3) + loss.k_ary_response(2.0, 4)
    law = laws.composed(laws.response(0.25, 2), 2)
    for other in (laws.discrete_laplace(4.0, 3), laws.response(0.5, 4)):
        law = [(a + b, p * q) for a, p in law for b, q in laws.composed(other, 1)]
    for epsilon in (0.0, 0.1, 0.25, 1.0, 1.5):
        bracket = exact.delta_bracket(total, epsilon)
        assert bracket.lower <= laws.delta(law, epsilon) <= bracket.upper
        assert bracket.upper - bracket.lower <= 1e-12


def test_steps_of_no_common_multiple_are_not_taken_for_a_lattice():
    both = exact._flat(loss.pure([0.1, 0.1, 0.1]) + loss.pure([0.3, np.pi / 30, 0.15]), (3,))
    steps = lattice.common_lattice(both, "both").step
    assert np.isnan(steps).tolist() == [False, True, False]
    assert_allclose(steps[[0, 2]], [0.2, 0.1], rtol=1e-15)
    mixed = exact._flat(loss.pure(0.1) + loss.discrete_gaussian(np.pi, 1), (1,))
    assert not lattice.applies(mixed, "both").any()
    mixed = exact._flat(loss.pure(0.1) + loss.discrete_laplace(np.pi, 1), (1,))
    assert np.isnan(lattice.common_lattice(mixed, "both").step).all()
    assert lattice.applies(mixed, "both").all()  # by rounding


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.1, 1e-3, 1e-12])
def test_different_guarantees_are_bracketed_by_rounding(target):
    epsilons = np.array([0.1, 0.07 * np.pi, 0.3, 0.15 * np.e])
    law = laws.response(epsilons[0], 2)
    for e in epsilons[1:]:
        law = laws.merged([(a + b, p * q) for a, p in law for b, q in laws.response(e, 2)])
    flat = exact._flat(loss.pure(epsilons).sum(), (1,))
    lower, _, upper = lattice.epsilon(flat, "both", np.log([target]), np.zeros(1))[:, 0]
    assert laws.delta(law, lower) >= target >= laws.delta(law, upper)
    assert upper - lower <= 1e-3 * upper
    for epsilon in (0.2, 0.9):
        lower, _, upper = lattice.log_delta(flat, "both", np.array([epsilon]))[:, 0]
        assert lower <= laws.mp.log(laws.delta(law, epsilon)) <= upper
        assert upper - lower <= 2e-2


def test_ten_thousand_different_guarantees_are_bracketed():
    rng = np.random.default_rng(5)
    queries = loss.pure(rng.uniform(0.005, 0.02, 10_000)).sum()
    bracket = exact.epsilon_bracket(queries, 1e-6)
    assert bracket.upper - bracket.lower <= 0.05 * bracket.upper
    # of the same sum of squares, all alike: the sum is near a Gaussian that knows no more
    alike = exact.epsilon(
        10_000 * loss.pure(np.sqrt((0.005**2 + 0.005 * 0.02 + 0.02**2) / 3)), 1e-6
    )
    assert bracket.lower <= alike <= bracket.upper


def test_different_discrete_laplace_noises_are_bracketed_by_rounding():
    scales, sensitivity = [2.0, np.e, np.pi], [3, 1, 2]
    law = laws.response(0.2, 2)
    for scale, shift in zip(scales, sensitivity, strict=True):
        one = laws.discrete_laplace(scale, shift)
        law = laws.merged([(a + b, p * q) for a, p in law for b, q in one])
    queries = loss.discrete_laplace(scales, sensitivity).sum() + loss.pure(0.2)
    for target in (0.1, 1e-3):
        lower, _, upper = map(float, exact.epsilon_bracket(queries, target))
        assert laws.delta(law, lower) >= target >= laws.delta(law, upper)
        assert upper - lower <= 1e-3 * upper
    lower, _, upper = map(float, exact.delta_bracket(queries, 1.0))
    assert lower <= laws.delta(law, 1.0) <= upper <= 1.001 * lower


def test_ten_thousand_different_discrete_laplace_noises_are_bracketed():
    queries = loss.discrete_laplace(np.linspace(50, 150, 10_000), 1).sum()
    bracket = exact.epsilon_bracket(queries, 1e-6)
    assert bracket.upper - bracket.lower <= 0.03 * bracket.upper
    # two losses each, 1 / scale and its negative: a guarantee's
    guarantees = exact.epsilon_bracket(loss.pure(1 / np.linspace(50, 150, 10_000)).sum(), 1e-6)
    assert_allclose(bracket, guarantees, rtol=1e-9)


def test_a_sum_along_an_axis_is_the_sum():
    queries = np.array([[3], [500]]) * loss.pure([0.1, 0.2, 0.3])
    one, two, three = (np.array([3, 500]) * loss.pure(e) for e in (0.1, 0.2, 0.3))
    answers = (
        exact.epsilon_bracket(queries.sum(-1), 1e-5),
        exact.epsilon_bracket(one + two + three, 1e-5),
    )
    assert_allclose(answers[0], answers[1], rtol=1e-12)


def test_other_lines_and_finer_ones_move_nothing_beyond_the_bracket(monkeypatch):
    total = [[3], [100], [10**5]] * loss.discrete_gaussian([0.4, 2.0, 30.0], 2)
    coarse = exact.epsilon_bracket(total, 1e-6)
    monkeypatch.setattr(_lattice_line, "_TOLERANCE", 1e-20)
    monkeypatch.setattr(_lattice_line, "_DIFFERENCE", 1e-2)
    fine = exact.epsilon_bracket(total, 1e-6)
    assert np.any(coarse.estimate != fine.estimate)
    assert np.all(np.maximum(coarse.lower, fine.lower) <= np.minimum(coarse.upper, fine.upper))
    assert_allclose(coarse.estimate, fine.estimate, rtol=1e-12)


def test_grouping_and_order_do_not_matter():
    one, two = loss.pure(0.1), loss.discrete_laplace(20.0, 1)
    ways = [30 * one + 4 * two, 4 * two + 10 * one + 20 * one, 2 * (15 * one + 2 * two)]
    answers = [float(exact.epsilon(way, 1e-6)) for way in ways]
    assert_allclose(answers, answers[0], rtol=1e-12)


@pytest.mark.slow
@settings(max_examples=20)
@given(epsilon=st.floats(0, 20), scale=st.floats(0.3, 30), count=st.integers(1, 10**6))
def test_delta_and_epsilon_are_inverse(epsilon, scale, count):
    total = count * loss.discrete_gaussian(scale, 1)
    there = exact.delta_bracket(total, epsilon)
    assert 0 <= there.lower <= there.estimate <= there.upper <= 1
    if there.lower > 1e-300:  # below, deltas lose their digits
        assert exact.epsilon_bracket(total, there.upper).lower <= epsilon * (1 + 1e-12)
        again = exact.epsilon_bracket(total, there.lower)
        assert epsilon <= again.upper * (1 + 1e-12) + 1e-15


@pytest.mark.slow
@settings(max_examples=20)
@given(
    log_scale=st.floats(-0.5, 3),
    sensitivity=st.integers(1, 5),
    log_count=st.floats(0, 9),
    log_delta=st.floats(-30, -1),
)
def test_exact_is_below_the_renyi_conversion(log_scale, sensitivity, log_count, log_delta):
    for make in (loss.discrete_laplace, loss.discrete_gaussian):
        total = int(10**log_count) * make(10**log_scale, sensitivity)
        bracket = exact.epsilon_bracket(total, 10**log_delta)
        assert 0 <= bracket.lower <= bracket.estimate <= bracket.upper < INF
        assert bracket.lower <= rdp.epsilon(total, 10**log_delta) * (1 + 1e-9)
        assert bracket.upper - bracket.lower <= 1e-9 * bracket.upper


EXTREMES = {
    "pure": loss.pure([1e-6, 0.1, 10.0, 1e4]),
    "k-ary": loss.k_ary_response([1e-4, 1.0, 1e6], 1000, adjacency="add_remove"),
    "discrete Laplace": loss.discrete_laplace([1e-3, 1.0, 1e6], [1, 3, 10**6]),
    "discrete Gaussian": loss.discrete_gaussian([1e-3, 1.0, 1e6], [1, 3, 10**6]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("count", [0, 1, 10**9])
def test_extremes_are_answers(name, count):
    total = count * EXTREMES[name]
    for delta in (0.0, 1e-30, 1e-5, 0.99, 1.0):
        bracket = exact.epsilon_bracket(total, delta)
        assert not np.any(np.isnan(bracket))
        assert np.all((bracket.lower >= 0) & (bracket.lower <= bracket.upper))
        assert np.all(bracket.upper >= exact.epsilon_bracket(total, min(1, 2 * delta)).lower)
    for epsilon in (0.0, 1e-6, 1e4, INF):
        bracket = exact.delta_bracket(total, epsilon)
        assert np.all((bracket.lower >= 0) & (bracket.upper <= 1))
        assert np.all(bracket.lower <= bracket.upper)
