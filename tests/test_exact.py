"""The exact accountant: brackets hold the truth, are narrow, and keep to the edges."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from dpjax.accounting import (
    closed,
    composition,
    contour,
    exact,
    gaussian,
    integrated,
    loss,
    rdp,
)
from dpjax.accounting.leaks.sampled_laplace import PoissonLaplace

DATA = Path(__file__).parent / "data"
INF = float("inf")


def cases(file, topic):
    blocks = json.loads((DATA / file).read_text())
    return [case for block in blocks if block["topic"] == topic for case in block["cases"]]


def flat(composition, size):
    return exact._flat(composition, (size,))


@pytest.mark.parametrize("log10_delta", [-1, -2, -5, -10, -30, -100])
def test_general_path_on_gaussians_meets_the_closed_form(log10_delta):
    mu = np.array([0.001, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 40.0])
    epsilon = gaussian.epsilon(10.0**log10_delta, mu=mu)
    truth = gaussian.log_delta(epsilon, mu=mu)
    composition = flat(loss.gaussian(2 / mu) + 3 * loss.gaussian(2 / mu), mu.size)
    lower, middle, upper = integrated.log_delta(composition, "both", epsilon)
    reachable = epsilon > 0
    assert_allclose(middle[reachable], truth[reachable], rtol=0, atol=1e-11)
    assert np.all(lower <= truth + 1e-14 * np.abs(truth))
    assert np.all(truth - 1e-14 * np.abs(truth) <= upper)
    assert np.all((upper - lower)[reachable] < 1e-10)


@pytest.mark.parametrize("case", cases("sampled_gaussian.json", "sgm.eps_bounds"))
def test_sampled_gaussian_lies_inside_published_brackets(case):
    q, s, k, d = (case["inputs"][name] for name in ("q", "sigma", "steps", "delta"))
    bracket = exact.epsilon_bracket(k * loss.sampled_gaussian(q, s), d)
    assert case["lower"] <= bracket.lower <= bracket.estimate <= bracket.upper <= case["upper"]
    assert bracket.upper - bracket.lower <= 1e-9 * bracket.estimate


@pytest.mark.parametrize("q", [1e-9, 1e-8, 1e-7, 1e-4])
def test_chernoff_bounds_hold_next_to_a_tiny_largest_loss(q):
    """There they are tight, at an s of 1e10 and more, by which a rounded logarithm would count."""
    leak = PoissonLaplace(np.full(20, q), np.full(20, 1.5))
    once = composition.once(leak)
    at = leak.supremum("remove") * (1 - np.geomspace(1e-7, 1e-2, 20))
    truth = leak.log_delta_once(at, "remove")
    assert np.all(integrated.log_delta(once, "remove", at)[2] >= truth)
    assert np.all(integrated.epsilon(once, "remove", truth)[2] >= at)


@pytest.mark.parametrize("case", cases("laplace_composed.json", "laplace.compose_eps"))
def test_composed_laplace_epsilon(case):
    b, k, d = (case["inputs"][name] for name in ("b", "k", "delta"))
    bracket = exact.epsilon_bracket(k * loss.laplace(b), d)
    assert bracket.lower <= case["lower"]
    assert case["upper"] <= bracket.upper
    assert_allclose(bracket.estimate, case["expected"], rtol=1e-13)
    assert bracket.upper - bracket.lower <= 1e-10 * bracket.upper


@pytest.mark.parametrize("case", cases("laplace_composed.json", "laplace.compose_delta"))
def test_composed_laplace_delta(case):
    b, k, e = (case["inputs"][name] for name in ("b", "k", "eps"))
    bracket = exact.delta_bracket(k * loss.laplace(b), e)
    assert bracket.lower <= case["expected"] <= bracket.upper
    assert_allclose(bracket.estimate, case["expected"], rtol=1e-11)
    assert bracket.upper - bracket.lower <= 1e-9 * bracket.upper


@pytest.mark.parametrize("case", cases("sampled_gaussian.json", "sgm.delta_one_step"))
def test_one_step_of_the_sampled_gaussian(case):
    q, s, e = (case["inputs"][name] for name in ("q", "sigma", "eps"))
    step = flat(loss.sampled_gaussian(q, s), 1)
    for direction in step.directions:
        if e < step.supremum(direction)[0]:
            log = exact.log_delta(step, direction, np.array([float(e)]))[:, 0]
            assert_allclose(np.exp(log), case["expected"][direction], rtol=1e-9, atol=1e-15)
    assert_allclose(exact.delta(loss.sampled_gaussian(q, s), e), case["expected"]["max"], rtol=1e-9)


def test_the_finite_sum_and_the_line_agree():
    composition = flat([64, 100, 150] * loss.laplace(0.7), 3)
    epsilon = np.array([60.0, 90.0, 150.0])
    line = integrated.log_delta(composition, "both", epsilon)
    finite_sum = closed.log_delta(composition, "both", epsilon)
    assert_allclose(line[1], finite_sum[1], rtol=0, atol=1e-11)
    assert np.all(line[0] <= finite_sum[2])
    assert np.all(finite_sum[0] <= line[2])


@pytest.mark.parametrize("case", cases("sampled_gaussian.json", "sgm.rdp"))
def test_renyi_divergence_of_the_sampled_gaussian(case):
    q, s, order = (float(case["inputs"][name]) for name in ("q", "sigma", "order"))
    cumulant = loss.sampled_gaussian(q, s).cumulant(order - 1, "remove")
    assert_allclose(cumulant / (order - 1), case["expected"], rtol=1e-9)


def test_trial_values_of_the_sampled_gaussian():
    """Values of an independent trial: direction remove, then add."""
    steps = exact._flat(10_000 * loss.sampled_gaussian(0.01, 1.0), (1,))
    for direction, expected in (("remove", 6.1877124), ("add", 5.6115085)):
        answer = exact._epsilon(steps, direction, np.array([1e-5]), np.zeros(1), np.zeros(1))
        assert_allclose(answer[:, 0], expected, atol=6e-8)


def test_full_sampling_is_the_gaussian():
    bracket = exact.epsilon_bracket(100 * loss.sampled_gaussian(1.0, 20.0), 1e-6)
    truth = exact.epsilon(100 * loss.gaussian(20.0), 1e-6)
    assert bracket.lower <= truth * (1 + 1e-13)
    assert truth * (1 - 1e-13) <= bracket.upper
    assert_allclose(bracket.estimate, truth, rtol=1e-11)


@settings(max_examples=5)
@given(
    log_q=st.floats(-8, 0),
    log_s=st.floats(-0.3, 3),
    log_k=st.floats(0, 9),
    log_d=st.floats(-30, -1),
)
def test_bracket_is_below_the_renyi_conversion_and_ordered(log_q, log_s, log_k, log_d):
    composition = int(10**log_k) * loss.sampled_gaussian(10**log_q, 10**log_s)
    bracket = exact.epsilon_bracket(composition, 10**log_d)
    assert 0 <= bracket.lower <= bracket.estimate <= bracket.upper < INF
    assert bracket.lower <= rdp.epsilon(composition, 10**log_d) * (1 + 1e-9)


@pytest.mark.slow
@settings(max_examples=10)
@given(epsilon=st.floats(0, 6), scale=st.floats(0.3, 30), count=st.integers(1, 200))
def test_delta_and_epsilon_are_inverse(epsilon, scale, count):
    composition = count * loss.laplace(scale) + loss.gaussian(1.0)
    there = exact.delta_bracket(composition, epsilon)
    assert 0 <= there.lower <= there.estimate <= there.upper <= 1
    back = exact.epsilon_bracket(composition, there.upper)
    assert back.lower <= epsilon * (1 + 1e-12)
    again = exact.epsilon_bracket(composition, there.lower)
    assert epsilon <= again.upper * (1 + 1e-12) + 1e-15


def test_finer_lines_move_nothing_beyond_the_bracket(monkeypatch):
    composition = [100, 1000, 10_000] * loss.sampled_gaussian(0.02, [[1.0], [2.0]])
    coarse = exact.epsilon_bracket(composition, 1e-5)
    monkeypatch.setattr(contour, "_TOLERANCE", 1e-18)
    fine = exact.epsilon_bracket(composition, 1e-5)
    assert np.all(np.maximum(coarse.lower, fine.lower) <= np.minimum(coarse.upper, fine.upper))
    assert_allclose(coarse.estimate, fine.estimate, rtol=1e-11)


def test_grouping_and_order_do_not_matter():
    one, two = loss.laplace(5.0), loss.gaussian(4.0)
    ways = [30 * one + 4 * two, 4 * two + 10 * one + 20 * one, 2 * (15 * one + 2 * two)]
    answers = [float(exact.epsilon(way, 1e-6)) for way in ways]
    assert_allclose(answers, answers[0], rtol=1e-12)


def test_edges():
    noise = loss.gaussian([0.0, 1.0, INF])
    assert_allclose(exact.epsilon(noise, 1e-5), [INF, 4.377178096, 0], rtol=1e-9)
    assert_allclose(exact.epsilon(noise, 0.0), [INF, INF, 0])
    assert_allclose(exact.epsilon(noise, 1.0), 0)
    assert_allclose(exact.delta(noise, INF), [1, 0, 0])
    assert exact.epsilon(0 * loss.laplace(1.0), 0.0) == 0
    assert exact.epsilon(7 * loss.laplace(2.0), 0.0) == 3.5
    assert exact.epsilon(loss.gaussian(10.0), 0.1) == 0
    assert exact.epsilon(10 * loss.laplace(1000.0) + loss.gaussian(1000.0), 0.1) == 0
    idle = loss.sampled_gaussian([0.0, 0.3, 0.3], [1.0, INF, 0.0])
    assert_allclose(exact.epsilon(idle, 0.4), [0, 0, 0])  # delta(0) is 0.3 without noise
    assert_allclose(exact.epsilon(idle, 0.2), [0, 0, INF])


@pytest.mark.parametrize("wrong", [-1e-9, 1.5, float("nan")])
def test_bad_delta_is_named(wrong):
    with pytest.raises(ValueError, match=r"delta = .*: expected a number in \[0, 1\]"):
        exact.epsilon(loss.gaussian(1.0), wrong)


@pytest.mark.parametrize("wrong", [-1e-9, float("nan")])
def test_bad_epsilon_is_named(wrong):
    with pytest.raises(ValueError, match=r"epsilon = .*: expected a number of at least 0"):
        exact.delta(loss.gaussian(1.0), wrong)


@pytest.mark.parametrize(
    ("q", "s", "k"),
    [(1e-8, 0.01, 1), (1e-3, 1.0, 10**9), (1e-3, 1e6, 1)],  # more of them in test_extremes.py
)
def test_extremes_are_answers(q, s, k):
    composition = k * loss.sampled_gaussian(q, s)
    bracket = exact.epsilon_bracket(composition, [1e-30, 1e-5])
    assert np.all((bracket.lower >= 0) & (bracket.lower <= bracket.upper))
    assert not np.any(np.isnan(bracket))
    deltas = exact.delta_bracket(composition, [1e-6, 1e4])
    assert np.all((deltas.lower >= 0) & (deltas.upper <= 1) & (deltas.lower <= deltas.upper))


def test_an_upper_end_below_the_floats_is_not_zero():
    for leak in (loss.gaussian(1.0), loss.sampled_gaussian([0.3], 1.0)):
        tiny = exact.delta_bracket(leak, [50.0, 1e4, 1e155, 1e300])
        assert np.all(tiny.lower == 0)
        assert np.all((tiny.upper > 0) & (tiny.upper < 1e-300))
    # where the bound is infinity less infinity, 1 is one
    assert exact.delta_bracket(loss.gaussian(1.0) + loss.laplace(1.0), 1e300).upper > 0


def test_the_direction_that_leaks_less_leaves_the_bracket_narrow():
    # five additions leak 0.0503 at most: at 0.0497 their delta is some 1e-90
    steps = 5 * loss.sampled_gaussian(0.01, 2.0)
    lower, estimate, upper = exact.delta_bracket(steps, 0.0497)
    assert lower <= estimate <= upper <= lower * (1 + 1e-8)
    known = np.log(estimate)[None]
    added = exact.log_delta(exact._flat(steps, ()), "add", np.array([0.0497]), known)
    assert -250 < added[2, 0] < -200  # bounded alone: it is below what is known
    assert added[0, 0] == -np.inf


def test_few_laplace_releases_with_next_to_no_noise():
    # all three are at their largest with chance 1 / 8, so delta is (1 - exp(-x)) / 8 near 300 - x
    lower, estimate, upper = exact.epsilon_bracket(3 * loss.laplace(0.01), 1e-5)
    assert upper - 1e-9 * upper <= lower <= estimate <= upper < 300
    assert_allclose(300 - float(estimate), 7.99984001066e-05, rtol=1e-8)  # by mpmath, 60 digits


def test_what_all_losses_are_nearly_is_a_lower_end():
    # a discrete Gaussian of scale 0.01 is 0 but for chances of exp(-5000): its loss is 20000
    lower, _, upper = exact.epsilon_bracket(10**9 * loss.discrete_gaussian(0.01, 2), 1e-5)
    assert 2e13 * (1 - 1e-12) <= lower <= upper <= 2e13 * (1 + 1e-11)


def test_a_guarantee_keeps_its_epsilon_at_its_own_delta():
    own = loss.approximate([0.3, 1.0], [1e-6, 0.2])
    assert np.array_equal(exact.epsilon(own, [1e-6, 0.2]), [0.3, 1.0])
    assert np.array_equal(exact.delta(own, [0.3, 1.0]), [1e-6, 0.2])
    assert np.isinf(exact.epsilon(own, np.nextafter([1e-6, 0.2], 0))).all()
    beside = own + loss.laplace(1.0)
    assert_allclose(exact.epsilon(beside, [1e-6, 0.2]), [1.3, 2.0], rtol=1e-12)
    assert np.isinf(exact.epsilon(2 * own, [1e-6, 0.2])).all()


def test_never_above_the_best_renyi_conversion_where_little_is_known():
    many = 10**9 * loss.sampled_gaussian([1e-9, 1e-6], 1.0)
    bracket = exact.epsilon_bracket(many, [1e-6, 1e-30])
    most = rdp.epsilon(many, [1e-6, 1e-30], conversion="optimal")
    assert np.all((bracket.lower < bracket.upper) & (bracket.upper <= most))
