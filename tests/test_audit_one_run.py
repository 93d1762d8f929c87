"""The one-run bound: no more often wrong than it says, and near the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpjax.audit import one_run


def bounds_of(correct, guesses, canaries, **options):
    """The bound for each number of right guesses, each number computed once."""
    values, inverse = np.unique(correct, return_inverse=True)
    bounds = [one_run.epsilon_lower_bound(int(v), guesses, canaries, **options) for v in values]
    return np.array(bounds)[inverse]


@pytest.mark.parametrize(("epsilon", "guesses"), [(0.0, 100), (1.0, 30), (1.0, 400), (4.0, 400)])
def test_bound_exceeds_the_truth_no_more_often_than_allowed_and_comes_near(epsilon, guesses):
    # Randomized response attains the theorem at delta 0: each guess is right with this chance.
    chance = np.exp(epsilon) / (1 + np.exp(epsilon))
    repeats = 2000
    correct = np.random.default_rng(guesses).binomial(guesses, chance, repeats)
    bounds = bounds_of(correct, guesses, 400, delta=0.0, confidence=0.9)
    assert np.sum(bounds > epsilon) <= stats.binom.isf(1e-6, repeats, 0.1)
    assert np.sum(bounds > epsilon * 1.001 + 0.01) >= stats.binom.isf(1 - 1e-6, repeats, 0.005)
    # the bound of the usual count is the truth less about 1.3 standard errors
    spread = 1.4 / np.sqrt(guesses * chance * (1 - chance))
    assert np.median(bounds) > epsilon - 2 * spread


def test_delta_is_charged_for_all_canaries():
    few = one_run.p_value(60, 80, 80, epsilon=0.5, delta=1e-3)
    many = one_run.p_value(60, 80, 4000, epsilon=0.5, delta=1e-3)
    none = one_run.p_value(60, 80, 4000, epsilon=0.5, delta=0.0)
    assert none < few < many
    assert many - none == pytest.approx(50 * (few - none), rel=1e-10)


def test_p_value_is_the_formula_summed_term_by_term():
    guesses, correct, canaries, epsilon, delta = 12, 9, 20, 0.7, 0.01
    law = stats.binom.pmf(np.arange(guesses + 1), guesses, 1 / (1 + np.exp(-epsilon)))
    slack = max(law[correct - i : correct].sum() / i for i in range(1, correct + 1))
    expected = law[correct:].sum() + 2 * canaries * delta * slack
    answer = one_run.p_value(correct, guesses, canaries, epsilon=epsilon, delta=delta)
    assert answer == pytest.approx(expected, rel=1e-12)


@given(st.integers(1, 200), st.data(), st.floats(0, 0.1), st.floats(0.5, 0.999))
def test_bound_is_the_edge_of_what_is_contradicted(guesses, data, delta, confidence):
    correct = data.draw(st.integers(0, guesses))
    bound = one_run.epsilon_lower_bound(correct, guesses, 200, delta=delta, confidence=confidence)
    assert 0 <= bound <= one_run.limit(guesses, confidence=confidence) * (1 + 1e-12) + 1e-12
    if bound > 0:
        p = one_run.p_value(correct, guesses, 200, epsilon=bound, delta=delta)
        assert p <= 1 - confidence
    above = one_run.p_value(correct, guesses, 200, epsilon=bound + 1e-6, delta=delta)
    assert above > 1 - confidence


def test_right_guesses_alone_reach_the_limit_and_no_guess_right_proves_nothing():
    best = one_run.epsilon_lower_bound(50, 50, 50, delta=0.0, confidence=0.95)
    assert best == pytest.approx(one_run.limit(50, confidence=0.95), rel=1e-12)
    assert one_run.epsilon_lower_bound(0, 50, 50, delta=0.0, confidence=0.95) == 0
    assert one_run.p_value(50, 50, 50, epsilon=np.inf, delta=0.0) == 1


def test_a_million_canaries():
    bound = one_run.epsilon_lower_bound(900_000, 10**6, 10**6, delta=1e-9, confidence=0.95)
    assert np.log(9) - 0.01 < bound < np.log(9)


def test_guesses_are_counted_and_ties_taken_in_order():
    included = np.array([True, False, True, False, True])
    scores = [3.0, 1.0, 2.0, 2.5, 0.5]
    assert one_run.guess(scores, included, num_in=1, num_out=0) == (1, 1)
    assert one_run.guess(scores, included, num_in=2, num_out=2) == (2, 4)
    assert one_run.guess(scores, ~included, num_in=5, num_out=0) == (2, 5)
    assert one_run.guess([1.0, 1.0, 1.0], included[:3], num_in=1, num_out=1) == (1, 2)


def test_guessing_from_noisy_sums_never_passes_the_truth_and_finds_half_noise():
    # A mechanism that gives each canary's own bit with Laplace noise of scale 1: epsilon 1.
    rng = np.random.default_rng(7)
    canaries, bounds = 2000, []
    for scale in (1.0, 0.5):
        included = rng.random(canaries) < 0.5
        scores = included + rng.laplace(0, scale, canaries)
        found = one_run.guess(scores, included, num_in=500, num_out=500)
        bounds.append(one_run.epsilon_lower_bound(*found, canaries, delta=1e-6, confidence=0.999))
    assert 0.5 < bounds[0] <= 1.0 < bounds[1] <= 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_correct": 11}, "num_correct = 11: expected at most num_guesses = 10"),
        ({"num_correct": -1}, "num_correct = -1: expected a whole number of at least 0"),
        ({"num_guesses": 21}, "num_guesses = 21: expected at most num_canaries = 20"),
        ({"num_guesses": 0}, "num_guesses = 0: expected a whole number of at least 1"),
        ({"delta": np.nan}, r"delta = nan: expected a number in \[0, 1\]"),
        ({"confidence": 1.0}, r"confidence = 1.0: expected a number in \(0, 1\)"),
    ],
)
def test_what_is_refused(change, message):
    arguments = {"num_correct": 5, "num_guesses": 10, "num_canaries": 20} | change
    options = {"delta": 0.0, "confidence": 0.95}
    options |= {k: arguments.pop(k) for k in list(arguments) if k in options}
    with pytest.raises(ValueError, match=f"^{message}$"):
        one_run.epsilon_lower_bound(*arguments.values(), **options)


def test_guesses_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"^num_in \+ num_out = 3: expected 1 to 2 guesses$"):
        one_run.guess([1.0, 2.0], np.array([True, False]), num_in=2, num_out=1)
    with pytest.raises(ValueError, match=r"^included = int64 of shape"):
        one_run.guess([1.0, 2.0], np.array([1, 0]), num_in=1, num_out=1)
