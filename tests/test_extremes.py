"""Every family at the ends of its parameters, counts, epsilons and deltas: ordered answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dpjax.accounting import basic, contour, discretized, exact, gaussian, loss, rdp

INF = float("inf")
COUNTS = (1, 3, 1000, 10**9)
DELTAS = np.array([0.0, 1e-30, 1e-6, 0.5])
EPSILONS = np.array([0.0, 1e-6, 1.0, 1e4])
NOISE = (0.01, 1.0, 1e6)
Q = (1e-8, 0.01, 1.0)

QUICK = {
    "gaussian": [loss.gaussian(noise) for noise in NOISE],
    "laplace": [loss.laplace(noise) for noise in NOISE],
    "pure": [loss.pure(epsilon) for epsilon in (1e-6, 1.0, 1e4)],
    "approximate": [loss.approximate(1.0, delta) for delta in (1e-30, 1e-7, 1.0)],
    "discrete_laplace": [loss.discrete_laplace(scale, 3) for scale in NOISE],
    "discrete_gaussian": [loss.discrete_gaussian(scale, 2) for scale in NOISE],
}
SLOW = {
    "response": [
        loss.k_ary_response(scale, 5, adjacency=adjacency)
        for scale in NOISE
        for adjacency in ("replace_one", "add_remove")
    ],
}
# one release is quick, or a second for Laplace noise of 0.01; of compositions, which take seconds,
# each pair of values once
LATIN = [
    (q, noise, COUNTS[1 + (i + j) % 3]) for i, q in enumerate(Q) for j, noise in enumerate(NOISE)
]
SAMPLED = [
    pytest.param(count * family(q, noise), id=f"{family.__name__}-{q}-{noise}-{count}", marks=marks)
    for family in (loss.sampled_gaussian, loss.sampled_laplace)
    for q, noise, many in LATIN
    for count in (1, many)
    for second in [family is loss.sampled_laplace and noise == 0.01]
    for marks in [pytest.mark.slow if count > 1 or second else ()]
]
CASES = [
    pytest.param(count * leak, id=f"{name}-{i}-{count}", marks=marks)
    for families, quick in ((QUICK, (1, 10**9)), (SLOW, ()))
    for name, leaks in families.items()
    for i, leak in enumerate(leaks)
    for count in COUNTS
    for marks in [() if count in quick else pytest.mark.slow]
]


def check(bracket, most):
    assert not np.any(np.isnan(bracket))
    assert np.all(bracket.lower >= 0)
    assert np.all((bracket.lower <= bracket.estimate) & (bracket.estimate <= bracket.upper))
    assert np.all(bracket.upper <= most)
    # a larger delta, or epsilon, asks for no more of the other
    assert np.all(bracket.lower[1:] <= bracket.upper[:-1])


@pytest.mark.parametrize("composition", CASES)
def test_every_extreme_has_an_answer(composition):
    answers(composition, DELTAS, EPSILONS)


@pytest.mark.parametrize("composition", SAMPLED)
def test_every_extreme_of_a_sample_has_an_answer(composition):
    answers(composition, DELTAS[1:3], EPSILONS[2:])


def answers(composition, deltas, epsilons):
    there = exact.epsilon_bracket(composition, deltas)
    check(there, INF)
    check(exact.delta_bracket(composition, epsilons), 1)
    assert np.all(there.lower <= rdp.epsilon(composition, deltas) * (1 + 1e-9))


@pytest.mark.slow
def test_ten_thousand_different_losses():
    noise = np.linspace(50, 150, 10_000)
    for family in (loss.gaussian, loss.laplace):
        total = family(noise).sum()
        bracket = exact.epsilon_bracket(total, 1e-6)
        assert bracket.upper - bracket.lower <= 1e-9 * bracket.upper
        assert bracket.upper <= rdp.epsilon(total, 1e-6)


@settings(max_examples=6, deadline=None)
@given(log_e=st.floats(-3, 0.5), count=st.integers(1, 10**5), log_d=st.floats(-12, -1))
def test_exact_is_below_optimal_which_is_below_advanced_and_basic(log_e, count, log_d):
    epsilon, delta = 10.0**log_e, 10.0**log_d
    tight = exact.epsilon(count * loss.laplace(1 / epsilon), delta)
    optimal = exact.epsilon_bracket(count * loss.pure(epsilon), delta)
    assert tight <= optimal.upper * (1 + 1e-9)
    most = min(
        float(basic.epsilon(count * loss.pure(epsilon), delta)),
        float(basic.advanced(count * loss.pure(epsilon), delta)),
    )
    assert optimal.lower <= most * (1 + 1e-12)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(
    log_q=st.floats(-3, -0.5),
    noise=st.floats(0.7, 5),
    count=st.integers(100, 10**5),
    log_d=st.floats(-9, -3),
)
def test_sampled_gaussians_are_ordered(log_q, noise, count, log_d):
    """More noise and a larger delta ask for less epsilon; more steps, a larger sample for more."""
    q, delta = 10.0**log_q, 10.0**log_d
    some, more_noise, more_q, more_steps = exact.epsilon_bracket(
        [count, count, count, 2 * count]
        * loss.sampled_gaussian([q, q, min(1.5 * q, 1), q], [noise, 1.2 * noise, noise, noise]),
        delta,
    ).lower
    larger_delta = exact.epsilon_bracket(count * loss.sampled_gaussian(q, noise), 3 * delta).lower
    upper = exact.epsilon(count * loss.sampled_gaussian(q, noise), delta)
    assert max(more_noise, larger_delta) <= upper
    assert some <= upper
    assert some <= min(more_q, more_steps) * (1 + 1e-6)


def test_a_finer_line_moves_nothing_beyond_the_bracket(monkeypatch):
    composition = [1000, 200] * loss.sampled_gaussian(0.02, 1.0) + 3 * loss.laplace(20.0)
    coarse = exact.epsilon_bracket(composition, 1e-6)
    monkeypatch.setattr(contour, "_TOLERANCE", 1e-18)
    fine = exact.epsilon_bracket(composition, 1e-6)
    assert np.all(np.maximum(coarse.lower, fine.lower) <= np.minimum(coarse.upper, fine.upper))


def test_a_finer_grid_moves_nothing_beyond_the_bracket(monkeypatch):
    composition = 2 * loss.sampled_laplace(0.02, 1.0)
    brackets = []
    for size in (1 << 13, 1 << 14, 1 << 15):
        monkeypatch.setattr(discretized, "_FIRST", size)
        monkeypatch.setattr(discretized, "_MOST", size)
        brackets.append(exact.epsilon_bracket(composition, 1e-6))
    lower, _, upper = (np.array([getattr(b, end) for b in brackets]) for end in brackets[0]._fields)
    assert lower.max() <= upper.min()
    assert np.all(upper - lower <= 1e-4 * upper)


@pytest.mark.parametrize("family", [loss.sampled_gaussian, loss.sampled_laplace])
@pytest.mark.parametrize("noise", [1e8, 1e20, 1e291, 1e300])
@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.slow), 10**6])
def test_samples_under_any_noise_have_prompt_answers(family, noise, count):
    composition = count * family(0.5, noise)
    answers(composition, DELTAS[2:], EPSILONS[1:])
    assert np.all(rdp.epsilon(composition, DELTAS[1:]) < 1e-2)
    assert exact.epsilon(composition, 0.5) == 0


def test_many_samples_under_much_noise_are_the_gaussian_of_a_smaller_shift():
    """Up to the order of 1 / noise."""
    bracket = exact.epsilon_bracket(10**6 * loss.sampled_gaussian(0.5, 1e7), 1e-5)
    expected = gaussian.epsilon(1e-5, mu=0.5 * 1e3 / 1e7)
    np.testing.assert_allclose([bracket.lower, bracket.upper], expected, rtol=1e-7)


def test_a_delta_above_all_total_variations_asks_for_nothing():
    few = 3 * loss.sampled_laplace(0.01, 100.0) + 2 * loss.sampled_gaussian(0.01, 100.0)
    # 3 q (1 - exp(-1/200)) + 2 q (2 Phi(1/200) - 1)
    most = 0.03 * -np.expm1(-1 / 200) + 0.02 * special.erf(1 / 200 / np.sqrt(2))
    assert exact.epsilon(few, most * (1 + 1e-6)) == 0
    assert exact.delta(few, 0.0) <= most * (1 + 1e-6)
    many = 1000 * loss.sampled(1e-300, loss.discrete_laplace(1e-12, 1))
    assert exact.epsilon(many, 1e-5) == 0
    assert exact.delta(3 * loss.sampled_laplace(0.01, 1e300), 0.0) <= 3 * 0.01 / 1e300
