"""The trade-off curve's bracket holds the best attack's error rates, and is narrow."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import special, stats

from dpjax.accounting import bounds, exact, loss, risk, tradeoff

FPR = np.concatenate([[0, 1e-9, 1e-6, 1e-3], np.linspace(0.01, 1, 23)])


def assert_holds(bracket, truth, width=2e-9):
    assert np.all(bracket.lower <= truth + 1e-14)
    assert np.all(truth <= bracket.upper + 1e-14)
    assert np.all(bracket.lower <= bracket.estimate)
    assert np.all(bracket.estimate <= bracket.upper)
    assert np.max(bracket.upper - bracket.lower) < width


@pytest.mark.parametrize("mu", [1e-4, 0.1, 1.0, 5.0, 20.0])
def test_gaussian_compositions_meet_the_closed_form(mu):
    composition = 3 * loss.gaussian(2 / mu) + loss.gaussian(2 / mu)
    assert_holds(tradeoff.bracket(composition, FPR), risk.tradeoff_of_gaussian(FPR, mu=mu))


@pytest.mark.parametrize("noise", [0.05, 0.5, 2.0, 100.0])
def test_one_laplace_release_meets_the_closed_form(noise):
    truth = risk.tradeoff_of_laplace(FPR, noise_multiplier=noise)
    assert_holds(tradeoff.bracket(loss.laplace(noise), FPR), truth)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (1, 0), (0.3, 0.2), (5, 1e-6), (1, 1)])
def test_one_guarantee_meets_its_closed_form(epsilon, delta):
    truth = risk.tradeoff_of_guarantee(FPR, epsilon=epsilon, delta=delta)
    assert_holds(tradeoff.bracket(loss.approximate(epsilon, delta), FPR), truth)


def test_composed_responses_meet_neyman_and_pearson():
    epsilon, count = 0.7, 5
    honest = np.arange(count + 1)
    chance = 1 / (1 + np.exp(-epsilon))
    p, q = stats.binom.pmf(honest, count, chance), stats.binom.pmf(honest, count, 1 - chance)
    order = np.argsort(-p / q)
    tpr = np.interp(FPR, np.append(0, np.cumsum(q[order])), np.append(0, np.cumsum(p[order])))
    assert_holds(tradeoff.bracket(count * loss.pure(epsilon), FPR), 1 - tpr)


def test_two_directions_give_the_curve_below_both():
    # one step of the sampled Gaussian: P = (1 - q) N(0, 1) + q N(1, 1) and Q = N(0, 1)
    q = 0.3
    threshold = np.linspace(-9, 11, 400_001)
    null = stats.norm.sf(threshold)
    mixed = (1 - q) * null + q * stats.norm.sf(threshold - 1)
    remove = np.interp(FPR, null[::-1], 1 - mixed[::-1])
    add = np.interp(FPR, 1 - mixed, null)  # the hypotheses exchanged: reject below
    bracket = tradeoff.bracket(loss.sampled_gaussian(q, 1.0), FPR)
    assert np.all(bracket.lower <= np.minimum(remove, add) + 1e-9)
    assert_holds(bracket, bracket.estimate)
    # the largest convex curve below both touches one of them away from where they meet
    touched = np.minimum(remove, add) - bracket.upper < 1e-8
    assert 0.6 < np.mean(touched) < 1
    assert bracket.upper[0] == pytest.approx(1)


@pytest.mark.slow
def test_the_profile_of_a_training_run_comes_back_from_its_curve():
    training = 2000 * loss.sampled_gaussian(0.02, 1.5)
    bracket = tradeoff.bracket(training, FPR[::3])
    assert_holds(bracket, bracket.estimate)
    # delta is one less the least of miss rate + e^epsilon fpr; the least lies between two points
    fpr = np.geomspace(1e-4, 0.5, 40)
    miss = tradeoff.bracket(training, fpr)
    for epsilon in (0.5, 1.5):
        delta = exact.delta(training, epsilon)
        least = np.min(miss.upper + np.exp(epsilon) * fpr)
        assert 1 - least <= delta + 1e-12
        assert 1 - least > 0.97 * delta
    assert risk.tradeoff_of_loss(FPR[6], training) == pytest.approx(bracket.lower[2], abs=2e-9)


def test_a_long_training_run_s_curve_is_that_of_both_its_laws():
    """Against the sums of 10,000 losses by a plain FFT, whose error falls with the step squared."""
    q, count, size, half = 0.01, 10_000, 1 << 19, 14.0
    step = 2 * half / size
    index = np.arange(np.floor(np.log1p(-q) / step) - 1, np.ceil(12 / step))
    edges = np.append(index - 0.5, index[-1] + 0.5) * step
    with np.errstate(divide="ignore"):
        x = np.log(np.maximum(np.expm1(edges) / q + 1, 0)) + 0.5
    null = np.where(x[:-1] > 0, -np.diff(special.ndtr(-x)), np.diff(special.ndtr(x)))
    mixed = (1 - q) * null - q * np.diff(special.ndtr(1 - x))

    def total(law):
        ring = np.zeros(size)
        ring[index.astype(int) % size] = law
        return np.roll(np.fft.irfft(np.fft.rfft(ring) ** count, size), size // 2)

    null, mixed = total(null), total(mixed)
    fpr = np.array([1e-3, 1e-2])  # where the record's absence is the null hypothesis
    miss = np.interp(fpr, np.cumsum(null[::-1]), 1 - np.cumsum(mixed[::-1]))
    assert np.all(miss < np.interp(fpr, np.cumsum(mixed), 1 - np.cumsum(null)))
    bracket = tradeoff.bracket(count * loss.sampled_gaussian(q, 1.0), fpr)
    assert_allclose(bracket.estimate, miss, atol=3e-7)


@pytest.mark.slow
@settings(max_examples=6)
@given(st.floats(0.3, 20), st.integers(1, 6), st.floats(0, 1))
def test_no_more_nodes_than_needed_change_nothing(noise, count, fpr):
    composition = count * loss.discrete_laplace(noise, 1)
    coarse = tradeoff._profile(composition, np.linspace(0, tradeoff._last_epsilon(composition), 9))
    lower = tradeoff._below(coarse, coarse.delta.upper, np.array([fpr]))
    upper, _ = tradeoff._above(coarse, np.array([fpr]))
    fine = tradeoff.bracket(composition, fpr)
    assert lower[0] <= fine.upper
    assert fine.lower <= upper[0]


def test_the_advantage_is_the_widest_gap():
    fpr = np.linspace(0, 1, 201)
    for composition in (loss.laplace(0.7), 2 * loss.gaussian(1.5), loss.approximate(0.5, 0.1)):
        miss = tradeoff.bracket(composition, fpr).lower
        widest = np.max(1 - miss - fpr)
        assert_allclose(risk.advantage_of_loss(composition), widest, atol=1e-4)
        assert widest <= risk.advantage_of_loss(composition) + 1e-12


def test_edges_and_shapes():
    nothing, everything = loss.gaussian(np.inf), loss.gaussian(0.0)
    assert_allclose(tradeoff.bracket(nothing, FPR).upper, 1 - FPR, atol=1e-14)
    assert_allclose(tradeoff.bracket(everything, FPR).upper, 0, atol=1e-14)
    assert tradeoff.bracket(loss.laplace(1.0), 0.5).lower.shape == ()
    grid = tradeoff.bracket(loss.laplace(1.0), FPR[:6].reshape(2, 3))
    flat = tradeoff.bracket(loss.laplace(1.0), FPR[:6])
    for end, other in zip(itertools.chain(grid), flat, strict=True):
        np.testing.assert_array_equal(end.ravel(), other)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tradeoff.bracket(loss.laplace(1.0), 1.5), "fpr = 1.5: expected"),
        (lambda: tradeoff.bracket(loss.laplace(1.0), np.nan), "fpr = nan: expected"),
        (lambda: tradeoff.bracket(loss.laplace([1.0, 2.0]), 0.5), "loss has shape (2,): expected"),
        (lambda: tradeoff.bracket(bounds.zcdp(0.5), 0.5), "loss has "),
        (lambda: risk.advantage_of_loss(bounds.zcdp(0.5)), "loss has "),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="expected") as error:
        call()
    assert str(error.value).startswith(message)
